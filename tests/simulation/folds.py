"""A log folded anew, as owners and as the API's view do it."""

from __future__ import annotations

from collections.abc import Sequence

from minutebook.domain import book as state
from minutebook.domain import view_rows
from minutebook.domain.book import Book
from minutebook.domain.view import PartitionView
from minutebook.domain.view_retention import Retention
from minutebook.log.apply import take
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader, Taken
from minutebook.store.memory import MemoryRows


def folded(records: Sequence[RawRecord], commit_every: int = 1) -> MemoryRows:
    """Rows of an owner's state."""
    rows = MemoryRows(state.FAMILIES)
    book, reader = Book(rows), FrameReader()
    for number, record in enumerate(records, 1):
        take(book, reader, record)
        if not number % commit_every:
            book.commit()
    book.commit()
    return rows


def viewed(
    records: Sequence[RawRecord],
    drain_every: int = 1,
    hot_max: int = 32_768,
    retention_days: int = 30,
    partition: int = 0,
) -> tuple[PartitionView, MemoryRows]:
    """The view of a partition, and its rows."""
    rows = MemoryRows(view_rows.FAMILIES)
    view, reader = PartitionView(rows, partition, hot_max, Retention(retention_days)), FrameReader()
    for number, record in enumerate(records, 1):
        found = reader.take(record)
        if isinstance(found, Taken):
            view.fold(found.frame.events, found.frame.now, record.offset)
        if not number % drain_every:
            rows.write(*view.drain())
    rows.write(*view.drain())
    return view, rows
