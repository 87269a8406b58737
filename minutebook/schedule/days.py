"""Which days match a cron rule. Days are numbered from 0 = 1970-01-01, a Thursday; no zone is known here."""

from bisect import bisect_right
from datetime import date

from minutebook.schedule.rule import YEAR_BASE, CronRule, highest, lowest, values_of
from minutebook.schedule.tzif import YEAR_END

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
# The last entry only closes the month before.
_MONTH_STARTS = tuple(
    date(year, month, 1).toordinal() - _EPOCH_ORDINAL
    for year in range(YEAR_BASE, YEAR_END + 1)
    for month in range(1, 13)
)
_MONTHS = len(_MONTH_STARTS) - 1
_WEEK = 0x7F
_EVERY_WEEK = sum(1 << 7 * week for week in range(6))
_BEFORE = tuple(((1 << weekday) - 1) * _EVERY_WEEK for weekday in range(7))
"""In each week, the weekdays before one."""
_SUNDAY, _SATURDAY = 0, 6


def next_day(rule: CronRule, day: int) -> int | None:
    """First matching day at or after `day`; None if none comes before the year 2200."""
    at = bisect_right(_MONTH_STARTS, day) - 1
    skipped = day - _MONTH_STARTS[at]
    while at < _MONTHS:
        days = _days_of_month(rule, at) >> skipped
        if days:
            return _MONTH_STARTS[at] + skipped + lowest(days)
        at, skipped = at + 1, 0
    return None


def previous_day(rule: CronRule, day: int) -> int | None:
    """Last matching day at or before `day`; None if there is none from 1969 on."""
    at = min(bisect_right(_MONTH_STARTS, day), _MONTHS) - 1
    while at >= 0:
        first = _MONTH_STARTS[at]
        days = _days_of_month(rule, at) & (2 << day - first) - 1
        if days:
            return first + highest(days)
        day, at = first - 1, at - 1
    return None


def count_days(rule: CronRule, first_day: int, end_day: int) -> int:
    """How many matching days there are from `first_day`, in 1969 or later, up to `end_day`, not included."""
    found, at = 0, bisect_right(_MONTH_STARTS, first_day) - 1
    while first_day < end_day:
        month_end = _MONTH_STARTS[at + 1]
        days = _days_of_month(rule, at) >> first_day - _MONTH_STARTS[at]
        if end_day < month_end:
            days &= (1 << end_day - first_day) - 1
        found += days.bit_count()
        first_day, at = month_end, at + 1
    return found


def _days_of_month(rule: CronRule, at: int) -> int:
    """Matching days of the month at `at` in the list of months; bit 0 is its first day."""
    if not (rule.months >> at % 12 + 1 & 1 and rule.years >> at // 12 & 1):
        return 0
    first = _MONTH_STARTS[at]
    length = _MONTH_STARTS[at + 1] - first
    weekday = (first + 4) % 7
    by_date = _by_date(rule, weekday, length)
    by_weekday = _by_weekday(rule, weekday, length)
    matching = by_date | by_weekday if rule.is_either_day else by_date & by_weekday
    return matching & (1 << length) - 1


def _by_date(rule: CronRule, weekday: int, length: int) -> int:
    """Days whose day of the month matches, in a month of `length` days that begins on `weekday`."""
    days = rule.days >> 1
    if not (rule.month_ends or rule.near_weekdays):
        return days
    for before_end in values_of(rule.month_ends):
        if before_end < length:
            days |= 1 << length - 1 - before_end
    for number in values_of(rule.near_weekdays):
        # 0 stands for the last day; a day that the month lacks is not moved into it.
        if number <= length:
            days |= 1 << _nearest_weekday(number or length, weekday, length) - 1
    return days


def _nearest_weekday(number: int, weekday: int, length: int) -> int:
    """The day from Monday to Friday that is nearest to day `number` of the month, in the same month."""
    there = (weekday + number - 1) % 7
    if there == _SATURDAY:
        return number - 1 if number > 1 else number + 2
    if there == _SUNDAY:
        return number + 1 if number < length else number - 2
    return number


def _by_weekday(rule: CronRule, weekday: int, length: int) -> int:
    """Days whose day of the week matches, in a month of `length` days that begins on `weekday`."""
    days = rule.weekdays * _EVERY_WEEK >> weekday
    if rule.last_weekdays:
        days |= (rule.last_weekdays * _EVERY_WEEK >> weekday) & _WEEK << length - 7
    if rule.nth_weekdays:
        # Weekdays before the first day's have their n-th day a week later than the others.
        later = rule.nth_weekdays & _BEFORE[weekday]
        days |= (rule.nth_weekdays ^ later) >> weekday | later << 7 - weekday
    return days
