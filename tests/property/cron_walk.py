"""Instants of cron rules by a second, dumb implementation.

It goes through UTC in steps of a minute or of 15 seconds, asks zoneinfo for the wall clock, and compares it with the
values of each field, read by a parser of its own that knows valid expressions alone. It shares no code with the product
but the loading of zones.
"""

import hashlib
from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import product
from typing import NamedTuple

from minutebook.ids import Instant
from minutebook.schedule import (
    CronRule,
    DayMatch,
    Fold,
    Gap,
    Plan,
    instants_between,
    parse_cron,
    previous_instant,
    zone,
    zone_names,
)
from minutebook.schedule.zones import timeline

JOB_KEY = "acme/nightly"
MINUTE_CRONS = (
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
    "30 2 L * *",
    "*/30 1-3 L-3,L-1,15 * *",
    "0 1 LW * *",
    "20 0-4 1W,15W,29W,31W * *",
    "30 2 * * 0L",
    "*/20 0,2 ? * sun#1,6#5,5L,tue",
    "15 2 13 * 5#2",
    "0 1,2,3 1-7 * ?",
    "H * * * *",
    "H H(0-4) * * *",
    "H/20 H(0-3)/2 * * *",
    "0 30 2 * * ? 2001/3",
    "0 0 2,3 L,1 3,4,10,11 ? 2004-2020,2030",
    "@daily",
)
SECOND_CRONS = (
    "*/15 * * * * *",
    "*/30 * * * * *",
    "15 30 2 * * *",
    "*/15 59,0 1-3 * * *",
    "45 */20 * * * ?",
    "0,30 */5 2 * * 0 2005-2030/5",
)
GAPS: tuple[Gap, ...] = ("auto", "run", "skip")
FOLDS: tuple[Fold, ...] = ("auto", "first", "last", "both")
DAY_MATCHES: tuple[DayMatch, ...] = ("or", "and")
FIRST_S = int(datetime(2000, 1, 1, tzinfo=UTC).timestamp())
LAST_S = int(datetime(2038, 1, 1, tzinfo=UTC).timestamp())
POLICIES: tuple[tuple[Gap, Fold], ...] = (("auto", "auto"), *product(GAPS[1:], FOLDS[1:]))
# A gap takes no time, and no fold since 2000 is longer than 3 hours.
AROUND_S = 6 * 3600
AROUND_BY_SECONDS_S = 2 * 3600
NEAR_S = 2 * 86_400


class Moment(NamedTuple):
    """One step of UTC and what the wall clock shows then."""

    utc_s: int
    wall: datetime
    is_second_pass: bool
    comes_again: bool
    left_out: tuple[datetime, ...]
    """Wall clock steps between the moment before and this one that never came."""


class Change(NamedTuple):
    """A clock change of one zone, in seconds of UTC."""

    zone_name: str
    start_s: int


def changes() -> list[Change]:
    """Every clock change from 2000 to 2037 of every zone; one of those that have the same shape: they look the same on
    the wall clock, but for the year.
    """
    found: dict[object, Change] = {}
    for name in sorted(zone_names()):
        line = timeline(name)
        offsets = [(start, line.offset_at(start - 1), line.offset_at(start)) for start in line.starts]
        for start in line.starts:
            if FIRST_S <= start < LAST_S:
                near = [
                    (at - start, later - before) for at, before, later in offsets if abs(at - start) < NEAR_S
                ]
                wall = datetime.fromtimestamp(start + line.offset_at(start - 1), UTC)
                date = (wall.month, wall.day, wall.weekday(), last_day(wall), wall.time())
                found.setdefault((date, tuple(near)), Change(name, start))
    return list(found.values())


# ---- the walk


def walked(zone_name: str, start_s: int, end_s: int, step_s: int) -> list[Moment]:
    """Every step from `start_s` up to `end_s`, not included."""
    there, moments = zone(zone_name), []
    before = wall_at(start_s - step_s, there)
    for utc_s in range(start_s, end_s, step_s):
        wall = wall_at(utc_s, there)
        naive, last = wall.replace(tzinfo=None, fold=0), before.replace(tzinfo=None, fold=0)
        missing = max(0, int((naive - last).total_seconds()) // step_s - 1)
        left_out = tuple(last + timedelta(seconds=n * step_s) for n in range(1, missing + 1))
        twice = wall.replace(fold=0).utcoffset() != wall.replace(fold=1).utcoffset()
        moments.append(Moment(utc_s, naive, wall.fold == 1, twice and wall.fold == 0, left_out))
        before = wall
    return moments


def wall_at(utc_s: int, there: tzinfo) -> datetime:
    """What the clock there shows."""
    return datetime.fromtimestamp(utc_s, UTC).astimezone(there)


class Fields:
    """A valid expression. `match` says whether a wall clock time is one of its times."""

    def __init__(self, cron: str, day_match: str = "or", job_key: str = JOB_KEY) -> None:
        texts = cron.lower().replace("@daily", "0 0 * * *").split()
        if len(texts) == 5:
            texts = ["0", *texts]
        second, minute, hour, day, month, weekday, year = [*texts, "*"][:7]
        for number, name in enumerate(MONTHS, 1):
            month = month.replace(name, str(number))
        for number, name in enumerate(WEEKDAYS):
            weekday = weekday.replace(name, str(number))
        self.seconds = values_of(second, 0, 59, "second", job_key)
        self.minutes = values_of(minute, 0, 59, "minute", job_key)
        self.hours = values_of(hour, 0, 23, "hour", job_key)
        self.months = values_of(month, 1, 12, "month", job_key)
        self.years = values_of(year, 1970, 2199, "year")
        self.day_tests = [day_test(item) for item in day.split(",")]
        self.weekday_tests = [weekday_test(item) for item in weekday.split(",")]
        self.either = day_match == "or" and day[0] not in "*?" and weekday[0] not in "*?"
        self.elapsed = minute[0] == "*" or hour[0] == "*"

    def match(self, wall: datetime) -> bool:
        """Whether the expression names this wall clock time."""
        return (
            wall.minute in self.minutes
            and wall.second in self.seconds
            and wall.hour in self.hours
            and wall.month in self.months
            and wall.year in self.years
            and self.match_day(wall)
        )

    def match_day(self, wall: datetime) -> bool:
        """Whether the two day fields name this day."""
        by_day = any(test(wall) for test in self.day_tests)
        by_weekday = any(test(wall) for test in self.weekday_tests)
        return by_day or by_weekday if self.either else by_day and by_weekday


MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
Test = Callable[[datetime], bool]


def values_of(text: str, low: int, high: int, name: str, job_key: str = JOB_KEY) -> set[int]:
    found: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        if span.startswith("h"):
            found.update(hashed_values(span, step, low, high, f"{name} {job_key}"))
            continue
        first, _, last = span.replace("*", f"{low}-{high}").partition("-")
        found.update(range(int(first), int(last or (high if step else first)) + 1, int(step or 1)))
    return found


def hashed_values(span: str, step: str, low: int, high: int, hashed: str) -> list[int]:
    if span != "h":
        low, high = (int(number) for number in span[2:-1].split("-"))
    number = int(hashlib.sha256(hashed.encode()).hexdigest()[:16], 16)
    if not step:
        return [low + number % (high - low + 1)]
    return list(range(low + number % int(step), high + 1, int(step)))


def day_test(item: str) -> Test:
    """Whether a day is one of an item of the day-of-month field."""
    if item == "?":
        return lambda wall: True
    if item == "lw":
        return lambda wall: wall.day == max(weekdays_of(wall))
    if item.startswith("l"):
        return lambda wall: wall.day == last_day(wall) - int(item[2:] or 0)
    if item.endswith("w"):
        return lambda wall: (
            int(item[:-1]) <= last_day(wall)
            and wall.day == min(weekdays_of(wall), key=lambda day: abs(day - int(item[:-1])))
        )
    days = values_of(item, 1, 31, "day-of-month")
    return lambda wall: wall.day in days


def weekday_test(item: str) -> Test:
    """Whether a day is one of an item of the day-of-week field."""
    if item == "?":
        return lambda wall: True
    if "#" in item:
        return lambda wall: weekday_of(wall) == int(item[0]) % 7 and (wall.day + 6) // 7 == int(item[2])
    if item.endswith("l"):
        return lambda wall: weekday_of(wall) == int(item[0]) % 7 and wall.day + 7 > last_day(wall)
    weekdays = {value % 7 for value in values_of(item, 0, 6, "day-of-week")}
    return lambda wall: weekday_of(wall) in weekdays


def weekday_of(wall: datetime) -> int:
    return wall.isoweekday() % 7


def last_day(wall: datetime) -> int:
    return monthrange(wall.year, wall.month)[1]


def weekdays_of(wall: datetime) -> list[int]:
    days = range(1, last_day(wall) + 1)
    return [day for day in days if wall.replace(day=day).isoweekday() <= 5]


class Hit(NamedTuple):
    """A moment at which the rule matches, or at which a gap ends that it matched."""

    moment: Moment
    is_match: bool
    is_late: bool


def hits(fields: Fields, moments: list[Moment]) -> list[Hit]:
    """Moments that matter to an expression."""
    every = (Hit(at, fields.match(at.wall), any(map(fields.match, at.left_out))) for at in moments)
    return [hit for hit in every if hit.is_match or hit.is_late]


def expected(fields: Fields, found: list[Hit], gap: Gap, fold: Fold) -> Iterator[int]:
    """Instants in seconds, ascending."""
    if gap == "auto":
        gap = "skip" if fields.elapsed else "run"
    if fold == "auto":
        fold = "both" if fields.elapsed else "first"
    for moment, is_match, is_late in found:
        dropped = (fold == "first" and moment.is_second_pass) or (fold == "last" and moment.comes_again)
        if (gap == "run" and is_late) or (is_match and not dropped):
            yield moment.utc_s


# ---- the comparison


class Case(NamedTuple):
    """What is walked: expressions, how far around a change, in which steps."""

    crons: tuple[str, ...]
    around_s: int
    step_s: int


CASES = (
    Case(MINUTE_CRONS, AROUND_S, 60),
    # The walk sees every 15th second alone, and these expressions name no other.
    Case(SECOND_CRONS, AROUND_BY_SECONDS_S, 15),
)


def differences(change: Change) -> Iterator[str]:
    """Where the product's next or previous instants around a change, or their number, are not those of the walk."""
    for case in CASES:
        start_s, end_s = change.start_s - case.around_s, change.start_s + case.around_s
        moments = walked(change.zone_name, start_s, end_s, case.step_s)
        for cron, day_match in product(case.crons, DAY_MATCHES):
            fields = Fields(cron, day_match)
            if day_match == "and" and not Fields(cron).either:
                continue  # the same rule
            matching = hits(fields, moments)
            rule = parse_cron(cron, JOB_KEY, day_match)
            for gap, fold in POLICIES:
                right = list(expected(fields, matching, gap, fold))
                name = f"{change} {cron!r} {day_match} {gap} {fold}"
                for direction, found in answers(rule, change.zone_name, start_s, end_s, gap, fold):
                    if found != right:
                        yield f"{name} {direction}: {sorted(set(found) ^ set(right))}"
                plan = Plan(rule, change.zone_name, gap, fold)
                count = plan.count(start_s * 1000 - 1, end_s * 1000 - 1)
                if count != len(right):
                    yield f"{name} count: {count}, not {len(right)}"


def answers(
    rule: CronRule, zone_name: str, start_s: int, end_s: int, gap: Gap, fold: Fold
) -> Iterator[tuple[str, list[int]]]:
    """The product's instants from `start_s` up to `end_s`, not included: forwards, and backwards turned round."""
    after, until = Instant(start_s * 1000 - 1), Instant(end_s * 1000 - 1)
    yield "next", [at // 1000 for at in instants_between(rule, zone_name, after, until, 10_000, gap, fold)]
    back: list[int] = []
    before = Instant(end_s * 1000)
    while (found := previous_instant(rule, zone_name, before, gap, fold)) is not None and found > after:
        back.append(found // 1000)
        before = found
    yield "previous", back[::-1]
