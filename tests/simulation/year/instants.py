"""Nominal instants of schedules by a second, dumb way: the walk of `tests.property.cron_walk` near clock changes, and
between them, where the wall clock runs on evenly, each day's times in turn.

Nothing here is the product's but the loading of zones.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import product
from typing import Final

from minutebook.domain.commands import SubmitJob
from minutebook.domain.timing import Timing
from minutebook.schedule import Fold, Gap, zone
from tests.property.cron_walk import Fields, Moment, expected, hits, walked

DAY_S: Final = 86_400
START_S: Final = int(datetime(2025, 12, 31, tzinfo=UTC).timestamp())
END_S: Final = int(datetime(2027, 1, 3, tzinfo=UTC).timestamp())
_NEAR_S: Final = 2 * 3_600
"""No clock of 2026 is changed by more."""
_MACROS: Final = {"@hourly": "0 * * * *"}
_EPOCH: Final = datetime(1970, 1, 1)


def instants_of(job: SubmitJob, accepted_at: int, after: int, until_at: int) -> list[int]:
    """Instants (ms) of a job that was accepted as it is at `accepted_at`, later than `after`, before `until_at` and within
    its bounds, whatever its calendars say. The one instant of a job that fires once may be earlier."""
    timing = job.timing or Timing()
    if job.cron is None and job.every_ms is None:
        return [accepted_at if job.run_at is None else job.run_at]
    first = max(after + 1, timing.start_at or 0)
    end = until_at if timing.end_at is None else min(until_at, timing.end_at)
    every_ms = job.every_ms or _every_ms(job.cron or "")
    if every_ms:
        anchor = accepted_at if timing.start_at is None else timing.start_at
        return intervals(anchor, every_ms, first, end)
    assert job.cron is not None
    key = f"{job.tenant}/{job.job_id}" if "H" in job.cron else ""
    is_bounded = end - first < 40 * DAY_S * 1_000
    start_s, end_s = (first // 1_000 - 1, end // 1_000 + 1) if is_bounded else (START_S, END_S)
    found = cron_instants(job.cron, job.zone, key, timing.day_match, timing.gap, timing.fold, start_s, end_s)
    return found[bisect_left(found, first) : bisect_left(found, end)]


def _every_ms(cron: str) -> int:
    """Length of an `@every`, 0 for anything else."""
    if not cron.startswith("@every "):
        return 0
    units = {"d": DAY_S, "h": 3_600, "m": 60, "s": 1}
    parts = re.findall(r"(\d+)([dhms])", cron)
    return sum(int(number) * units[unit] for number, unit in parts) * 1_000


def intervals(anchor: int, every_ms: int, first: int, end: int) -> list[int]:
    """anchor + k * every with first <= t < end, k from 0 on."""
    k = max(0, -(-(first - anchor) // every_ms))
    return list(range(anchor + k * every_ms, end, every_ms))


def dates_of(job: SubmitJob, instants: list[int]) -> list[int]:
    """The local date of each instant, in days since 1970-01-01."""
    there = zone(job.zone)
    return [
        datetime.fromtimestamp(at / 1_000, UTC).astimezone(there).date().toordinal() - _EPOCH.toordinal()
        for at in instants
    ]


@cache
def cron_instants(
    cron: str, zone_name: str, job_key: str, day_match: str, gap: str, fold: str, start_s: int, end_s: int
) -> list[int]:
    """Instants in ms from `start_s` up to `end_s`, not included, both in seconds."""
    fields = _fields(_MACROS.get(cron, cron), day_match, job_key)
    found, done_s = list[int](), start_s
    for change_s in clock_changes(zone_name):
        near_s, past_s = change_s - _NEAR_S, change_s + _NEAR_S
        if past_s <= start_s or near_s >= end_s:
            continue
        found += _even(fields, zone_name, done_s, near_s)
        found += [at for at in _near(fields, zone_name, change_s, gap, fold) if start_s <= at < end_s]
        done_s = past_s
    found += _even(fields, zone_name, done_s, end_s)
    return [at * 1_000 for at in found]


@cache
def clock_changes(zone_name: str) -> list[int]:
    """When the clock there is moved, seconds of UTC."""
    there, found = zone(zone_name), []
    for hour_s in range(START_S, END_S, 3_600):
        if _offset_s(there, hour_s) != _offset_s(there, hour_s + 3_600):
            found.append(
                next(
                    at
                    for at in range(hour_s + 60, hour_s + 3_601, 60)
                    if _offset_s(there, at) != _offset_s(there, hour_s)
                )
            )
    return found


def _offset_s(there: object, at: int) -> int:
    offset = datetime.fromtimestamp(at, there).utcoffset()  # type: ignore[arg-type]  # a tzinfo
    assert offset is not None
    return int(offset.total_seconds())


@cache
def _fields(cron: str, day_match: str, job_key: str) -> _Days:
    return _Days(cron, day_match, job_key)


class _Days(Fields):
    """An expression, and what follows from it for a clock that runs evenly."""

    def __init__(self, cron: str, day_match: str, job_key: str) -> None:
        super().__init__(cron, day_match, job_key)
        self.times = sorted(
            hour * 3_600 + minute * 60 + second
            for hour, minute, second in product(self.hours, self.minutes, self.seconds)
        )
        every = (_EPOCH + timedelta(days=day) for day in range(START_S // DAY_S - 1, END_S // DAY_S + 2))
        self.days = [
            (day - _EPOCH).days
            for day in every
            if day.month in self.months and day.year in self.years and self.match_day(day)
        ]

    @property
    def step_s(self) -> int:
        """The walk sees every time of the expression in such steps."""
        return 60 if self.seconds == {0} else 1


def _even(fields: _Days, zone_name: str, start_s: int, end_s: int) -> list[int]:
    """Instants of a stretch in which the clock is not moved."""
    if start_s >= end_s:
        return []
    offset_s, found = _offset_s(zone(zone_name), start_s), []
    first_day = bisect_left(fields.days, (start_s + offset_s) // DAY_S)
    end_day = bisect_left(fields.days, (end_s + offset_s) // DAY_S + 1)
    for day in fields.days[first_day:end_day]:
        midnight_s = day * DAY_S - offset_s
        if start_s <= midnight_s and midnight_s + DAY_S <= end_s:
            found += [midnight_s + time for time in fields.times]
        else:
            found += [at for time in fields.times if start_s <= (at := midnight_s + time) < end_s]
    return found


def _near(fields: _Days, zone_name: str, change_s: int, gap: str, fold: str) -> list[int]:
    """Instants around a clock change."""
    moments = _walked(zone_name, change_s, fields.step_s)
    taken: tuple[Gap, Fold] = (gap, fold)  # type: ignore[assignment]  # the words are those of a valid job
    return list(expected(fields, hits(fields, moments), *taken))


@cache
def _walked(zone_name: str, change_s: int, step_s: int) -> list[Moment]:
    return walked(zone_name, change_s - _NEAR_S, change_s + _NEAR_S, step_s)
