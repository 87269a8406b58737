"""Steps and stories from made logs: nothing that the log says of a job is left out, and everything has words."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import msgspec
import pytest

from minutebook.domain import events as facts
from minutebook.history.bodies import event_body
from minutebook.history.steps import KINDS, Step, Wanted, steps_of
from minutebook.history.story import WORDS, sentence
from minutebook.ids import job_of
from minutebook.wire.frames import Frame
from replay.frames import frames_of
from replay.story import home_of, steps_in, wanted_of
from tests.simulation.busy_log import BusyLog
from tests.simulation.copies import CopiedLog
from tests.simulation.log_maker import LogMaker, failure, pause, submit

SEEDS = range(4)


@cache
def busy(seed: int) -> CopiedLog:
    return CopiedLog(BusyLog(seed).run(400).records)


@cache
def frames(seed: int) -> list[Frame]:
    return list(frames_of(busy(seed), 0))


def subjects(seed: int) -> list[tuple[str, str]]:
    """Every (tenant, job id) that the log names in an event that makes jobs."""
    found = {
        (event.tenant, event.job_id): None
        for frame in frames(seed)
        for event in frame.events
        if isinstance(event, facts.JobSubmitted)
    }
    return list(found)


@cache
def stories(seed: int) -> dict[tuple[str, str], list[Step]]:
    return {
        subject: [step for frame in frames(seed) for step in steps_of(0, frame, Wanted(*subject))]
        for subject in subjects(seed)
    }


def rows_about_executions(frame: Frame) -> Counter[tuple[str, str, str]]:
    """(tenant, job id, event) of each row of a frame that names an execution by itself or in a column."""
    found: Counter[tuple[str, str, str]] = Counter()
    for event in frame.events:
        name = type(event).__name__
        if hasattr(event, "tenants") and hasattr(event, "executions"):
            for tenant, execution in zip(event.tenant, event.executions, strict=True):
                found[event.tenants[tenant], job_of(execution), name] += 1
        elif isinstance(event, facts.ExecutionsPlaced):
            found[event.tenant, event.job_id, name] += len(event.scheduled_at)
        elif getattr(event, "execution", "") and not isinstance(event, facts.AlertRaised):
            found[event.tenant, job_of(event.execution), name] += 1
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_every_row_about_an_execution_is_one_step_of_its_job(seed: int) -> None:
    expected: Counter[tuple[str, str, str]] = Counter()
    for frame in frames(seed):
        expected += rows_about_executions(frame)
    told: Counter[tuple[str, str, str]] = Counter()
    by_offset = {frame.offset: frame for frame in frames(seed)}
    for subject, steps in stories(seed).items():
        for step in steps:
            event = by_offset[step.place.offset].events[step.place.index]
            if step.execution and not isinstance(event, facts.AlertRaised):
                told[(*subject, type(event).__name__)] += 1
    assert told == expected


def test_every_kind_of_step_occurs_and_has_words() -> None:
    assert set(WORDS) == set(KINDS)
    seen = {step.kind for seed in SEEDS for steps in stories(seed).values() for step in steps}
    assert sorted(set(KINDS) - seen) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_is_a_sentence_and_json_and_has_a_place_of_its_own(seed: int) -> None:
    for (_, job_id), steps in stories(seed).items():
        assert steps[0].kind in ("submitted", "refused", "answered"), job_id
        assert len({step.event_id for step in steps}) == len(steps)
        assert [step.place.offset for step in steps] == sorted(step.place.offset for step in steps)
        for step in steps:
            text = sentence(step)
            assert text[0].isupper() or text[0].isdecimal()
            assert "None" not in text
            assert not re.search(r"(^|[ :(])-1\b", text)
            msgspec.json.encode(event_body(step))


def test_the_story_of_an_execution_is_a_part_of_its_jobs() -> None:
    for (tenant, job_id), steps in stories(1).items():
        executions = {step.execution for step in steps if step.execution}
        for name in sorted(executions)[:3]:
            own = [step for frame in frames(1) for step in steps_of(0, frame, wanted_of(tenant, name))]
            whole = {step.event_id for step in steps}
            assert {step.event_id for step in own} <= whole
            of_it = [step.event_id for step in steps if step.execution == name and step.kind != "alerted"]
            assert set(of_it) <= {step.event_id for step in own}, name
        assert job_id


def test_the_token_of_a_grant_is_that_of_its_place() -> None:
    for steps in stories(2).values():
        tokens = {step.place.token for step in steps if step.kind in ("granted", "due_granted")}
        ended = {step.said["token"] for step in steps if step.kind in ("succeeded", "failed", "lost")}
        assert ended <= tokens


def test_a_story_reads_as_people_talk() -> None:
    maker = LogMaker()
    maker.open()
    maker.command(submit("nightly", cron="* * * * *", actor="key:a via cli from 10.0.0.1"))
    maker.clock.advance(60_000)
    maker.due("w1.1")
    (held,) = maker.running()
    maker.clock.advance(1_500)
    maker.report(failure(held))
    maker.command(pause("nightly", issued_at=maker.clock.now(), reason="the feed is broken"))
    texts = [sentence(step) for step in steps_in(CopiedLog(maker.records), Wanted("acme", "nightly"))]
    assert [text.split(";")[0].split(" at 2")[0] for text in texts] == [
        "The job was created by key:a via cli from 10.0.0.1 as version 1: task t on queue default, by "
        "'* * * * *' in UTC",
        "Attempt 1 of version 1 came due",
        "Attempt 1 failed on w1.1: ValueError: no",
        "Paused: the feed is broken",
    ]


def test_whose_story_is_found_by_the_id() -> None:
    assert wanted_of("acme", "a") == Wanted("acme", "a")
    assert wanted_of("acme", "a:5") == Wanted("acme", "a", "a:5")
    assert wanted_of("acme", "a:rx") == Wanted("acme", "a", "a:rx")
    log = CopiedLog([], [], [], [])
    assert 0 <= home_of(log, Wanted("acme", "a")) < 4
