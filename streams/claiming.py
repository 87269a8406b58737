"""What the first frame of an owner says: that the partition is its own, and what follows from what it brings along."""

from __future__ import annotations

from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.rescheduling import zone_data_changed
from minutebook.errors import LogMismatchError
from minutebook.log.draft import Draft
from minutebook.log.reader import CLOCK_BOUND_MS
from minutebook.schedule import TZDATA_VERSION
from minutebook.wire import topics
from minutebook.wire.frames import FORMAT_VERSION
from streams.process import Process


def claim(draft: Draft, book: Book, process: Process, partition: int, reports_from: int) -> None:
    """Add to `draft` that this process owns the partition, the log's opening where it is new.

    `reports_from`: offset from which its sessions are heard again. Raises LogMismatchError for a log of another partition.
    """
    if not book.cursor.log_id:
        draft.add(
            facts.LogOpened(process.log_id, process.partitions, partition, CLOCK_BOUND_MS, FORMAT_VERSION)
        )
    _check_genesis(book, process, partition)
    reports_through = book.cursor.inputs.get(topics.REPORTS, ("", -1))[1]
    draft.add(
        facts.OwnershipTaken(process.owner_id, book.cursor.epoch + 1, reports_from, reports_through + 1)
    )
    for event in zone_data_changed(book, TZDATA_VERSION):
        draft.add(event)


def _check_genesis(book: Book, process: Process, partition: int) -> None:
    cursor = book.cursor
    if (cursor.partition, cursor.partitions) != (partition, process.partitions):
        raise LogMismatchError(
            f"the log was opened for partition {cursor.partition} of {cursor.partitions}, "
            f"not {partition} of {process.partitions}"
        )
