"""Inputs in memory, as audits read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from minutebook.log.port import RawRecord
from minutebook.wire import topics
from replay.inputs import FileInputs
from tests.golden.history import HISTORIES
from tests.golden.scene import kept
from tests.simulation.desk import Desk


class MemoryInputs:
    """`replay.inputs.Inputs` over lists of records."""

    absent = ""

    def __init__(self, records: dict[tuple[str, int], Sequence[RawRecord]]) -> None:
        self._records = records

    @classmethod
    def of_desks(cls, desks: Sequence[Desk]) -> MemoryInputs:
        """What these desks have consumed."""
        return cls({(topic, desk.partition): found for desk in desks for topic, found in kept(desk).items()})

    @classmethod
    def of_files(cls, name: str) -> MemoryInputs:
        """The inputs of the first partition of a history."""
        files = FileInputs(HISTORIES / name)
        return cls({(topic, 0): list(files.read(topic, 0, 0, 1 << 60)) for topic in topics.INPUTS})

    def forget(self, topic: str, count: int) -> None:
        """The first records of a topic are gone."""
        self._records[topic, 0] = self._records[topic, 0][count:]

    def id_of(self, topic: str) -> str:
        """See `Inputs.id_of`."""
        return topic

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """See `Inputs.bounds`."""
        records = self._records[topic, partition]
        return (records[0].offset, records[-1].offset + 1) if records else (0, 0)

    def read(self, topic: str, partition: int, start: int, end: int) -> Iterator[RawRecord]:
        """See `Inputs.read`."""
        return (one for one in self._records[topic, partition] if start <= one.offset < end)

    def close(self) -> None:
        """See `Inputs.close`."""
