"""`python -m replay` on a real broker: a log as owners write it, a copied one, a changed one, no broker; what workers offered."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from kafka import KafkaAdminClient

from minutebook.domain import events as facts
from minutebook.log import admin
from minutebook.log.admin import TopicSettings
from minutebook.log.kafka import KafkaEventLog
from minutebook.log.port import RawRecord
from minutebook.log.reader import CLOCK_BOUND_MS
from minutebook.log.settings import KafkaSettings
from minutebook.times import format_instant
from minutebook.wire import topics
from minutebook.wire.frames import FORMAT_VERSION, Frame, encode_frame
from replay.deciding import TAKE_OVER
from replay.inputs import KafkaInputs
from replay.reading import KafkaLog
from tests.golden import history
from tests.golden.memory import MemoryInputs
from tests.golden.retold import replace, retold
from tests.simulation.busy_log import BusyLog
from tests.simulation.copies import copy_state, copy_view
from tests.simulation.log_maker import T0, LogMaker, submit
from tests.unit.test_replay_offers import MemoryReports

pytestmark = pytest.mark.kafka


@pytest.fixture
def kafka(broker: Any) -> Iterator[KafkaSettings]:
    settings = KafkaSettings(
        bootstrap_servers=broker.bootstrap_servers, topic_prefix=f"t{uuid.uuid4().hex[:8]}."
    )
    yield settings
    client = KafkaAdminClient(**settings.kafka_python())
    client.delete_topics([name for name in client.list_topics() if name.startswith(settings.topic_prefix)])
    client.close()


def replay(kafka: KafkaSettings, *arguments: str, verb: str = "verify") -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "MINUTEBOOK_KAFKA_TOPIC_PREFIX": kafka.topic_prefix,
    }
    command = [sys.executable, "-m", "replay", verb, *arguments]
    root = Path(__file__).parents[2]
    return subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, timeout=100)


async def copied_topic(kafka: KafkaSettings, name: str, records: Sequence[RawRecord]) -> str:
    """A topic that keeps the stamps it is given, with these records; its name."""
    client = KafkaAdminClient(**kafka.kafka_python())
    topic = kafka.topic(name)
    settings = {
        "message.timestamp.type": "CreateTime",
        "message.timestamp.before.max.ms": str(2**62),
        "retention.ms": "-1",
    }
    client.create_topics({topic: {"num_partitions": 1, "replication_factor": 1, "configs": settings}})
    client.close()
    producer = AIOKafkaProducer(
        **kafka.aiokafka(), enable_idempotence=True, max_request_size=4 << 20, max_batch_size=4 << 20
    )
    await producer.start()
    try:
        batch = producer.create_batch()
        for record in records:
            headers = list(record.headers)
            assert batch.append(timestamp=record.stamp, key=record.key, value=record.value, headers=headers)
        batch.close()
        ack = await (await producer.send_batch(batch, topic, partition=0))
        assert ack.offset == 0
    finally:
        await producer.stop()
    return topic


async def write_as_an_owner(log: KafkaEventLog, partition: int) -> None:
    maker = LogMaker(partition, 2)
    opened = facts.LogOpened("log-1", 2, partition, CLOCK_BOUND_MS, FORMAT_VERSION)
    for events in ([opened, facts.OwnershipTaken("owner-1/a", 1, 0, 0)], [], [facts.MailTaken(1, 1, 1)], []):
        value = encode_frame(maker.made(events, 0))
        ack = await log.append(partition, value)
        assert maker.reader.own(RawRecord(ack.offset, ack.stamp, None, value), 0)


async def test_a_log_that_was_appended_agrees(kafka: KafkaSettings) -> None:
    """Stamps are the broker's: what the writer hashed from its acks is what replay reads."""
    admin.create(kafka, TopicSettings(partitions=2, inbox_partitions=1, replication=1))
    log = KafkaEventLog(kafka)
    await log.start_clients()
    try:
        for partition in range(2):
            await write_as_an_owner(log, partition)
    finally:
        await log.stop_clients()
    done = replay(kafka, "--output", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert [(item["records"], item["frames"]) for item in report["partitions"]] == [(4, 4), (4, 4)]
    assert done.stderr == ""


async def test_a_copied_topic_agrees_with_the_copies_of_its_owners(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    records = BusyLog(11).run(150).records
    topic = await copied_topic(kafka, "copied", records)
    copy_state(tmp_path, 0, records)
    copy_view(tmp_path, [records[:90]])
    done = replay(kafka, "--topic", topic, "--checkpoints", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All agree" in done.stdout
    reader = KafkaLog(kafka, topic)
    assert list(reader.read(0, *reader.bounds(0))) == records
    reader.close()


async def test_a_changed_byte_is_named_with_its_offset(kafka: KafkaSettings) -> None:
    records = BusyLog(12).run(60).records
    frames = [record for record in records[:-5] if record.value is not None and len(record.value) > 200]
    victim = frames[len(frames) // 2]
    assert victim.value is not None
    changed = victim.value[:-20] + bytes([victim.value[-20] ^ 1]) + victim.value[-19:]
    records = [record._replace(value=changed) if record is victim else record for record in records]
    topic = await copied_topic(kafka, "changed", records)
    done = replay(kafka, "--topic", topic, "--output", "json")
    assert done.returncode == 1, done.stdout + done.stderr
    finding = json.loads(done.stdout)["findings"][0]
    assert (finding["partition"], finding["offset"]) == (0, victim.offset)
    table = replay(kafka, "--topic", topic)
    assert table.returncode == 1
    assert f"partition 0, offset {victim.offset}" in table.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--topic", "there.is.none"], 3),
        (["--until", "yesterday"], 2),
        (["--until", "2026-01-01T00:00:00"], 2),
        (["--output", "xml"], 2),
        (["--checkpoints", "/no/such/folder"], 2),
        (["--nonsense"], 2),
    ],
)
def test_wrong_use_has_its_exit_code(kafka: KafkaSettings, arguments: list[str], code: int) -> None:
    done = replay(kafka, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout == ""
    assert done.stderr


def test_no_broker_is_unreachable() -> None:
    done = replay(KafkaSettings(bootstrap_servers="127.0.0.1:1"))
    assert done.returncode == 5
    assert "MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS" in done.stderr
    assert "Traceback" not in done.stderr


async def test_why_reads_what_workers_offered_meanwhile(kafka: KafkaSettings) -> None:
    maker = LogMaker()
    maker.open()
    maker.command(submit("a"))
    maker.due()
    maker.clock.advance(60_000)
    maker.grant("w.0")
    reports = MemoryReports()
    reports.pulse("old.0", T0 - 600_000, 9, queue="default")
    reports.pulse("w.0", T0 + 20_000, 4, queue="default")
    await copied_topic(kafka, "job-events", maker.records)
    about = ("a", format_instant(T0), "--tenant", "acme", "-o", "json")
    done = replay(kafka, *about, verb="why")
    assert done.returncode == 0, done.stderr
    assert [reason["code"] for reason in json.loads(done.stdout)["reasons"]][-1] == "reports_untold"
    await copied_topic(kafka, "worker-reports", reports.records)
    done = replay(kafka, *about, verb="why")
    assert done.returncode == 0, done.stderr
    (found,) = [one for one in json.loads(done.stdout)["reasons"] if one["code"] == "worker_offered"]
    assert "w.0 (name of w.0) was alive" in found["text"]
    assert found["text"].endswith("(worker-reports 0:1 to 0:1)")


async def test_decisions_are_made_again_from_the_topics_of_inputs(kafka: KafkaSettings) -> None:
    """First as frames of other topics of those names, then as theirs."""
    kept = MemoryInputs.of_files("retries")
    for topic in (topics.COMMANDS, topics.REPORTS):  # there was no mail
        await copied_topic(kafka, topic, list(kept.read(topic, 0, 0, 1 << 60)))
    records = history.records_of(history.log_of("retries"), 0)
    ids = admin.topic_ids(kafka)

    def known(frame: Frame) -> Frame:
        return replace(frame, inputs=[replace(one, topic_id=ids.get(one.topic, "")) for one in frame.inputs])

    for name, log in (("other", records), ("same", retold(records, None, known))):
        topic = await copied_topic(kafka, name, log)
        done = replay(kafka, "--topic", topic, "--output", "json", verb="decide")
        assert done.returncode == 0, done.stdout + done.stderr
        unchecked = json.loads(done.stdout)["partitions"][0]["unchecked"]
        assert ("job-commands was made again since" in unchecked) == (name == "other"), unchecked
    assert list(unchecked) == [TAKE_OVER]
    both = replay(kafka, "--topic", topic, "--decide", "--output", "json")
    assert both.returncode == 0, both.stdout + both.stderr
    assert json.loads(both.stdout)["decided"] == json.loads(done.stdout)
    with closing(KafkaInputs(kafka)) as inputs, closing(pickle.loads(pickle.dumps(inputs))) as elsewhere:
        assert elsewhere.bounds(topics.COMMANDS, 0) == inputs.bounds(topics.COMMANDS, 0)
