"""Weeks in which jobs wait for permits, pauses and workers: `why` says of each wait what made it."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from minutebook.domain import events as facts
from minutebook.history.why import LATE_MS, Answer
from minutebook.ids import job_of
from minutebook.wire.frames import decode_frame
from replay.why import why_in
from tests.simulation.copies import CopiedLog
from tests.simulation.limited_weeks import (
    BY_NUMBER,
    CONCURRENCY_MAX,
    RATE_COUNT,
    RATE_PERIOD_MS,
    SECOND,
    LimitedWeeks,
    Run,
)
from tests.simulation.office import TENANT

SEEDS = (0, 1)
DAYS = 4
QUESTIONS = 4
"""Of each cause."""
AROUND_MS = 5 * SECOND
"""What changed so close to a wait's begin may not have been known everywhere."""
EVENTS = {
    "limit": facts.LimitCopied,
    "limit_paused": facts.LimitCopied,
    "permit_held": facts.ExecutionsGranted,
    "permit_out": facts.PermitsGranted,
    "permits_came": facts.PermitsReceived,
    "workers_busy": facts.SessionStarted,
}


def cause(weeks: LimitedWeeks, run: Run) -> str:
    """What made it wait, by what was made to happen; empty where two things meet."""
    at, settled_at = run.queued_at, run.queued_at + LATE_MS
    edges = [stretch.from_at for stretch in (*weeks.paused[run.limit], *weeks.concurrency, *weeks.idle)]
    edges += [stretch.to_at for stretch in (*weeks.paused[run.limit], *weeks.idle)]
    if any(abs(edge - at) < AROUND_MS for edge in edges):
        return ""
    if run.granted_at - at <= LATE_MS:
        return "none"
    if any(stretch.holds(at) for stretch in weeks.paused[run.limit]):
        return "paused"
    if any(stretch.holds(at) for stretch in weeks.idle):
        return "idle"
    if run.limit == BY_NUMBER:
        (bound,) = [stretch.value for stretch in weeks.concurrency if stretch.holds(at)]
        return "full" if len(holders(weeks, run)) >= bound else ""
    recent = [
        one
        for one in weeks.runs.values()
        if one.limit == run.limit and settled_at - RATE_PERIOD_MS < one.granted_at <= settled_at
    ]
    return "rate" if len(recent) >= RATE_COUNT else ""


def holders(weeks: LimitedWeeks, run: Run) -> set[str]:
    """What ran under its limit while it waited, once those that went before it did."""
    return {
        one.name
        for one in weeks.runs.values()
        if one.limit == run.limit and one.runs(run.queued_at + LATE_MS)
    }


def check(weeks: LimitedWeeks, log: CopiedLog, run: Run, what: str) -> None:
    answer = why_in(log, TENANT, job_of(run.name), run.due_at)
    codes = {reason.code for reason in answer.reasons}
    shown = (run, what, answer)
    limited = {"limit", "limit_paused", "permit_held", "permits_came"}
    if what == "none":
        assert not codes & (limited | {"workers_busy", "no_worker"}), shown
    elif what == "paused":
        assert "limit_paused" in codes, shown
    elif what == "idle":
        assert codes & {"workers_busy", "no_worker"}, shown
        assert "limit_paused" not in codes, shown
    else:
        assert "limit" in codes, shown
        assert not codes & {"limit_paused", "workers_busy", "no_worker"}, shown
        (limit,) = [reason for reason in answer.reasons if reason.code == "limit"]
        assert run.limit in limit.text, shown
        assert ("within" in limit.text) is (what == "rate"), shown
    if what == "full":
        assert named(answer) == holders(weeks, run), shown
        out = [int(reason.text.split(" ")[0]) for reason in answer.reasons if reason.code == "permit_out"]
        assert max(out, default=0) <= CONCURRENCY_MAX, shown
    for reason in answer.reasons:
        if reason.code in EVENTS:
            assert reason.event_id is not None, shown
            partition, offset, event, _ = map(int, reason.event_id.split("."))
            (record,) = log.read(partition, offset, offset + 1)
            assert isinstance(decode_frame(record.value).events[event], EVENTS[reason.code]), shown


def named(answer: Answer) -> set[str]:
    return {reason.text.split(" ")[0] for reason in answer.reasons if reason.code == "permit_held"}


@pytest.mark.parametrize("seed", SEEDS)
def test_each_wait_is_explained_by_what_made_it(seed: int) -> None:
    weeks = LimitedWeeks(seed, DAYS).run()
    log = CopiedLog(*(desk.records for desk in weeks.office.desks))
    by_cause: dict[str, list[Run]] = {}
    for run in weeks.runs.values():
        if run.granted_at >= 0:
            by_cause.setdefault(cause(weeks, run), []).append(run)
    found = Counter({what: len(runs) for what, runs in by_cause.items()})
    assert {"none", "paused", "idle", "full", "rate"} <= set(found), found
    assert found[""] < found.total() / 3, found
    chance = random.Random(seed)
    for what in sorted(set(by_cause) - {""}):
        for run in chance.sample(by_cause[what], min(QUESTIONS, found[what])):
            check(weeks, log, run, what)
