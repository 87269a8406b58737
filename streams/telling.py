"""How much waits, told to the sessions that could run it: with every grant, and where nobody offers also without one.

Workers move their slots by these counts. A count that is lost or late costs a session a second; so nothing is sent
again, and what was told is kept in memory only.
"""

from __future__ import annotations

from typing import Final

from minutebook.domain.book import Book
from minutebook.domain.offers import Session
from minutebook.domain.outputs import Output, ToSession
from minutebook.domain.records import Inbox
from streams.granting import Granting
from streams.sessions import Sessions

TELL_EVERY_MS: Final = 1_000
LOOK_EVERY_MS: Final = 100
"""So often at most all sessions are looked at."""


class Telling:
    """Counts of one partition on their way to sessions. Keeps what each was told."""

    def __init__(self, book: Book, sessions: Sessions, granting: Granting, partition: int) -> None:
        self._book = book
        self._sessions = sessions
        self._granting = granting
        self._partition = partition
        self._look_at = -1
        self._may_be_over = any(any(session.told) for session in sessions)
        """Whether some session may think that something waits."""

    def with_counts(self, outputs: list[Output], now: int) -> list[Output]:
        """The outputs of a frame that is committed; those with grants say how much more waits."""
        counts = _Counts(self._granting)
        return [self._with_count(output, counts, now) for output in outputs]

    def _with_count(self, output: Output, counts: _Counts, now: int) -> Output:
        if not isinstance(output, ToSession) or output.record.granted is None:
            return output
        session = self._sessions.get(output.session)
        queued = [] if session is None else self._tell(session, counts.of(session), now)
        record = output.record
        told = Inbox(record.session, record.partition, record.frame, record.start_by, queued, record.granted)
        return output._replace(record=told)

    def news(self, now: int) -> list[Inbox]:
        """Records without a grant, after everything that can be granted was: for sessions that offer nothing, each once in
        `TELL_EVERY_MS` at most, while something waits that they could run, and once when nothing waits any more.
        """
        if now < self._look_at:
            return []
        has_waiting = self._granting.has_waiting()
        if not (has_waiting or self._may_be_over):
            return []
        self._look_at = now + LOOK_EVERY_MS
        counts = _Counts(self._granting)
        found = []
        for session in self._sessions:
            if now - session.told_at < TELL_EVERY_MS or session.free() > 0 or not session.is_heard(now):
                continue
            queued = counts.of(session)
            if not session.is_leaving and (any(queued) or any(session.told)):
                self._tell(session, queued, now)
                found.append(Inbox(session.name, self._partition, self._book.cursor.position, 0, queued))
        self._may_be_over = has_waiting or any(any(session.told) for session in self._sessions)
        return found

    def _tell(self, session: Session, queued: list[int], now: int) -> list[int]:
        session.told, session.told_at = queued, now
        self._may_be_over = self._may_be_over or any(queued)
        return queued


class _Counts:
    """What waits at this moment. Sessions with the same tasks and queues share one count: a fleet has hundreds of them."""

    def __init__(self, granting: Granting) -> None:
        self._granting = granting
        self._found: dict[tuple[frozenset[str], tuple[str, ...]], list[int]] = {}

    def of(self, session: Session) -> list[int]:
        """How much waits that the session could run, by priority."""
        alike = session.tasks, tuple(session.queues)
        found = self._found.get(alike)
        if found is None:
            found = self._found[alike] = self._granting.queued_for(session)
        return found
