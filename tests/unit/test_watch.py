"""When the user's event loop counts as blocked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import structlog

from minutebook.worker.watch import BLOCKED_S, EVERY_S, Watch


class Deaf:
    """A loop that answers only when told."""

    def __init__(self) -> None:
        self.asked: list[Callable[[], None]] = []

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
        self.asked.append(callback)


def reports(watch: Watch, *times: float) -> int:
    with structlog.testing.capture_logs() as logs:
        for now in times:
            watch.look(now)
    return len([entry for entry in logs if entry["event"] == "event_loop_blocked"])


@pytest.fixture
def loop() -> Deaf:
    return Deaf()


@pytest.fixture
def watch(loop: Any) -> Watch:
    return Watch(loop, threading.current_thread())


def test_a_loop_that_does_not_answer_is_reported_once(watch: Watch) -> None:
    assert reports(watch, 0.0, EVERY_S) == 0
    assert reports(watch, BLOCKED_S + 0.001, BLOCKED_S + EVERY_S) == 1


def test_looks_that_come_a_moment_early_report_in_time(watch: Watch) -> None:
    assert reports(watch, 0.0, EVERY_S - 0.001, 2 * EVERY_S - 0.002) == 1


def test_a_loop_that_answers_is_not_reported(watch: Watch, loop: Deaf) -> None:
    for number in range(5):
        assert reports(watch, number * EVERY_S) == 0
        while loop.asked:
            loop.asked.pop()()
