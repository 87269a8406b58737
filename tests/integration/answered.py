"""What became of a command or of a record that nobody should send, as the log and `rejected-records` tell it."""

from __future__ import annotations

from typing import Any, Final

from minutebook.domain import events as facts
from minutebook.domain.commands import SubmitJob
from minutebook.log.port import RawRecord
from minutebook.wire import topics
from tests.crash.stack import Stack, home_of, job

DAY_MS: Final = 86_400_000
NEVER_DUE: Final = {"delay_ms": 365 * DAY_MS}


def later_job(partition: int | None = None, **fields: Any) -> SubmitJob:
    """A job that is not due during the tests, on `partition` if one is named."""
    while True:
        found = job(**(NEVER_DUE | {"task": "raw"} | fields))
        if partition is None or home_of(found) == partition:
            return found


def await_accepted(stack: Stack, command: SubmitJob) -> facts.JobSubmitted:
    """The one event by which a job was accepted, at its home."""

    def found() -> list[Any]:
        return [f for f in stack.log.of(facts.JobSubmitted) if f.event.job_id == command.job_id]

    stack.until(f"{command.job_id} accepted", lambda _: found())
    assert [fact.partition for fact in found()] == [home_of(command)]
    event = found()[0].event
    assert isinstance(event, facts.JobSubmitted)
    return event


def send_good(stack: Stack, partition: int) -> facts.JobSubmitted:
    """One good command, applied."""
    command = later_job(partition)
    stack.send(command)
    return await_accepted(stack, command)


def rejections(stack: Stack, topic: str, record: RawRecord, partition: int) -> list[facts.RecordRejected]:
    place = (topic, partition, record.offset)
    return [e for e in stack.log.events(facts.RecordRejected) if (e.topic, e.partition, e.offset) == place]


def rejected_copies(stack: Stack, topic: str, record: RawRecord, partition: int) -> list[RawRecord]:
    """What `rejected-records` holds of one record."""
    wanted = {
        ("mb_origin_topic", topic.encode()),
        ("mb_origin_partition", str(partition).encode()),
        ("mb_origin_offset", str(record.offset).encode()),
    }
    return [one for one in stack.whole(topics.REJECTED)[partition] if wanted <= set(one.headers)]


def assert_rejected_once(stack: Stack, topic: str, record: RawRecord, partition: int) -> str:
    """Once in the log, once on `rejected-records` with its headers and bytes. The reason."""
    stack.until("rejected", lambda _: rejections(stack, topic, record, partition))
    send_good(stack, partition)
    stack.until("on rejected-records", lambda _: rejected_copies(stack, topic, record, partition))
    copies = rejected_copies(stack, topic, record, partition)
    found = rejections(stack, topic, record, partition)
    assert len(found) == len(copies) == 1
    assert dict(copies[0].headers)["mb_reason"] == found[0].reason.encode()
    assert (copies[0].key, copies[0].value) == (record.key, (record.value or b"")[: 64 << 10])
    return found[0].reason


def refusal_of(stack: Stack, command_id: str) -> list[facts.CommandRejected]:
    return [e for e in stack.log.events(facts.CommandRejected) if e.command_id == command_id]
