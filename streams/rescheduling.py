"""Next instants that are computed anew in one partition: a step of one work a cycle, behind live work.

The works and how far each has come are rows of the state, so the next owner goes on from there.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import structlog

from minutebook.domain.book import Book
from minutebook.domain.rescheduling import advance
from minutebook.log.draft import Draft
from streams.taken import Redo

GAP_MS: Final = 20
BUSY_GAP_MS: Final = 1_000
"""While live work is there to do, a step is put off so long at most: an instant may have moved to an earlier one."""

log = structlog.get_logger()


class Rescheduler:
    """Which works are under way, and when the next step is."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._turns = deque(row for row, _ in book.reschedulings.scan(b""))
        self._again_at = 0
        self._stepped_at = 0

    def has_work(self) -> bool:
        """Whether any work is under way here."""
        return bool(self._turns)

    def work(self, draft: Draft, *, is_busy: bool) -> None:
        """One step of the first work, in turn. What this very cycle has started waits: its jobs may not be stored yet.

        Raises Redo for a work that cannot be decided: it is passed over until the next owner, all others go on.
        """
        if draft.now < self._again_at:
            return
        self._again_at = draft.now + GAP_MS
        if draft.is_full() or (is_busy and draft.now < self._stepped_at + BUSY_GAP_MS):
            return
        for _ in range(len(self._turns)):
            row = self._turns[0]
            self._turns.rotate(-1)
            if row not in self._book.reschedulings.pending:
                self._step(row, draft)
                return

    def _step(self, row: bytes, draft: Draft) -> None:
        reached = self._book.reschedulings.get(row)
        if reached is None:
            return
        self._stepped_at = draft.now
        try:
            draft.add(advance(self._book, row, reached, draft.now))
        except Exception as error:
            log.exception("rescheduling_failed", work=row.decode())
            self._turns.remove(row)
            raise Redo("", -1) from error

    def next_at(self) -> int | None:
        """When the next step is, ms; None if there is none to do."""
        return self._again_at if self._turns else None

    def follow(self) -> None:
        """Works written and deleted by the frame about to be committed."""
        for row, reached in self._book.reschedulings.pending.items():
            if reached is None:
                self._turns.remove(row)
            elif row not in self._turns:
                self._turns.append(row)
