"""The two day fields, which know more than values: `L`, `L-3`, `LW`, `15W` in the one, `5L`, `MON#1` in the other."""

import re
from typing import NamedTuple

from minutebook.schedule.fields import DAY, WEEKDAY, items_of, parse_item, parse_value

_BEFORE_END = re.compile(r"L(?:-(\d{1,3}))?", re.IGNORECASE)
_NEAR = re.compile(r"(\d+|L)W", re.IGNORECASE)
_LAST = re.compile(r"([0-9]+|[A-Z]{3})L", re.IGNORECASE)
_NTH = re.compile(r"([0-9]+|[A-Z]{3})#([1-5])", re.IGNORECASE)
_BEFORE_END_MAX = 30


class MonthDays(NamedTuple):
    """The day-of-month field; see the attributes of `CronRule` with these names."""

    days: int
    month_ends: int
    near_weekdays: int


class WeekDays(NamedTuple):
    """The day-of-week field; see the attributes of `CronRule` with these names."""

    weekdays: int
    last_weekdays: int
    nth_weekdays: int


def parse_month_days(text: str, job_key: str | None) -> MonthDays:
    """Days of the month that `text` names. Raises ScheduleError."""
    days = month_ends = near_weekdays = 0
    for item in items_of(DAY, text):
        if found := _BEFORE_END.fullmatch(item):
            month_ends |= 1 << _before_end(found, item)
        elif found := _NEAR.fullmatch(item):
            near_weekdays |= 1 << (0 if found[1] in "Ll" else parse_value(DAY, found[1], item))
        else:
            days |= parse_item(DAY, item, job_key)
    return MonthDays(days, month_ends, near_weekdays)


def _before_end(found: re.Match[str], item: str) -> int:
    if found[1] is None:
        return 0
    days = int(found[1])
    if not 1 <= days <= _BEFORE_END_MAX:
        raise DAY.refusal(f"{item!r} is not from L-1 to L-{_BEFORE_END_MAX}")
    return days


def parse_week_days(text: str, job_key: str | None) -> WeekDays:
    """Days of the week that `text` names. Raises ScheduleError."""
    weekdays = last_weekdays = nth_weekdays = 0
    for item in items_of(WEEKDAY, text):
        if found := _LAST.fullmatch(item):
            last_weekdays |= 1 << _weekday(found[1], item)
        elif found := _NTH.fullmatch(item):
            nth_weekdays |= 1 << 7 * (int(found[2]) - 1) + _weekday(found[1], item)
        else:
            weekdays |= parse_item(WEEKDAY, item, job_key)
    # Bit 7 is Sunday again.
    return WeekDays((weekdays | weekdays >> 7) & 0x7F, last_weekdays, nth_weekdays)


def _weekday(text: str, item: str) -> int:
    return parse_value(WEEKDAY, text, item) % 7
