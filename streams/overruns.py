"""Running attempts against their own time: the owner ends one of which nothing is heard long after its timeout.

The worker ends its attempts itself, in time; this is for those that do not: a timeout passed by `TIMEOUT_GRACE_MS`, a
request to stop not obeyed within `STOP_GRACE_MS`, no progress for as long as the job allows. In memory only: a new owner
knows from the running rows when each started. Instants are ms, UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from minutebook.domain.book import Book
from minutebook.domain.outputs import ToSession
from minutebook.domain.placing import spec_of
from minutebook.domain.retries import deadline_at
from minutebook.domain.rules import STOP_GRACE_MS, TIMEOUT_GRACE_MS

LOOK_EVERY_MS: Final = 1_000


class _Watched(NamedTuple):
    """An attempt that must show progress: since when it shows none, and how long that may last."""

    since: int
    stuck_after_ms: int
    is_reported: bool = False


class Overruns:
    """When each running attempt of a partition must have ended."""

    def __init__(self, book: Book) -> None:
        self._ends: dict[int, int] = {}
        self._watched: dict[int, _Watched] = {}
        self._looked_at = 0
        self.next_at: int | None = None
        """The earliest time that an attempt has passed, as of the last look; None if none has."""
        self._resume(book)

    def _resume(self, book: Book) -> None:
        now = book.cursor.now
        for key, execution in book.running.scan(b""):
            spec = spec_of(book, key, execution.version)
            end = deadline_at(spec.policy, execution)
            until = execution.started_at + spec.timeout_ms
            self._ends[execution.token] = (until if end is None else min(until, end)) + TIMEOUT_GRACE_MS
            if execution.is_stopping:
                self.asked_to_stop([execution.token], now)
            if spec.policy.stuck_after_ms is not None:
                self._watched[execution.token] = _Watched(now, spec.policy.stuck_after_ms)

    def granted(self, output: ToSession, now: int) -> None:
        """Grants that go out, decided at `now`."""
        granted = output.record.granted
        if granted is None:
            return
        base, latest = output.record.frame << 16, now + TIMEOUT_GRACE_MS
        ends = zip(map(base.__add__, granted.rows), map(latest.__add__, granted.timeout_ms), strict=True)
        self._ends.update(ends)
        for row, end in zip(granted.rows, granted.deadlines_at, strict=bool(granted.deadlines_at)):
            if end >= 0:
                self._ends[base + row] = min(self._ends[base + row], end + TIMEOUT_GRACE_MS)
        for row, after_ms in zip(granted.rows, output.stuck_after_ms, strict=bool(output.stuck_after_ms)):
            if after_ms >= 0:
                self._watched[base + row] = _Watched(now, after_ms)

    def ended(self, tokens: Sequence[int]) -> None:
        """Attempts that run no more."""
        ends = self._ends
        for token in tokens:
            ends.pop(token, None)
        if self._watched:
            for token in tokens:
                self._watched.pop(token, None)

    def asked_to_stop(self, tokens: Iterable[int], now: int) -> None:
        """Attempts whose worker was asked to stop them at `now`."""
        for token in tokens:
            self._ends[token] = min(self._ends.get(token, now + STOP_GRACE_MS), now + STOP_GRACE_MS)

    def progressed(self, token: int, now: int) -> None:
        """An attempt has shown progress."""
        watched = self._watched.get(token)
        if watched is not None:
            self._watched[token] = _Watched(now, watched.stuck_after_ms)

    def look(self, now: int) -> None:
        """Look once a second whether any attempt is past its time."""
        if now - self._looked_at >= LOOK_EVERY_MS:
            self._looked_at = now
            overdue = [end for end in self._ends.values() if end <= now]
            overdue += [
                end
                for watched in self._watched.values()
                if not watched.is_reported and (end := watched.since + watched.stuck_after_ms) <= now
            ]
            self.next_at = min(overdue, default=None)

    def over(self, evidence: int) -> list[int]:
        """Tokens of attempts that must have ended before the stamp `evidence`."""
        self.next_at = None
        return [token for token, end in self._ends.items() if end < evidence]

    def stuck(self, evidence: int) -> Iterator[tuple[int, int]]:
        """(token, since) of attempts that have shown no progress for too long, each told once."""
        for token, watched in list(self._watched.items()):
            if watched.since + watched.stuck_after_ms < evidence and not watched.is_reported:
                self._watched[token] = watched._replace(is_reported=True)
                yield token, watched.since
