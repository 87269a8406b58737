"""Taking a partition over: the store is brought to the end of the log, or thrown away and folded anew; never guessed.

Raises LogMismatchError or LogGapError where the log is shorter than the store's position, has another hash there, an
input topic was made again, or its unapplied records are gone: the partition halts.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from minutebook.domain.book import FAMILIES, Book
from minutebook.errors import LogMismatchError
from minutebook.log.apply import take
from minutebook.log.port import EventLog
from minutebook.log.reader import FrameReader, next_head
from minutebook.store.rocks import RocksRows
from minutebook.wire import topics

COMMIT_EVERY: Final = 64
_HELD: Final = "/LOCK: "
"""In RocksDB's message where another process, or another owner of this one, has the store open."""

log = structlog.get_logger()


def open_book(folder: Path) -> Book:
    """The book in `folder`; a store that cannot be opened or read is thrown away and started empty.

    One that somebody else has open is left alone: the error of the store is raised.
    """
    try:
        book = Book(RocksRows(folder, FAMILIES))
        if book.is_of_this_format():
            return book
        log.info("store_outdated", folder=str(folder))
        book.rows.close()
        shutil.rmtree(folder)
        return Book(RocksRows(folder, FAMILIES))
    except Exception as error:
        if _HELD in str(error):
            raise
        log.warning("store_damaged", folder=str(folder), error=str(error)[:300])
        shutil.rmtree(folder, ignore_errors=True)
        return Book(RocksRows(folder, FAMILIES))


async def check_position(book: Book, events: EventLog, partition: int) -> None:
    """The record at the store's position must be in the log, with the hash that the store remembers."""
    cursor = book.cursor
    end = await events.end(partition)
    if cursor.position >= end:
        raise LogMismatchError(
            f"the log of partition {partition} ends at {end}, the store is at {cursor.position}"
        )
    first = await events.start(partition)
    if first > cursor.position + 1:
        raise LogMismatchError(
            f"the log of partition {partition} starts at {first}, the store is at {cursor.position}"
        )
    if cursor.position < 0 or first > cursor.position:
        return
    async for record in events.read(partition, cursor.position, cursor.position + 1):
        if next_head(cursor.head_before, record) != cursor.head:
            raise LogMismatchError(f"partition {partition}: another record lies at offset {cursor.position}")


async def fold_to_end(
    book: Book, events: EventLog, partition: int, progress: Callable[[int], None] = lambda left: None
) -> FrameReader:
    """Fold everything behind the store's position; the reader stands at the end. `progress` is told what is left."""
    reader = FrameReader(book.cursor.position, book.cursor.head)
    end = await events.end(partition)
    folded = 0
    async for record in events.read(partition, reader.position + 1, end):
        take(book, reader, record)
        folded += 1
        if folded % COMMIT_EVERY == 0:
            book.commit()
            progress(end - reader.position - 1)
    if folded % COMMIT_EVERY:
        book.commit()
    progress(0)
    return reader


def check_inputs(book: Book, topic_ids: dict[str, str], starts: dict[str, int]) -> None:
    """Input topics must be those that the frames name, with everything unapplied still there."""
    for topic in topics.INPUTS:
        topic_id, offset = book.cursor.inputs.get(topic, (topic_ids[topic], -1))
        if topic_id != topic_ids[topic]:
            raise LogMismatchError(
                f"{topic} was made again: its id is {topic_ids[topic]}, the log says {topic_id}"
            )
        if starts[topic] > offset + 1 and offset >= 0:
            raise LogMismatchError(
                f"{topic} starts at {starts[topic]}, unapplied records from {offset + 1} are gone"
            )
