"""A stretch of sorted rows kept in memory: the next ones of the time index, the heads of a lane of the queued set.

Every stored row up to `through` is in memory; what lies behind it stays in the store until it is needed. So memory is
bounded, and a row written meanwhile can never slip between what was loaded and what is stored.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable
from itertools import takewhile
from typing import Final

from minutebook.store.port import Rows

LOADED_MAX: Final = 8_000
LATE_MAX: Final = 250


class Window:
    """Rows of `family` with start <= key < end, smallest first.

    What is loaded is sorted, and most of what is written comes in order, so those rows lie in a list that is read from
    the front; only what comes out of order costs a heap.
    """

    def __init__(
        self, rows: Rows, family: str, start: bytes, end: bytes | None, loaded_max: int = LOADED_MAX
    ) -> None:
        self._rows = rows
        self._family = family
        self._end = end
        self._max = loaded_max
        self._sorted: list[bytes] = []
        self._next = 0
        self._shown = 0
        self._late: list[bytes] = []
        self._live: set[bytes] = set()
        self._through: bytes | None = start
        """Rows behind this key are in the store alone; None = everything is in memory."""
        self._load(start)

    def __len__(self) -> int:
        """Rows in memory."""
        return len(self._live)

    def may_hold_any(self) -> bool:
        """Whether there may be a row, in memory or in the store alone."""
        return bool(self._live) or self._through is not None

    def is_all_loaded(self) -> bool:
        """Whether no row is in the store alone."""
        return self._through is None

    def head(self) -> bytes | None:
        """The smallest row, None if there is none."""
        while True:
            live = self._live
            while self._late and self._late[0] not in live:
                heapq.heappop(self._late)
            while self._next < len(self._sorted) and self._sorted[self._next] not in live:
                self._next += 1
            if self._next < len(self._sorted):
                first = self._sorted[self._next]
                return self._late[0] if self._late and self._late[0] < first else first
            if self._late:
                return self._late[0]
            if self._through is None:
                return None
            self._load(self._through + b"\0")

    def pop(self) -> None:
        """Take the head out of memory; the store still has it until a frame says otherwise. Call `head` before."""
        late = self._late
        if late and not (self._next < len(self._sorted) and self._sorted[self._next] < late[0]):
            self._live.discard(heapq.heappop(late))
            return
        self._live.discard(self._sorted[self._next])
        self._next += 1

    def take(self, bound: bytes, most: int) -> list[bytes]:
        """Take the smallest rows before `bound` out of memory, one at least if there is one, up to `most`."""
        first = self.head()
        if first is None or first >= bound:
            return []
        if self._late:
            self.pop()
            return [first]
        end = bisect_left(self._sorted, bound, self._next, min(self._next + most, len(self._sorted)))
        found = [key for key in self._sorted[self._next : end] if key in self._live]
        self._live.difference_update(found)
        self._next = end
        return found

    def put(self, key: bytes) -> None:
        """A row was written, or one that was taken out is put back."""
        if key in self._live or (self._through is not None and key > self._through):
            return
        self._live.add(key)
        if self._next == len(self._sorted) or key > self._sorted[-1]:
            self._append(key)
        else:
            heapq.heappush(self._late, key)
        if len(self._live) > 2 * self._max:
            self._trim()

    def remove(self, rows: Iterable[bytes]) -> None:
        """Rows were deleted."""
        self._live.difference_update(rows)

    def coming(self, bound: bytes, most: int) -> list[bytes]:
        """Up to `most` of the next rows before `bound` that no earlier call has named.

        Not those put out of order; once those are sorted in, rows may be named again.
        """
        start = max(self._next, self._shown)
        found = list(takewhile(bound.__gt__, self._sorted[start : start + most]))
        self._shown = start + len(found)
        return [key for key in found if key in self._live]

    def load_ahead(self) -> None:
        """Load more if less than half of a load is left, and sort what came out of order if it is much; for idle moments."""
        if len(self._late) > max(LATE_MAX, len(self._live) // 8):
            self._sorted, self._next, self._shown, self._late = sorted(self._live), 0, 0, []
        if self._through is not None and len(self._live) < self._max // 2:
            self._load(self._through + b"\0")

    def _append(self, key: bytes) -> None:
        if self._next == len(self._sorted):
            self._sorted, self._next, self._shown = [], 0, 0
        self._sorted.append(key)

    def _trim(self) -> None:
        self._sorted, self._next, self._late, self._shown = sorted(self._live)[: self._max], 0, [], 0
        self._live = set(self._sorted)
        self._through = self._sorted[-1]

    def _load(self, start: bytes) -> None:
        """Rows behind all that are in memory, so they go to the end of the list."""
        self._through = None
        for found, (key, _) in enumerate(self._rows.scan(self._family, start, self._end), 1):
            if key not in self._live:
                self._live.add(key)
                self._append(key)
            if found == self._max:
                self._through = key
                return
