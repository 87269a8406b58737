"""A frame in the making: each event is folded into the overlay as it is decided, so the next decision sees it."""

from __future__ import annotations

from typing import Final

from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.fold import fold
from minutebook.domain.rows import rows_of
from minutebook.wire.frames import FRAME_BYTES_MAX, FRAME_ROWS_MAX, Slice

_ROW_BYTES: Final = 64
_EVENT_BYTES: Final = 200
_ROWS_KEPT_FREE: Final = 8_192
"""Rows that one input or the grants at the end of a cycle may still add."""


class Draft:
    """Events and slices of one cycle; `offset` is where the frame will be valid, `now` its time."""

    def __init__(self, book: Book, offset: int, now: int) -> None:
        self._book = book
        self._base = offset << 16
        self.offset = offset
        self.now = now
        self.events: list[Event] = []
        self.placed: list[tuple[Event, int]] = []
        self.slices: list[Slice] = []
        self.rows = 0
        self._bytes = 0

    def add(self, event: Event) -> int:
        """Fold and keep `event`; the token of its first row."""
        token = self._base + self.rows
        fold(self._book, event, token, self.now)
        rows = rows_of(event)
        self.events.append(event)
        self.placed.append((event, token))
        self.rows += rows
        self._bytes += _EVENT_BYTES + rows * _ROW_BYTES + _body_bytes(event)
        return token

    def is_full(self) -> bool:
        """Whether the frame must close after what it has."""
        return self._bytes >= FRAME_BYTES_MAX or self.rows >= FRAME_ROWS_MAX - _ROWS_KEPT_FREE


def _body_bytes(event: Event) -> int:
    match event:
        case facts.JobSubmitted():
            return len(event.payload)
        case facts.CommandForwarded():
            return len(event.command)
        case facts.AttemptFailed() | facts.ExecutionDead():
            return len(event.message)
        case _:
            return 0
