"""The channel on Kafka, by aiokafka. Never gives up on the broker; says once that it is away and once that it is back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.errors import (
    KafkaError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from minutebook.log.kafka import reader, started_producer
from minutebook.log.settings import KafkaSettings
from minutebook.wire import topics

T = TypeVar("T")

_RETRY_S: Final = 0.5
_POLL_MS: Final = 1_000
_FETCH_WAIT_MS: Final = 500

log = structlog.get_logger(__name__)


class KafkaChannel:
    """See `Channel`. Reads the one partition of the inbox that the worker id hashes to, by assignment, without a group."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._reports = kafka.topic(topics.REPORTS)
        self._reader: AIOKafkaConsumer | None = None
        self._producer: AIOKafkaProducer | None = None
        self._producer_lock = asyncio.Lock()
        self._is_away = False

    async def open(self, worker_id: str) -> int:
        """See `Channel.open`."""
        self._key = worker_id.encode()
        partitions = await self._persist(self._partitions, self._reports)
        inbox = self._kafka.topic(topics.INBOX)
        number = topics.partition_of(worker_id, await self._persist(self._partitions, inbox))
        self._inbox = TopicPartition(inbox, number)
        await self._persist(self._start_reader)
        return partitions

    async def poll(self) -> list[bytes]:
        """See `Channel.poll`. Records of other workers are dropped by their key, before they are decoded."""
        found = await self._persist(self._fetch)
        return [record.value for record in found if record.key == self._key and record.value is not None]

    async def send(self, partition: int, value: bytes) -> int:
        """See `Channel.send`. After a fault the producer is replaced and the record sent again."""
        return await self._persist(self._append, self._reports, partition, None, value)

    async def command(self, key: str, value: bytes) -> bool:
        """See `Channel.command`."""
        return await self._persist(self._command, key, value)

    async def close(self) -> None:
        """See `Channel.close`."""
        if self._reader is not None:
            await self._reader.stop()
        if self._producer is not None:
            await self._producer.stop()

    async def _persist(self, call: Callable[..., Awaitable[T]], *args: object) -> T:
        while True:
            try:
                answer = await call(*args)
            except (KafkaError, OSError, TimeoutError) as error:
                self._say_away(error)
                await asyncio.sleep(_RETRY_S)
            else:
                self._say_back()
                return answer

    def _say_away(self, error: Exception) -> None:
        if not self._is_away:
            self._is_away = True
            is_missing = isinstance(error, UnknownTopicOrPartitionError)
            remedy = (
                "make the topics: minutebook topics create" if is_missing else "start or reach the broker"
            )
            servers = self._kafka.bootstrap_servers
            log.warning("kafka_away", servers=servers, error=repr(error), remedy=remedy)

    def _say_back(self) -> None:
        if self._is_away:
            self._is_away = False
            log.info("kafka_back")

    async def _started_producer(self) -> AIOKafkaProducer:
        async with self._producer_lock:
            if self._producer is None:
                self._producer = await started_producer(self._kafka)
            return self._producer

    async def _partitions(self, topic: str) -> int:
        return len(await (await self._started_producer()).partitions_for(topic))

    async def _command(self, key: str, value: bytes) -> bool:
        topic = self._kafka.topic(topics.COMMANDS)
        try:
            number = topics.partition_of(key, await self._partitions(topic))
            await self._append(topic, number, key.encode(), value)
        except TopicAuthorizationFailedError:
            return False
        return True

    async def _append(self, topic: str, partition: int, key: bytes | None, value: bytes) -> int:
        used = await self._started_producer()
        batch = used.create_batch()
        batch.append(key=key, value=value, timestamp=None, headers=[])
        batch.close()
        try:
            ack = await (await used.send_batch(batch, topic, partition=partition))
        except KafkaError:
            await self._drop(used)
            raise
        return int(ack.timestamp)

    async def _drop(self, used: AIOKafkaProducer) -> None:
        """A producer that failed once may fail for ever: an idempotent one does after a lost sequence."""
        if self._producer is used:
            self._producer = None
        await used.stop()

    async def _start_reader(self) -> None:
        fresh = reader(self._kafka, _FETCH_WAIT_MS)
        try:
            await fresh.start()
            fresh.assign([self._inbox])
            fresh.seek(self._inbox, (await fresh.end_offsets([self._inbox]))[self._inbox])
        except BaseException:
            await fresh.stop()
            raise
        self._reader = fresh

    async def _fetch(self) -> list[ConsumerRecord]:
        assert self._reader is not None
        try:
            found = await self._reader.getmany(self._inbox, timeout_ms=_POLL_MS)
        except OffsetOutOfRangeError:
            # Away longer than the inbox is kept: what was granted meanwhile has been withdrawn long ago.
            self._reader.seek(self._inbox, (await self._reader.end_offsets([self._inbox]))[self._inbox])
            return []
        records: list[ConsumerRecord] = found.get(self._inbox, [])
        return records
