"""Due records on their way out: a due topic that is missing holds up its own queue alone, and is said."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, UnknownTopicOrPartitionError

from minutebook.log.settings import KafkaSettings
from minutebook.wire import codec
from streams import due_records
from streams.due_records import DueRecords
from streams.open_queues import AGAIN_IDLE_MS
from tests.simulation.desk import Desk


class Broker:
    """As much of aiokafka's producer as is used, over topics in memory."""

    def __init__(self) -> None:
        self.sent: dict[str, list[str]] = defaultdict(list)
        self.faults: dict[str, KafkaError] = {}

    async def send(self, topic: str, value: bytes, key: bytes, partition: int) -> asyncio.Future[Any]:
        assert partition == 0
        if topic in self.faults:
            raise self.faults[topic]
        self.sent[topic].append(key.decode())
        assert codec.decode(value).execution == key.decode()  # type: ignore[union-attr]
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done


class Way:
    """The due records of a desk, and the broker that they go to."""

    def __init__(self) -> None:
        self.desk = Desk()
        for queue in ("a", "b"):
            self.desk.declare(queue, is_open=True)
        self.desk.cycle()
        self.broker = Broker()
        self.woken = asyncio.Event()
        self.records = DueRecords(
            cast(AIOKafkaProducer, self.broker),
            KafkaSettings(topic_prefix="x."),
            0,
            lambda: self.desk.core.open_queues,
            lambda: self.desk.now,
            self.woken.set,
        )

    def due(self, queue: str, *jobs: str, **fields: Any) -> None:
        self.desk.submit(*jobs, queue=queue, **fields)
        self.desk.cycle()
        self.desk.cycle(1)
        self.records.publish()

    async def until_sent(self, queue: str, count: int) -> list[str]:
        sent = self.broker.sent[f"x.executions-due.{queue}"]
        while len(sent) < count:
            await asyncio.sleep(0)
        await self.woken.wait()
        return [name.partition(":")[0] for name in sent]


@pytest.fixture
async def way(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Way]:
    monkeypatch.setattr(due_records, "RETRY_MAX_S", 0.01)
    made = Way()
    running = asyncio.create_task(made.records.run())
    yield made
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_due_records_go_to_the_topic_of_their_queue(way: Way) -> None:
    way.due("a", "j1", "j2")
    way.due("b", "j3")
    assert await way.until_sent("a", 2) == ["j1", "j2"]
    assert await way.until_sent("b", 1) == ["j3"]


async def test_a_missing_topic_holds_up_its_own_queue_until_it_is_there(way: Way) -> None:
    way.broker.faults["x.executions-due.a"] = UnknownTopicOrPartitionError()
    way.due("a", "j1")
    way.due("b", "j2")
    assert await way.until_sent("b", 1) == ["j2"]
    while not way.records.faults:
        await asyncio.sleep(0)
    assert way.records.faults == {"a": "UnknownTopicOrPartitionError"}
    way.due("a", "j3")
    way.desk.now += 2 * AGAIN_IDLE_MS
    way.records.publish()
    way.broker.faults.clear()
    assert await way.until_sent("a", 2) == ["j1", "j3"]
    while way.records.faults:
        await asyncio.sleep(0)
    assert len(way.broker.sent["x.executions-due.a"]) == 2, "what never went out is no repeat"


async def test_a_due_record_that_is_too_large_is_passed_over(way: Way) -> None:
    way.broker.faults["x.executions-due.a"] = MessageSizeTooLargeError()
    way.due("a", "j1")
    await way.woken.wait()
    way.broker.faults.clear()
    way.due("a", "j2")
    assert await way.until_sent("a", 1) == ["j2"]


async def test_what_waits_to_be_sent_is_bounded(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due_records, "ROWS_WAITING_MAX", 20)
    way.broker.faults["x.executions-due.a"] = UnknownTopicOrPartitionError()
    way.due("a", *(f"j{number:02}" for number in range(50)))
    assert not way.records.is_behind()
    way.records.publish()
    way.broker.faults.clear()
    await way.until_sent("a", 20)
    assert way.records.is_behind()
    way.records.publish()
    way.records.publish()
    assert len(await way.until_sent("a", 40)) == 40
