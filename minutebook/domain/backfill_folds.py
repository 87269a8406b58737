"""What is kept to know which past instants of a job never ran: ranges that were skipped, and instants filled since."""

from __future__ import annotations

from collections.abc import Iterable

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.record_folds import remember


def note_skipped(book: Book, row: bytes, event: facts.ExecutionsSkipped, now: int) -> None:
    """A range of instants that never run, for some days; under its last one, so that what lies in it is found forward."""
    place = keys.remembered_row(remember(book, now), keys.instant_row(row, event.last_at))
    book.skips.put(place, event.first_at)


def note_filled(book: Book, row: bytes, instants: Iterable[int]) -> None:
    """What runs after all, so that it does so once."""
    for at in instants:
        book.filled.put(keys.instant_row(row, at), b"")
