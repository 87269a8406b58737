"""What a worker's channel promises, on memory and on Kafka alike."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any, Protocol

import pytest
import structlog
from aiokafka import TopicPartition
from kafka import KafkaAdminClient

from minutebook.clock import SystemClock, wall_ns
from minutebook.domain.commands import DeclareTask
from minutebook.domain.records import Inbox, Pulse, Report
from minutebook.log import admin
from minutebook.log.admin import TopicSettings
from minutebook.log.kafka import producer, read_range
from minutebook.log.settings import KafkaSettings
from minutebook.mint import mint_id
from minutebook.wire import codec, topics
from minutebook.worker.channel import Channel
from minutebook.worker.kafka import KafkaChannel
from minutebook.worker.memory import MemoryChannel

P = 3
INBOX = 2


class Ends(Protocol):
    """A channel and its other end."""

    channel: Channel

    async def deliver(self, record: Inbox) -> None: ...

    async def reports(self, partition: int) -> list[Report]: ...

    async def commands(self, key: str) -> list[codec.Record]:
        """First command on the partition of `key`."""
        ...


class MemoryEnds:
    """The other end is a list."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, Report]] = []
        self.channel = MemoryChannel(
            SystemClock(), P, lambda partition, report: self.heard.append((partition, report))
        )

    async def deliver(self, record: Inbox) -> None:
        self.channel.deliver(record)

    async def reports(self, partition: int) -> list[Report]:
        return [report for number, report in self.heard if number == partition]

    async def commands(self, key: str) -> list[codec.Record]:
        return [command for sent, command in self.channel.commands if sent == key]


class KafkaEnds:
    """The other end is a broker."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self.kafka = kafka
        self.channel = KafkaChannel(kafka)
        self.writer: Any = producer(kafka)

    async def deliver(self, record: Inbox) -> None:
        await self.write(record.session.rpartition(".")[0], codec.encode(record))

    async def write(self, worker: str, value: bytes, partition: int | None = None) -> None:
        number = topics.partition_of(worker, INBOX) if partition is None else partition
        await self.writer.send_and_wait(
            self.kafka.topic(topics.INBOX), value, worker.encode(), partition=number
        )

    async def reports(self, partition: int) -> list[Report]:
        found = []
        async for record in read_range(self.kafka, topics.REPORTS, partition, 0, 1):
            found.append(codec.decode(record.value))
        return found  # type: ignore[return-value]  # nothing else is written there

    async def commands(self, key: str) -> list[codec.Record]:
        number = topics.partition_of(key, P)
        return [
            codec.decode(record.value)
            async for record in read_range(self.kafka, topics.COMMANDS, number, 0, 1)
            if record.key == key.encode()
        ]


async def on_kafka(broker: Any) -> AsyncIterator[KafkaEnds]:
    kafka = KafkaSettings(
        bootstrap_servers=broker.bootstrap_servers, topic_prefix=f"c{uuid.uuid4().hex[:8]}."
    )
    await asyncio.to_thread(admin.create, kafka, TopicSettings(partitions=P, inbox_partitions=INBOX))
    ends = KafkaEnds(kafka)
    await ends.writer.start()
    yield ends
    await ends.channel.close()
    await ends.writer.stop()
    client = KafkaAdminClient(**kafka.kafka_python())
    client.delete_topics([name for name in client.list_topics() if name.startswith(kafka.topic_prefix)])
    client.close()


@pytest.fixture
async def kafka_ends(broker: Any) -> AsyncIterator[KafkaEnds]:
    async for found in on_kafka(broker):
        yield found


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
async def ends(request: pytest.FixtureRequest) -> AsyncIterator[Ends]:
    if request.param == "memory":
        yield MemoryEnds()
        return
    async for found in on_kafka(request.getfixturevalue("broker")):
        yield found


async def polled(channel: Channel, count: int) -> list[Inbox]:
    found: list[bytes] = []
    while len(found) < count:
        found += await channel.poll()
    return [codec.decode(value) for value in found]  # type: ignore[misc]  # a worker's inbox


async def test_open_answers_the_number_of_partitions(ends: Ends) -> None:
    assert await ends.channel.open(mint_id()) == P


async def test_records_come_in_the_order_of_the_inbox(ends: Ends) -> None:
    worker = mint_id()
    await ends.channel.open(worker)
    for frame in range(20):
        await ends.deliver(Inbox(f"{worker}.0", 1, frame, 0, []))
    assert [record.frame for record in await polled(ends.channel, 20)] == list(range(20))


async def test_report_is_stamped_by_the_broker(ends: Ends) -> None:
    await ends.channel.open(mint_id())
    before = wall_ns() // 1_000_000
    report = Report("w.0", 1, Pulse(4, -1))
    stamp = await ends.channel.send(2, codec.encode(report))
    assert before - 1_000 <= stamp <= wall_ns() // 1_000_000 + 1_000
    assert await ends.reports(2) == [report]


async def test_command_lies_on_the_partition_of_its_key(ends: Ends) -> None:
    await ends.channel.open(mint_id())
    command = DeclareTask(name="a", command_id="c", issued_at=1, payload_schema='{"type":"object"}')
    assert await ends.channel.command("task::a", codec.encode(command))
    assert await ends.commands("task::a") == [command]


@pytest.mark.kafka
async def test_what_lay_in_the_inbox_before_is_not_read(kafka_ends: KafkaEnds) -> None:
    worker = mint_id()
    await kafka_ends.deliver(Inbox(f"{worker}.0", 1, 1, 0, []))
    await kafka_ends.channel.open(worker)
    await kafka_ends.deliver(Inbox(f"{worker}.0", 1, 2, 0, []))
    assert [record.frame for record in await polled(kafka_ends.channel, 1)] == [2]


@pytest.mark.kafka
async def test_records_under_other_keys_are_dropped(kafka_ends: KafkaEnds) -> None:
    worker = mint_id()
    await kafka_ends.channel.open(worker)
    own = topics.partition_of(worker, INBOX)
    await kafka_ends.write(mint_id(), codec.encode(Inbox(f"{worker}.0", 1, 1, 0, [])), own)
    await kafka_ends.deliver(Inbox(f"{worker}.0", 1, 2, 0, []))
    assert [record.frame for record in await polled(kafka_ends.channel, 1)] == [2]


@pytest.mark.kafka
async def test_reader_that_was_away_for_too_long_goes_on_at_the_end(kafka_ends: KafkaEnds) -> None:
    worker = mint_id()
    place = TopicPartition(kafka_ends.kafka.topic(topics.INBOX), topics.partition_of(worker, INBOX))
    for frame in range(3):
        await kafka_ends.deliver(Inbox(f"{worker}.0", 1, frame, 0, []))
    client = KafkaAdminClient(**kafka_ends.kafka.kafka_python())
    client.delete_records({place: 3})
    client.close()
    await kafka_ends.channel.open(worker)
    kafka_ends.channel._reader.seek(place, 0)  # type: ignore[union-attr]  # where it would stand after such a while
    late = asyncio.create_task(polled(kafka_ends.channel, 1))
    while not late.done():
        await kafka_ends.deliver(Inbox(f"{worker}.0", 1, 9, 0, []))
        await asyncio.wait([late], timeout=0.2)
    assert {record.frame for record in await late} == {9}


@pytest.mark.kafka
async def test_producer_that_failed_is_replaced(kafka_ends: KafkaEnds) -> None:
    await kafka_ends.channel.open(mint_id())
    with structlog.testing.capture_logs() as logs:
        refused = asyncio.create_task(kafka_ends.channel.send(0, bytes(topics.MESSAGE_BYTES_MAX + 1)))
        while not logs:
            await asyncio.sleep(0.01)
        refused.cancel()
        await asyncio.wait([refused])
        assert await kafka_ends.channel.send(0, codec.encode(Report("w.0", 1, Pulse(1, -1)))) > 0
    assert [entry["event"] for entry in logs] == ["kafka_away", "kafka_back"]
