"""Instants of cron rules against a second, dumb implementation.

The walk goes through every UTC minute around a clock change, asks zoneinfo for the wall clock, and compares it with the
values of each field, read by a parser of its own. It shares no code with the product but the loading of zones.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

import pytest
from croniter import croniter  # type: ignore[import-untyped]  # the package has no types
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from minutebook.ids import Instant
from minutebook.schedule import (
    INSTANT_MAX,
    CronRule,
    Fold,
    Gap,
    instants_between,
    next_instant,
    parse_cron,
    zone,
    zone_names,
)
from minutebook.schedule.zones import timeline

CRONS = (
    "* * * * *",
    "*/5 * * * *",
    "*/7 2 * * *",
    "0 */2 * * *",
    "30 * * * *",
    "0 0 * * *",
    "15 0 * * *",
    "0 1 * * *",
    "30 1 * * *",
    "59 1 * * *",
    "0 2 * * *",
    "30 2 * * *",
    "0,15,30 2 * * *",
    "0 3 * * *",
    "10-50/20 23,0-3 * * *",
    "45 23 * * sun,5",
    "30 2 * * 0",
    "0 9 * * 1-5",
    "5 0-3 1,30,31 * 6",
    "0 0 */2 3,4,9-11 *",
    "20 12/1 30 dec *",
    "1 0 28-31 * *",
)
GAPS: tuple[Gap, ...] = ("auto", "run", "skip")
FOLDS: tuple[Fold, ...] = ("auto", "first", "last", "both")
FIRST_S = int(datetime(2000, 1, 1, tzinfo=UTC).timestamp())
LAST_S = int(datetime(2038, 1, 1, tzinfo=UTC).timestamp())
AROUND_S = 14 * 3600  # a gap takes no time, and no fold since 2000 is longer than 3 hours
POLICIES: tuple[tuple[Gap, Fold], ...] = (
    ("auto", "auto"),
    ("run", "first"),
    ("run", "last"),
    ("run", "both"),
    ("skip", "first"),
    ("skip", "last"),
    ("skip", "both"),
)
SAMPLE = 60
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


class Minute(NamedTuple):
    """One UTC minute and what the wall clock shows in it."""

    utc_s: int
    wall: datetime
    is_second_pass: bool
    comes_again: bool
    left_out: tuple[datetime, ...]
    """Wall clock minutes between the minute before and this one that never came."""


# ---- the walk


def walked(zone_name: str, start_s: int, end_s: int) -> list[Minute]:
    there, minutes = zone(zone_name), []
    before = wall_at(start_s - 60, there)
    for utc_s in range(start_s, end_s, 60):
        wall = wall_at(utc_s, there)
        naive, last = wall.replace(tzinfo=None, fold=0), before.replace(tzinfo=None, fold=0)
        missing = max(0, int((naive - last).total_seconds()) // 60 - 1)
        left_out = tuple(last + timedelta(minutes=n) for n in range(1, missing + 1))
        twice = wall.replace(fold=0).utcoffset() != wall.replace(fold=1).utcoffset()
        minutes.append(Minute(utc_s, naive, wall.fold == 1, twice and wall.fold == 0, left_out))
        before = wall
    return minutes


def wall_at(utc_s: int, there: tzinfo) -> datetime:
    return datetime.fromtimestamp(utc_s, UTC).astimezone(there)


class Fields:
    def __init__(self, cron: str) -> None:
        minute, hour, day, month, weekday = cron.split()
        self.minutes = field_values(minute, 0, 59)
        self.hours = field_values(hour, 0, 23)
        self.days = field_values(day, 1, 31)
        self.months = field_values(month.replace("dec", "12"), 1, 12)
        self.weekdays = {value % 7 for value in field_values(weekday.replace("sun", "0"), 0, 6)}
        self.either = day[0] not in "*?" and weekday[0] not in "*?"
        self.elapsed = minute[0] == "*" or hour[0] == "*"

    def match(self, wall: datetime) -> bool:
        if wall.minute not in self.minutes or wall.hour not in self.hours or wall.month not in self.months:
            return False
        by_day, by_weekday = wall.day in self.days, wall.isoweekday() % 7 in self.weekdays
        return by_day or by_weekday if self.either else by_day and by_weekday


def field_values(text: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.replace("*", f"{low}-{high}").partition("-")
        found.update(range(int(first), int(last or (high if step else first)) + 1, int(step or 1)))
    return found


class Hit(NamedTuple):
    """A minute in which the rule matches, or in which a gap ends that it matched."""

    minute: Minute
    is_match: bool
    is_late: bool


def hits(fields: Fields, minutes: list[Minute]) -> list[Hit]:
    every = (Hit(at, fields.match(at.wall), any(map(fields.match, at.left_out))) for at in minutes)
    return [hit for hit in every if hit.is_match or hit.is_late]


def expected(fields: Fields, found: list[Hit], gap: Gap, fold: Fold) -> Iterator[int]:
    if gap == "auto":
        gap = "skip" if fields.elapsed else "run"
    if fold == "auto":
        fold = "both" if fields.elapsed else "first"
    for minute, is_match, is_late in found:
        dropped = (fold == "first" and minute.is_second_pass) or (fold == "last" and minute.comes_again)
        if (gap == "run" and is_late) or (is_match and not dropped):
            yield minute.utc_s


# ---- around clock changes


def changes() -> list[tuple[str, int]]:
    """The fixed changes and a fixed sample of the others, as zone name and UTC second."""
    every = [
        (name, start)
        for name in sorted(zone_names())
        for start in timeline(name).starts
        if FIRST_S <= start < LAST_S and start % 60 == 0
    ]
    fixed = [(name, int(datetime.fromisoformat(day + "T00:00Z").timestamp())) for name, day in ALWAYS]
    return fixed + random.Random(20_240_331).sample(every, SAMPLE)


@pytest.mark.parametrize(("zone_name", "change_s"), changes())
def test_instants_equal_the_walk_around_changes(zone_name: str, change_s: int) -> None:
    start_s, end_s = change_s - AROUND_S, change_s + AROUND_S
    after, until = Instant(start_s * 1000 - 1), Instant(end_s * 1000 - 1)
    minutes = walked(zone_name, start_s, end_s)
    for cron in CRONS:
        rule, fields = parse_cron(cron), Fields(cron)
        matching = hits(fields, minutes)
        for gap, fold in POLICIES:
            found = instants_between(rule, zone_name, after, until, 10_000, gap, fold)
            assert [at // 1000 for at in found] == list(expected(fields, matching, gap, fold)), (
                cron,
                gap,
                fold,
            )


# ---- laws

crons = st.one_of(
    st.sampled_from(CRONS),
    st.builds(
        "{} {} {} {} {}".format,
        st.sampled_from(["*", "0", "30", "*/20", "0,29,59", "5-10"]),
        st.sampled_from(["*", "0", "1-3", "2", "*/3", "23"]),
        st.sampled_from(["*", "1", "29", "*/2", "28-31"]),
        st.sampled_from(["*", "2", "3,10", "oct-dec"]),
        st.sampled_from(["*", "sun", "1-5", "*/2", "fri-7"]),
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
    rule, (zone_name, after) = parse_cron(cron), moment
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
    rule, (zone_name, at) = parse_cron(cron), moment
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


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789*/-,?LW#HRjanfrisu \t@=", max_size=40))
def test_any_text_is_a_rule_or_a_refusal(text: str) -> None:
    rule, refusal = _parsed(text)
    if rule is None:
        assert refusal.startswith("cron: ")
    else:
        assert all((rule.minutes, rule.hours, rule.days, rule.months, rule.weekdays))
        assert next_instant(rule, "UTC", Instant(0)) is not None


def _parsed(text: str) -> tuple[CronRule | None, str]:
    try:
        return parse_cron(text), ""
    except ValueError as error:
        return None, str(error)


# ---- other libraries, where no clock changes

START = datetime(2024, 6, 1, tzinfo=UTC)
COUNT = 40
EITHER = "croniter takes a day that matches either field although one begins with *"
CRONITER_DIFFERS = {"0 0 13 * */5": EITHER, "0 0 */2 * 1": EITHER}
LIBRARY_CRONS = (
    *CRONS,
    "0 0 1 * mon",
    "0 0 13 * */5",
    "0 0 */2 * 1",
    "0 0 * * 7",
    "0 0 29 2 *",
    "0 0 * jan,JUL mon-fri",
    "5/20 9-17/4 1,15 2-12/5 *",
)


def upcoming(cron: str) -> list[datetime]:
    start = Instant(int(START.timestamp() * 1000))
    found = instants_between(parse_cron(cron), "UTC", start, INSTANT_MAX, COUNT)
    return [datetime.fromtimestamp(at / 1000, UTC) for at in found]


@pytest.mark.parametrize("cron", LIBRARY_CRONS)
def test_cronsim_agrees_in_utc(cron: str) -> None:
    theirs = CronSim(cron, START)
    assert upcoming(cron) == [next(theirs) for _ in range(COUNT)]


@pytest.mark.parametrize("cron", LIBRARY_CRONS)
def test_croniter_agrees_in_utc_but_where_listed(cron: str) -> None:
    theirs = croniter(cron, START, ret_type=datetime)
    is_equal = upcoming(cron) == [theirs.get_next() for _ in range(COUNT)]
    assert is_equal == (cron not in CRONITER_DIFFERS)
