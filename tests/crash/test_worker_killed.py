"""A worker is killed in each step of a run; the attempt is lost or withdrawn, on record, and another worker runs it."""

from __future__ import annotations

import signal

import pytest

from minutebook.domain import events as facts
from tests.crash.checker import verdict
from tests.crash.stack import TENANT, Stack, job, jobs_over

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.mark.parametrize("task", ["crash.die-inside", "crash.die-unreported"])
def test_worker_killed_in_a_task_is_replaced(stack: Stack, task: str) -> None:
    """In the middle of the task, and between its effect and the report of it."""
    owner, first = stack.owner("o1"), stack.worker("w1")
    stack.await_ready(owner, first)
    command = job(task=task)
    stack.submit([command])
    stack.until("it dies", lambda _: not first.is_running)
    assert first.wait() == -signal.SIGKILL

    stack.worker("w2")
    stack.submit(jobs_over(20, 1))
    stack.await_done()
    assert verdict(stack) == []
    lost = [event for event in stack.log.events(facts.AttemptsLost) if command.job_id in str(event.executions)]
    assert [event.cause for event in lost] == ["lease_over"]
    starts = [one for one in stack.witness() if one.moment == "start" and command.job_id in one.execution]
    assert [one.attempt for one in starts] == [1, 2]


def test_worker_killed_before_it_acknowledges_a_grant_is_replaced(stack: Stack) -> None:
    """The grant is withdrawn, or lost with the session; nobody ran it meanwhile."""
    owner, first = stack.owner("o1"), stack.worker("w1", ("-m", "tests.crash.dying_worker"))
    stack.await_ready(owner, first)
    command = job()
    stack.submit([command])
    stack.until("it dies", lambda _: not first.is_running)
    assert first.wait() == -signal.SIGKILL

    stack.worker("w2")
    stack.await_done()
    assert verdict(stack) == []
    starts = [one for one in stack.witness() if one.moment == "start"]
    assert [(one.tenant, one.attempt) for one in starts] == [(TENANT, 1)]
    withdrawn = [event.reason for event in stack.log.events(facts.GrantsReturned)]
    assert withdrawn == ["withdrawn"]
