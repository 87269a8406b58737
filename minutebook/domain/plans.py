"""Plans of jobs: what a version says of when, as the pure rules of `minutebook.schedule` take it.

Each distinct plan is made once and each of its instants computed once, for all jobs that share it; where calendars have
a say, again after one of them changed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, cast

import msgspec

from minutebook import ids
from minutebook.domain.book import Book
from minutebook.domain.state import NONE_AT, Spec
from minutebook.domain.timing import DEFAULT, Timing
from minutebook.schedule import DayMatch, Every, Fold, Gap, is_hashed, parse_schedule
from minutebook.schedule.dates import Dates
from minutebook.schedule.plan import Plan

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Timing).decode


def plan_of(book: Book, tenant: str, job_id: str, spec: Spec) -> Plan:
    """The plan of a recurring version of a job, on the dates of its calendars as `book` knows them.

    Raises ScheduleError for a rule that is none.
    """
    return dated(tenant, job_id, spec, book.known_calendars.dates(tenant, spec.timing))


def dated(tenant: str, job_id: str, spec: Spec, dates: Dates | None) -> Plan:
    """The plan of a recurring version of a job, on `dates`; None = any. Raises ScheduleError for a rule that is none."""
    return _plan(*_key(tenant, job_id, spec)).on(dates)


def by_texts(
    cron: str, zone: str, every_ms: int, anchor_at: int, timing: Timing, job_key: str | None
) -> Plan:
    """The plan of an interval or, where `every_ms` is NONE_AT, of a cron expression. Raises ScheduleError."""
    day_match, gap, fold = cast(DayMatch, timing.day_match), cast(Gap, timing.gap), cast(Fold, timing.fold)
    rule = parse_schedule(cron, job_key, day_match) if every_ms == NONE_AT else Every(every_ms)
    return Plan(rule, zone, gap, fold, anchor_at, timing.start_at, timing.end_at)


def next_at(book: Book, tenant: str, job_id: str, spec: Spec, after: int) -> int:
    """First instant of a recurring version strictly later than `after` (ms, UTC), NONE_AT if there is none.

    Raises ScheduleError for a rule that is none.
    """
    key = _key(tenant, job_id, spec)
    if not spec.timing.calendars:
        return _next_at(*key, after)
    return book.known_calendars.instant(
        (tenant, *key, after), lambda: _first(plan_of(book, tenant, job_id, spec), after)
    )


Key = tuple[str, str, int, int, bytes, str | None]


def _key(tenant: str, job_id: str, spec: Spec) -> Key:
    """What the plan of a version follows from: `H` alone takes its values from the job."""
    job_key = ids.job_key(tenant, job_id) if is_hashed(spec.cron) else None
    timing = b"" if spec.explicit_timing is None else _encode(spec.explicit_timing)
    return spec.cron, spec.zone, spec.every_ms, spec.anchor_at, timing, job_key


@lru_cache(maxsize=1 << 12)
def _plan(cron: str, zone: str, every_ms: int, anchor_at: int, timing: bytes, job_key: str | None) -> Plan:
    return by_texts(cron, zone, every_ms, anchor_at, _decode(timing) if timing else DEFAULT, job_key)


@lru_cache(maxsize=1 << 16)
def _next_at(
    cron: str, zone: str, every_ms: int, anchor_at: int, timing: bytes, job_key: str | None, after: int
) -> int:
    return _first(_plan(cron, zone, every_ms, anchor_at, timing, job_key), after)


def _first(plan: Plan, after: int) -> int:
    found = plan.next(after)
    return NONE_AT if found is None else found
