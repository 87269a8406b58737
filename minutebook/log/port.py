"""Raw records of a partition, and where they come from."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple, Protocol


class Unreadable(bytes):
    """Stands for the value of a record that the broker keeps and nobody can read; empty. `reason` is fit for people."""

    reason: str

    def __new__(cls, reason: str) -> Unreadable:
        """For a record that is unreadable for `reason`."""
        made = super().__new__(cls)
        made.reason = reason
        return made


class RawRecord(NamedTuple):
    """One record as the broker keeps it. `stamp` is ms since the epoch, by the broker."""

    offset: int
    stamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class Ack(NamedTuple):
    """Where and when the broker put a record. `offset` -1 = it did not say."""

    offset: int
    stamp: int


class EventLog(Protocol):
    """`job-events`, all partitions of it."""

    async def append(self, partition: int, value: bytes) -> Ack:
        """Append one record and wait for its ack. Raises AppendUnknownError when its outcome is not known."""
        ...

    async def end(self, partition: int) -> int:
        """Offset after the last record."""
        ...

    async def start(self, partition: int) -> int:
        """Offset of the first record still kept."""
        ...

    def read(self, partition: int, start: int, end: int) -> AsyncIterator[RawRecord]:
        """Records from `start` up to and without `end`, in order."""
        ...
