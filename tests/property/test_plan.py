"""Plans against instants one by one, with dates asked of zoneinfo, and against a set of days."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from minutebook.ids import Instant
from minutebook.schedule import (
    CronRule,
    Dates,
    Every,
    Plan,
    instants_between,
    parse_cron,
    zone,
    zone_names,
)
from minutebook.schedule.dates import DayRange
from minutebook.schedule.zones import timeline
from tests.property.cron_walk import FOLDS, GAPS, JOB_KEY, LAST_S, MINUTE_CRONS, SECOND_CRONS, wall_at

DAY_S = 86_400
EPOCH = date(1970, 1, 1).toordinal()
DENSE = ("* * * * *", "*/5 * * * *", "* * * * * *", *SECOND_CRONS)
SPARSE = (
    *(cron for cron in MINUTE_CRONS if cron not in DENSE),
    "0 0 29 2 *",
    "30 0 2 ? 3-11/4 * 1999-2031/2",
)
# With clock changes at midnight, of half an hour, of two hours, of a whole day, around Ramadan, and one at 00:01.
ODD_ZONES = (
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Santiago",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Pacific/Apia",
    "Pacific/Kwajalein",
)


class Ranges(NamedTuple):
    """What `Dates` are made of."""

    excluded: list[DayRange]
    included: list[DayRange] | None

    def allow(self, day: int) -> bool:
        """By going through all of them."""
        return not _holds(self.excluded, day) and (self.included is None or _holds(self.included, day))


def _holds(ranges: list[DayRange], day: int) -> bool:
    return any(first <= day <= last for first, last in ranges)


class Case(NamedTuple):
    """A plan, the ranges of its dates, and what is asked of it."""

    plan: Plan
    ranges: Ranges | None
    after: int
    until: int


def is_left_in(case: Case, at: int) -> bool:
    """Whether start, end and dates allow `at`."""
    plan = case.plan
    if not (plan.start_at is None or plan.start_at <= at) or not (plan.end_at is None or at < plan.end_at):
        return False
    local = wall_at(at // 1000, zone(plan.zone)).toordinal() - EPOCH
    return case.ranges is None or case.ranges.allow(local)


def expected(case: Case) -> list[int]:
    """The instants of a case, each looked at on its own."""
    plan, (after, until) = case.plan, (Instant(case.after), Instant(case.until))
    if isinstance(plan.rule, CronRule):
        every = instants_between(plan.rule, plan.zone, after, until, 1 << 30, plan.gap, plan.fold)
        return [at for at in every if is_left_in(case, at)]
    repeats = range(plan.anchor_at, until + 1, plan.rule.interval_ms)
    return [at for at in repeats if at > after and is_left_in(case, at)]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Around a clock change for the most part, where bounds and dates are near, too."""
    zone_name: str = draw(st.sampled_from(ODD_ZONES) | st.sampled_from(sorted(zone_names())))
    starts = [start for start in timeline(zone_name).starts if DAY_S * 90 < start < LAST_S]
    middle_s: int = draw(st.sampled_from(starts) if starts else st.integers(DAY_S * 90, LAST_S))
    is_dense: bool = draw(st.booleans())
    reach_s = DAY_S if is_dense else 40 * DAY_S
    near_ms = st.integers((middle_s - reach_s) * 1000, (middle_s + reach_s) * 1000)
    near_ms |= st.sampled_from([(middle_s + step) * 1000 for step in (-3600, -60, -1, 0, 1, 60, 1800, 3600)])
    rule: CronRule | Every = (
        Every(draw(st.integers(60_000, reach_s * 250)))
        if draw(st.booleans())
        else parse_cron(draw(st.sampled_from(DENSE if is_dense else SPARSE)), JOB_KEY)
    )
    ranges = draw(st.none() | ranges_near(middle_s // DAY_S, reach_s // DAY_S + 1))
    plan = Plan(
        rule,
        zone_name,
        draw(st.sampled_from(GAPS)),
        draw(st.sampled_from(FOLDS)),
        anchor_at=draw(near_ms),
        start_at=draw(st.none() | near_ms),
        end_at=draw(st.none() | near_ms),
        dates=None if ranges is None else Dates(*ranges),
    )
    after, until = sorted((draw(near_ms), draw(near_ms)))
    return Case(plan, ranges, after, until)


@st.composite
def ranges_near(draw: st.DrawFn, day: int, reach: int) -> Ranges:
    days = st.tuples(st.integers(day - reach, day + reach), st.integers(0, 5)).map(
        lambda pair: (pair[0], sum(pair))
    )
    return Ranges(draw(st.lists(days, max_size=6)), draw(st.none() | st.lists(days, max_size=6)))


@settings(max_examples=400, deadline=None)
@given(cases(), st.integers(0, 20))
def test_plan_equals_its_instants_one_by_one(case: Case, limit: int) -> None:
    plan, after, until = case.plan, case.after, case.until
    instants = expected(case)
    assert list(plan.each(after, until)) == instants
    assert plan.latest(until, 1 << 30, after) == instants
    assert plan.between(after, until, limit) == instants[:limit]
    assert plan.latest(until, limit, after) == instants[len(instants) - min(limit, len(instants)) :]


@settings(max_examples=400, deadline=None)
@given(cases(), st.data())
def test_count_equals_the_instants_of_every_part(case: Case, data: st.DataObject) -> None:
    plan, after, until = case.plan, case.after, case.until
    instants = expected(case)
    assert plan.count(after, until) == len(instants)
    middle = data.draw(st.integers(after, until) | st.sampled_from(instants or [after]))
    before = sum(at <= middle for at in instants)
    assert (plan.count(after, middle), plan.count(middle, until)) == (before, len(instants) - before)
    assert plan.count(until, after) == 0 or after == until


@settings(max_examples=400, deadline=None)
@given(cases())
def test_next_and_previous_go_past_all_that_is_left_out(case: Case) -> None:
    plan, at = case.plan, case.after
    following, before = plan.next(at), plan.previous(at)
    if following is not None:
        assert following > at
        assert plan.allows(following)
        assert plan.count(at, following) == 1
        assert plan.previous(following + 1) == following
    if before is not None:
        assert before < at
        assert plan.allows(before)
        assert plan.count(before - 1, at - 1) == 1
        assert plan.next(before - 1) == before


@settings(max_examples=200, deadline=None)
@given(cases(), st.integers(-40 * DAY_S * 1000, 40 * DAY_S * 1000))
def test_plan_allows_what_start_end_and_dates_allow(case: Case, step_ms: int) -> None:
    at = max(case.after + step_ms, 0)
    assert case.plan.allows(at) == is_left_in(case, at)
