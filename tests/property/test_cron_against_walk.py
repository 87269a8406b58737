"""Instants of cron rules against the walk of `cron_walk`, and their laws."""

import random
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutebook.ids import Instant
from minutebook.schedule import (
    ANY_JOB,
    CronRule,
    DayMatch,
    Fold,
    Gap,
    instants_between,
    next_instant,
    parse_cron,
    previous_instant,
    zone_names,
)
from minutebook.schedule.description import describe
from minutebook.schedule.zones import timeline
from tests.property.cron_walk import (
    FOLDS,
    GAPS,
    JOB_KEY,
    LAST_S,
    MINUTE_CRONS,
    SECOND_CRONS,
    Change,
    changes,
    differences,
)

SAMPLE = 30
ALWAYS = (
    ("Pacific/Apia", "2011-12-30"),
    ("Australia/Lord_Howe", "2024-04-06"),
    ("Australia/Lord_Howe", "2024-10-05"),
    ("Europe/Berlin", "2024-03-31"),
    ("Europe/Berlin", "2024-10-27"),
    ("America/New_York", "2024-03-10"),
    ("Africa/Cairo", "2023-04-27"),
    ("Africa/Casablanca", "2024-04-14"),
    ("Asia/Pyongyang", "2018-05-04"),
    ("America/Caracas", "2007-12-09"),
)


# ---- around clock changes


def sample() -> list[Change]:
    """The changes of `ALWAYS`, by their UTC days, and a fixed sample of all others."""
    days = [(name, int(datetime.fromisoformat(day + "T00:00Z").timestamp())) for name, day in ALWAYS]
    fixed = [
        Change(name, start)
        for name, day_s in days
        for start in timeline(name).starts
        if 0 <= start - day_s < 2 * 86_400
    ]
    return fixed + random.Random(20_240_331).sample(changes(), SAMPLE)


@pytest.mark.parametrize("change", sample(), ids=str)
def test_instants_equal_the_walk_around_changes(change: Change) -> None:
    assert list(differences(change)) == []


def test_fixed_changes_are_there() -> None:
    assert len(sample()) == len(ALWAYS) + SAMPLE


# ---- laws

crons = st.one_of(
    # With a year there may be no next instant.
    st.sampled_from([cron for cron in MINUTE_CRONS + SECOND_CRONS if len(cron.split()) < 7]),
    st.builds(
        "{} {} {} {} {}".format,
        st.sampled_from(["*", "0", "30", "*/20", "0,29,59", "5-10"]),
        st.sampled_from(["*", "0", "1-3", "2", "*/3", "23"]),
        st.sampled_from(["*", "1", "29", "*/2", "28-31", "L", "LW,15W", "L-3"]),
        st.sampled_from(["*", "2", "3,10", "oct-dec"]),
        st.sampled_from(["*", "sun", "1-5", "*/2", "fri-7", "5L", "mon#1"]),
    ),
    st.builds(
        "{} {} 2 * * ?".format, st.sampled_from(["*", "*/7", "30"]), st.sampled_from(["*", "0", "H/20"])
    ),
)
zones = st.one_of(
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"]),
    st.sampled_from(sorted(zone_names())),
)
instants = st.integers(0, 4_102_444_800_000).map(Instant)


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, Instant]:
    """A zone and an instant, half of them within an hour or two of a change."""
    zone_name, at = draw(zones), draw(instants)
    starts = [start for start in timeline(zone_name).starts if 0 < start < LAST_S]
    is_near: bool = draw(st.booleans())
    if starts and is_near:
        start: int = draw(st.sampled_from(starts))
        step_ms: int = draw(st.integers(-7_200_000, 7_200_000))
        at = Instant(max(0, start * 1000 + step_ms))
    return zone_name, at


@settings(max_examples=400, deadline=None)
@given(crons, moments(), st.sampled_from(GAPS), st.sampled_from(FOLDS), st.floats(0, 1, exclude_max=True))
def test_next_is_later_and_the_same_from_between(
    cron: str, moment: tuple[str, Instant], gap: Gap, fold: Fold, part: float
) -> None:
    rule, (zone_name, after) = parse_cron(cron, JOB_KEY), moment
    found = next_instant(rule, zone_name, after, gap, fold)
    assert found is not None
    assert found > after
    between = Instant(after + int((found - after) * part))
    assert next_instant(rule, zone_name, between, gap, fold) == found
    assert next_instant(rule, zone_name, Instant(found - 1), gap, fold) == found


@settings(max_examples=200, deadline=None)
@given(crons, moments(), st.sampled_from(GAPS), st.sampled_from(FOLDS), st.integers(1, 20))
def test_between_equals_next_again_and_again(
    cron: str, moment: tuple[str, Instant], gap: Gap, fold: Fold, limit: int
) -> None:
    rule, (zone_name, at) = parse_cron(cron, JOB_KEY), moment
    until = Instant(at + 40 * 86_400_000)
    found = instants_between(rule, zone_name, at, until, limit, gap, fold)
    assert len(found) <= limit
    for due in found:
        following = next_instant(rule, zone_name, at, gap, fold)
        assert following == due
        at = due
    if len(found) < limit:
        last = next_instant(rule, zone_name, at, gap, fold)
        assert last is None or last > until


@settings(max_examples=400, deadline=None)
@given(crons, moments(), st.sampled_from(GAPS), st.sampled_from(FOLDS))
def test_previous_is_earlier_and_undoes_next(
    cron: str, moment: tuple[str, Instant], gap: Gap, fold: Fold
) -> None:
    rule, (zone_name, at) = parse_cron(cron, JOB_KEY), moment
    before = previous_instant(rule, zone_name, at, gap, fold)
    after = next_instant(rule, zone_name, at, gap, fold)
    assert after is not None
    if before is not None:
        assert before < at
        # What comes next after the one before is at `at` itself or the one after it.
        assert next_instant(rule, zone_name, before, gap, fold) in (at, after)
    assert previous_instant(rule, zone_name, after, gap, fold) in (at, before)
    assert previous_instant(rule, zone_name, Instant(after + 1), gap, fold) == after


# What begins as a field, so that more than the number of fields is tried.
items = st.one_of(
    st.text(alphabet="0123456789*/-,?LW#HR()janfrisu@=", max_size=6),
    st.sampled_from(["*", "L", "15W", "5L", "mon#1", "H", "H(0-7)", "H/15", "2026", "1-5", "*/2", "?"]),
)
texts = st.one_of(
    st.text(alphabet="0123456789*/-,?LW#HRjanfrisu \t@=", max_size=40),
    st.lists(items, min_size=5, max_size=7).map(" ".join),
)


@settings(max_examples=500, deadline=None)
@given(texts, st.sampled_from(["or", "and"]))
def test_any_text_is_a_rule_or_a_refusal(text: str, day_match: DayMatch) -> None:
    rule, refusal = _parsed(text, JOB_KEY, day_match)
    if rule is None:
        assert refusal.startswith("cron: ")
    else:
        assert all((rule.seconds, rule.minutes, rule.hours, rule.months, rule.years))
        assert rule.days or rule.month_ends or rule.near_weekdays
        assert rule.weekdays or rule.last_weekdays or rule.nth_weekdays
        assert next_instant(rule, "UTC", Instant(-1)) is not None
        assert describe(rule)
        # What one job may say, some job may say.
        assert _parsed(text, ANY_JOB, day_match)[0] is not None


def _parsed(text: str, job_key: str, day_match: DayMatch) -> tuple[CronRule | None, str]:
    try:
        return parse_cron(text, job_key, day_match), ""
    except ValueError as error:
        return None, str(error)


@given(
    st.sampled_from(["H H H H H", "H(5-9) H/6 H H *", "H H(0-7)/2 * * H(1-5)", "H H/15 3 H * *"]), st.text()
)
def test_hashed_values_are_among_those_of_any_job(cron: str, job_key: str) -> None:
    mine, any_job = parse_cron(cron, f"acme/{job_key}"), parse_cron(cron, ANY_JOB)
    for name in ("seconds", "minutes", "hours", "days", "months", "weekdays"):
        assert getattr(mine, name) & ~getattr(any_job, name) == 0
