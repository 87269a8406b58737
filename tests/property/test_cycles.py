"""Random days at one owner's desk: whatever comes in which order, every job runs once, at its time or after it."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from minutebook.domain import events as facts
from minutebook.domain.book import FAMILIES, Book, digest
from minutebook.domain.events import Event
from minutebook.log.apply import take
from minutebook.log.reader import FrameReader
from minutebook.store.memory import MemoryRows
from tests.simulation.desk import Desk, Hand, results

STEPS = 120
ENOUGH_MS = 60_000


class Day:
    """What happens at a desk, and an account of it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.desk = Desk()
        self.hands = [Hand(self.desk, "v.0"), Hand(self.desk, "w.0")]
        self.running: dict[str, dict[str, int]] = {hand.name: {} for hand in self.hands}
        self.due: dict[str, int] = {}
        self.cancelled: set[str] = set()
        self.succeeded: Counter[str] = Counter()
        for hand in self.hands:
            hand.pulse(0, held=[])

    # -- what may happen

    def step(self) -> None:
        self.chance.choice(
            [self.submit, self.submit, self.cancel, self.speak, self.speak, self.full, self.restart]
        )()
        after_ms = self.chance.choice([0, 1, 7, 60, 210, 999, 2_100])
        if self.chance.random() < 0.1:
            self.desk.void(after_ms)
            after_ms = 0
        self.cycle(after_ms)

    def submit(self) -> None:
        after_ms = self.chance.choice([0, 0, 5, 50, 500, 3_000])
        for _ in range(self.chance.choice([1, 3, 150])):
            name = f"j{self.chance.randrange(1 << 40):x}"
            self.due[name] = self.desk.now + after_ms
            self.desk.submit(name, after_ms=after_ms)

    def cancel(self) -> None:
        if self.due:
            self.desk.cancel(self.chance.choice(sorted(self.due)))

    def speak(self) -> None:
        """A worker reports some ends, gives some grants back, and offers."""
        hand = self.chance.choice(self.hands)
        running = self.running[hand.name]
        ended = [one for one in sorted(running.items()) if self.chance.random() < 0.6]
        back = ended[: len(ended) // 8]
        for name, _ in ended:
            del running[name]
        hand.pulse(
            self.chance.choice([0, 1, 5, 100]),
            succeeded=results(ended[len(back) :]) if ended[len(back) :] else None,
            handed_back=back,
        )

    def full(self) -> None:
        for hand in self.hands:
            hand.pulse(self.chance.choice([0, 5, 100]), held=sorted(self.running[hand.name].values()))

    def restart(self) -> None:
        """The owner's memory is gone; the next pulses are full ones."""
        self.desk.open()
        self.full()

    # -- the account

    def cycle(self, after_ms: int) -> None:
        for event in self.desk.cycle(after_ms):
            self.note(event)
        for hand in self.hands:
            for name, token in hand.take():
                assert name not in self.running[hand.name]
                self.running[hand.name][name] = token

    def note(self, event: Event) -> None:
        match event:
            case facts.ExecutionsDueGranted() | facts.ExecutionsQueued():
                for execution in event.executions:
                    assert self.desk.now >= self.due[execution.partition(":")[0]], "early"
            case facts.AttemptsSucceeded():
                self.succeeded.update(execution.partition(":")[0] for execution in event.executions)
            case facts.JobCancelled():
                self.cancelled.add(event.job_id)
            case facts.AttemptsLost() | facts.ReportRefused() | facts.InputRefused():
                raise AssertionError(f"not expected on a day without losses: {event}")
            case _:
                return

    def finish(self) -> None:
        """Workers offer plenty and end everything, until nothing is left to do."""
        until = self.desk.now + ENOUGH_MS
        while self.desk.now < until:
            for hand in self.hands:
                running = self.running[hand.name]
                ended, self.running[hand.name] = sorted(running.items()), {}
                hand.pulse(500, held=[], succeeded=results(ended) if ended else None)
            self.cycle(400)


@pytest.mark.parametrize("seed", range(40))
def test_every_job_runs_once_at_its_time_or_later_whatever_happens(seed: int) -> None:
    day = Day(seed)
    for _ in range(STEPS):
        day.step()
    day.finish()
    assert {name for name, runs in day.succeeded.items() if runs > 1} == set()
    assert set(day.due) - day.cancelled - set(day.succeeded) == set(), "lost"
    assert day.succeeded, "something ran"
    assert list(day.desk.book.jobs.scan(b"")) == []
    assert list(day.desk.book.running.scan(b"")) == []


@pytest.mark.parametrize("seed", range(3))
def test_the_log_of_a_day_folds_to_the_state_of_its_owner(seed: int) -> None:
    day = Day(seed)
    for _ in range(STEPS):
        day.step()
    rows = MemoryRows(FAMILIES)
    book, reader = Book(rows), FrameReader()
    for record in day.desk.records:
        assert take(book, reader, record) is not None
        book.commit()
    assert digest(rows) == digest(day.desk.rows)
