"""A schedule in plain English, for people who check one. It is told from the values, not from the text, so
that what it says is what the rule does.
"""

from collections.abc import Sequence
from itertools import pairwise

from minutebook.schedule.every import Every
from minutebook.schedule.rule import EVERY_DAY, EVERY_WEEKDAY, EVERY_YEAR, YEAR_BASE, CronRule, values_of

_TIMES_MAX = 4
_SPELLED_MAX = 6
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_EVERY_MONTH = 0x1FFE


def describe(rule: CronRule | Every, jitter_ms: int = 0) -> str:
    """One sentence without a full stop: when in the day, on which days, in which months and years; or how often.

    `jitter_ms`: by how much an instant may be due later.
    """
    text = f"Every {_length(rule.interval_ms)}" if isinstance(rule, Every) else _sentence(rule)
    return f"{text}, each up to {_length(jitter_ms)} later" if jitter_ms else text


def _length(ms: int) -> str:
    """A duration in days, hours, minutes and seconds."""
    days, rest = divmod(ms, 86_400_000)
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    counts = (days, "day"), (hours, "hour"), (minutes, "minute"), (rest / 1000, "second")
    return " ".join(f"{count:g} {unit}{'' if count == 1 else 's'}" for count, unit in counts if count)


def _sentence(rule: CronRule) -> str:
    parts = [_times(rule), _days(rule)]
    if rule.months != _EVERY_MONTH:
        parts.append("in " + _joined([_MONTHS[month - 1] for month in values_of(rule.months)]))
    if rule.years != EVERY_YEAR:
        years = [YEAR_BASE + year for year in values_of(rule.years)]
        parts.append(f"in {'the years ' if len(years) > 1 else ''}{_numbers(years)}")
    text = ", ".join(part for part in parts if part)
    return text[0].upper() + text[1:]


def _times(rule: CronRule) -> str:
    seconds, minutes, hours = values_of(rule.seconds), values_of(rule.minutes), values_of(rule.hours)
    if len(seconds) * len(minutes) * len(hours) <= _TIMES_MAX:
        return "at " + _joined([_time(h, m, s) for h in hours for m in minutes for s in seconds])
    parts: list[str] = []
    if seconds != [0]:
        parts.append(_of_sixty(seconds, "second"))
    if not (len(minutes) == 60 and parts):
        parts.append(_of_sixty(minutes, "minute"))
    if len(hours) < 24:
        parts.append(_hours(hours))
    elif len(minutes) == 1:
        parts.append("of every hour")
    return " ".join(parts)


def _time(hour: int, minute: int, second: int) -> str:
    return f"{hour:02}:{minute:02}" + (f":{second:02}" if second else "")


def _of_sixty(values: list[int], unit: str) -> str:
    """Seconds of a minute or minutes of an hour."""
    step = _step(values)
    if len(values) == 60:
        return f"every {unit}"
    if step > 1 and values[0] < step and values[-1] + step > 59:
        offset = f" from {unit} {values[0]}" if values[0] else ""
        return f"every {step} {unit}s{offset}"
    return f"at {unit}{'s' if len(values) > 1 else ''} {_numbers(values)}"


def _hours(hours: list[int]) -> str:
    step = _step(hours)
    if step > 1 and hours[0] == 0 and hours[-1] + step > 23:
        return f"of every {_ORDINALS[step - 1] if step <= len(_ORDINALS) else f'{step}th'} hour from 00:00"
    return f"of hour{'s' if len(hours) > 1 else ''} {_numbers(hours)}"


def _days(rule: CronRule) -> str:
    by_date, by_weekday = _by_date(rule), _by_weekday(rule)
    if by_date and by_weekday:
        return (
            f"on {by_date} or on {by_weekday}"
            if rule.is_either_day
            else f"on {by_date} if it is {by_weekday}"
        )
    if rule.is_either_day:  # one of the fields names every day
        return ""
    return f"on {by_date or by_weekday}" if by_date or by_weekday else ""


def _by_date(rule: CronRule) -> str:
    """Empty where every day of the month matches."""
    if rule.days == EVERY_DAY:
        return ""
    parts: list[str] = []
    if numbers := values_of(rule.days):
        parts.append(f"day{'s' if len(numbers) > 1 else ''} {_numbers(numbers)}")
    for days in values_of(rule.month_ends):
        parts.append(f"day {days} before the last one" if days else "the last day")
    for day in values_of(rule.near_weekdays):
        parts.append(f"the weekday nearest to day {day}" if day else "the last weekday (Monday to Friday)")
    return _joined(parts) + " of the month"


def _by_weekday(rule: CronRule) -> str:
    """Empty where every day of the week matches."""
    if rule.weekdays == EVERY_WEEKDAY:
        return ""
    parts: list[str] = []
    if rule.weekdays:
        parts.append(_weekdays(rule.weekdays))
    parts += [f"the last {_WEEKDAYS[day]} of the month" for day in values_of(rule.last_weekdays)]
    parts += [
        f"the {_ORDINALS[place // 7]} {_WEEKDAYS[place % 7]} of the month"
        for place in values_of(rule.nth_weekdays)
    ]
    return _joined(parts)


def _weekdays(bits: int) -> str:
    """Days of the week, from Monday to Sunday; three or more in a row as a range."""
    days = sorted(values_of(bits), key=lambda day: (day - 1) % 7)
    names = [_WEEKDAYS[day] for day in days]
    is_row = len(days) > 2 and all((high - low) % 7 == 1 for low, high in pairwise(days))
    return f"{names[0]} to {names[-1]}" if is_row else _joined(names)


def _step(values: list[int]) -> int:
    """Distance of evenly spaced values, at least three; else 0."""
    steps = {high - low for low, high in pairwise(values)}
    return steps.pop() if len(values) > 2 and len(steps) == 1 else 0


def _numbers(values: list[int]) -> str:
    """Numbers in words: a range where they follow one another, the first and last of many that are evenly spaced."""
    if _step(values) == 1:
        return f"{values[0]} to {values[-1]}"
    if _step(values) and len(values) > _SPELLED_MAX:
        return f"{values[0]}, {values[1]}, {values[2]} and so on to {values[-1]}"
    return _joined([str(value) for value in values])


def _joined(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
