"""A year of mixed schedules under a clock of its own: every instant runs, or is skipped for a reason that was true."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from minutebook.domain import events as facts
from minutebook.domain.events import Event
from tests.simulation.year.judge import Judge
from tests.simulation.year.run import Year

replace = msgspec.structs.replace
DAYS = 60


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_instant_of_a_thousand_schedules_runs_or_is_skipped_for_a_true_reason() -> None:
    year = Year(seed=2026, jobs=1_000)
    year.run()
    assert year.judge.faults == []
    found = year.judge.instants()
    assert 700_000 < found.total() < 1_000_000, f"{year.cycles} cycles: {dict(found)}"
    assert min(found[how] for how in ("run", "held", "made up for", "misfire", "paused", "overlap")) > 1_000


@pytest.mark.parametrize("seed", range(4))
def test_two_months_of_a_few_schedules(seed: int) -> None:
    year = Year(seed, jobs=40, days=DAYS)
    year.run()
    assert year.judge.faults == []
    assert year.judge.instants().total() > 1_000


# -- the judge sees what is wrong

NOTHING = facts.DayForgotten(0)
Lie = Callable[[Event], list[Event] | None]


class Scribe(Judge):
    """A judge that keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Callable[[Judge], None]] = []

    def sent(self, command: Any, stamp: int) -> None:
        """As a judge."""
        self.told.append(lambda judge: judge.sent(command, stamp))
        super().sent(command, stamp)

    def nothing_due(self, now: int) -> None:
        """As a judge."""
        self.told.append(lambda judge: judge.nothing_due(now))
        super().nothing_due(now)

    def frame(self, now: int, placed: Iterable[tuple[Event, int]]) -> None:
        """As a judge."""
        placed = list(placed)
        self.told.append(lambda judge: judge.frame(now, placed))
        super().frame(now, placed)

    def year_over(self) -> None:
        """As a judge."""
        self.told.append(Judge.year_over)
        super().year_over()


class Misled(Judge):
    """A judge that is told something else: `lie` answers what, None where it has nothing to change. Once, but for
    what is left out."""

    def __init__(self, lie: Lie) -> None:
        super().__init__()
        self._lie: Lie | None = lie

    def frame(self, now: int, placed: Iterable[tuple[Event, int]]) -> None:
        """The events of a frame, one of them changed."""
        told: list[tuple[Event, int]] = []
        for event, token in placed:
            changed = None if self._lie is None else self._lie(event)
            if changed:
                self._lie = None
            told += [(one, token) for one in ([event] if changed is None else changed)]
        super().frame(now, told)


def is_of_schedule(event: Event) -> bool:
    return isinstance(event, facts.ExecutionsQueued | facts.ExecutionsDueGranted) and event.next_at[0] != -2


def first_row(event: Event, **columns: Callable[[Any], Any]) -> list[Event] | None:
    """The event with its first row changed, if that is an instant that came due at its time."""
    if not is_of_schedule(event):
        return None
    changed = {
        name: [change(getattr(event, name)[0]), *getattr(event, name)[1:]] for name, change in columns.items()
    }
    return [replace(event, **changed)]


def dropped(event: Event) -> list[Event] | None:
    return [NOTHING] if is_of_schedule(event) else None


def doubled(event: Event) -> list[Event] | None:
    return [event, event] if is_of_schedule(event) else None


def too_early(event: Event) -> list[Event] | None:
    return first_row(event, due_at=lambda at: at + 1)


def another_instant(event: Event) -> list[Event] | None:
    return first_row(event, scheduled_at=lambda at: at - 1)


def another_next(event: Event) -> list[Event] | None:
    return first_row(event, next_at=lambda at: at + 1)


def result_lost(event: Event) -> list[Event] | None:
    return [NOTHING] if isinstance(event, facts.AttemptsSucceeded) else None


def result_of_another_token(event: Event) -> list[Event] | None:
    if not isinstance(event, facts.AttemptsSucceeded):
        return None
    return [replace(event, tokens=[event.tokens[0] + 1, *event.tokens[1:]])]


def skipped(why: str, **changed: Any) -> Lie:
    """A stretch that was skipped for that reason has other fields; a number is added."""

    def lie(event: Event) -> list[Event] | None:
        if not isinstance(event, facts.ExecutionsSkipped) or event.reason != why or event.count < 2:
            return None
        fields = {
            name: value if isinstance(value, str) else getattr(event, name) + value
            for name, value in changed.items()
        }
        return [replace(event, **fields)]

    return lie


def forgotten(kind: type[Event]) -> Lie:
    """No event of that kind is told."""
    return lambda event: [] if isinstance(event, kind) else None


LIES: dict[str, tuple[Lie, str]] = {
    "an instant is dropped": (dropped, "is not the next instant"),
    "an instant runs twice": (doubled, "is open already"),
    "an instant runs before it is due": (too_early, "is due at"),
    "an instant that is none": (another_instant, "is not the next instant"),
    "the next instant is wrong": (another_next, "comes next at"),
    "a result is lost": (result_lost, "to the end"),
    "a result of another token": (result_of_another_token, "it does not run so"),
    "one too many is skipped": (skipped("misfire", count=1), "there are"),
    "the last one skipped is none": (skipped("paused", last_at=1), "there are"),
    "a misfire is called a pause": (skipped("misfire", reason="paused"), "for a pause that is none"),
    "a pause is called a misfire": (skipped("paused", reason="misfire"), "seen in time"),
    "a misfire is called an overlap": (skipped("misfire", reason="overlap"), "for an overlap"),
    "a pause is not on record": (forgotten(facts.JobPaused), "is resumed while it is active"),
    "a resume is not on record": (forgotten(facts.JobResumed), "while the job is paused"),
    "an edit is not on record": (forgotten(facts.JobEdited), "is not the next instant"),
    "a cancel is not on record": (forgotten(facts.JobCancelled), "has an instant that is not accounted for"),
    "what is made up for is not on record": (forgotten(facts.ExecutionsPlaced), "it should be scheduled"),
    "a calendar is not on record": (forgotten(facts.CalendarDeclared), "is not the next instant"),
}


@pytest.fixture(scope="module")
def told() -> list[Callable[[Judge], None]]:
    """What the judge of two months was told."""
    scribe = Scribe()
    Year(seed=5, jobs=80, days=DAYS, judge=scribe).run()
    assert scribe.faults == []
    return scribe.told


@pytest.mark.parametrize("what", LIES)
def test_the_judge_sees_that(what: str, told: list[Callable[[Judge], None]]) -> None:
    lie, says = LIES[what]
    judge = Misled(lie)
    for tell in told:
        tell(judge)
    judge.finish()
    assert any(says in fault for fault in judge.faults), judge.faults[:5]
