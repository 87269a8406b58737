"""The API's two sides on a real broker: the view that follows the log, and the commands that go in."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from api.follower import Follower
from api.lanes import Keyed
from api.problems import Refused
from api.sender import KafkaCommandLog
from api.view import View
from minutebook.broker_clock import BrokerClock
from minutebook.clock import SystemClock
from minutebook.domain import events as facts
from minutebook.domain.commands import SubmitJob
from minutebook.domain.events import Event
from minutebook.domain.view_rows import FAMILIES, CursorRow, digest
from minutebook.log import admin
from minutebook.log.admin import TopicSettings
from minutebook.log.kafka import KafkaEventLog, read_range
from minutebook.log.port import RawRecord
from minutebook.log.reader import HEAD_BEFORE_ALL, next_head
from minutebook.log.settings import KafkaSettings
from minutebook.store.rocks import RocksRows
from minutebook.wire import topics
from minutebook.wire.codec import CommandBatch, decode
from minutebook.wire.frames import Frame, encode_frame

pytestmark = pytest.mark.kafka
PARTITIONS = 2
_numbers = itertools.count()


class Address(Protocol):
    """A broker that runs."""

    bootstrap_servers: str


@pytest.fixture
def kafka(broker: Address) -> KafkaSettings:
    """Fresh topics of their own."""
    settings = KafkaSettings(
        bootstrap_servers=broker.bootstrap_servers, topic_prefix=f"api-{next(_numbers)}-{id(broker)}."
    )
    admin.create(settings, TopicSettings(partitions=PARTITIONS, inbox_partitions=1))
    return settings


class Log:
    """An owner that appends what it is told."""

    def __init__(self, log: KafkaEventLog) -> None:
        self._log = log
        self._heads = [HEAD_BEFORE_ALL] * PARTITIONS
        self._ends = [0] * PARTITIONS
        self._clock = SystemClock()

    async def append(self, partition: int, *events: Event, is_valid: bool = True) -> None:
        """Append a frame; a void one declares the next offset."""
        offset = self._ends[partition]
        frame = Frame(
            offset=offset + (not is_valid),
            head=self._heads[partition],
            owner="test",
            epoch=1,
            now=self._clock.now(),
            rules=1,
            tzdata="",
            settings=b"",
            inputs=[],
            slices=[],
            outputs_sent_through=-1,
            events=list(events),
        )
        value = encode_frame(frame)
        ack = await self._log.append(partition, value)
        assert ack.offset == offset
        self._heads[partition] = next_head(self._heads[partition], RawRecord(offset, ack.stamp, None, value))
        self._ends[partition] += 1


@pytest.fixture
async def log(kafka: KafkaSettings) -> AsyncIterator[Log]:
    clients = KafkaEventLog(kafka)
    await clients.start_clients()
    yield Log(clients)
    await clients.stop_clients()


def submitted(job_id: str) -> facts.JobSubmitted:
    return facts.JobSubmitted(
        "acme",
        job_id,
        f"c-{job_id}",
        "",
        0,
        0,
        b"",
        "t",
        b"null",
        0,
        b"",
        "default",
        "",
        "UTC",
        "refuse",
        1,
        5,
        0,
        "",
    )


class Following(NamedTuple):
    """A view and what feeds it."""

    view: View
    follower: Follower

    async def has(self, job_id: str, partition: int = 0) -> bool:
        """Wait until the view knows a job."""
        return await self.view.until(lambda: self.view.parts[partition].job("acme", job_id) is not None, 20)


@asynccontextmanager
async def following(kafka: KafkaSettings, folder: Path) -> AsyncIterator[Following]:
    rows = RocksRows(folder, FAMILIES)
    view = View(rows, PARTITIONS)
    follower = Follower(view, kafka, SystemClock())
    running = asyncio.create_task(follower.run())
    try:
        yield Following(view, follower)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        view.parts.clear()
        rows.close()


def stored_digests(folder: Path) -> list[bytes]:
    rows = RocksRows(folder, FAMILIES)
    found = [digest(rows, partition) for partition in range(PARTITIONS)]
    rows.close()
    return found


async def ready(side: Following) -> None:
    async with asyncio.timeout(20):
        while side.follower.unready() and not side.follower.fault:
            await asyncio.sleep(0.01)


async def test_view_follows_and_resumes_where_it_ended(
    kafka: KafkaSettings, log: Log, tmp_path: Path
) -> None:
    await log.append(0, submitted("a"))
    await log.append(1, submitted("b"))
    async with following(kafka, tmp_path / "one") as side:
        await ready(side)
        assert side.follower.is_caught_up
        assert side.view.parts[1].job("acme", "b") is not None
        await log.append(0, submitted("ghost"), is_valid=False)
        await log.append(0, submitted("c"))
        assert await side.has("c")
        assert side.view.parts[0].job("acme", "ghost") is None
        assert sum(part.cursor.void_frames for part in side.view.parts) == 1
        assert side.view.voids.total() == 1
    await log.append(0, submitted("d"))
    async with following(kafka, tmp_path / "one") as side:
        assert side.view.readers[0].position == 2
        assert await side.has("d")
    async with following(kafka, tmp_path / "anew") as side:
        await ready(side)
    assert stored_digests(tmp_path / "one") == stored_digests(tmp_path / "anew")


@pytest.mark.parametrize("fault", ["another head", "beyond the end", "another format"])
async def test_rows_of_another_log_are_folded_again(
    fault: str, kafka: KafkaSettings, log: Log, tmp_path: Path
) -> None:
    await log.append(0, submitted("a"))
    async with following(kafka, tmp_path / "view") as side:
        assert await side.has("a")
        part = side.view.parts[0]
        cursor = part.cursor
        part.fold([submitted("stranger")], 0, 0)
        part.advance(
            {
                "another head": CursorRow(0, bytes(32), cursor.head_before),
                "beyond the end": CursorRow(7, cursor.head, cursor.head_before),
                "another format": CursorRow(0, cursor.head, cursor.head_before, format=0),
            }[fault]
        )
    async with following(kafka, tmp_path / "view") as side:
        await ready(side)
        assert side.view.parts[0].job("acme", "stranger") is None
        assert side.view.parts[0].job("acme", "a") is not None


async def test_broken_log_halts_the_view(kafka: KafkaSettings, log: Log, tmp_path: Path) -> None:
    async with following(kafka, tmp_path / "view") as side:
        await ready(side)
        await log.append(0, submitted("half"), facts.AttemptsSucceeded(["acme"], [0], ["x:1"], [0], [0], [0]))
        async with asyncio.timeout(20):
            while not side.follower.fault:
                await asyncio.sleep(0.01)
        assert "BrokenFrameError" in side.follower.unready()
    rows = RocksRows(tmp_path / "view", FAMILIES)
    assert View(rows, PARTITIONS).parts[0].job("acme", "half") is None
    rows.close()


def never_decided(partition: int, offset: int) -> asyncio.Future[None]:
    """No owner is there."""
    return asyncio.get_running_loop().create_future()


async def test_commands_that_wait_share_a_record(kafka: KafkaSettings) -> None:
    commands = KafkaCommandLog(kafka, PARTITIONS, 10, SystemClock(), BrokerClock(), never_decided)
    sent = [
        SubmitJob(
            tenant="acme",
            job_id=str(n),
            command_id=str(n),
            issued_at=0,
            task="t",
            payload=b'"' + b"x" * size + b'"',
        )
        for n, size in enumerate([10] * 1_200 + [250_000] * 9)
    ]
    keyed = [Keyed(f"acme/{command.job_id}", command) for command in sent]
    offsets = await asyncio.gather(
        commands.send(1, keyed[:700]), *(commands.send(1, [one]) for one in keyed[700:])
    )
    await commands.stop()
    found = [record async for record in read_range(kafka, topics.COMMANDS, 1, 0, max(offsets) + 1)]
    taken: list[object] = []
    for record in found:
        decoded = decode(record.value)
        taken += decoded.commands if isinstance(decoded, CommandBatch) else [decoded]
    assert taken == sent
    assert len(found) < 10


@pytest.fixture
def unreachable() -> KafkaSettings:
    return KafkaSettings(bootstrap_servers="127.0.0.1:1")


async def test_command_is_refused_while_no_broker_answers(unreachable: KafkaSettings) -> None:
    commands = KafkaCommandLog(unreachable, PARTITIONS, 3, SystemClock(), BrokerClock(), never_decided)
    command = SubmitJob(tenant="acme", job_id="a", command_id="a", issued_at=0, task="t", payload=b"null")
    with pytest.raises(Refused) as refused:
        await commands.send(0, [Keyed("acme/a", command)])
    assert refused.value.code == "not-durable"
    await commands.stop()
