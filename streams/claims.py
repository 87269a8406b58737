"""Claims of one partition's cycles: granted in the draft, answered once its frame is valid.

Answers are replies: a lost one is asked for again by the claim that is sent again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from minutebook.domain.book import Book
from minutebook.domain.claims import Decided, Decision, decide_claims, refuse, standing
from minutebook.domain.grants import granted_event
from minutebook.domain.offers import Session
from minutebook.domain.outputs import GRANT_PAYLOAD_BYTES_MAX, START_WITHIN_MS
from minutebook.domain.records import ClaimAnswer, Inbox, Report
from minutebook.log.draft import Draft
from streams import metrics
from streams.permits import Permits
from streams.sessions import Sessions

ANSWERS_AT_ONCE: Final = 1_000
"""Answers in one inbox record."""


class Claims:
    """What was claimed in this cycle, and the answers to it."""

    def __init__(
        self,
        book: Book,
        sessions: Sessions,
        permits: Permits,
        partition: int,
        start_sessions: Callable[[Draft, list[Session]], None],
    ) -> None:
        self._book = book
        self._sessions = sessions
        self._permits = permits
        self._partition = partition
        self._start_sessions = start_sessions
        self._answers: dict[str, list[ClaimAnswer]] = defaultdict(list)
        self._counted: list[Decision] = []
        self._taken: list[tuple[Session, int]] = []
        self._payload_bytes = 0
        self._start_by = 0

    def take(self, report: Report, stamp: int, draft: Draft, *, can_grant: bool) -> None:
        """The claims of one report whose pulse was heard. Those of a report of old are passed over: they were decided."""
        session = self._sessions.get(report.session)
        if session is not None and report.sequence <= session.claimed:
            return
        if session is not None:
            self._taken.append((session, report.sequence))
        refusal = standing(session, stamp, draft.now, can_grant)
        if refusal or session is None:
            decided = refuse(report.claims, refusal)
        else:
            room_bytes = GRANT_PAYLOAD_BYTES_MAX - self._payload_bytes
            decided = decide_claims(
                self._book,
                report.session,
                report.claims,
                room_bytes,
                lambda lane: self._permits.claim(lane, draft.now),
            )
        first_token = self._record(decided, session, draft)
        self._permits.ask_for_claims(draft)
        self._answers[report.session] += [one.answer(first_token) for one in decided.decisions]
        self._counted += decided.decisions
        self._start_by = draft.now + START_WITHIN_MS

    def _record(self, decided: Decided, session: Session | None, draft: Draft) -> int:
        """Grants go on record; the token of the first."""
        if not decided.grants or session is None:
            return -1
        self._payload_bytes += decided.payload_bytes
        self._start_sessions(draft, [session])
        first_token = draft.add(granted_event(decided.grants, decided.permits))
        self._permits.used()
        return first_token

    def replies(self) -> Iterable[Inbox]:
        """Answers gathered since the last call; they count from here on."""
        for session, sequence in self._taken:
            session.claimed = max(session.claimed, sequence)
        for decision in self._counted:
            metrics.CLAIMS.add((decision.queue, decision.outcome))
        found = [
            Inbox(session, self._partition, self._book.cursor.position, self._start_by, [], answers=portion)
            for session, answers in self._answers.items()
            for portion in _portions(answers)
        ]
        self.forget()
        return found

    def forget(self) -> None:
        """Drop what was gathered for a draft that is forgotten."""
        self._answers.clear()
        self._counted.clear()
        self._taken.clear()
        self._payload_bytes = 0


def _portions(answers: list[ClaimAnswer]) -> list[list[ClaimAnswer]]:
    return [answers[start : start + ANSWERS_AT_ONCE] for start in range(0, len(answers), ANSWERS_AT_ONCE)]
