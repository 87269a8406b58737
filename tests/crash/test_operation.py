"""A bulk operation whose owner is killed half way, at each step of its work: the next one goes on where it was."""

from __future__ import annotations

import signal
from collections import Counter

import pytest

from minutebook.domain import events as facts
from minutebook.domain.commands import StartOperation
from minutebook.domain.operation import OperationFilter
from minutebook.mint import mint_id
from tests.crash.checker import verdict
from tests.crash.dying_owner import STEPS
from tests.crash.joblog import JobLog
from tests.crash.stack import PARTITIONS, TENANT, Stack, job, now_ms
from tests.crash.state import differing_states

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
DEAD = 40
STEP_OF_WORK = 2 * PARTITIONS + 3
"""Frames of an operation before it: each partition has counted, and some have begun to work."""


def redriven(log: JobLog) -> Counter[str]:
    """How often each execution was redriven by the operation."""
    return Counter(
        event.execution for event in log.events(facts.ExecutionRedriven) if event.operation == "op"
    )


@pytest.mark.parametrize("step", STEPS)
def test_owner_killed_half_way_redrives_the_rest_and_nothing_twice(stack: Stack, step: str) -> None:
    dying = ("-m", "tests.crash.dying_owner", step, str(STEP_OF_WORK), "operation")
    owner, worker = stack.owner("o1", dying), stack.worker("w1")
    stack.await_ready(owner, worker)
    stack.submit([job(task="crash.cured") for _ in range(DEAD)])
    stack.until("all dead", lambda log: len(list(log.events(facts.ExecutionDead))) == DEAD)
    stack.send(
        StartOperation(
            tenant=TENANT,
            operation="op",
            command_id=mint_id(),
            issued_at=now_ms(),
            filter=OperationFilter(task="crash.cured"),
            rate_per_s=20,
        )
    )
    stack.until("it dies", lambda _: not owner.is_running)
    assert owner.wait() == -signal.SIGKILL
    before = redriven(stack.look(0.5)).total()
    assert 0 < before < DEAD

    owner.arguments = ("-m", "streams")
    owner.start()
    stack.until("the end of the operation", lambda log: list(log.events(facts.OperationEnded)))
    stack.await_done()
    (ended,) = stack.log.events(facts.OperationEnded)
    assert (ended.matched, ended.done, ended.refused) == (DEAD, DEAD, 0)
    found = redriven(stack.log)
    assert (len(found), set(found.values())) == (DEAD, {1})
    assert verdict(stack) == []
    owner.end()
    assert differing_states(stack, "o1") == []
