"""What the log says of a run of a workload, by the broker's stamps: read afterwards, so that reading costs nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition

from minutebook.domain import events as facts
from minutebook.domain.rows import rows_of
from minutebook.log.kafka import raw, reader
from minutebook.log.reader import FrameReader, Taken
from minutebook.log.settings import KafkaSettings
from minutebook.wire import topics

_POLL_S: Final = 0.2
_DUE: Final = (facts.ExecutionsQueued, facts.ExecutionsDueGranted)


class EventLog:
    """Counts rows of events over all partitions, and keeps the stamp of the last frame (ms) in which each kind occurred.

    Use as a context manager; `read` goes on from where it stopped.
    """

    def __init__(self, kafka: KafkaSettings, partitions: int) -> None:
        self.rows: Counter[str] = Counter()
        self.last_at: dict[str, int] = {}
        self.frames = 0
        self.void = 0
        self._places = [TopicPartition(kafka.topic(topics.EVENTS), number) for number in range(partitions)]
        self._readers = {place: FrameReader() for place in self._places}
        self._kafka = kafka
        self._consumer: AIOKafkaConsumer

    async def __aenter__(self) -> EventLog:
        """Connect."""
        self._consumer = reader(self._kafka)
        await self._consumer.start()
        self._consumer.assign(self._places)
        await self._consumer.seek_to_beginning(*self._places)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Disconnect."""
        await self._consumer.stop()

    async def read(self) -> None:
        """Read to the end of all partitions as it is now."""
        ends = await self._consumer.end_offsets(self._places)
        while any([await self._consumer.position(place) < end for place, end in ends.items()]):
            for place, records in (await self._consumer.getmany(timeout_ms=500)).items():
                for record in records:
                    self._take(self._readers[place].take(raw(record)))

    async def read_until(self, kind: type, count: int, patience_s: float) -> bool:
        """Read until `count` rows of an event were seen; whether they came within `patience_s`."""
        for _ in range(int(patience_s / _POLL_S)):
            await self.read()
            if self.rows[kind.__name__] >= count:
                return True
            await asyncio.sleep(_POLL_S)
        return False

    @property
    def last_due_at(self) -> int | None:
        """Stamp of the last frame in which something came due; None if nothing did."""
        return max(
            (self.last_at[kind.__name__] for kind in _DUE if kind.__name__ in self.last_at), default=None
        )

    def _take(self, taken: object) -> None:
        if not isinstance(taken, Taken):
            self.void += 1
            return
        self.frames += 1
        for event in taken.frame.events:
            kind = type(event).__name__
            self.rows[kind] += rows_of(event)
            self.last_at[kind] = max(self.last_at.get(kind, 0), taken.stamp)
