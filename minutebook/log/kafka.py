"""`job-events` on Kafka, by aiokafka. One producer for frames alone, so that no output delays a frame."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.errors import KafkaError, KafkaTimeoutError

from minutebook.errors import AppendUnknownError, LogGapError
from minutebook.log.batches import Batches
from minutebook.log.fetch_rows import use_rows
from minutebook.log.port import Ack, RawRecord
from minutebook.log.settings import KafkaSettings
from minutebook.wire import topics

APPEND_DEADLINE_S = 10.0
STALL_S = 10.0
FETCH_BYTES_MAX = 16 << 20
FETCH_WAIT_MS = 25
"""aiokafka has one fetch under way a node: a long one would make partitions that are not in it wait for the others."""
RECORDS_AT_ONCE = 1_000
"""A batch of a few bytes may hold very many records: they are not all made at once."""

# Of all consumers in this process, Faust's too: aiokafka has no setting for it.
fetcher.MemoryRecords = Batches
use_rows()


def raw(record: ConsumerRecord) -> RawRecord:
    """An aiokafka record as the log sees it."""
    return RawRecord(record.offset, record.timestamp, record.key, record.value, tuple(record.headers))


def producer(kafka: KafkaSettings, **more: object) -> AIOKafkaProducer:
    """An idempotent producer with acks=all that can carry our largest records."""
    return AIOKafkaProducer(
        **kafka.aiokafka(),
        enable_idempotence=True,
        max_request_size=topics.MESSAGE_BYTES_MAX,
        max_batch_size=topics.MESSAGE_BYTES_MAX,
        **more,
    )


async def started_producer(kafka: KafkaSettings) -> AIOKafkaProducer:
    """A producer that is connected and sends at once. One that cannot connect leaves nothing running behind."""
    fresh = producer(kafka, linger_ms=0)
    try:
        await fresh.start()
    except BaseException:
        await fresh.stop()
        raise
    return fresh


def reader(kafka: KafkaSettings, fetch_wait_ms: int = FETCH_WAIT_MS) -> AIOKafkaConsumer:
    """A consumer without group: `assign`, `seek`, read. One that reads a single partition may let its fetches wait longer."""
    return AIOKafkaConsumer(
        **kafka.aiokafka(),
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_committed",
        max_partition_fetch_bytes=topics.MESSAGE_BYTES_MAX + (1 << 20),
        fetch_max_bytes=FETCH_BYTES_MAX,
        fetch_max_wait_ms=fetch_wait_ms,
        max_poll_records=RECORDS_AT_ONCE,
        check_crcs=False,
    )


async def read_range(
    kafka: KafkaSettings, topic: str, partition: int, start: int, end: int, stall_s: float = STALL_S
) -> AsyncIterator[RawRecord]:
    """Records of one partition from `start` up to and without `end`.

    Holes (transaction markers) are passed over. Raises LogGapError where `start` is no longer kept, KafkaError where
    the broker cannot be read, or nothing came for `stall_s`.
    """
    if start >= end:
        return
    consumer = reader(kafka)
    try:
        place = TopicPartition(kafka.topic(topic), partition)
        async with _in_time(f"{topic}-{partition} cannot be read", stall_s):
            await consumer.start()
            consumer.assign([place])
            first = (await consumer.beginning_offsets([place]))[place]
        if first > start:
            raise LogGapError(f"{topic}-{partition} starts at {first}, wanted {start}")
        consumer.seek(place, start)
        at = start
        while at < end:
            async with _in_time(f"{topic}-{partition} gives nothing from {at} on", stall_s):
                found: list[ConsumerRecord] = []
                while not found and at < end:
                    found = (await consumer.getmany(place, timeout_ms=500)).get(place, [])
                    at = await consumer.position(place)
            for record in found:
                if record.offset >= end:
                    return
                yield raw(record)
    finally:
        await consumer.stop()


@asynccontextmanager
async def _in_time(what: str, stall_s: float) -> AsyncIterator[None]:
    """Raises KafkaTimeoutError where what is inside takes longer: a consumer that stands still is replaced, not waited for."""
    try:
        async with asyncio.timeout(stall_s):
            yield
    except TimeoutError as error:
        raise KafkaTimeoutError(f"{what} for {stall_s} s") from error


class KafkaEventLog:
    """`EventLog` on Kafka. `start` before use, `stop` after."""

    def __init__(self, kafka: KafkaSettings, deadline_s: float = APPEND_DEADLINE_S) -> None:
        self._kafka = kafka
        self._topic = kafka.topic(topics.EVENTS)
        self._deadline_s = deadline_s
        self._producer = producer(kafka, linger_ms=0)
        self._bounds = reader(kafka)
        self._is_unknown = False

    async def start_clients(self) -> None:
        """Connect."""
        await self._producer.start()
        await self._bounds.start()

    async def stop_clients(self) -> None:
        """Disconnect; an append in flight is waited for."""
        await self._producer.stop()
        await self._bounds.stop()

    async def append(self, partition: int, value: bytes) -> Ack:
        """See `EventLog.append`. After an unknown outcome this log appends nothing more."""
        if self._is_unknown:
            raise AppendUnknownError("an earlier append of this process has an unknown outcome")
        batch = self._producer.create_batch()
        batch.append(key=None, value=value, timestamp=None, headers=[])
        batch.close()
        try:
            async with asyncio.timeout(self._deadline_s):
                future = await self._producer.send_batch(batch, self._topic, partition=partition)
                found = await asyncio.shield(future)
        except (KafkaError, TimeoutError) as error:
            self._is_unknown = True
            raise AppendUnknownError(f"append to partition {partition}: {type(error).__name__}") from error
        if found is None or found.offset is None or found.offset < 0:
            self._is_unknown = True
            raise AppendUnknownError(f"append to partition {partition}: acknowledged without an offset")
        return Ack(found.offset, found.timestamp)

    async def end(self, partition: int) -> int:
        """See `EventLog.end`."""
        place = TopicPartition(self._topic, partition)
        return int((await self._bounds.end_offsets([place]))[place])

    async def start(self, partition: int) -> int:
        """See `EventLog.start`."""
        place = TopicPartition(self._topic, partition)
        return int((await self._bounds.beginning_offsets([place]))[place])

    def read(self, partition: int, start: int, end: int) -> AsyncIterator[RawRecord]:
        """See `EventLog.read`."""
        return read_range(self._kafka, topics.EVENTS, partition, start, end)
