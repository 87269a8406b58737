"""Random weeks of an office under limits: whatever is late, lost, repeated or changed, never more runs than a limit lets,
and in the end everything has run and every permit is home.
"""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import FAMILIES, Book, digest
from minutebook.domain.events import Event
from minutebook.domain.permit_folds import home_of
from minutebook.log.apply import take
from minutebook.log.reader import FrameReader
from minutebook.store.memory import MemoryRows
from tests.simulation.office import TENANT, Office, shuffled

PARTITIONS = 3
WORKERS = 2
STEPS = 150
LIMITS = ("", "k1", "k2")
KEYS = ("", "k1", "k1", "k2", "k3")
PERIOD_MS = 1_000


class Week:
    """What happens in an office, and what must hold after every frame."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.office = Office(PARTITIONS, WORKERS)
        self.office.on_frame = self.check
        self.submitted: dict[str, str] = {}
        """Jobs with the limits that they name."""
        self.succeeded: set[str] = set()
        self.permitted = 0
        self._checked = 0
        self._out: dict[tuple[str, int], int] = {}
        self._running: dict[str, list[tuple[str, int]]] = {}
        self._granted: dict[str, list[int]] = defaultdict(list)
        for number, partition in self.office.places():
            self.office.pulse(number, partition, 0, is_full=True)

    # -- what may happen

    def step(self) -> None:
        self.chance.choice(
            [self.submit, self.change, self.speak, self.speak, self.mail, self.mail, self.fault]
        )()
        self.office.now += self.chance.choice([0, 1, 7, 60, 300, 1_100])
        for _, partition in shuffled(self.chance, iter([(0, place) for place in range(PARTITIONS)])):
            if self.chance.random() < 0.6:
                self.office.cycle(partition, is_void=self.chance.random() < 0.1)

    def submit(self) -> None:
        for _ in range(self.chance.choice([1, 3, 9])):
            name = f"j{len(self.submitted)}"
            limit = self.submitted[name] = self.chance.choice(KEYS)
            self.office.submit(name, limit, priority=self.chance.choice([2, 5, 5, 8]))

    def change(self) -> None:
        """Somebody changes a limit; the key's more often than the tenant's."""
        limit, office = self.chance.choice(LIMITS), self.office
        self.chance.choice(
            [
                lambda: office.declare(limit, concurrency=self.chance.randint(1, 4)),
                lambda: office.declare(limit, concurrency=self.chance.randint(1, 4)),
                lambda: office.declare(limit, rate_count=self.chance.randint(1, 3), rate_period_ms=PERIOD_MS),
                lambda: office.pause(limit, self.chance.choice([500, 3_000, None])),
                lambda: office.delete(limit),
            ]
        )()

    def speak(self) -> None:
        for number, partition in shuffled(self.chance, self.office.places())[:3]:
            offer, ended = self.chance.choice([0, 1, 3, 20]), self.chance.choice([0, 0, 1, 5])
            back, is_full = self.chance.choice([0, 0, 0, 1]), self.chance.random() < 0.5
            self.office.pulse(number, partition, offer, ended, back, is_full=is_full)

    def mail(self) -> None:
        for sender, receiver in shuffled(
            self.chance, ((a, b) for a in range(PARTITIONS) for b in range(PARTITIONS))
        ):
            if self.chance.random() < 0.5:
                self.office.deliver(sender, receiver, self.chance.choice([1, 2, 1_000]))

    def fault(self) -> None:
        """An owner starts anew, or a worker is gone."""
        number, partition = self.chance.choice(list(self.office.places()))
        if self.chance.random() < 0.5:
            self.office.restart(partition)
        else:
            self.office.lose(number, partition)

    def finish(self) -> None:
        """Nothing changes any more, and everybody does what is theirs."""
        for limit in LIMITS:
            self.office.pause(limit, None)
        for _ in range(60):
            self.office.settle(slots=20, cycles=20)
            if set(self.submitted) == self.succeeded:
                break
        self.office.settle(slots=20, cycles=25)

    # -- what must hold

    def check(self) -> None:
        """Every event since the last look."""
        for partition, token, event in self.office.events[self._checked :]:
            self._take(partition, token, event)
        self._checked = len(self.office.events)

    def _take(self, partition: int, token: int, event: Event) -> None:
        match event:
            case facts.PermitsGranted():
                self._out.update(((event.limit, token + row), to) for row, to in enumerate(event.partitions))
                self._check_bounds(event)
            case facts.PermitsReturned():
                for permit in event.permits:
                    del self._out[event.limit, permit]
                    assert (event.limit, permit) not in self._in_use(), "back before its end"
            case facts.ExecutionsGranted():
                self._check_permits(partition, event)
            case facts.ExecutionsDueGranted():
                for name in event.executions:
                    self._check_unlimited(partition, name)
            case facts.AttemptsSucceeded():
                self.succeeded.update(name.partition(":")[0] for name in event.executions)
                self._over(event.executions)
            case facts.AttemptsLost() | facts.GrantsReturned():
                self._over(event.executions)
            case facts.InputRefused() | facts.CommandRejected() if (
                getattr(event, "reason", "") != "not_found"
            ):
                raise AssertionError(f"not expected in an office: {event}")
            case _:
                return

    def _in_use(self) -> set[tuple[str, int]]:
        return {permit for permits in self._running.values() for permit in permits}

    def _over(self, executions: list[str]) -> None:
        for name in executions:
            self._running.pop(name, None)

    def _check_bounds(self, event: facts.PermitsGranted) -> None:
        """Exactly what the limit allows, by the state of its home, and by an account of our own."""
        limit = self.office.home(event.limit).book.limit(TENANT, event.limit)
        assert limit is not None, "granted of a limit that is not there"
        if limit.concurrency >= 0:
            assert sum(1 for name, _ in self._out if name == event.limit) <= limit.concurrency
        instants = self._granted[event.limit]
        instants += [self.office.now] * len(event.partitions)
        if limit.rate_count >= 0:
            assert self._in_last_period(event.limit) <= limit.rate_count
        assert self.office.now >= limit.paused_until, "granted in a pause"

    def _in_last_period(self, limit: str) -> int:
        return sum(1 for at in self._granted[limit] if at > self.office.now - PERIOD_MS)

    def _check_permits(self, partition: int, event: facts.ExecutionsGranted) -> None:
        held: dict[str, list[tuple[str, int]]] = {name: [] for name in event.executions}
        for row, number, permit in zip(event.permit_row, event.permit_limit, event.permit_ids, strict=True):
            held[event.executions[row]].append((event.limits[number], permit))
        for name, permits in held.items():
            for permit in permits:
                assert self._out[permit] == partition, "a permit of somebody else"
                assert permit not in self._in_use(), "two attempts under one permit"
                self.permitted += 1
            self._running[name] = permits
            wanted = self._limits_of(partition, name)
            assert tuple(limit for limit, _ in permits) == wanted

    def _check_unlimited(self, partition: int, name: str) -> None:
        assert self._limits_of(partition, name) == ()

    def _limits_of(self, partition: int, name: str) -> tuple[str, ...]:
        """What holds at this moment for an execution that has just been granted."""
        limit = self.submitted[name.partition(":")[0]]
        return self.office.desks[partition].book.limits_of(TENANT, limit)


@pytest.mark.parametrize("seed", range(25))
def test_never_more_than_a_limit_lets_and_in_the_end_every_permit_is_home(seed: int) -> None:
    week = Week(seed)
    for _ in range(STEPS):
        week.step()
    week.finish()
    assert set(week.submitted) - week.succeeded == set(), "did not run"
    assert week.permitted, "something ran under permits"
    for desk in week.office.desks:
        assert [row for _, row in desk.book.stocks.scan(b"") if row.free or row.spent] == []
        assert list(desk.book.permits.scan(b"")) == []
        assert list(desk.book.running.scan(b"")) == []
    for limit in LIMITS:
        assert home_of(week.office.home(limit).book, keys.limit_row(TENANT, limit)).in_use == 0


def test_the_logs_of_an_office_fold_to_the_states_of_its_owners() -> None:
    week = Week(1)
    for _ in range(STEPS):
        week.step()
    for desk in week.office.desks:
        rows = MemoryRows(FAMILIES)
        book, reader = Book(rows), FrameReader()
        for record in desk.records:
            assert take(book, reader, record) is not None
            book.commit()
        assert digest(rows) == digest(desk.rows)
