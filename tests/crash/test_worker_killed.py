"""A worker falls in each step of a run, round after round on one installation; the attempt is lost or withdrawn, on record,
and another worker runs it.

The judge is the raw log and the witness files. How soon the other one starts is held to a bound of seconds: to the goal in a
proof, to more on a machine that also does other things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final, NamedTuple

import pytest

from minutebook.domain import events as facts
from tests import figures
from tests.crash.checker import verdict
from tests.crash.dying_worker import UNSENT, UNTAKEN
from tests.crash.ledger import Ledger
from tests.crash.pair import Pair, refusals, starts_of
from tests.crash.process import Process
from tests.crash.rounds import note
from tests.crash.stack import LEASE_MS, TENANT, Stack, now_ms

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.rounds,
    pytest.mark.timeout(120 + 45 * figures.ROUNDS),
]

LEASE_S: Final = LEASE_MS / 1000
LEASE_BOUND_S: Final = figures.bound(goal=LEASE_S + 2, busy=30)
GRANT_BOUND_S: Final = figures.bound(goal=4, busy=30)


@pytest.fixture
def pair(stack: Stack) -> Iterator[Pair]:
    """An owner, and two workers that offer."""
    owner = stack.owner("o1")
    with closing(Pair(stack)) as made:
        stack.await_ready(owner)
        yield made


def kill_from_outside(pair: Pair, execution: str) -> tuple[Process, float]:
    """Once the owner knows that it runs. The worker, and when it fell, ms."""
    process = pair.acknowledged(execution)
    fell_at = now_ms()
    process.kill()
    return process, fell_at


def dies_by_itself(pair: Pair, execution: str) -> tuple[Process, float]:
    return pair.fallen(), pair.fell_at(execution)


class Kind(NamedTuple):
    """How a worker dies: over a job of which name, task and payload, by whose hand, and what the log must call it."""

    name: str
    task: str
    payload: bytes
    fall: Callable[[Pair, str], tuple[Process, float]]
    causes: set[str]
    bound_s: float


KINDS: Final = {
    "in a task": Kind("held", "crash.hang", b"null", kill_from_outside, {"lost"}, LEASE_BOUND_S),
    "in a task, at its start": Kind(
        "inside", "crash.die-inside", b"null", dies_by_itself, {"lost", "withdrawn"}, LEASE_BOUND_S
    ),
    "between effect and report": Kind(
        "done", "crash.die-unreported", b"0.3", dies_by_itself, {"lost", "withdrawn"}, LEASE_BOUND_S
    ),
    "before acknowledging a grant": Kind(
        UNTAKEN, "crash.note", b"null", dies_by_itself, {"withdrawn"}, GRANT_BOUND_S
    ),
}


@pytest.mark.parametrize("what", KINDS)
def test_worker_killed_in_a_run_is_replaced(stack: Stack, pair: Pair, what: str) -> None:
    kind = KINDS[what]
    executions: list[str] = []
    restarted_s: list[float] = []
    for number in range(figures.ROUNDS):
        execution = pair.submit(f"{kind.name}-{number}", kind.task, kind.payload)
        process, fell_at = kind.fall(pair, execution)
        pair.revive(process)
        pair.await_success(execution)
        executions.append(execution)
        restarted_s.append(pair.restarted_s(execution, fell_at))
    stack.await_done()

    note(stack, f"worker killed {what}", restarted_s, kind.bound_s)
    assert verdict(stack) == []
    causes = Ledger(stack.log).causes
    assert [name for name in executions if not set(causes[TENANT, name]) & kind.causes] == []
    assert max(restarted_s) <= kind.bound_s


def test_nobody_runs_what_was_granted_to_a_worker_that_died_before_it_began(stack: Stack, pair: Pair) -> None:
    """The grant is withdrawn, and the one run is still the first attempt."""
    execution = pair.submit(f"{UNTAKEN}-only", "crash.note")
    pair.revive(pair.fallen())
    stack.await_done()
    assert verdict(stack) == []
    assert [one.attempt for one in starts_of(stack, execution)] == [1]


def test_late_result_of_a_worker_that_slept_past_its_lease_is_refused(stack: Stack, pair: Pair) -> None:
    """By turns it is stopped with the result about to be sent, which then comes late for certain, and in the middle of the
    task, where it notices by itself or reports too late."""
    restarted_s: list[float] = []
    for number in range(figures.ROUNDS):
        is_done = number % 2 == 0
        if is_done:
            execution = pair.submit(f"{UNSENT}-{number}", "crash.slow", b"0.3")
            process = pair.frozen()
            fell_at = pair.fell_at(execution)
        else:
            execution = pair.submit(f"asleep-{number}", "crash.linger", b"2")
            process = pair.acknowledged(execution)
            fell_at = now_ms()
            process.freeze()
        pair.await_success(execution)
        restarted_s.append(pair.restarted_s(execution, fell_at))
        pair.revive(process)
        if is_done:
            pair.await_refusal(execution)
    stack.await_done()

    note(stack, "worker asleep past its lease", restarted_s, LEASE_BOUND_S)
    assert verdict(stack) == []
    assert refusals(stack) >= (figures.ROUNDS + 1) // 2
    assert [one for one in stack.log.events(facts.ReportRefused) if one.reason != "stale token"] == []
    assert max(restarted_s) <= LEASE_BOUND_S
