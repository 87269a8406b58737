"""An owner is killed at each step of its work; whoever comes next reads the log and goes on."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from functools import partial

import pytest

from minutebook.wire import codec, topics
from tests.crash.checker import verdict
from tests.crash.dying_owner import STEPS
from tests.crash.process import eventually
from tests.crash.stack import PARTITIONS, Stack, home_of, job, jobs_over, key_of
from tests.crash.state import differing_states

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def dying(step: str, nth: int = 5, kind: str = "grants") -> tuple[str, ...]:
    return ("-m", "tests.crash.dying_owner", step, str(nth), kind)


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


def forwarded(stack: Stack) -> None:
    command = job()
    value = codec.encode(command)
    stack.produce(topics.COMMANDS, (home_of(command) + 1) % PARTITIONS, value, key_of(command).encode())


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
