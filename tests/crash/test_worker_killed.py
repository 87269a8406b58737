"""A worker is killed in each step of a run; the attempt is lost or withdrawn, on record, and another worker runs it."""

from __future__ import annotations

import signal

import pytest

from minutebook.domain import events as facts
from minutebook.domain.records import Report
from minutebook.wire import codec, topics
from tests.crash.checker import verdict
from tests.crash.ledger import Ledger
from tests.crash.raw_worker import grants_of
from tests.crash.stack import TENANT, Stack, job, jobs_over, now_ms

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def held_tokens(stack: Stack) -> set[int]:
    """Tokens that some full pulse named."""
    found: set[int] = set()
    for records in stack.whole(topics.REPORTS):
        for record in records:
            report = codec.decode(record.value)
            if isinstance(report, Report) and report.full is not None:
                found.update(report.full.held)
    return found


def test_worker_killed_in_an_acknowledged_run_is_replaced(stack: Stack) -> None:
    """Its lease ends, the attempt is lost, and a further one runs elsewhere."""
    owner, first = stack.owner("o1"), stack.worker("w1")
    stack.await_ready(owner, first)
    command = job(task="crash.hang", run_at=now_ms())
    execution = f"{command.job_id}:{command.run_at}"
    stack.submit([command])
    stack.until("granted", lambda log: grants_of(log, execution))
    ((token, _),) = grants_of(stack.log, execution)
    stack.until("acknowledged", lambda _: token in held_tokens(stack))
    first.kill()

    stack.worker("w2")
    stack.submit(jobs_over(20, 1))
    stack.await_done()
    assert verdict(stack) == []
    lost = [event for event in stack.log.events(facts.AttemptsLost) if execution in event.executions]
    assert [event.cause for event in lost] == ["lease_over"]
    starts = [one.attempt for one in stack.witness() if (one.moment, one.execution) == ("start", execution)]
    assert starts == [1, 2]


@pytest.mark.parametrize("task", ["crash.die-inside", "crash.die-unreported"])
def test_worker_that_dies_in_a_task_is_replaced(stack: Stack, task: str) -> None:
    """In the middle of the task, and between its effect and the report of it."""
    owner, first = stack.owner("o1"), stack.worker("w1")
    stack.await_ready(owner, first)
    command = job(task=task, run_at=now_ms())
    execution = f"{command.job_id}:{command.run_at}"
    stack.submit([command])
    stack.until("it dies", lambda _: not first.is_running)
    assert first.wait() == -signal.SIGKILL

    stack.worker("w2")
    stack.submit(jobs_over(20, 1))
    stack.await_done()
    assert verdict(stack) == []
    starts = [one for one in stack.witness() if (one.moment, one.execution) == ("start", execution)]
    assert len(starts) == 2
    assert Ledger(stack.log).causes[TENANT, execution]


def test_worker_killed_before_it_acknowledges_a_grant_is_replaced(stack: Stack) -> None:
    """The grant is withdrawn; nobody ran it meanwhile."""
    owner, first = stack.owner("o1"), stack.worker("w1", ("-m", "tests.crash.dying_worker"))
    stack.await_ready(owner, first)
    stack.submit([job()])
    stack.until("it dies", lambda _: not first.is_running)
    assert first.wait() == -signal.SIGKILL

    stack.worker("w2")
    stack.await_done()
    assert verdict(stack) == []
    starts = [one.attempt for one in stack.witness() if one.moment == "start"]
    assert starts == [1]
    assert [event.reason for event in stack.log.events(facts.GrantsReturned)] == ["withdrawn"]
