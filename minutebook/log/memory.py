"""`job-events` in memory, for simulation and tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from minutebook.errors import LogGapError
from minutebook.log.port import Ack, RawRecord


class MemoryEventLog:
    """`EventLog` in lists. `now` gives the stamp of each record, as a broker's clock would."""

    def __init__(self, partitions: int, now: Callable[[], int]) -> None:
        self._records: list[list[RawRecord]] = [[] for _ in range(partitions)]
        self._starts = [0] * partitions
        self._now = now

    async def append(self, partition: int, value: bytes) -> Ack:
        """See `EventLog.append`."""
        record = self.put(partition, value)
        return Ack(record.offset, record.stamp)

    def put(self, partition: int, value: bytes | None, key: bytes | None = None) -> RawRecord:
        """Any record, by whomever: frames go through `append`."""
        records = self._records[partition]
        records.append(RawRecord(len(records), self._now(), key, value))
        return records[-1]

    def records(self, partition: int) -> list[RawRecord]:
        """What is kept of a partition, in order."""
        return self._records[partition][self._starts[partition] :]

    def trim(self, partition: int, start: int) -> None:
        """Forget the records before `start`."""
        self._starts[partition] = start

    async def end(self, partition: int) -> int:
        """See `EventLog.end`."""
        return len(self._records[partition])

    async def start(self, partition: int) -> int:
        """See `EventLog.start`."""
        return self._starts[partition]

    async def read(self, partition: int, start: int, end: int) -> AsyncIterator[RawRecord]:
        """See `EventLog.read`. Raises LogGapError where `start` is no longer kept."""
        if start < end and start < self._starts[partition]:
            raise LogGapError(f"partition {partition} starts at {self._starts[partition]}, wanted {start}")
        for record in self._records[partition][start:end]:
            yield record
