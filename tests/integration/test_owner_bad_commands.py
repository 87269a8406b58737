"""Records on `job-commands` that nobody should send: each is rejected or refused once, on record, and the owner goes on."""

from __future__ import annotations

import io
import pickle
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.commands import (
    CancelJob,
    Command,
    DeclareCalendar,
    DeclareLimit,
    DeclareQueue,
    RunJobNow,
)
from minutebook.domain.records import Report, Tick
from minutebook.domain.timing import Timing
from minutebook.wire import codec, schemas, topics
from minutebook.wire.frames import Frame, encode_frame
from tests.crash.joblog import JobLog
from tests.crash.stack import PARTITIONS, TENANT, Stack, home_of, key_of, now_ms
from tests.integration.answered import (
    DAY_MS,
    assert_rejected_once,
    await_accepted,
    later_job,
    refusal_of,
    send_good,
)

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(scope="module")
def stack(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One owner for all tests of this module."""
    made = Stack(broker.bootstrap_servers, tmp_path_factory.mktemp("owners"))
    owner = made.owner("o1")
    made.await_ready(owner)
    yield made
    assert owner.is_running, made.story()
    assert not owner.exits
    made.close()


class _Touch:
    """Unpickled, it would leave a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self._path,))


def later_version() -> bytes:
    """A command by a schema of the future: a known type with one field more."""
    newest = schemas.newest()["SubmitJob"].parsed
    later = fastavro.parse_schema(
        {"type": "record", "name": newest["name"], "fields": [*newest["fields"], FUTURE_FIELD]}
    )
    fingerprint = fastavro.schema.fingerprint(fastavro.schema.to_parsing_canonical_form(later), "CRC-64-AVRO")
    out = io.BytesIO()
    out.write(b"\xc3\x01" + bytes.fromhex(fingerprint))
    fastavro.schemaless_writer(out, later, codec.builtins(later_job(0)) | {"future": 999})
    return out.getvalue()


def event_frame() -> bytes:
    header: dict[str, Any] = dict.fromkeys(("offset", "epoch", "now", "rules", "outputs_sent_through"), 0)
    return encode_frame(
        Frame(head=bytes(32), owner="me", tzdata="", settings=b"", inputs=[], slices=[], events=[], **header)
    )


def batch_of(count: int, **fields: Any) -> bytes:
    return codec.encode(codec.CommandBatch([later_job(0, **fields) for _ in range(count)]))


FUTURE_FIELD = {"name": "future", "type": "int"}
UNKNOWN_TYPE = b"\xc3\x01" + bytes(range(8)) + bytes(20)
GOOD = codec.encode(Tick("nobody", 1))
BROKEN: dict[str, tuple[Callable[[], bytes | None], str]] = {
    "K2 null value": (lambda: None, "null value"),
    "K1 empty value": (lambda: b"", "single-object"),
    "K4 not our encoding": (lambda: b"hello", "single-object"),
    "K6 unknown type": (lambda: UNKNOWN_TYPE, "fingerprint"),
    "K7 unknown version": (later_version, "fingerprint"),
    "header alone": (lambda: GOOD[:10], "damaged"),
    "cut": (lambda: GOOD[:-1], "damaged"),
    "bytes behind the end": (lambda: GOOD + b"\0", "after the end"),
    "K19 an owner's frame": (event_frame, "belong"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_undecodable_command_is_rejected_once(stack: Stack, kind: str) -> None:
    make, reason = BROKEN[kind]
    record = stack.produce(topics.COMMANDS, 0, make(), b"some key")

    assert reason in assert_rejected_once(stack, topics.COMMANDS, record, 0)


@pytest.mark.parametrize("kind", BROKEN)
def test_undecodable_report_is_rejected_once(stack: Stack, kind: str) -> None:
    make, reason = BROKEN[kind]
    record = stack.produce(topics.REPORTS, 1, make())

    assert reason in assert_rejected_once(stack, topics.REPORTS, record, 1)


@pytest.mark.parametrize("kind", BROKEN)
def test_undecodable_mail_is_rejected_once(stack: Stack, kind: str) -> None:
    make, reason = BROKEN[kind]
    record = stack.produce(topics.MAIL, 2, make())

    assert reason in assert_rejected_once(stack, topics.MAIL, record, 2)


@pytest.mark.row("K5")
def test_pickled_command_is_rejected_and_never_loaded(stack: Stack, tmp_path: Path) -> None:
    record = stack.produce(topics.COMMANDS, 0, pickle.dumps(_Touch(tmp_path / "loaded"), 4))

    assert_rejected_once(stack, topics.COMMANDS, record, 0)
    assert not (tmp_path / "loaded").exists()


def test_record_of_another_topic_is_rejected(stack: Stack) -> None:
    on_commands = stack.produce(topics.COMMANDS, 0, codec.encode(Report("w.0", 1)))
    on_reports = stack.produce(topics.REPORTS, 0, codec.encode(later_job(0)))

    assert "belong" in assert_rejected_once(stack, topics.COMMANDS, on_commands, 0)
    assert "belong" in assert_rejected_once(stack, topics.REPORTS, on_reports, 0)


@pytest.mark.row("K9")
def test_key_that_names_another_job_is_rejected(stack: Stack) -> None:
    command = later_job(0)
    record = stack.produce(topics.COMMANDS, 0, codec.encode(command), b"a/A")

    assert "key" in assert_rejected_once(stack, topics.COMMANDS, record, 0)
    assert command.job_id not in {event.job_id for event in stack.log.events(facts.JobSubmitted)}


@pytest.mark.parametrize("names", [{"tenant": ""}, {"tenant": "a b"}, {"job_id": ""}, {"job_id": "x" * 129}])
@pytest.mark.row("K8")
def test_single_command_without_valid_names_is_rejected(stack: Stack, names: dict[str, str]) -> None:
    command = msgspec.structs.replace(later_job(0), **names)
    record = stack.produce(topics.COMMANDS, 0, codec.encode(command), key_of(command).encode())

    assert "tenant" in assert_rejected_once(stack, topics.COMMANDS, record, 0)


def test_commands_of_a_batch_are_judged_alone(stack: Stack) -> None:
    good, nameless = later_job(1), msgspec.structs.replace(later_job(1), tenant="")
    stack.produce(topics.COMMANDS, 1, codec.encode(codec.CommandBatch([nameless, good])))

    await_accepted(stack, good)
    stack.until("refused", lambda log: refusal_of(stack, nameless.command_id))
    assert refusal_of(stack, nameless.command_id)[0].field == "tenant"


@pytest.mark.parametrize(("count", "payload"), [(501, b"1"), (8, b" " * (200 << 10))])
def test_oversized_batch_is_rejected(stack: Stack, count: int, payload: bytes) -> None:
    record = stack.produce(topics.COMMANDS, 0, batch_of(count, payload=payload), b"k")

    assert "limit" in assert_rejected_once(stack, topics.COMMANDS, record, 0)


@pytest.mark.row("K11")
def test_broker_refuses_a_record_of_ten_megabytes(stack: Stack) -> None:
    with pytest.raises(KafkaException) as refused:
        stack.produce(topics.COMMANDS, 0, bytes(9_900_000))

    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    send_good(stack, 0)


@pytest.mark.row("K3")
def test_command_without_key_is_applied_by_its_body(stack: Stack) -> None:
    command = later_job(3)
    stack.produce(topics.COMMANDS, 3, codec.encode(command), None)

    await_accepted(stack, command)


@pytest.mark.row("K16")
def test_command_with_strange_headers_is_applied(stack: Stack) -> None:
    command = later_job(3)
    headers = [(f"h{number}", b"\xff\xfe\x1b[31m") for number in range(200)]
    stack.produce(topics.COMMANDS, 3, codec.encode(command), key_of(command).encode(), headers)

    await_accepted(stack, command)


@pytest.mark.parametrize("is_batch", [False, True])
@pytest.mark.row("K10")
def test_misplaced_command_is_forwarded_once_and_applied_once(stack: Stack, is_batch: bool) -> None:
    command = later_job(2)
    body = codec.CommandBatch([command]) if is_batch else command
    record = stack.produce(topics.COMMANDS, 1, codec.encode(body), key_of(command).encode())

    assert await_accepted(stack, command).accepted_at == record.stamp
    for partition in range(PARTITIONS):
        send_good(stack, partition)
    forwarded = [f for f in stack.log.of(facts.CommandForwarded) if f.event.command_id == command.command_id]
    assert [(fact.partition, fact.event.partition) for fact in forwarded] == [(1, 2)]
    assert [e.job_id for e in stack.log.events(facts.JobSubmitted)].count(command.job_id) == 1


def test_repeated_mail_is_applied_once(stack: Stack) -> None:
    command = later_job(2)
    stack.produce(topics.COMMANDS, 1, codec.encode(command), key_of(command).encode())
    await_accepted(stack, command)
    mail = stack.whole(topics.MAIL)[2][-1]
    stack.produce(topics.MAIL, 2, mail.value)

    send_good(stack, 2)
    taken = [(e.sender, e.frame, e.row) for e in stack.log.events(facts.MailTaken)]
    assert len(taken) == len(set(taken))


def test_declared_queue_reaches_every_partition(stack: Stack) -> None:
    name = f"q-{ids.job_id_from_key(TENANT, str(now_ms()))}"
    early = [later_job(p, queue=name) for p in range(PARTITIONS)]
    stack.submit(early)
    stack.until("refused", lambda _: all(refusal_of(stack, one.command_id) for one in early))
    assert {refusal_of(stack, one.command_id)[0].reason for one in early} == {"unknown_queue"}

    stack.send(DeclareQueue(name=name, command_id="declare", issued_at=now_ms()))
    stack.until(
        "copied everywhere",
        lambda log: (
            {f.partition for f in log.of(facts.QueueCopied) if f.event.name == name} == set(range(PARTITIONS))
        ),
    )
    for partition in range(PARTITIONS):
        command = later_job(partition, queue=name)
        stack.send(command)
        assert await_accepted(stack, command).queue == name


def test_declared_limit_reaches_every_partition(stack: Stack) -> None:
    """From wherever its command lies: by way of its home."""
    name = f"l-{ids.job_id_from_key(TENANT, str(now_ms()))}"
    key = ids.limit_key(TENANT, name)
    home = topics.partition_of(key, PARTITIONS)
    command = DeclareLimit(tenant=TENANT, name=name, command_id="set", issued_at=now_ms(), concurrency=3)
    stack.produce(topics.COMMANDS, (home + 1) % PARTITIONS, codec.encode(command), key.encode())

    def copies(log: JobLog) -> dict[int, facts.LimitCopied]:
        return {f.partition: f.event for f in log.of(facts.LimitCopied) if f.event.name == name}

    stack.until("copied everywhere", lambda log: copies(log).keys() == set(range(PARTITIONS)))
    fact = facts.LimitCopied(TENANT, name, 1, 3, -1, -1, -1, False)
    assert list(copies(stack.log).values()) == [fact] * PARTITIONS
    declared = [f for f in stack.log.of(facts.LimitDeclared) if f.event.name == name]
    assert [fact.partition for fact in declared] == [home]


def test_declared_calendar_reaches_every_partition_and_moves_its_jobs(stack: Stack) -> None:
    """Mail brings it; a job is moved by the owner of its own partition."""
    name = f"c-{ids.job_id_from_key(TENANT, str(now_ms()))}"
    key = ids.calendar_key(TENANT, name)
    today = now_ms() // keys.DAY_MS

    def declare(version: int, day: int) -> None:
        about = {"tenant": TENANT, "name": name, "command_id": f"v{version}", "issued_at": now_ms()}
        command = DeclareCalendar(first_days=[day], last_days=[day], **about)  # type: ignore[arg-type]  # fields of it
        home = topics.partition_of(key, PARTITIONS)
        stack.produce(topics.COMMANDS, home, codec.encode(command), key.encode())

        def is_everywhere(log: JobLog) -> bool:
            found = [f for f in log.of(facts.CalendarCopied) if f.event.name == name]
            return {f.partition for f in found if f.event.version == version} == set(range(PARTITIONS))

        stack.until(f"version {version} everywhere", is_everywhere)

    def moved(log: JobLog) -> dict[str, int]:
        events = log.events(facts.JobsRescheduled)
        return {job: at for event in events for job, at in zip(event.job_ids, event.next_at, strict=True)}

    declare(1, today + 300)
    noons = {"cron": "0 12 * * *", "run_at": None, "delay_ms": None, "timing": Timing(include=[name])}
    jobs = [msgspec.structs.replace(later_job(number), **noons) for number in range(PARTITIONS)]
    stack.submit(jobs)
    for job in jobs:
        assert await_accepted(stack, job).next_at == (today + 300) * keys.DAY_MS + keys.DAY_MS // 2
    declare(2, today + 200)
    expected = (today + 200) * keys.DAY_MS + keys.DAY_MS // 2
    stack.until("all moved", lambda log: {job.job_id: expected for job in jobs} == moved(log))


@pytest.mark.row("K13")
def test_command_sent_again_changes_nothing(stack: Stack) -> None:
    command = later_job(0)
    stack.send(command)
    await_accepted(stack, command)
    for _ in range(2):
        stack.submit([later_job(0) for _ in range(500)])
    stack.send(command)

    send_good(stack, 0)
    assert [e.job_id for e in stack.log.events(facts.JobSubmitted)].count(command.job_id) == 1
    assert not refusal_of(stack, command.command_id)


@pytest.mark.row("K13")
def test_command_of_eight_days_ago_is_refused(stack: Stack) -> None:
    command = later_job(0, issued_at=now_ms() - 8 * DAY_MS)
    stack.send(command)

    stack.until("refused", lambda _: refusal_of(stack, command.command_id))
    assert refusal_of(stack, command.command_id)[0].reason == "too_old"
    send_good(stack, 0)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"cron": "61 * * * *", "delay_ms": None}, "cron"),
        ({"cron": "0 0 30 2 *", "delay_ms": None}, "cron"),
        ({"cron": "* * * * *", "delay_ms": None, "zone": "Mars/Olympus"}, "zone"),
        ({"cron": "* * * * *"}, "cron"),
        ({"delay_ms": -1}, "delay"),
        ({"delay_ms": 2**62}, "delay"),
        ({"delay_ms": None, "run_at": -(2**62)}, "run_at"),
        ({"delay_ms": None, "run_at": 2**62}, "run_at"),
        ({"delay_ms": None, "run_at": 1}, "run_at"),
        ({"payload": bytes((256 << 10) + 1)}, "payload"),
        ({"timeout_ms": 0}, "timeout"),
        ({"task": "not a name"}, "task"),
        ({"command_id": ""}, "command_id"),
    ],
)
def test_senseless_job_is_refused_with_its_field(stack: Stack, fields: dict[str, Any], field: str) -> None:
    command = later_job(0, **fields)
    stack.send(command)

    stack.until(
        "refused", lambda _: any(e.job_id == command.job_id for e in stack.log.events(facts.CommandRejected))
    )
    (refusal,) = [e for e in stack.log.events(facts.CommandRejected) if e.job_id == command.job_id]
    assert (refusal.reason, refusal.field) == ("invalid", field)
    send_good(stack, 0)


def test_cancel_and_run_of_an_unknown_job_are_refused(stack: Stack) -> None:
    name, now = later_job(0).job_id, now_ms()
    stack.send(CancelJob(tenant=TENANT, job_id=name, command_id="c1", issued_at=now))
    stack.send(RunJobNow(tenant=TENANT, job_id=name, command_id="c2", issued_at=now))

    stack.until("both refused", lambda log: len(refusals_of_job(stack, name)) == 2)
    assert {event.reason for event in refusals_of_job(stack, name)} == {"not_found"}


def refusals_of_job(stack: Stack, name: str) -> list[facts.CommandRejected]:
    return [e for e in stack.log.events(facts.CommandRejected) if e.job_id == name]


@pytest.mark.parametrize("field", ["actor", "traceparent", "zone"])
def test_texts_of_a_megabyte_hold_nobody_up(stack: Stack, field: str) -> None:
    """Each record fits the broker; decided together they would not fit into one frame."""
    commands = [later_job(0, **{field: "x" * 1_000_000}) for _ in range(12)]
    stack.flood(topics.COMMANDS, 0, [codec.encode(command) for command in commands])

    send_good(stack, 0)


@pytest.mark.parametrize("field", ["task", "queue", "payload", "cron", "actor"])
@pytest.mark.parametrize("partition", [0, 1])
def test_command_of_the_brokers_limit_holds_nobody_up(stack: Stack, field: str, partition: int) -> None:
    """With the frame's header around it, or forwarded, it would be larger than the broker takes."""
    room = topics.MESSAGE_BYTES_MAX - 500
    text = bytes(room) if field == "payload" else "x" * room
    command = later_job(0, **{field: text})
    stack.produce(topics.COMMANDS, partition, codec.encode(command))

    send_good(stack, partition)


def test_batch_of_endless_names_holds_nobody_up(stack: Stack) -> None:
    commands: list[Command] = [
        msgspec.structs.replace(later_job(0), tenant="x" * 2_000, command_id="y" * 90) for _ in range(400)
    ]
    stack.flood(topics.COMMANDS, 0, [codec.encode(codec.CommandBatch(commands)) for _ in range(6)])

    send_good(stack, 0)


def test_queue_for_very_many_tenants_holds_nobody_up(stack: Stack) -> None:
    commands = [
        DeclareQueue(
            name="wide",
            command_id=f"w{number}",
            issued_at=now_ms(),
            tenants=[f"t{number}-{n}" for n in range(80_000)],
        )
        for number in range(3)
    ]
    stack.flood(topics.COMMANDS, home_of(commands[0]), [codec.encode(command) for command in commands])

    for partition in range(PARTITIONS):
        send_good(stack, partition)


def transactional(stack: Stack) -> Producer:
    producer = Producer(stack.kafka.confluent() | {"transactional.id": f"{stack.prefix}tx"})
    producer.init_transactions()
    return producer


@pytest.mark.row("K18")
def test_transactions_of_others_leave_holes_that_are_passed(stack: Stack) -> None:
    producer, topic = transactional(stack), stack.kafka.topic(topics.COMMANDS)
    aborted, committed = later_job(0), later_job(0)
    producer.begin_transaction()
    producer.produce(topic, codec.encode(aborted), key_of(aborted).encode(), partition=0)
    producer.flush()
    producer.abort_transaction()
    producer.begin_transaction()
    producer.produce(topic, codec.encode(committed), key_of(committed).encode(), partition=0)
    producer.commit_transaction()

    await_accepted(stack, committed)
    send_good(stack, 0)
    assert aborted.job_id not in {event.job_id for event in stack.log.events(facts.JobSubmitted)}


def test_flood_of_garbage_delays_a_good_command_little(stack: Stack) -> None:
    """Fetching each rejected record anew would hold the owner up for a minute."""
    stack.flood(topics.COMMANDS, 3, [b"garbage %d" % number for number in range(400)])

    send_good(stack, 3)
    garbage = [e for e in stack.log.events(facts.RecordRejected) if e.partition == 3]
    assert len(garbage) >= 400


def test_mutated_commands_are_each_answered_once_at_most(stack: Stack) -> None:
    """A byte flipped, doubled, dropped, or the tail cut: some still decode, all are decided, nothing else changes."""
    chance = random.Random(20_000)
    records = [mutated(chance, codec.encode(later_job(2))) for _ in range(400)]
    first = stack.produce(topics.COMMANDS, 2, b"first of the flood")
    stack.flood(topics.COMMANDS, 2, records)

    for partition in range(PARTITIONS):
        send_good(stack, partition)
    rejected = [e.offset for e in stack.log.events(facts.RecordRejected) if e.partition == 2]
    assert len(rejected) == len(set(rejected))
    assert sum(offset > first.offset for offset in rejected) > 200


def mutated(chance: random.Random, record: bytes) -> bytes:
    """`record` with one small fault."""
    at = chance.randrange(len(record))
    byte = bytes([chance.randrange(256)])
    faults = (
        record[:at] + byte + record[at + 1 :],
        record[:at] + byte + record[at:],
        record[:at],
        record[at:],
    )
    return chance.choice(faults)
