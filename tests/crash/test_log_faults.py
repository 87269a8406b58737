"""Records on `job-events` that no owner of its time wrote: void for everybody, for ever; what nobody may guess halts."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from kafka import KafkaAdminClient, TopicPartition

from minutebook.domain import events as facts
from minutebook.domain.commands import SubmitJob
from minutebook.wire import topics
from minutebook.wire.frames import encode_frame
from tests.crash.checker import verdict
from tests.crash.joblog import whole_log
from tests.crash.process import Process, eventually
from tests.crash.stack import Stack, home_of, job, now_ms

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
PARTITION: Final = 1


def local_job() -> SubmitJob:
    """A job of the partition, due now."""
    while home_of(command := job(run_at=now_ms())) != PARTITION:
        pass
    return command


def run_one(stack: Stack) -> None:
    """A job of the partition, run to its end."""
    stack.submit([local_job()])
    stack.await_done()


def served(stack: Stack) -> Process:
    """An owner and a worker that have run something."""
    owner, worker = stack.owner("o1"), stack.worker("w1")
    stack.await_ready(owner, worker)
    run_one(stack)
    return owner


def next_frame(stack: Stack, **fields: Any) -> bytes:
    """What the partition's owner could append next, but for `fields`. Nothing may be going on there."""
    log = whole_log(stack.kafka, stack.partitions)
    position, head = log.head(PARTITION)
    last = [frame for frame in log.frames[PARTITION] if frame is not None][-1]
    forged = msgspec.structs.replace(
        last, offset=position + 1, head=head, now=now_ms(), slices=[], events=[facts.DayForgotten(1)]
    )
    return encode_frame(msgspec.structs.replace(forged, **fields))


STRANGE: Final[dict[str, Callable[[Stack], bytes | None]]] = {
    "a clock far ahead": lambda stack: next_frame(stack, now=now_ms() + 3_600_000),
    "an offset of the past": lambda stack: next_frame(stack, offset=0),
    "an offset ahead": lambda stack: next_frame(stack, offset=10**6),
    "another head": lambda stack: next_frame(stack, head=bytes(32)),
    "null": lambda stack: None,
    "empty": lambda stack: b"",
    "garbage": lambda stack: b"garbage",
}


@pytest.mark.row("K19")
def test_records_of_strangers_are_void_for_all(stack: Stack) -> None:
    """The owner meets each with its next frame and decides that again; so does a fresh owner that folds them."""
    owner = served(stack)
    offsets: list[int] = []
    for make in STRANGE.values():
        offsets.append(stack.produce(topics.EVENTS, PARTITION, make(stack)).offset)
        run_one(stack)
    assert owner.is_running
    assert len(stack.log.of(facts.OwnershipTaken)) == stack.partitions

    owner.kill()
    owner.start()
    run_one(stack)
    assert verdict(stack) == []
    assert [stack.log.frames[PARTITION][offset] for offset in offsets] == [None] * len(offsets)


def halts(stack: Stack, owner: Process, value: bytes) -> bool:
    """Whether the partition halts once its owner meets a record; the log is no longer readable for us either."""
    stack.produce(topics.EVENTS, PARTITION, value)
    stack.send(local_job())
    return eventually(lambda: owner.said("partition_halted") and not owner.is_ready())


def unknown_version(frame: bytes) -> bytes:
    """Its fingerprint is none that we know."""
    return frame[:2] + b"\x99" * 8 + frame[10:]


def unknown_event(frame: bytes) -> bytes:
    """The number of its one event's type, three bytes before the end, is none that we know."""
    return frame[:-3] + b"\x7e" + frame[-2:]


@pytest.mark.parametrize("unknown", [unknown_version, unknown_event])
@pytest.mark.row("K7")
def test_frame_of_an_unknown_version_halts_the_partition(
    stack: Stack, unknown: Callable[[bytes], bytes]
) -> None:
    """Nobody may pass it: it could be valid for those who know more."""
    owner = served(stack)

    assert halts(stack, owner, unknown(next_frame(stack)))
    assert owner.is_running


@pytest.mark.row("K20")
def test_log_whose_start_is_gone_halts_who_needs_it(stack: Stack) -> None:
    """An owner with its state goes on from there; one without folds nothing and writes nothing."""
    owner = served(stack)
    owner.kill()
    forget_below(stack, 1)
    owner.start()
    run_one(stack)
    owner.kill()
    shutil.rmtree(stack.data_dir("o1"))
    taken = [fact.partition for fact in stack.log.of(facts.OwnershipTaken)]
    owner.start()

    assert eventually(lambda: owner.said("partition_halted"))
    stack.until("the others are served", lambda log: len(log.of(facts.OwnershipTaken)) == len(taken) + 3)
    again = [fact.partition for fact in stack.log.of(facts.OwnershipTaken)][len(taken) :]
    assert sorted(again) == [number for number in range(stack.partitions) if number != PARTITION]
    assert owner.is_running
    assert not owner.is_ready()


def forget_below(stack: Stack, offset: int) -> None:
    """The partition's log loses its beginning."""
    client = KafkaAdminClient(**stack.kafka.kafka_python())
    client.delete_records({TopicPartition(stack.kafka.topic(topics.EVENTS), PARTITION): offset})
    client.close()


def test_valid_frame_that_does_not_fit_the_state_halts_the_partition(stack: Stack) -> None:
    owner = served(stack)
    never_granted = facts.AttemptsSucceeded(["t"], [0], ["never:1"], [1], [0], [0])

    assert halts(stack, owner, next_frame(stack, events=[never_granted]))
    assert owner.is_running
