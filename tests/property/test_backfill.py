"""Backfills whatever happens on the way: owners that are followed by others, void frames, late mail, cancels, live work."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from minutebook import ids
from minutebook.domain import book as state
from minutebook.domain import events as facts
from minutebook.domain import keys, operation_steps
from minutebook.domain.timing import Timing
from minutebook.schedule.every import Every
from minutebook.schedule.plan import Plan
from minutebook.store.memory import MemoryRows
from replay.verify import Until, verify
from tests.property.test_operations import STEPS, WAITS_MS, is_open
from tests.simulation.copies import CopiedLog
from tests.simulation.desk import T0, Hand, results
from tests.simulation.desks import TENANT, Desks
from tests.simulation.folds import folded

EVERY_MS = 1_800_000
START_AT = T0 - 20 * EVERY_MS
CYCLES_MAX = 600


class Working(Desks):
    """Desks, with one worker of a few slots at each; runs end in the cycle after their grant."""

    def __init__(self, partitions: int) -> None:
        super().__init__(partitions)
        self._hands = [Hand(desk, lease_ms=600_000_000) for desk in self.desks]
        self.ran: Counter[str] = Counter()
        for hand in self._hands:
            hand.pulse(3, held=[])

    def work(self) -> None:
        """What the last cycles granted succeeds."""
        for hand in self._hands:
            grants = hand.take()
            self.ran.update(name for name, _ in grants)
            hand.pulse(3, succeeded=results(grants))

    def step(self, chance: random.Random, step: str) -> None:
        """One cycle of each, with whatever may go wrong before it."""
        self.wait(chance.choice(WAITS_MS))
        if step in ("void", "hand-over"):
            for desk in self.desks:
                desk.void()
        self.cycle()
        self.work()


def placed(desks: Desks) -> Counter[int]:
    """How often each instant was filled."""
    found: Counter[int] = Counter()
    for _, _, event in desks.log(facts.ExecutionsPlaced):
        if event.cause == "backfill":  # type: ignore[union-attr]
            found.update(event.scheduled_at)  # type: ignore[union-attr]
    return found


def never_ran(desks: Desks) -> set[int]:
    """What the log itself says: instants before the creation, and those of every range that was skipped."""
    plan = Plan(Every(EVERY_MS), anchor_at=START_AT, start_at=START_AT)
    found = set(plan.each(START_AT - 1, T0))
    for _, _, event in desks.log(facts.ExecutionsSkipped):
        found |= set(plan.each(event.first_at - 1, event.last_at))  # type: ignore[union-attr]
    return found


def range_of(chance: random.Random, now: int) -> tuple[int, int]:
    first, last = sorted(chance.sample(range(START_AT - 5 * EVERY_MS, now), 2))
    return first, last


@pytest.mark.parametrize("seed", range(20))
def test_each_instant_that_never_ran_is_filled_once_and_no_other(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(operation_steps, "LOOKED_AT_MAX", chance.choice((3, 400)))
    monkeypatch.setattr(operation_steps, "DONE_MAX", chance.choice((2, 100)))
    monkeypatch.setattr(operation_steps, "WAITING_MAX", chance.choice((2, 1_000)))
    desks = Working(chance.choice((1, 3)))
    timing = Timing(start_at=START_AT, overlap=chance.choice(("allow", "allow", "skip")))
    desks.submit("a", every_ms=EVERY_MS, timing=timing)
    desks.step(chance, "cycle")
    for number in range(chance.randint(1, 4)):
        desks.wait(chance.choice((0, 10 * EVERY_MS, 27 * 3_600_000)))
        for _ in range(5):
            desks.step(chance, "cycle")
        first, last = range_of(chance, desks.now - 1)
        desks.start(
            f"op{number}",
            chance.choice((0, 0, 50)),
            kind="backfill",
            job_id="a",
            from_at=first,
            until_at=last,
        )
        for turn in range(chance.choice((3, CYCLES_MAX))):
            desks.step(chance, chance.choice(STEPS) if turn < 40 else "cycle")
            if turn > 9 and not is_open(desks):
                break
        desks.cancel(f"op{number}", command_id=f"stop{number}")
    desks.wait(1)
    desks.start("all", kind="backfill", job_id="a", from_at=START_AT, until_at=desks.now)
    meant = never_ran(desks)
    for _ in range(CYCLES_MAX):
        desks.step(chance, "cycle")
        if any(event.operation == "all" for event in desks.ended()):
            break
    found = placed(desks)
    assert set(found) <= never_ran(desks)
    assert meant <= set(found)
    assert set(found.values()) <= {1}
    assert set(desks.ran.values()) <= {1}
    for desk in desks.desks:
        assert state.digest(folded(desk.records)) == state.digest(desk.rows)
    desk = desks.desk_of(ids.job_key(TENANT, "a"))
    if len(desks.desks) == 1:
        report = verify(
            CopiedLog(desk.records), [0], None, Until(), make_rows=lambda _, families: MemoryRows(families)
        )
        assert report.ok, report.findings


@pytest.mark.parametrize("seed", range(10))
def test_no_instant_is_filled_while_live_work_waits(seed: int) -> None:
    """Whatever is granted, nothing that came due at its time is left waiting beside it."""
    chance = random.Random(seed)
    desks = Working(1)
    desk = desks.desks[0]
    desks.submit("a", every_ms=EVERY_MS, timing=Timing(start_at=START_AT))
    desks.step(chance, "cycle")
    desks.wait(1)
    desks.start(rate_per_s=10, kind="backfill", job_id="a", from_at=START_AT, until_at=T0)
    live = 0
    for number in range(600):
        if chance.random() < 0.3:
            count = chance.randint(1, 9)
            desks.submit(*(f"live-{number}-{n}" for n in range(count)))
            live += count
        desks.wait(chance.choice((1, 20, 100)))
        events = desks.cycle()
        desks.work()
        granted = [
            name
            for event in events
            if isinstance(event, facts.ExecutionsGranted | facts.ExecutionsDueGranted)
            for name in event.executions
        ]
        waiting = [keys.queued_parts(key)[0].priority for key, _ in desk.book.queued.scan(b"")]
        if any(name.startswith("a:") for name in granted):
            assert max(waiting, default=-1) == -1
        if desks.ended() and not any(desk.book.executions_of(keys.job_row(TENANT, "a"))):
            break
    assert len(desks.ended()) == 1
    assert sum(count for name, count in desks.ran.items() if name.startswith("live")) > live - 20
    assert sum(count for name, count in desks.ran.items() if name.startswith("a:")) == 20
