"""The log of a scheduler in memory, folded again: what a crash and a fresh owner would make of it."""

from __future__ import annotations

from minutebook.domain import book as owner_state
from minutebook.domain import view_rows
from minutebook.domain.book import Book
from minutebook.domain.view import PartitionView
from minutebook.domain.view_rows import CursorRow
from minutebook.log.apply import take
from minutebook.log.reader import FrameReader
from minutebook.store.memory import MemoryRows
from minutebook.testing.scheduler import InMemoryScheduler


def assert_replays(scheduler: InMemoryScheduler) -> None:
    """Fold the log of `scheduler` again from its start, owner's state and view, and compare. Raises AssertionError.

    What differs is a fault of minutebook, not of your tasks: please report it with the test that shows it.
    """
    partition = scheduler.partition
    rows, view_rows_again = MemoryRows(owner_state.FAMILIES), MemoryRows(view_rows.FAMILIES)
    book, view, reader = Book(rows), PartitionView(view_rows_again, 0), FrameReader()
    for record in partition.records():
        frame = take(book, reader, record)
        assert frame is not None, f"the record at {record.offset} counts for nobody"
        view.fold(frame.events, frame.now, frame.offset)
        view.advance(CursorRow(frame.offset, reader.head, reader.head_before))
    book.commit()
    view_rows_again.write(*view.drain())
    state, shown = partition.digests()
    assert owner_state.digest(rows) == state, "the log folds to another state than the scheduler has"
    assert view_rows.digest(view_rows_again, 0) == shown, (
        "the log folds to another view than the scheduler has"
    )
