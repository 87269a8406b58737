"""An owner is killed at each step of its work; whoever comes next reads the log and goes on."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from functools import partial
from typing import Final

import pytest

from minutebook import ids
from minutebook.wire import topics
from tests import figures
from tests.crash.checker import judged, open_jobs, verdict
from tests.crash.dying_owner import STEPS
from tests.crash.process import eventually
from tests.crash.rounds import note
from tests.crash.stack import PARTITIONS, SESSION_TIMEOUT_S, Stack, home_of, job, jobs_over, now_ms
from tests.crash.state import differing_states

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RESUMED_BOUND_S: Final = figures.bound(goal=SESSION_TIMEOUT_S + 10, busy=40)
"""After the death of an owner, from an instant to its start: the group notices, and the next one reads the log."""


def dying(step: str, nth: int = 5, kind: str = "grants") -> tuple[str, ...]:
    return ("-m", "tests.crash.dying_owner", step, str(nth), kind)


@pytest.mark.rounds
@pytest.mark.timeout(120 + 45 * figures.ROUNDS)
@pytest.mark.parametrize("step", STEPS)
def test_owner_killed_at_a_step_loses_nothing(stack: Stack, step: str) -> None:
    """Round after round: it dies over a job named after the step, while others come due."""
    owner, worker = stack.owner("o1", ("-m", "tests.crash.dying_owner", "named")), stack.worker("w1")
    late_s: list[float] = []
    for number in range(figures.ROUNDS):
        stack.await_ready(owner, worker)
        commands = [job(job_id=f"{step}-{number}", run_at=now_ms() + 300), *jobs_over(20, 2)]
        stack.submit([*commands, *jobs_over(4, 1, "crash.flaky")])
        stack.until("it dies", lambda _: not owner.is_running)
        assert owner.wait() == -signal.SIGKILL
        owner.start()
        stack.await_done()
        late_s.append(latest_start_s(stack, {command.job_id for command in commands}))

    note(stack, f"owner killed {step}", late_s, RESUMED_BOUND_S)
    assert verdict(stack) == []
    assert max(late_s) <= RESUMED_BOUND_S
    owner.end()
    assert differing_states(stack, "o1") == []


def latest_start_s(stack: Stack, jobs: set[str]) -> float:
    """The longest time from an instant to the first start, over what `jobs` ran."""
    first: dict[str, float] = {}
    for one in stack.witness():
        if one.moment == "start" and ids.job_of(one.execution) in jobs:
            first.setdefault(one.execution, one.at - one.due_at)
    return max(first.values()) / 1000


def test_owner_without_its_state_rebuilds_it(stack: Stack) -> None:
    owner, worker = stack.owner("o1", dying("after-append")), stack.worker("w1")
    stack.await_ready(owner, worker)
    stack.submit(jobs_over(60, 3))
    stack.until("it dies", lambda _: not owner.is_running)

    shutil.rmtree(stack.data_dir("o1"))
    owner.arguments = ("-m", "streams")
    owner.start()
    stack.await_done()
    assert verdict(stack) == []
    owner.end()
    assert differing_states(stack, "o1") == []


def forwarded(stack: Stack) -> None:
    command = job()
    stack.send(command, (home_of(command) + 1) % PARTITIONS)


UNSENT: dict[str, tuple[Callable[[Stack], object], str]] = {
    "grants": (lambda stack: stack.submit([job()]), topics.INBOX),
    "dead": (lambda stack: stack.submit([job(task="crash.refused")]), topics.DEAD_LETTERS),
    "mail": (forwarded, topics.MAIL),
    "rejected": (lambda stack: stack.produce(topics.COMMANDS, 1, b"garbage"), topics.REJECTED),
}


def count(stack: Stack, topic: str) -> int:
    return sum(map(len, stack.whole(topic)))


def test_outputs_that_a_killed_owner_did_not_send_are_sent_by_the_next(stack: Stack) -> None:
    """Each kind of output in turn: its frame is in the log, its owner is gone, the next one reads what must go out."""
    kinds = list(UNSENT)
    owner, worker = stack.owner("o1", dying("after-commit", 1, kinds[0])), stack.worker("w1")
    for number, kind in enumerate(kinds):
        act, topic = UNSENT[kind]
        stack.await_ready(owner, worker)
        before = count(stack, topic)
        act(stack)
        stack.until(f"it dies before it sends {kind}", lambda _: not owner.is_running)
        assert count(stack, topic) == before

        owner.arguments = dying("after-commit", 1, (*kinds, "")[number + 1])
        owner.start()
        assert eventually(partial(lambda topic, before: count(stack, topic) > before, topic, before)), kind
        stack.await_done()
    assert verdict(stack) == []


def test_judgement_holds_while_work_goes_on(stack: Stack) -> None:
    """What leaves the owner between two looks of the judge is no complaint."""
    owner, worker = stack.owner("o1"), stack.worker("w1")
    stack.await_ready(owner, worker)
    stack.submit(jobs_over(400, 8))
    looks = 0
    while open_jobs(stack.look(), stack.sent):
        assert judged(stack, unanswered_too=False) == []
        looks += 1
    assert looks > 0
    assert verdict(stack) == []
