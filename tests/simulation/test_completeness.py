"""Every instant that definitions imply, found again in what owners wrote in simulated months; what is taken out is named."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from itertools import pairwise

import msgspec
import pytest

from minutebook.domain import events as facts
from minutebook.domain.events import Event
from minutebook.history.completeness import Completeness
from minutebook.history.ledger import MISSING, Range
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader, Taken
from minutebook.wire.frames import Frame
from tests.simulation.year.run import Year
from tests.simulation.year.schedules import DAY, START

DAYS = 60
WHOLE = Range(0, 1 << 62)
replace = msgspec.structs.replace


class KeptYear(Year):
    """A year whose records are kept."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, jobs=40, days=DAYS)
        self.kept: list[RawRecord] = []

    def _hand_over(self) -> None:
        self.kept += self.desk.records
        super()._hand_over()


@cache
def lived(seed: int) -> tuple[list[Frame], Counter[str]]:
    """Valid frames of two months, and what the judge counted."""
    year = KeptYear(seed)
    year.run()
    assert year.judge.faults == []
    reader, frames = FrameReader(), []
    for record in year.kept + year.desk.records:
        taken = reader.take(record)
        if isinstance(taken, Taken):
            frames.append(taken.frame)
    return frames, year.judge.instants()


def complete(frames: list[Frame], asked: Range = WHOLE) -> Completeness:
    found = Completeness(asked)
    for frame in frames:
        found.take(frame)
    found.finish()
    return found


def missing(found: Completeness) -> list[tuple[str, int]]:
    return [(job_id, one.at) for _, job_id, ledger in found.jobs_of(None) for one in ledger.missing]


def counts(found: Completeness) -> Counter[str]:
    total: Counter[str] = Counter()
    for _, _, ledger in found.jobs_of(None):
        total += ledger.counts
    return total


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_missing_and_all_is_counted_as_the_judge_counts(seed: int) -> None:
    frames, judged = lived(seed)
    found = complete(frames)
    assert missing(found) == []
    total = counts(found)
    assert total["ran"] == judged["run"] + judged["made up for"] + judged["held"]
    for reason in ("misfire", "overlap"):
        assert total[reason] == judged[reason]
    assert total["ran"] > 500


@pytest.mark.parametrize("seed", range(2))
def test_parts_of_the_time_add_up(seed: int) -> None:
    frames, _ = lived(seed)
    whole = counts(complete(frames))
    edges = [0, START + 7 * DAY, START + 30 * DAY + 1, 1 << 62]
    parts = [counts(complete(frames, Range(low, high - 1))) for low, high in pairwise(edges)]
    assert sum(parts, Counter()) == whole
    assert all(parts)


def taken_out(event: Event) -> tuple[Event | None, tuple[str, int] | None]:
    """The event without its first instant, and which that was; None for one that has none."""
    match event:
        case facts.ExecutionsQueued() | facts.ExecutionsDueGranted() if event.next_at[0] != -2:
            columns = {
                name: getattr(event, name)[1:]
                for name in event.__struct_fields__
                if name in facts_columns and getattr(event, name)
            }
            gone = event.executions[0].rpartition(":")[0], event.scheduled_at[0]
            return (replace(event, **columns) if event.executions[1:] else None), gone
        case facts.ExecutionsSkipped() if event.next_at != -2:
            return None, (event.job_id, event.first_at)
        case _:
            return event, None


facts_columns = {
    "tenant",
    "queue",
    "task",
    "executions",
    "versions",
    "scheduled_at",
    "due_at",
    "next_at",
    "attempts",
    "priorities",
    "session",
    "permits",
    "limit",
}


def is_followed(frames: list[Frame], number: int, job_id: str) -> bool:
    """Whether a later frame puts another instant of the job on record."""
    return any(
        job_id == execution.rpartition(":")[0]
        for frame in frames[number + 1 : number + 400]
        for event in frame.events
        if isinstance(event, facts.ExecutionsQueued | facts.ExecutionsDueGranted)
        for execution, next_at in zip(event.executions, event.next_at, strict=True)
        if next_at != -2
    )


def test_each_instant_that_is_taken_out_is_named() -> None:
    frames, _ = lived(0)
    chance, tries = random.Random(7), 0
    while tries < 12:
        number = chance.randrange(len(frames))
        for index, event in enumerate(frames[number].events):
            changed, gone = taken_out(event)
            if gone is None or not is_followed(frames, number, gone[0]):
                continue
            events = [*frames[number].events]
            events[index : index + 1] = [] if changed is None else [changed]
            altered = [*frames[:number], replace(frames[number], events=events), *frames[number + 1 :]]
            assert gone in missing(complete(altered)), (number, gone)
            tries += 1
            break


def test_a_stretch_with_another_count_is_named() -> None:
    frames, _ = lived(1)
    for number, frame in enumerate(frames):
        for index, event in enumerate(frame.events):
            if isinstance(event, facts.ExecutionsSkipped) and event.count > 2:
                events = [*frame.events]
                events[index] = replace(event, count=event.count - 1)
                altered = [*frames[:number], replace(frame, events=events), *frames[number + 1 :]]
                found = complete(altered)
                assert (event.job_id, event.first_at) in missing(found)
                assert counts(found)[MISSING] > 0
                return
    raise AssertionError("nothing was skipped")
