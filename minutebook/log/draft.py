"""A frame in the making: each event is folded into the overlay as it is decided, so the next decision sees it."""

from __future__ import annotations

from typing import Final

from minutebook.domain.alerts import alert_of
from minutebook.domain.book import Book
from minutebook.domain.changes import pause_after
from minutebook.domain.events import Event
from minutebook.domain.fold import fold
from minutebook.domain.rows import rows_of
from minutebook.errors import BrokenFrameError
from minutebook.wire.frames import FRAME_BYTES_MAX, FRAME_ROWS_MAX, Slice

_ROW_BYTES: Final = 64
_EVENT_BYTES: Final = 200
_ROWS_OF_SINGLE: Final = 1_024
"""Events of a single row that may follow: sessions that start and end, refusals."""
_ROWS_KEPT_FREE: Final = 32_768
"""Rows that one input and the grants at the end of a cycle may still add."""


class Draft:
    """Events and slices of one cycle; `offset` is where the frame will be valid, `now` its time, `bytes` about its size."""

    def __init__(self, book: Book, offset: int, now: int) -> None:
        self._book = book
        self._base = offset << 16
        self.offset = offset
        self.now = now
        self.events: list[Event] = []
        self.placed: list[tuple[Event, int]] = []
        self.slices: list[Slice] = []
        self.rows = 0
        self.bytes = 0

    def add(self, event: Event) -> int:
        """Fold and keep `event`, and the alert and the pause that follow from it; the token of its first row."""
        token = self._place(event)
        for following in (alert_of, pause_after):
            found = following(self._book, event, self.now)
            if found is not None:
                self._place(found)
        return token

    def _place(self, event: Event) -> int:
        token = self._base + self.rows
        fold(self._book, event, token, self.now)
        rows = rows_of(event)
        if self.rows + rows > FRAME_ROWS_MAX:
            raise BrokenFrameError(f"a frame of {self.rows + rows} rows: its tokens would not be its own")
        self.events.append(event)
        self.placed.append((event, token))
        self.rows += rows
        self.bytes += _EVENT_BYTES + rows * _ROW_BYTES
        return token

    def room(self) -> int:
        """Rows that may still be added: tokens of a frame must not reach into the next one's."""
        return (
            0 if self.bytes >= 2 * FRAME_BYTES_MAX else max(0, FRAME_ROWS_MAX - self.rows - _ROWS_OF_SINGLE)
        )

    def weigh(self, since: int, input_bytes: int) -> None:
        """An input of that size was decided since there were `since` bytes: its events may repeat all of it."""
        self.bytes = max(self.bytes, since + input_bytes)

    def is_full(self) -> bool:
        """Whether the frame must close after what it has."""
        return self.bytes >= FRAME_BYTES_MAX or self.rows >= FRAME_ROWS_MAX - _ROWS_KEPT_FREE
