"""Plans of jobs: what a version says of when, as the pure rules of `minutebook.schedule` take it.

Each distinct plan is made once and each of its instants computed once, for all jobs that share it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, cast

import msgspec

from minutebook import ids
from minutebook.domain.state import NONE_AT, Spec
from minutebook.domain.timing import DEFAULT, Timing
from minutebook.schedule import CronRule, DayMatch, Every, Fold, Gap, is_hashed, parse_schedule
from minutebook.schedule.plan import Plan

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Timing).decode


def plan_of(tenant: str, job_id: str, spec: Spec) -> Plan:
    """The plan of a recurring version of a job. Raises ScheduleError for a rule that is none."""
    return _plan(*_key(tenant, job_id, spec))


def next_at(tenant: str, job_id: str, spec: Spec, after: int) -> int:
    """First instant of a recurring version strictly later than `after` (ms, UTC), NONE_AT if there is none.

    Raises ScheduleError for a rule that is none.
    """
    return _next_at(*_key(tenant, job_id, spec), after)


Key = tuple[str, str, int, int, bytes, str | None]


def _key(tenant: str, job_id: str, spec: Spec) -> Key:
    """What the plan of a version follows from: `H` alone takes its values from the job."""
    job_key = ids.job_key(tenant, job_id) if is_hashed(spec.cron) else None
    timing = b"" if spec.explicit_timing is None else _encode(spec.explicit_timing)
    return spec.cron, spec.zone, spec.every_ms, spec.anchor_at, timing, job_key


@lru_cache(maxsize=1 << 12)
def _plan(cron: str, zone: str, every_ms: int, anchor_at: int, timing: bytes, job_key: str | None) -> Plan:
    given = _decode(timing) if timing else DEFAULT
    rule: CronRule | Every = (
        parse_schedule(cron, job_key, cast(DayMatch, given.day_match)) if cron else Every(every_ms)
    )
    return Plan(
        rule, zone, cast(Gap, given.gap), cast(Fold, given.fold), anchor_at, given.start_at, given.end_at
    )


@lru_cache(maxsize=1 << 16)
def _next_at(
    cron: str, zone: str, every_ms: int, anchor_at: int, timing: bytes, job_key: str | None, after: int
) -> int:
    found = _plan(cron, zone, every_ms, anchor_at, timing, job_key).next(after)
    return NONE_AT if found is None else found
