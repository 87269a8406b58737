"""The owner of a limit's home is killed under load, again and again: never too many at once, and no permit is lost."""

from __future__ import annotations

from functools import partial
from time import monotonic

import pytest

from minutebook.domain import events as facts
from minutebook.domain.commands import DeclareLimit, SubmitJob
from minutebook.mint import mint_id
from tests import figures
from tests.crash.checker import verdict
from tests.crash.joblog import JobLog, whole_log
from tests.crash.permit_ledger import PermitLedger, most_at_once
from tests.crash.rounds import note
from tests.crash.stack import SESSION_TIMEOUT_S, TENANT, Stack, job, jobs_over, now_ms

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

GRANTED_AGAIN_BOUND_S = figures.bound(goal=SESSION_TIMEOUT_S + 10, busy=40)
LIMIT = "shared"
CONCURRENCY = 3
JOBS = 50


def declare(concurrency: int, name: str = LIMIT) -> DeclareLimit:
    return DeclareLimit(
        tenant=TENANT, name=name, command_id=mint_id(), issued_at=now_ms(), concurrency=concurrency
    )


def limited_jobs() -> list[SubmitJob]:
    """Some at once, from all partitions."""
    return [job(limit=LIMIT, run_at=now_ms() + 300) for _ in range(JOBS)]


def owner_of(log: JobLog, partition: int) -> str:
    """Instance that took the partition last."""
    taken = [fact.event.owner for fact in log.of(facts.OwnershipTaken) if fact.partition == partition]
    return str(taken[-1]).partition("/")[0]


def has_granted(log: JobLog, more_than: int) -> bool:
    return len(log.of(facts.PermitsGranted)) > more_than


def is_taken_from(victim: str, partition: int, log: JobLog) -> bool:
    return owner_of(log, partition) != victim


@pytest.mark.rounds
@pytest.mark.timeout(120 + 60 * figures.ROUNDS)
def test_owner_of_a_limits_home_killed_again_and_again(stack: Stack) -> None:
    owners = {name: stack.owner(name) for name in ("o1", "o2")}
    workers = [stack.worker(name) for name in ("w1", "w2")]
    stack.await_ready(*owners.values(), *workers)
    home = stack.send(declare(CONCURRENCY)).partition
    stack.until("known everywhere", lambda log: len(log.of(facts.LimitCopied)) == stack.partitions)

    granted_again_s: list[float] = []
    for _ in range(figures.ROUNDS):
        granted = len(stack.look().of(facts.PermitsGranted))
        stack.submit(limited_jobs() + jobs_over(20, 1))
        stack.until("permits are out", partial(has_granted, more_than=granted + 2))
        victim = owner_of(stack.log, home)
        owners[victim].kill()
        killed_at, granted = monotonic(), len(stack.look().of(facts.PermitsGranted))
        stack.until("taken over", partial(is_taken_from, victim, home))
        stack.until("permits are out again", partial(has_granted, more_than=granted))
        granted_again_s.append(monotonic() - killed_at)
        owners[victim].start()
        stack.await_ready(owners[victim])

    stack.await_done()
    stack.until("every permit is home", lambda log: PermitLedger(log).out == {}, within_s=60)
    note(stack, "home of a limit killed", granted_again_s, GRANTED_AGAIN_BOUND_S)
    assert verdict(stack) == []
    assert max(granted_again_s) <= GRANTED_AGAIN_BOUND_S
    assert PermitLedger(whole_log(stack.kafka, stack.partitions)).used >= figures.ROUNDS * JOBS
    limited = {event.job_id for event in stack.log.events(facts.JobSubmitted) if event.limit}
    seen = [one for one in stack.witness() if one.execution.partition(":")[0] in limited]
    assert most_at_once(seen) == CONCURRENCY, "as many as the limit lets, and never more"
