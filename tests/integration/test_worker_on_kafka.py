"""The worker on a real broker: its channel, its process, and what it does when the broker is away."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog
from aiokafka import TopicPartition
from kafka import KafkaAdminClient

from minutebook.domain.records import Inbox, Report
from minutebook.embedded import Broker
from minutebook.ids import worker_of
from minutebook.log import admin
from minutebook.log.admin import TopicSettings
from minutebook.log.kafka import producer, reader
from minutebook.log.settings import KafkaSettings
from minutebook.wire import codec, topics
from minutebook.worker import App, Worker, WorkerSettings
from minutebook.worker.kafka import KafkaChannel
from tests.unit.worker_owner import OwnerDouble, Queued, columns

pytestmark = pytest.mark.kafka
ROOT = Path(__file__).parents[2]
P = 2
INBOX = 4


class InboxTopic:
    """Where the owner's double writes: the other end of a KafkaChannel."""

    partitions = P

    def __init__(self, kafka: KafkaSettings) -> None:
        self._topic = kafka.topic(topics.INBOX)
        self.producer: Any = producer(kafka)
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[Any]] = set()

    def deliver(self, record: Inbox) -> None:
        """Write a record under its worker's key."""
        task = self._loop.create_task(self.write(worker_of(record.session), record))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def write(self, worker: str, record: Inbox, partition: int | None = None) -> None:
        """Write and wait for the ack."""
        number = topics.partition_of(worker, INBOX) if partition is None else partition
        await self.producer.send_and_wait(
            self._topic, codec.encode(record), worker.encode(), partition=number
        )


@asynccontextmanager
async def owner_on(kafka: KafkaSettings) -> AsyncIterator[OwnerDouble]:
    """The owner's double, reading `worker-reports` from its start."""
    owner, inbox = OwnerDouble(P), InboxTopic(kafka)
    owner.channel = inbox  # type: ignore[assignment]  # it has what the double needs
    reports = reader(kafka)
    await inbox.producer.start()
    await reports.start()
    places = [TopicPartition(kafka.topic(topics.REPORTS), number) for number in range(P)]
    reports.assign(places)
    await reports.seek_to_beginning(*places)
    listening = asyncio.create_task(listen(reports, owner))
    try:
        yield owner
    finally:
        listening.cancel()
        await asyncio.wait([listening])
        await reports.stop()
        await inbox.producer.stop()


async def listen(reports: Any, owner: OwnerDouble) -> None:
    async for record in reports:
        report = codec.decode(record.value)
        assert isinstance(report, Report)
        owner.hear(record.partition, report)


@pytest.fixture
def kafka(broker: Any) -> Any:
    settings = KafkaSettings(
        bootstrap_servers=broker.bootstrap_servers, topic_prefix=f"t{uuid.uuid4().hex[:8]}."
    )
    admin.create(settings, TopicSettings(partitions=P, inbox_partitions=INBOX))
    yield settings
    client = KafkaAdminClient(**settings.kafka_python())
    client.delete_topics([name for name in client.list_topics() if name.startswith(settings.topic_prefix)])
    client.close()


@asynccontextmanager
async def working(app: App, kafka: KafkaSettings, **settings: Any) -> AsyncIterator[Worker]:
    worker = Worker(app, WorkerSettings(name="w", grace_s=5, **settings), KafkaChannel(kafka))
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.drain()
        await task


async def test_runs_go_through_kafka_and_back(kafka: KafkaSettings) -> None:
    app, ran = App(), []

    @app.task("note")
    async def note(payload: int) -> None:
        ran.append(payload)

    async with owner_on(kafka) as owner, working(app, kafka):
        await owner.ready()
        for number in range(500):
            owner.queue(f"j:{number}", "note", b"%d" % number, partition=number % P)
        await owner.until(lambda: len(owner.succeeded) == 500)
    assert sorted(ran) == list(range(500))


async def test_records_of_others_are_passed_over(kafka: KafkaSettings) -> None:
    app, ran = App(), []

    @app.task("note")
    async def note(payload: str) -> None:
        ran.append(payload)

    async with owner_on(kafka) as owner, working(app, kafka) as worker:
        await owner.ready()
        own = topics.partition_of(worker.id, INBOX)
        foreign = columns([Queued("j:0", "note", b'"foreign"', 1_000)], owner.clock.now())
        record = Inbox(owner.sessions[0], 0, 1, owner.clock.now() + 1_500, [], foreign)
        await owner.channel.write(str(uuid.uuid4()), record, own)  # type: ignore[attr-defined]  # an InboxTopic
        owner.queue("j:1", "note", b'"mine"')
        await owner.until(lambda: "j:1" in owner.succeeded)
    assert ran == ["mine"]


async def test_late_grants_are_handed_back_by_the_brokers_time(kafka: KafkaSettings) -> None:
    app = App()
    app.task("note")(lambda payload: None)
    async with owner_on(kafka) as owner, working(app, kafka):
        await owner.ready()
        owner.is_granting_again = False
        owner.start_within_ms = -60_000
        owner.queue("j:1", "note")
        await owner.until(lambda: owner.handed_back == ["j:1"])


async def test_worker_waits_for_a_broker_and_survives_its_restart(tmp_path: Path) -> None:
    app = App()
    app.task("note")(lambda payload: None)
    broker = Broker(tmp_path / "kafka")
    await asyncio.to_thread(broker.start)
    kafka = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
    await asyncio.to_thread(admin.create, kafka, TopicSettings(partitions=P, inbox_partitions=INBOX))
    await asyncio.to_thread(broker.stop)
    with structlog.testing.capture_logs() as logs:
        async with working(app, kafka, lease_ms=5_000, pulse_ms=500):
            while not any(entry["event"] == "kafka_away" for entry in logs):
                await asyncio.sleep(0.05)
            await asyncio.to_thread(broker.start)
            async with owner_on(kafka) as owner:
                await owner.ready()
                owner.queue("j:1", "note")
                await owner.until(lambda: "j:1" in owner.succeeded)
                await asyncio.to_thread(broker.kill)
                await asyncio.to_thread(broker.start)
                heard = len(owner.reports)
                await owner.until(lambda: len(owner.reports) > heard)
                owner.queue("j:2", "note")
                await owner.until(lambda: "j:2" in owner.succeeded)
    await asyncio.to_thread(broker.stop)
    assert [entry["event"] for entry in logs].count("kafka_away") <= 2


TASKS = """
import asyncio
from minutebook import App

app = App()

@app.task("hold")
async def hold(seconds: float) -> None:
    await asyncio.sleep(seconds)
"""


@asynccontextmanager
async def process(
    folder: Path, kafka: KafkaSettings, *more: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    (folder / "kept_tasks.py").write_text(TASKS)
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "MINUTEBOOK_KAFKA_TOPIC_PREFIX": kafka.topic_prefix,
    }
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "minutebook.cli", "worker", "run", "kept_tasks:app", *more),
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
            await started.wait()


async def test_process_drains_on_sigterm(kafka: KafkaSettings, tmp_path: Path) -> None:
    async with owner_on(kafka) as owner, process(tmp_path, kafka, "--grace", "20s") as worker:
        await owner.ready()
        owner.queue("j:1", "hold", b"0.5")
        await owner.until(lambda: bool(owner.held(0)))
        worker.send_signal(signal.SIGTERM)
        output, _ = await worker.communicate()
        await owner.until(lambda: "j:1" in owner.succeeded)
    assert output.decode().splitlines()[-1] == "drained 1, handed back 0"
    assert worker.returncode == 0


async def test_second_signal_ends_the_process_at_once(kafka: KafkaSettings, tmp_path: Path) -> None:
    async with owner_on(kafka) as owner, process(tmp_path, kafka, "--grace", "1h") as worker:
        await owner.ready()
        owner.is_granting_again = False
        owner.queue("j:1", "hold", b"3600")
        await owner.until(lambda: bool(owner.held(0)))
        worker.send_signal(signal.SIGTERM)
        await owner.until(lambda: any(r.pulse and r.pulse.is_leaving for _, r in owner.reports))
        worker.send_signal(signal.SIGINT)
        output, _ = await worker.communicate()
        await owner.until(lambda: owner.handed_back == ["j:1"])
    assert output.decode().splitlines()[-1] == "drained 0, handed back 1"
    assert worker.returncode == 130
