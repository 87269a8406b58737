"""What an owner kept on disk against a fresh fold of the log: byte for byte the same."""

from __future__ import annotations

from minutebook.domain.book import FAMILIES, Book, digest
from minutebook.log.apply import take
from minutebook.log.reader import FrameReader
from minutebook.store.memory import MemoryRows
from minutebook.store.rocks import RocksRows
from tests.crash.joblog import whole_log
from tests.crash.stack import Stack


def differing_states(stack: Stack, name: str) -> list[int]:
    """Partitions whose state, as the stopped owner `name` left it, is not what the log folds to."""
    log = whole_log(stack.kafka, stack.partitions)
    found: list[int] = []
    for partition, records in enumerate(log.records):
        book, reader = Book(MemoryRows(FAMILIES)), FrameReader()
        for record in records:
            take(book, reader, record)
            book.commit()
        stored = RocksRows(stack.data_dir(name) / f"partition-{partition}", FAMILIES, is_read_only=True)
        if digest(stored) != digest(book.rows):
            found.append(partition)
        stored.close()
    return found
