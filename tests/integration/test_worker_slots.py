"""Three workers with few slots, and all the work in one partition: judged by the log alone, no slot idles while work waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minutebook.domain import events as facts
from minutebook.domain.commands import SubmitJob
from tests import figures
from tests.crash.joblog import Fact, JobLog
from tests.crash.stack import Stack, home_of, job, now_ms

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.rounds, pytest.mark.timeout(240)]

WORKERS, SLOTS, JOBS = 3, 4, 200
PARTITION = 1
STARTED_MS = 8_000
IDLE_MS_MAX = 6_000
"""Two pulse intervals of a worker with the usual settings; here they are shorter, and the machine may be busy."""


@pytest.fixture
def stack(broker: Any, tmp_path: Path) -> Iterator[Stack]:
    made = Stack(broker.bootstrap_servers, tmp_path)
    yield made
    made.close()


def jobs_of_one_partition(due_at: int) -> list[SubmitJob]:
    found: list[SubmitJob] = []
    while len(found) < JOBS:
        one = job(task="crash.slow", payload=b"2", run_at=due_at)
        if home_of(one) == PARTITION:
            found.append(one)
    return found


class Slots:
    """What each session runs, grant by grant, and how long it ran less than it could while something waited."""

    def __init__(self, due_at: int) -> None:
        self.running: Counter[str] = Counter()
        self.waiting = JOBS
        self.idle_ms_max = 0
        self.handed_back = 0
        self._due_at = due_at
        self._holder: dict[int, str] = {}
        self._idle_since: dict[str, int] = {}

    def take(self, fact: Fact) -> None:
        match fact.event:
            case facts.ExecutionsDueGranted() | facts.ExecutionsGranted() as event:
                granted = [event.sessions[number] for number in event.session]
                self._holder.update(enumerate(granted, fact.token))
                self.running.update(granted)
                self.waiting -= len(granted)
            case facts.AttemptsSucceeded() as event:
                self.running.subtract(self._holders(event.tokens))
            case facts.GrantsReturned() as event:
                self.running.subtract(self._holders(event.tokens))
                self.waiting += len(event.tokens)
                self.handed_back += len(event.tokens)
            case _:
                return
        self._look(max(fact.now, self._due_at))

    def _holders(self, tokens: list[int]) -> list[str]:
        return [self._holder.pop(token) for token in tokens]

    def _look(self, now: int) -> None:
        for session, running in self.running.items():
            if self.waiting and running < SLOTS:
                self._idle_since.setdefault(session, now)
            elif session in self._idle_since:
                self.idle_ms_max = max(self.idle_ms_max, now - self._idle_since.pop(session))


def test_no_slot_idles_while_one_partition_has_all_the_work(stack: Stack) -> None:
    owner = stack.owner("o1")
    stack.await_ready(owner)
    for number in range(WORKERS):
        stack.worker(f"w{number}", concurrency=SLOTS)
    due_at = now_ms() + STARTED_MS
    stack.submit(jobs_of_one_partition(due_at))

    def ended(log: JobLog) -> int:
        return sum(len(event.tokens) for event in log.events(facts.AttemptsSucceeded))

    stack.until("all ran", lambda log: ended(log) == JOBS, within_s=150)
    slots = Slots(due_at)
    for fact in stack.log.facts:
        slots.take(fact)
    ends = [fact.now for fact in stack.log.of(facts.AttemptsSucceeded)]
    figures.note(
        "Slots",
        workers=WORKERS,
        slots_each=SLOTS,
        jobs=JOBS,
        seconds=(max(ends) - due_at) / 1000,
        longest_idle_s=slots.idle_ms_max / 1000,
        handed_back=slots.handed_back,
        handed_back_per_run=slots.handed_back / JOBS,
    )
    assert len(slots.running) == WORKERS
    assert slots.idle_ms_max < IDLE_MS_MAX
    assert slots.handed_back < JOBS
