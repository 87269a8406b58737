"""Two owners of one partition at a time: at most one frame counts at each position, and the loser goes."""

from __future__ import annotations

import time

import pytest

from minutebook.domain import events as facts
from streams.host import EXIT_LEAVE
from tests.crash.checker import verdict
from tests.crash.joblog import JobLog
from tests.crash.stack import SESSION_TIMEOUT_S, Stack, jobs_over
from tests.crash.state import differing_states

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def owner_of(log: JobLog) -> dict[int, str]:
    """Instance that took each partition last."""
    return {fact.partition: fact.event.owner.partition("/")[0] for fact in log.of(facts.OwnershipTaken)}


def voids_of(stack: Stack, instance: str) -> int:
    """Void frames that an instance wrote."""
    found = 0
    for partition, void in stack.log.voids:
        value = stack.log.records[partition][void.offset].value
        found += value is not None and instance.encode() in value[:200]
    return found


def test_member_of_the_group_takes_over_from_a_killed_owner(stack: Stack) -> None:
    first, second, worker = stack.owner("o1"), stack.owner("o2"), stack.worker("w1")
    stack.await_ready(first, second, worker)
    stack.until("both own", lambda log: set(owner_of(log).values()) == {"o1", "o2"})
    stack.submit(jobs_over(80, 4))
    stack.until("some ran", lambda _: len(stack.witness()) > 20)
    first.kill()

    stack.until("taken over", lambda log: set(owner_of(log).values()) == {"o2"})
    stack.await_done()
    assert verdict(stack) == []


@pytest.mark.parametrize("step", ["before-append", "after-commit"])
def test_frozen_owner_that_wakes_up_changes_nothing(stack: Stack, step: str) -> None:
    """Its partitions were taken over meanwhile. What it appends is void, and it has sent nothing of it; what it sends late
    of a frame that was valid starts no token twice."""
    zombie = stack.owner("o1", ("-m", "tests.crash.dying_owner", step, "3", "grants", "freeze"), is_kept=True)
    other, worker = stack.owner("o2"), stack.worker("w1")
    stack.until("both own", lambda log: set(owner_of(log).values()) == {"o1", "o2"})
    stack.await_ready(worker)
    stack.submit(jobs_over(240, 12))
    stack.until("it is frozen", lambda _: zombie.is_frozen)
    frozen = time.monotonic()
    zombie.arguments = ("-m", "streams")
    stack.until("all taken over", lambda log: set(owner_of(log).values()) == {"o2"})
    stack.until("3 session timeouts", lambda _: time.monotonic() - frozen > 3 * SESSION_TIMEOUT_S)
    zombie.thaw()

    stack.until("it wrote a void frame", lambda _: voids_of(stack, "o1"))
    stack.until("both own again", lambda log: set(owner_of(log).values()) == {"o1", "o2"})
    stack.submit(jobs_over(20, 1))
    stack.await_done()
    assert other.is_running
    assert verdict(stack) == []


def test_two_groups_on_one_log_never_apply_twice(stack: Stack) -> None:
    """A mistake of the operator: each group has an owner for every partition. The later one wins; the loser's frame is
    void, and it comes back only by taking the partition over again."""
    first, worker = stack.owner("o1", is_kept=True), stack.worker("w1")
    stack.await_ready(first, worker)
    second = stack.owner("o2", group="others", is_kept=True)
    stack.submit(jobs_over(150, 6))
    stack.until("the later one took over", lambda log: set(owner_of(log).values()) == {"o2"} or log.voids)
    stack.submit(jobs_over(50, 2))
    stack.until("somebody lost", lambda log: log.voids)
    stack.until("some ran", lambda _: len(stack.witness()) > 40)
    second.end()

    stack.await_done()
    assert verdict(stack) == []
    assert max(fact.event.epoch for fact in stack.log.of(facts.OwnershipTaken)) > 1


def test_owner_leaves_a_store_alone_that_another_has_open(stack: Stack) -> None:
    """A mistake of the operator: two processes with one data folder. To the second one it is taken, not damaged."""
    first, worker = stack.owner("o1"), stack.worker("w1")
    stack.await_ready(first, worker)
    second = stack.owner("o2", group="others", data_dir=str(stack.data_dir("o1")))

    stack.until("it leaves", lambda _: not second.is_running)
    assert second.wait() == EXIT_LEAVE
    stack.submit(jobs_over(20, 1))
    stack.await_done()
    assert verdict(stack) == []
    first.end()
    assert differing_states(stack, "o1") == []
