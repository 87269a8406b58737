"""When a cron rule matches on the wall clock, which runs on evenly here: zones are applied by `instants`.

Wall clock seconds are counted from 1970-01-01T00:00:00 as if the wall clock were UTC.
"""

from minutebook.schedule.days import count_days, next_day, previous_day
from minutebook.schedule.rule import CronRule, highest, lowest

_DAY_S = 86_400


def next_wall_s(rule: CronRule, wall_s: int) -> int | None:
    """First wall clock second of `rule` at or after `wall_s`; None if none comes before the year 2200."""
    day, second = divmod(wall_s, _DAY_S)
    found = next_day(rule, day)
    if found == day:
        of_day = _next_of_day(rule, second)
        if of_day is not None:
            return day * _DAY_S + of_day
        found = next_day(rule, day + 1)
    if found is None:
        return None
    return found * _DAY_S + (lowest(rule.hours) * 60 + lowest(rule.minutes)) * 60 + lowest(rule.seconds)


def previous_wall_s(rule: CronRule, wall_s: int) -> int | None:
    """Last wall clock second of `rule` at or before `wall_s`; None if there is none from 1969 on."""
    day, second = divmod(wall_s, _DAY_S)
    found = previous_day(rule, day)
    if found == day:
        of_day = _previous_of_day(rule, second)
        if of_day is not None:
            return day * _DAY_S + of_day
        found = previous_day(rule, day - 1)
    if found is None:
        return None
    return found * _DAY_S + (highest(rule.hours) * 60 + highest(rule.minutes)) * 60 + highest(rule.seconds)


def count_wall(rule: CronRule, first_s: int, end_s: int) -> int:
    """How many wall clock seconds of `rule` there are from `first_s` up to `end_s`, not included."""
    if first_s >= end_s:
        return 0
    first_day, before_first = divmod(first_s, _DAY_S)
    last_day, before_end = divmod(end_s, _DAY_S)
    of_days = count_days(rule, first_day, last_day) * _count_of_day(rule, _DAY_S)
    return of_days + _count_before(rule, last_day, before_end) - _count_before(rule, first_day, before_first)


def _count_before(rule: CronRule, day: int, second: int) -> int:
    """How many seconds of `rule` this day has before `second` of the day."""
    return _count_of_day(rule, second) if second and count_days(rule, day, day + 1) else 0


def _count_of_day(rule: CronRule, second: int) -> int:
    """How many seconds before `second` of the day, up to the day's end, a matching day has."""
    of_day, of_minute = divmod(second, 60)
    hour, minute = divmod(of_day, 60)
    found = _below(rule.hours, hour) * rule.minutes.bit_count() * rule.seconds.bit_count()
    if rule.hours >> hour & 1:
        found += _below(rule.minutes, minute) * rule.seconds.bit_count()
        if rule.minutes >> minute & 1:
            found += _below(rule.seconds, of_minute)
    return found


def _below(bits: int, value: int) -> int:
    """How many values of a set are lower than `value`."""
    return (bits & (1 << value) - 1).bit_count()


def _next_of_day(rule: CronRule, second: int) -> int | None:
    """First second of the day at or after `second`."""
    of_day, of_minute = divmod(second, 60)
    hour, minute = divmod(of_day, 60)
    if rule.hours >> hour & 1:
        if rule.minutes >> minute & 1 and (seconds := rule.seconds >> of_minute):
            return second + lowest(seconds)
        if minutes := rule.minutes >> minute + 1:
            return (of_day + 1 + lowest(minutes)) * 60 + lowest(rule.seconds)
    if hours := rule.hours >> hour + 1:
        return ((hour + 1 + lowest(hours)) * 60 + lowest(rule.minutes)) * 60 + lowest(rule.seconds)
    return None


def _previous_of_day(rule: CronRule, second: int) -> int | None:
    """Last second of the day at or before `second`."""
    of_day, of_minute = divmod(second, 60)
    hour, minute = divmod(of_day, 60)
    if rule.hours >> hour & 1:
        if rule.minutes >> minute & 1 and (seconds := rule.seconds & (2 << of_minute) - 1):
            return of_day * 60 + highest(seconds)
        if minutes := rule.minutes & (1 << minute) - 1:
            return (hour * 60 + highest(minutes)) * 60 + highest(rule.seconds)
    if hours := rule.hours & (1 << hour) - 1:
        return (highest(hours) * 60 + highest(rule.minutes)) * 60 + highest(rule.seconds)
    return None
