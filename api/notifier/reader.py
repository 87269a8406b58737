"""Reads `alerts` in a consumer group, so that of several API processes one delivers; commits what is settled.

Whatever happens to it, the API goes on: its faults are logged, and it starts again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection
from typing import Final

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from api.notifier.deliveries import Deliveries
from minutebook.domain.records import Alert
from minutebook.errors import DecodeError
from minutebook.log.settings import KafkaSettings
from minutebook.wire import codec, topics

GROUP: Final = "minutebook-notifier"
_POLL_MS: Final = 200
_RECORDS_AT_ONCE: Final = 100
_RETRY_S: Final = 5.0

log = structlog.get_logger()


class Notifier:
    """Follows the topic until cancelled. `tally` counts by outcome; `make` makes the deliveries of one assignment."""

    def __init__(self, kafka: KafkaSettings, make: Callable[[], Deliveries], tally: Counter[str]) -> None:
        self.tally = tally
        self.committed = -1
        """Offset that this process committed last, -1 before any."""
        self._kafka = kafka
        self._make = make
        self._deliveries = make()
        self._place = TopicPartition(kafka.topic(topics.ALERTS), 0)

    def waiting(self) -> int:
        """Alerts taken here that are not settled."""
        return self._deliveries.waiting()

    async def run(self) -> None:
        """Read and deliver, for ever."""
        while True:
            try:
                await self._follow()
            except Exception as error:  # whatever it is, requests are answered all the same
                log.warning("alerts_not_read", reason=f"{type(error).__name__}: {error}")
            await asyncio.sleep(_RETRY_S)

    async def let_go(self) -> None:
        """The partition is another process's from here on, which begins with what is not committed."""
        before, self._deliveries = self._deliveries, self._make()
        await before.close()

    async def _follow(self) -> None:
        consumer = AIOKafkaConsumer(
            **self._kafka.aiokafka(),
            group_id=self._kafka.topic(GROUP),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            max_partition_fetch_bytes=topics.MESSAGE_BYTES_MAX + (1 << 20),
        )
        consumer.subscribe([self._place.topic], listener=_Assignment(self))
        try:
            await consumer.start()
            self.committed = -1
            while True:
                found = await consumer.getmany(timeout_ms=_POLL_MS, max_records=_RECORDS_AT_ONCE)
                for record in found.get(self._place, []):
                    self._deliveries.take(record.offset, read(record.value))
                settled = self._deliveries.settled_through()
                if settled > 0 and settled != self.committed:
                    await self._commit(consumer, settled)
        finally:
            await self.let_go()
            await consumer.stop()

    async def _commit(self, consumer: AIOKafkaConsumer, offset: int) -> None:
        try:
            await consumer.commit({self._place: offset})
            self.committed = offset
        except KafkaError as error:
            # What is not committed is delivered again, under the same ids.
            log.info("alerts_not_committed", offset=offset, reason=type(error).__name__)


class _Assignment(ConsumerRebalanceListener):
    """Tells the notifier that the partition is taken from it."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Stop what is under way."""
        await self._notifier.let_go()

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Nothing: the first record that comes is the first that is not committed."""


def read(value: bytes | None) -> Alert | None:
    """The alert in a record; None where it holds none."""
    try:
        found = codec.decode(value)
    except DecodeError as error:
        log.warning("alert_unreadable", reason=str(error))
        return None
    return found if isinstance(found, Alert) else None
