"""Shares of bulk operations in one partition: a step of one share a cycle, behind all live work."""

from __future__ import annotations

from collections import deque
from typing import Final

import structlog

from minutebook.domain.book import Book
from minutebook.domain.operation_steps import advance
from minutebook.log.draft import Draft
from streams.taken import Redo

GAP_MS: Final = 100
"""Between steps that do something, or can do nothing: what is done meanwhile shares a frame."""
_IDLE_S: Final = 3_600.0
_NEVER_AT: Final = 1 << 62

log = structlog.get_logger()


class Operating:
    """Which shares are open, whose turn it is, and when there is something to do."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._turns = deque(row for row, _ in book.shares.scan(b""))
        self._not_before: dict[bytes, int] = {}
        self._free_at = 0

    def has_shares(self) -> bool:
        """Whether any operation is open here."""
        return bool(self._turns)

    def work(self, draft: Draft, *, is_busy: bool) -> None:
        """One step of the first share, in turn, that has something to do; none while live work is there to do.

        Raises Redo for a share that cannot be decided: it is passed over until the next owner, all others go on.
        """
        if is_busy:
            self._free_at = draft.now + GAP_MS
            return
        for _ in range(len(self._turns)):
            row = self._turns[0]
            self._turns.rotate(-1)
            if self._begins_at(row) <= draft.now and self._has_stepped(row, draft):
                return

    def _has_stepped(self, row: bytes, draft: Draft) -> bool:
        """Decide the next step of a share. Whether there was any."""
        share = self._book.shares.get(row)
        if share is None:
            return False
        before = len(draft.events)
        try:
            for event in advance(self._book, share, draft.now):
                draft.add(event)
        except Exception as error:
            log.exception("operation_share_not_decided", operation=share.fact.operation)
            self._not_before[row] = _NEVER_AT
            raise Redo("", -1) from error
        left = self._book.shares.get(row)
        is_only_looking = left is not None and (left.done, left.refused) == (share.done, share.refused)
        if len(draft.events) == before or not is_only_looking:
            self._not_before[row] = draft.now + GAP_MS
        return len(draft.events) > before

    def wait_s(self, now: int) -> float:
        """Seconds until there is something to do; none or fewer: now."""
        begins_at = min(map(self._begins_at, self._turns), default=None)
        return _IDLE_S if begins_at is None else (max(begins_at, self._free_at) - now) / 1_000

    def _begins_at(self, row: bytes) -> int:
        share, not_before = self._book.shares.get(row), self._not_before.get(row, 0)
        return not_before if share is None or share.fact.is_cancelled else max(not_before, share.next_at)

    def follow(self) -> None:
        """Shares written and deleted by the frame about to be committed."""
        for row, share in self._book.shares.pending.items():
            if share is None:
                self._turns.remove(row)
                self._not_before.pop(row, None)
            elif row not in self._turns:
                self._turns.append(row)
