"""A grant whose record never reaches the worker does not run for ever."""

from __future__ import annotations

import pytest

from minutebook import ids
from minutebook.domain import events as facts
from tests.crash.checker import verdict
from tests.crash.raw_worker import grants_of
from tests.crash.stack import Stack, job, jobs_over

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.mark.parametrize("others", [0, 40])
def test_lost_inbox_record_is_withdrawn_and_granted_again(stack: Stack, others: int) -> None:
    """Alone, and while later grants to the same worker arrive."""
    owner, worker = (
        stack.owner("o1", ("-m", "tests.crash.faulty_owner", "lose-grant", "1")),
        stack.worker("w1"),
    )
    stack.await_ready(owner, worker)
    command = job()
    stack.submit([command])
    stack.submit(jobs_over(others, 3) if others else [])

    stack.await_done()
    assert verdict(stack) == []
    returned = {name for event in stack.log.events(facts.GrantsReturned) for name in event.executions}
    (execution,) = {name for name in returned if ids.job_of(name) == command.job_id}
    first, second = grants_of(stack.log, execution)
    assert second > first
    starts = [one for one in stack.witness() if one.moment == "start" and one.execution == execution]
    assert [(one.attempt, one.token) for one in starts] == [(1, second[0])]
