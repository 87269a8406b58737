"""Feeds the view of workers: reads `worker-reports` from a minute ago on, all partitions, without a group.

It holds up nothing: while the broker is away the view of workers grows old, and everything else of the API goes on.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from api.workers_view import WorkersView
from minutebook.clock import Clock
from minutebook.log.kafka import reader
from minutebook.log.port import Unreadable
from minutebook.log.settings import KafkaSettings
from minutebook.wire import topics

WINDOW_MS: Final = 60_000
SLICE_S: Final = 0.002
_POLL_MS: Final = 500
_FETCH_WAIT_MS: Final = 500
_RETRY_S: Final = 2.0

_log = structlog.get_logger()


class WorkersReader:
    """Reads for `view` until cancelled."""

    def __init__(self, view: WorkersView, kafka: KafkaSettings, partitions: int, clock: Clock) -> None:
        self._view = view
        self._kafka = kafka
        self._clock = clock
        topic = kafka.topic(topics.REPORTS)
        self._places = [TopicPartition(topic, partition) for partition in range(partitions)]

    async def run(self) -> None:
        """Read on and on; after a fault of the broker again from a minute ago."""
        while True:
            consumer = reader(self._kafka, _FETCH_WAIT_MS)
            try:
                await consumer.start()
                await self._seek(consumer)
                while True:
                    await self._read(consumer)
            except (KafkaError, OSError) as error:
                _log.info("workers_not_read", reason=repr(error))
            finally:
                await consumer.stop()
            await asyncio.sleep(_RETRY_S)

    async def _seek(self, consumer: AIOKafkaConsumer) -> None:
        consumer.assign(self._places)
        since = self._clock.now() - WINDOW_MS
        starts = await consumer.offsets_for_times(dict.fromkeys(self._places, since))
        ends = await consumer.end_offsets(self._places)
        for place in self._places:
            start = starts[place]
            consumer.seek(place, ends[place] if start is None else start.offset)

    async def _read(self, consumer: AIOKafkaConsumer) -> None:
        """What came, in slices, so that requests are answered meanwhile."""
        found = await consumer.getmany(timeout_ms=_POLL_MS)
        started_at = self._clock.monotonic()
        for place, records in found.items():
            for record in records:
                value = None if isinstance(record.value, Unreadable) else record.value
                self._view.take(place.partition, value, record.timestamp)
                if self._clock.monotonic() - started_at >= SLICE_S:
                    await asyncio.sleep(0)
                    started_at = self._clock.monotonic()
