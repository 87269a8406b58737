"""The schedule language: five fields of cron, from text to a `CronRule`.

`minute hour day-of-month month day-of-week`, parted by spaces or tabs, at most 256 ASCII characters. A field is a list
(`,`) of `*`, values and ranges `a-b`, each with an optional step: `*/n`, `a-b/n`, and `a/n` from `a` to the field's end.
Months have names JAN-DEC, days of the week SUN-SAT, in any case; `?` alone equals `*` in the two day fields. Sunday is 0
and 7; the name SUN is 0, so a range up to Sunday is written `fri-7`. Where neither day field begins with `*` or `?`, a
day that matches either one is taken, else it must match both, as in Debian's cron (crontab(5)).

Everything else is refused with its reason. This module knows no zone and no instant.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from minutebook.errors import ScheduleError

TEXT_CHARS_MAX = 256

_CACHE_SIZE = 4096


@dataclass(frozen=True, slots=True)
class CronRule:
    """A parsed cron expression. Expressions that mean the same are equal.

    Each field is a set of values, as an int whose bit v is set for value v: minutes 0-59, hours 0-23, days of the month
    1-31, months 1-12, weekdays 0-6 from Sunday. None is empty, and some day matches.
    """

    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    is_either_day: bool
    """Both day fields are restricted: a day matches if either does. Otherwise both must."""
    is_elapsed: bool
    """The minute or hour field begins with `*`: an interval rather than a fixed time of day (see `instants`)."""


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    """Largest number that is accepted."""
    last: int
    """Last value of `*` and `a/n`: Sunday as 7 would be counted twice."""
    names: tuple[str, ...]
    """Of the values from `low` on."""

    def refusal(self, reason: str) -> ScheduleError:
        return ScheduleError("cron", f"{self.name} field: {reason}")


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIELDS = (
    _Field("minute", 0, 59, 59, ()),
    _Field("hour", 0, 23, 23, ()),
    _Field("day-of-month", 1, 31, 31, ()),
    _Field("month", 1, 12, 12, _MONTHS),
    _Field("day-of-week", 0, 7, 6, _WEEKDAYS),
)
_FIVE = "five fields (minute hour day-of-month month day-of-week)"
_DAY_FIELDS = ("day-of-month", "day-of-week")
_DAYS_OF_MONTH_MAX = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EXTENSION = re.compile(r"[A-Z0-9]*#.*|\d{0,2}(?:L|W|LW)|[A-Z]{3}L|L(?:\d|-\d+)|H(?:\W.*)?")
_RANDOM = re.compile(r"R(?:\W.*)?")


@lru_cache(maxsize=_CACHE_SIZE)
def parse_cron(text: str) -> CronRule:
    """Rule of the five-field cron expression `text`.

    Raises ScheduleError (field `cron`), whose reason names the part of the expression and what is wrong with it.
    Takes well under 10 ms for any text. Source: crontab(5) of Debian's cron, narrowed where it guesses.
    """
    texts = _split(text)
    minutes, hours, days, months, weekdays = (
        _parse_field(field, part) for field, part in zip(_FIELDS, texts, strict=True)
    )
    rule = CronRule(
        minutes,
        hours,
        days,
        months,
        # Bit 7 is Sunday again.
        (weekdays | weekdays >> 7) & 0x7F,
        is_either_day=not texts[2].startswith(("*", "?")) and not texts[4].startswith(("*", "?")),
        is_elapsed=texts[0].startswith("*") or texts[1].startswith("*"),
    )
    _check_day_exists(rule)
    return rule


def _split(text: str) -> list[str]:
    if len(text) > TEXT_CHARS_MAX:
        raise ScheduleError("cron", f"at most {TEXT_CHARS_MAX} characters, not {len(text)}")
    if not text.isascii():
        raise ScheduleError("cron", "only ASCII characters are accepted")
    texts = re.findall(r"[^ \t]+", text)
    if not texts:
        raise ScheduleError("cron", f"empty; give {_FIVE}")
    if texts[0].startswith(("TZ=", "CRON_TZ=")):
        raise ScheduleError("cron", f"the zone is a field of its own, not a prefix; give {_FIVE}")
    if texts[0].startswith("@"):
        raise ScheduleError("cron", f"{texts[0]!r} is not accepted; give {_FIVE}")
    if len(texts) != len(_FIELDS):
        raise ScheduleError("cron", f"give {_FIVE}, not {len(texts)}")
    return texts


def _parse_field(field: _Field, text: str) -> int:
    """Set of the values that `text` names, as bits."""
    if text == "?" and field.name in _DAY_FIELDS:
        text = "*"
    bits = 0
    for item in text.split(","):
        for value in _parse_item(field, item):
            bits |= 1 << value
    return bits


def _parse_item(field: _Field, item: str) -> range:
    if not item:
        raise field.refusal("an item of the list is empty")
    _refuse_extension(field, item)
    span, slash, step_text = item.partition("/")
    low, high = _parse_span(field, span, is_open=bool(slash))
    if not slash:
        return range(low, high + 1)
    if not step_text.isdecimal():
        raise field.refusal(f"the step in {item!r} is not a number")
    step = int(step_text)
    if step == 0:
        raise field.refusal(f"the step in {item!r} is zero")
    if step > high - low + 1:
        raise field.refusal(f"the step in {item!r} is larger than its range, {low}-{high}")
    return range(low, high + 1, step)


def _parse_span(field: _Field, span: str, *, is_open: bool) -> tuple[int, int]:
    """First and last value of `*`, `a`, or `a-b`; a single value before a step is open to the field's end."""
    if span == "*":
        return field.low, field.last
    low_text, dash, high_text = span.partition("-")
    if not dash:
        low = _parse_value(field, span, span)
        return low, max(low, field.last) if is_open else low
    low, high = _parse_value(field, low_text, span), _parse_value(field, high_text, span)
    if low > high:
        hint = "; Sunday at the end of a range is 7" if high_text.upper() == "SUN" else ""
        raise field.refusal(f"{span!r} is a reversed range{hint}")
    return low, high


def _parse_value(field: _Field, text: str, span: str) -> int:
    if text.isdecimal():
        value = int(text)
        if not field.low <= value <= field.high:
            raise field.refusal(f"{text} in {span!r} is not from {field.low} to {field.high}")
        return value
    if text.upper() in field.names:
        return field.low + field.names.index(text.upper())
    names = f" or a name ({field.names[0]}-{field.names[-1]})" if field.names else ""
    raise field.refusal(f"{span!r} is not a number from {field.low} to {field.high}{names}, a range or *")


def _refuse_extension(field: _Field, item: str) -> None:
    """Name what other schedulers accept, so that the reason is not just "not a number"."""
    if item.startswith("?"):
        raise field.refusal("? is accepted only alone and only in the two day fields")
    if _RANDOM.fullmatch(item.upper()):
        raise field.refusal("R (random) is not accepted: a replay must give the same instants")
    if _EXTENSION.fullmatch(item.upper()):
        raise field.refusal(f"{item!r}: L, W, # and H are not accepted; give values, ranges, lists or steps")


def _check_day_exists(rule: CronRule) -> None:
    if rule.is_either_day:
        return
    for month, length in enumerate(_DAYS_OF_MONTH_MAX, 1):
        if rule.months >> month & 1 and rule.days & (1 << length + 1) - 1:
            return
    raise ScheduleError(
        "cron", "day-of-month field: no such day in any month of the month field; it would never run"
    )
