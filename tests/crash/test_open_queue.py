"""Open queues: consumers killed between due record, claim and answer; every execution ends once, no attempt has two tokens."""

from __future__ import annotations

import signal

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer

from minutebook.domain import events as facts
from tests.crash.open_queues import QUEUE, consumer, declare, due_records, granted, open_verdict
from tests.crash.stack import Stack, home_of, job, jobs_over, now_ms

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
KINDS = ("share", "classic")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", ["due", "claim", "answer", "run"])
def test_consumer_killed_at_a_step_is_replaced(stack: Stack, kind: str, step: str) -> None:
    owner = stack.owner("o1")
    stack.await_ready(owner)
    declare(stack)
    first = consumer(stack, "c1", kind, step, 1 if step == "due" else 3)  # one poll may bring all due records
    stack.submit([*jobs_over(40, 2), *(job(task="t", queue=QUEUE) for _ in range(20))])
    stack.submit([job(task="t", queue=QUEUE, delay_ms=100 * number) for number in range(40)])
    stack.until("it dies", lambda _: not first.is_running)
    assert first.wait() == -signal.SIGKILL

    consumer(stack, "c2", kind)
    stack.worker("w1")
    stack.await_done(110)
    assert open_verdict(stack) == []
    if step == "run":
        assert stack.log.events(facts.AttemptsLost) or stack.log.events(facts.GrantsReturned)


def test_owner_killed_under_claims_loses_none(stack: Stack) -> None:
    """Grants are sent again by the next owner, answers asked for again by the claim that is sent again."""
    owner = stack.owner("o1", ("-m", "tests.crash.dying_owner", "after-commit", "3", "grants"), is_kept=False)
    stack.await_ready(owner)
    declare(stack)
    consumer(stack, "c1", "share")
    stack.submit([job(task="t", queue=QUEUE, delay_ms=50 * number) for number in range(60)])
    stack.until("it dies", lambda _: not owner.is_running)
    stack.owner("o2")
    stack.await_done(110)
    assert open_verdict(stack) == []


def test_due_records_that_kafka_has_dropped_are_published_again(stack: Stack) -> None:
    """A share group drops a record after five deliveries, without a word; a later one that is claimed tells the owner."""
    owner = stack.owner("o1")
    stack.await_ready(owner)
    declare(stack)
    command = job(task="t", queue=QUEUE, run_at=now_ms())
    execution = f"{command.job_id}:{command.run_at}"
    stack.submit([command])
    stack.until("it is published", lambda _: due_records(stack))
    assert deliveries(stack) == 5

    consumer(stack, "c1", "share")
    later = (job(task="t", queue=QUEUE) for _ in range(100))
    stack.submit([next(one for one in later if home_of(one) == home_of(command))])
    stack.await_done(40)
    assert open_verdict(stack) == []
    assert [record.attempt for record in due_records(stack) if record.execution == execution] == [1, 1]
    assert [attempt for name, attempt, _ in granted(stack.log) if name[1] == execution] == [1]


def deliveries(stack: Stack) -> int:
    """How often a member that releases everything is given the one due record that is there."""
    topic = f"{stack.prefix}executions-due.{QUEUE}"
    member = ShareConsumer(
        {
            "bootstrap.servers": stack.kafka.bootstrap_servers,
            "group.id": topic,
            "share.acknowledgement.mode": "explicit",
        }
    )
    member.subscribe([topic])
    count = idle = 0
    while idle < 20:
        messages = [one for one in member.poll(0.2) if one.error() is None]
        for message in messages:
            member.acknowledge(message, AcknowledgeType.RELEASE)
        member.commit_sync(10)
        count += len(messages)
        idle = 0 if messages or not count else idle + 1
    member.close()
    return count
