"""The fields of a create body that say when, beside the rule: an interval, bounds, spread, and what else may run."""

from __future__ import annotations

from typing import Any, Final

from api.fields import Fields
from minutebook.domain import plans
from minutebook.domain.state import NONE_AT
from minutebook.domain.timing import DEFAULT, Timing, faults, interval_fault, misplaced
from minutebook.schedule.plan import Plan
from minutebook.times import parse_duration, parse_instant

_MISFIRE: Final = ("policy", "window", "max")
_CALENDARS: Final = ("exclude", "include")
_TIMING: Final = frozenset(
    {"start_at", "end_at", "max_runs", "gap", "fold", "day_match", "jitter"}
    | {"calendars", "misfire", "overlap", "pause_on_failure"}
)
FIELDS: Final = _TIMING | {"every"}


def read_every(fields: Fields) -> int | None:
    """The interval, in ms. Faults are gathered in `fields`."""
    every_ms = fields.parsed("every", _interval_ms)
    if every_ms is not None and (remedy := interval_fault(every_ms)):
        fields.fault("every", remedy)
        return None
    return every_ms


def _interval_ms(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ValueError(f"{error}; for months and years use cron") from None


def read_timing(fields: Fields, *, is_recurring: bool) -> Timing | None:
    """Bounds, spread and policies, None where the body says nothing of them. Faults are gathered in `fields`."""
    if _TIMING.isdisjoint(fields.members):
        return None
    misfire, calendars = fields.inner("misfire", _MISFIRE), fields.inner("calendars", _CALENDARS)
    given: dict[str, Any] = {
        "start_at": fields.parsed("start_at", parse_instant),
        "end_at": fields.parsed("end_at", parse_instant),
        "max_runs": fields.whole("max_runs"),
        "gap": fields.text("gap"),
        "fold": fields.text("fold"),
        "day_match": fields.text("day_match"),
        "jitter_ms": fields.parsed("jitter", parse_duration),
        "exclude": calendars.texts("exclude"),
        "include": calendars.texts("include"),
        "misfire": misfire.text("policy"),
        "misfire_window_ms": misfire.parsed("window", parse_duration),
        "misfire_max": misfire.whole("max"),
        "overlap": fields.text("overlap"),
        "is_paused_on_failure": fields.flag("pause_on_failure"),
    }
    timing = Timing(**{name: value for name, value in given.items() if value is not None})
    for field, remedy in faults(timing):
        fields.fault(field, remedy)
    if not is_recurring:
        for field, remedy in misplaced(timing):
            fields.fault(field, remedy)
    return None if timing == DEFAULT else timing


def plan_of(
    cron: str | None, every_ms: int | None, zone: str, timing: Timing | None, job_key: str | None, now: int
) -> Plan:
    """The plan of a recurring job that begins now, by its cron or else its interval. Raises ScheduleError."""
    timing = timing or DEFAULT
    anchor_at = now if timing.start_at is None else timing.start_at
    return plans.by_texts(
        cron or "", zone, NONE_AT if every_ms is None else every_ms, anchor_at, timing, job_key
    )
