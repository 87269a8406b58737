"""What every `EventLog` must do: the suite runs on the one in memory and on Kafka."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from kafka import KafkaAdminClient, TopicPartition

from minutebook.clock import SystemClock
from minutebook.errors import LogGapError
from minutebook.log import admin
from minutebook.log.admin import TopicSettings
from minutebook.log.kafka import KafkaEventLog
from minutebook.log.memory import MemoryEventLog
from minutebook.log.port import EventLog, RawRecord
from minutebook.log.reader import FrameReader
from minutebook.log.settings import KafkaSettings
from minutebook.wire import topics

P = 2


@dataclass(frozen=True)
class Subject:
    """A log under test, and how its oldest records are forgotten."""

    log: EventLog
    trim: Callable[[int, int], Awaitable[None]]


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    if request.param == "memory":
        memory = MemoryEventLog(P, SystemClock().now)

        async def forget(partition: int, start: int) -> None:
            memory.trim(partition, start)

        yield Subject(memory, forget)
        return
    async for found in on_kafka(request.getfixturevalue("broker")):
        yield found


async def on_kafka(broker: Any) -> AsyncIterator[Subject]:
    kafka = KafkaSettings(
        bootstrap_servers=broker.bootstrap_servers, topic_prefix=f"t{uuid.uuid4().hex[:8]}."
    )
    admin.create(kafka, TopicSettings(partitions=P, inbox_partitions=1, replication=1))
    log = KafkaEventLog(kafka)
    await log.start_clients()
    client = KafkaAdminClient(**kafka.kafka_python())

    async def forget(partition: int, start: int) -> None:
        client.delete_records({TopicPartition(kafka.topic(topics.EVENTS), partition): start})

    try:
        yield Subject(log, forget)
    finally:
        await log.stop_clients()
        client.delete_topics([name for name in client.list_topics() if name.startswith(kafka.topic_prefix)])
        client.close()


async def read(log: EventLog, partition: int, start: int, end: int) -> list[RawRecord]:
    return [record async for record in log.read(partition, start, end)]


async def test_an_empty_partition_starts_and_ends_at_zero(subject: Subject) -> None:
    assert (await subject.log.start(0), await subject.log.end(0)) == (0, 0)
    assert await read(subject.log, 0, 0, 0) == []


async def test_records_lie_where_and_when_their_ack_says(subject: Subject) -> None:
    log = subject.log
    acks = [await log.append(0, bytes([n]) * (n + 1)) for n in range(5)]
    assert [ack.offset for ack in acks] == [0, 1, 2, 3, 4]
    assert await log.end(0) == 5
    found = await read(log, 0, 0, 5)
    assert found == [
        RawRecord(ack.offset, ack.stamp, None, bytes([n]) * (n + 1)) for n, ack in enumerate(acks)
    ]


async def test_stamps_are_milliseconds_that_do_not_go_back(subject: Subject) -> None:
    before = SystemClock().now()
    stamps = [(await subject.log.append(0, b"x")).stamp for _ in range(3)]
    assert stamps == sorted(stamps)
    assert abs(stamps[0] - before) < 60_000


async def test_partitions_are_apart(subject: Subject) -> None:
    await subject.log.append(0, b"zero")
    await subject.log.append(1, b"one")
    assert [record.value for record in await read(subject.log, 1, 0, 1)] == [b"one"]
    assert await subject.log.end(0) == 1


async def test_a_range_is_read_without_its_end(subject: Subject) -> None:
    for n in range(6):
        await subject.log.append(0, bytes([n]))
    assert [record.offset for record in await read(subject.log, 0, 2, 5)] == [2, 3, 4]


async def test_a_large_frame_is_carried(subject: Subject) -> None:
    value = bytes(range(256)) * (3 << 12)
    await subject.log.append(0, value)
    assert (await read(subject.log, 0, 0, 1))[0].value == value


async def test_forgotten_records_are_a_gap(subject: Subject) -> None:
    for n in range(4):
        await subject.log.append(0, bytes([n]))
    await subject.trim(0, 2)
    assert await subject.log.start(0) == 2
    assert [record.offset for record in await read(subject.log, 0, 2, 4)] == [2, 3]
    with pytest.raises(LogGapError):
        await read(subject.log, 0, 1, 4)


async def test_writer_and_reader_build_the_same_chain(subject: Subject) -> None:
    """The writer hashes what it sent and what the ack said; a reader hashes what it finds."""
    writer, reader = FrameReader(), FrameReader()
    for n in range(3):
        ack = await subject.log.append(0, b"frame %d" % n)
        assert writer.own(RawRecord(ack.offset, ack.stamp, None, b"frame %d" % n), ack.stamp)
    for record in await read(subject.log, 0, 0, 3):
        reader.take(record)
    assert (reader.position, reader.head) == (writer.position, writer.head)
