"""The schedule language: a cron expression, from text to a `CronRule`.

`minute hour day-of-month month day-of-week`, parted by spaces or tabs, at most 256 ASCII characters. With six fields the
second comes first, with seven the year comes last, too. What a field may hold: `fields` and `day_fields`. Months have
names JAN-DEC, days of the week SUN-SAT, in any case; `?` alone equals `*` in the two day fields. Sunday is 0 and 7; the
name SUN is 0, so a range up to Sunday is written `fri-7`. Macros such as `@daily` stand for five fields.

Where neither day field begins with `*` or `?`, a day that matches either one is taken, else it must match both, as in
Debian's cron (crontab(5)); `day_match="and"` always asks for both.

Everything else is refused with its reason. This module knows no zone and no instant.
"""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from minutebook.errors import ScheduleError
from minutebook.schedule.day_fields import parse_month_days, parse_week_days
from minutebook.schedule.days import next_day
from minutebook.schedule.every import Every, is_every, parse_every
from minutebook.schedule.fields import HOUR, MINUTE, MONTH, SECOND, YEAR, has_hash, parse_field
from minutebook.schedule.rule import EVERY_WEEKDAY, EVERY_YEAR, YEAR_BASE, CronRule

DayMatch = Literal["or", "and"]

TEXT_CHARS_MAX = 256

_CACHE_SIZE = 4096
_FIVE = "five fields (minute hour day-of-month month day-of-week)"
_COUNTS = f"{_FIVE}, six with the second first, or seven with the year last"
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@lru_cache(maxsize=_CACHE_SIZE)
def parse_cron(text: str, job_key: str | None = None, day_match: DayMatch = "or") -> CronRule:
    """Rule of the cron expression `text`.

    `job_key`: `<tenant>/<job id>`, which `H` takes its values from, for ever the same; `ANY_JOB` for a rule that names
    every value some job could have. Without an `H` it changes nothing. Raises ScheduleError (field `cron` or
    `day_match`), whose reason names the part of the expression and what is wrong with it. Takes well under 10 ms for
    any text. Source: crontab(5) of Debian's cron, narrowed where it guesses.
    """
    if day_match not in ("or", "and"):
        raise ScheduleError("day_match", "must be `or` or `and`")
    second, minute, hour, day, month, weekday, year = _split(text)
    rule = CronRule(
        seconds=parse_field(SECOND, second, job_key),
        minutes=parse_field(MINUTE, minute, job_key),
        hours=parse_field(HOUR, hour, job_key),
        **parse_month_days(day, job_key)._asdict(),
        months=parse_field(MONTH, month, job_key),
        **parse_week_days(weekday, job_key)._asdict(),
        years=EVERY_YEAR if year == "*" else parse_field(YEAR, year, job_key) >> YEAR_BASE,
        is_either_day=day_match == "or" and day[0] not in "*?" and weekday[0] not in "*?",
        is_elapsed=minute.startswith("*") or hour.startswith("*"),
    )
    _check_day_exists(rule)
    return rule


def parse_schedule(text: str, job_key: str | None = None, day_match: DayMatch = "or") -> CronRule | Every:
    """Rule of a cron expression, or the interval of an `@every`. Otherwise as `parse_cron`."""
    return parse_every(text) if is_every(text) else parse_cron(text, job_key, day_match)


def is_hashed(text: str) -> bool:
    """Whether the expression `text` has an `H`: only then does its rule depend on the job. False for a text too long."""
    return len(text) <= TEXT_CHARS_MAX and has_hash(text)


def _split(text: str) -> list[str]:
    """Texts of the seven fields, second first and year last."""
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
        texts = _expanded(texts)
    if not 5 <= len(texts) <= 7:
        raise ScheduleError("cron", f"give {_COUNTS}, not {len(texts)}")
    return [*(["0"] if len(texts) == 5 else []), *texts, *(["*"] if len(texts) < 7 else [])]


def _expanded(texts: list[str]) -> list[str]:
    """Fields that a macro stands for."""
    name = texts[0].lower()
    if name == "@every":
        raise ScheduleError(
            "cron", "@every is an interval, not a time on the clock; give fields, such as */5 * * * *"
        )
    if name == "@reboot":
        raise ScheduleError("cron", f"'@reboot' is not accepted: nothing here is booted; give {_FIVE}")
    if name not in _MACROS:
        raise ScheduleError("cron", f"{texts[0]!r} is no macro; give {', '.join(_MACROS)} or {_FIVE}")
    if len(texts) > 1:
        raise ScheduleError("cron", f"{texts[0]!r} stands for all fields: give nothing after it")
    return _MACROS[name].split()


def _check_day_exists(rule: CronRule) -> None:
    if next_day(rule, 0) is not None:
        return
    of_month = replace(rule, weekdays=EVERY_WEEKDAY, years=EVERY_YEAR)
    if next_day(of_month, 0) is None:
        reason = "day-of-month field: no such day in any month of the month field"
    elif next_day(replace(rule, weekdays=EVERY_WEEKDAY), 0) is None:
        reason = "year field: no such day in the years that it names"
    else:
        reason = "day-of-week field: no such day of the week among the days that the other fields name"
    raise ScheduleError("cron", f"{reason}; it would never run")
