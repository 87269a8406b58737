"""A made log as replay reads it, and copies of state as owners and API make them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from minutebook.domain import book, view_rows
from minutebook.domain.book import Book
from minutebook.domain.view import PartitionView
from minutebook.domain.view_retention import Retention
from minutebook.domain.view_rows import CursorRow
from minutebook.log.apply import take
from minutebook.log.checkpoint import Copy, Part, write_manifest
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader, Taken
from minutebook.store.rocks import RocksRows


class CopiedLog:
    """`replay.reading.Log` over lists of records, one list a partition."""

    topic = "job-events"

    def __init__(self, *partitions: Sequence[RawRecord]) -> None:
        self._partitions = partitions

    def partitions(self) -> list[int]:
        return list(range(len(self._partitions)))

    def bounds(self, partition: int) -> tuple[int, int]:
        records = self._partitions[partition]
        return (records[0].offset, records[-1].offset + 1) if records else (0, 0)

    def head_before(self, partition: int) -> bytes:
        return bytes(32)

    def close(self) -> None:
        pass

    def read(self, partition: int, start: int, end: int) -> Iterator[RawRecord]:
        return (record for record in self._partitions[partition] if start <= record.offset < end)


def copy_state(folder: Path, partition: int, records: Sequence[RawRecord], name: str = "owner-1") -> None:
    """What an owner that has folded `records` leaves in the checkpoint folder."""
    target = _folder(folder, "streams", name)
    store = RocksRows(folder / "work" / f"{name}-{partition}", book.FAMILIES)
    state, reader = Book(store), FrameReader()
    for record in records:
        take(state, reader, record)
        state.commit()
    path = target / f"partition-{partition}"
    store.checkpoint(str(path))
    store.close()
    write_manifest(
        target, [Copy(partition=partition, position=reader.position, head=reader.head.hex(), path=str(path))]
    )


def copy_view(
    folder: Path,
    partitions: Sequence[Sequence[RawRecord]],
    name: str = "api",
    retention: Retention | None = None,
) -> None:
    """What an API process that has folded these partitions leaves there."""
    target = _folder(folder, "view", name)
    store = RocksRows(folder / "work" / name, view_rows.FAMILIES)
    path = target / "rows"
    copies = []
    for partition, records in enumerate(partitions):
        part, reader = (
            PartitionView(store, partition, retention=retention or Retention()),
            FrameReader(),
        )
        for record in records:
            found = reader.take(record)
            if isinstance(found, Taken):
                part.fold(found.frame.events, found.frame.now, record.offset)
            part.advance(CursorRow(record.offset, reader.head, reader.head_before))
            store.write(*part.drain())
        copies.append(
            Copy(
                partition=partition,
                position=reader.position,
                head=reader.head.hex(),
                path=str(path),
                retention=retention,
            )
        )
    store.checkpoint(str(path))
    store.close()
    write_manifest(target, copies)


def _folder(folder: Path, part: Part, name: str) -> Path:
    target = folder / part / name
    target.mkdir(parents=True)
    return target
