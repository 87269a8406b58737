"""An owner is killed at each step of its work; whoever comes next reads the log and goes on."""

from __future__ import annotations

import shutil
import signal

import pytest

from tests.crash.checker import verdict
from tests.crash.dying_owner import STEPS
from tests.crash.stack import Stack, jobs_over
from tests.crash.state import differing_states

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def dying(step: str, nth: int = 5) -> tuple[str, ...]:
    return ("-m", "tests.crash.dying_owner", step, str(nth))


@pytest.mark.parametrize("step", STEPS)
def test_owner_killed_at_a_step_loses_nothing(stack: Stack, step: str) -> None:
    owner, worker = stack.owner("o1", dying(step)), stack.worker("w1")
    stack.await_ready(owner, worker)
    stack.submit(jobs_over(60, 3) + jobs_over(10, 1, "crash.flaky"))
    stack.until("it dies", lambda _: not owner.is_running)
    assert owner.wait() == -signal.SIGKILL

    owner.arguments = ("-m", "streams")
    owner.start()
    stack.await_done()
    assert verdict(stack) == []
    owner.end()
    assert differing_states(stack, "o1") == []


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
