"""A command on which `decide` itself fails: refused on record, with alarm, and the owner goes on."""

from __future__ import annotations

import pytest

from minutebook.domain import events as facts
from minutebook.wire import topics
from tests.crash.checker import verdict
from tests.crash.stack import PARTITIONS, Stack, home_of, job, jobs_over

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_input_that_cannot_be_decided_is_refused_once(stack: Stack) -> None:
    owner = stack.owner("o1", ("-m", "tests.crash.faulty_owner", "fail-decide", "0"))
    worker = stack.worker("w1")
    stack.await_ready(owner, worker)
    poison = [job(job_id=f"poison-{number}") for number in range(12)]
    sent = [stack.send(command) for command in poison]
    del stack.sent[:]
    stack.submit(jobs_over(20, 1))

    stack.await_done()
    stack.until("all refused", lambda log: len(log.of(facts.InputRefused)) >= len(poison))
    refused = {(fact.partition, fact.event.offset): fact.event for fact in stack.log.of(facts.InputRefused)}
    assert refused.keys() == {(one.partition, one.offset) for one in sent}
    assert {(event.topic, event.reason) for event in refused.values()} == {
        (topics.COMMANDS, "internal_error")
    }
    assert owner.said("input_not_decided")
    assert {home_of(command) for command in poison} <= set(range(PARTITIONS))
    assert verdict(stack) == []

    owner.kill()
    owner.arguments = ("-m", "streams")
    owner.start()
    stack.submit(jobs_over(4, 0.1))
    stack.await_done()
    assert len(stack.log.of(facts.InputRefused)) == len(poison)
