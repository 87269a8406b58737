"""When a cron rule is due: from rule, zone and clock-change policy to instants.

A zone is cut into stretches of constant offset. Within one the wall clock runs on evenly, so the first matching wall
clock minute is found by arithmetic alone; gap and fold are decided where two stretches meet. Everything here is a pure
function of its arguments and the pinned tzdata; the time of day is never asked for.

`gap`: what becomes of wall clock times that a change leaves out. `run`: one instant at the gap's end, however many times
of the rule fell into it, and also if the rule names that end. `skip`: none.
`fold`: which pass of wall clock times that come twice is taken: `first`, `last` or `both`.
`auto`: a rule whose minute or hour field begins with `*` means elapsed time (`skip`, `both`); any other means a fixed
time of day (`run`, `first`), as in Debian's cron.
"""

from bisect import bisect_right
from datetime import date
from typing import Literal

from minutebook.errors import ScheduleError
from minutebook.ids import Instant
from minutebook.schedule.cron import CronRule
from minutebook.schedule.tzif import END_S, YEAR_END, Timeline
from minutebook.schedule.zones import timeline

Gap = Literal["auto", "run", "skip"]
Fold = Literal["auto", "first", "last", "both"]

INSTANT_MIN = Instant(0)
"""1970-01-01T00:00:00Z: the first instant that a rule can have."""
INSTANT_MAX = Instant(END_S * 1000)
"""2200-01-01T00:00:00Z: every instant of a rule is earlier."""

_DAY_S = 86_400
_FIRST_YEAR = 1969  # west of Greenwich the epoch is still a day of 1969
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
# Day number (0 = 1970-01-01) of the first day of each month; the last entry only closes the month before.
_MONTH_STARTS = tuple(
    date(year, month, 1).toordinal() - _EPOCH_ORDINAL
    for year in range(_FIRST_YEAR, YEAR_END + 1)
    for month in range(1, 13)
)
_EVERY_WEEK = sum(1 << 7 * week for week in range(6))


def next_instant(
    rule: CronRule, zone_name: str, after: Instant, gap: Gap = "auto", fold: Fold = "auto"
) -> Instant | None:
    """First instant of `rule` strictly later than `after`; None if none comes before `INSTANT_MAX`.

    `after` and the result are milliseconds since the epoch, UTC; an `after` before `INSTANT_MIN` counts as just before
    it. The fields are read on the wall clock of the zone called `zone_name`, at second 0 of the minute. Pure for one
    tzdata version. Raises ScheduleError (field `zone`, `gap` or `fold`). Source: the module's text for gap and fold.
    """
    is_run, resolved = _resolve(rule, gap, fold)
    found_s = _next_s(rule, timeline(zone_name), max(after // 1000 + 1, 0), is_run, resolved)
    return None if found_s is None else Instant(found_s * 1000)


def instants_between(
    rule: CronRule,
    zone_name: str,
    after: Instant,
    until: Instant,
    limit: int,
    gap: Gap = "auto",
    fold: Fold = "auto",
) -> list[Instant]:
    """Instants of `rule` with `after` < t <= `until`, ascending, the first `limit` at most.

    Units, purity and errors as in `next_instant`.
    """
    is_run, resolved = _resolve(rule, gap, fold)
    line = timeline(zone_name)
    found: list[Instant] = []
    start_s: int = max(after // 1000 + 1, 0)
    while len(found) < limit:
        found_s = _next_s(rule, line, start_s, is_run, resolved)
        if found_s is None or found_s * 1000 > until:
            break
        found.append(Instant(found_s * 1000))
        start_s = found_s + 1
    return found


def _resolve(rule: CronRule, gap: Gap, fold: Fold) -> tuple[bool, Fold]:
    """Whether a gap runs at its end, and the fold policy without `auto`."""
    if gap not in ("auto", "run", "skip"):
        raise ScheduleError("gap", "must be auto, run or skip")
    if fold not in ("auto", "first", "last", "both"):
        raise ScheduleError("fold", "must be auto, first, last or both")
    is_run = not rule.is_elapsed if gap == "auto" else gap == "run"
    if fold == "auto":
        fold = "both" if rule.is_elapsed else "first"
    return is_run, fold


def _next_s(rule: CronRule, line: Timeline, start_s: int, is_run: bool, fold: Fold) -> int | None:
    """First second of `rule` at or after `start_s`, None if there is none before `END_S`."""
    # From the stretch of the second before: if it ends here, this second may be the end of a gap that runs.
    at = bisect_right(line.starts, start_s - 1)
    while start_s < END_S:
        offset_s, next_offset_s, end_s = line.offsets[at], line.offsets[at + 1], line.starts[at]
        lower, upper = start_s + offset_s, end_s + offset_s
        if fold == "first" and at:
            # Wall clock times up to the end of the stretch before have been.
            lower = max(lower, line.starts[at - 1] + line.offsets[at - 1])
        elif fold == "last":
            # Those from the beginning of the next stretch on will come again.
            upper = min(upper, end_s + next_offset_s)
        wall = _next_wall_s(rule, lower)
        if wall is None:
            return None
        if wall < upper:
            return wall - offset_s
        if is_run and end_s + offset_s <= wall < end_s + next_offset_s:
            return end_s
        start_s, at = end_s, at + 1
    return None


def _next_wall_s(rule: CronRule, wall_s: int) -> int | None:
    """First wall clock second of `rule` at or after `wall_s`, both counted as if the wall clock were UTC."""
    day, minute = divmod(-(-wall_s // 60), 1440)
    found = _next_day(rule, day)
    if found == day:
        of_day = _next_minute(rule, minute)
        if of_day is not None:
            return day * _DAY_S + of_day * 60
        found = _next_day(rule, day + 1)
    if found is None:
        return None
    return found * _DAY_S + (_lowest(rule.hours) * 60 + _lowest(rule.minutes)) * 60


def _next_minute(rule: CronRule, minute: int) -> int | None:
    """First minute of the day at or after `minute`."""
    hour, of_hour = divmod(minute, 60)
    hours = rule.hours >> hour
    minutes = rule.minutes >> of_hour
    if hours & 1 and minutes:
        return minute + _lowest(minutes)
    hours >>= 1
    return (hour + 1 + _lowest(hours)) * 60 + _lowest(rule.minutes) if hours else None


def _next_day(rule: CronRule, day: int) -> int | None:
    """First matching day at or after `day`, both as day numbers; None beyond the last month known."""
    at = bisect_right(_MONTH_STARTS, day) - 1
    skipped = day - _MONTH_STARTS[at]
    while at < len(_MONTH_STARTS) - 1:
        if rule.months >> at % 12 + 1 & 1:
            first = _MONTH_STARTS[at]
            days = _days_of_month(rule, first, _MONTH_STARTS[at + 1] - first) >> skipped
            if days:
                return first + skipped + _lowest(days)
        at, skipped = at + 1, 0
    return None


def _days_of_month(rule: CronRule, first: int, length: int) -> int:
    """Matching days of the month that begins on day number `first`; bit 0 is its first day."""
    days = rule.days >> 1
    # Day number 0 was a Thursday.
    by_weekday = rule.weekdays * _EVERY_WEEK >> (first + 4) % 7
    matching = days | by_weekday if rule.is_either_day else days & by_weekday
    return matching & (1 << length) - 1


def _lowest(bits: int) -> int:
    """Number of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1
