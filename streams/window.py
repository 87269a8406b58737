"""A stretch of sorted rows kept in memory: the next ones of the time index, the heads of a lane of the queued set.

Every stored row up to `through` is in memory; what lies behind it stays in the store until it is needed. So memory is
bounded, and a row written meanwhile can never slip between what was loaded and what is stored.
"""

from __future__ import annotations

import heapq
from typing import Final

from minutebook.store.port import Rows

LOADED_MAX: Final = 8_000


class Window:
    """Rows of `family` with start <= key < end, smallest first."""

    def __init__(
        self, rows: Rows, family: str, start: bytes, end: bytes | None, loaded_max: int = LOADED_MAX
    ) -> None:
        self._rows = rows
        self._family = family
        self._end = end
        self._max = loaded_max
        self._heap: list[bytes] = []
        self._live: set[bytes] = set()
        self._through: bytes | None = start
        """Rows behind this key are in the store alone; None = everything is in memory."""
        self._load(start)

    def __len__(self) -> int:
        """Rows in memory."""
        return len(self._live)

    def is_all_loaded(self) -> bool:
        """Whether no row is in the store alone."""
        return self._through is None

    def head(self) -> bytes | None:
        """The smallest row, None if there is none."""
        while True:
            while self._heap:
                if self._heap[0] in self._live:
                    return self._heap[0]
                heapq.heappop(self._heap)
            if self._through is None:
                return None
            self._load(self._through + b"\0")

    def pop(self) -> None:
        """Take the head out of memory; the store still has it until a frame says otherwise."""
        self._live.discard(heapq.heappop(self._heap))

    def put(self, key: bytes) -> None:
        """A row was written, or one that was taken out is put back."""
        if key in self._live or (self._through is not None and key > self._through):
            return
        self._live.add(key)
        heapq.heappush(self._heap, key)
        if len(self._live) > 2 * self._max:
            self._trim()

    def remove(self, key: bytes) -> None:
        """A row was deleted."""
        self._live.discard(key)

    def load_ahead(self) -> None:
        """Load more if less than half of a load is left; for idle moments."""
        if self._through is not None and len(self._live) < self._max // 2:
            self._load(self._through + b"\0")

    def _trim(self) -> None:
        self._heap = sorted(self._live)[: self._max]
        self._live = set(self._heap)
        self._through = self._heap[-1]

    def _load(self, start: bytes) -> None:
        self._through = None
        for found, (key, _) in enumerate(self._rows.scan(self._family, start, self._end), 1):
            if key not in self._live:
                self._live.add(key)
                heapq.heappush(self._heap, key)
            if found == self._max:
                self._through = key
                return
