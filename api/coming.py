"""What comes of a job: its rule in words, its next instants, and why there may be none."""

from __future__ import annotations

from functools import partial
from typing import Final

from api.auth import Caller
from api.problems import Refused
from api.services import Services
from api.view import View
from minutebook.client.preview_models import Preview, PreviewInstant
from minutebook.domain import plans
from minutebook.domain.jitter import due_at
from minutebook.domain.known_calendars import dates_of
from minutebook.domain.timing import DEFAULT
from minutebook.domain.versions import when_of
from minutebook.domain.view import PartitionView
from minutebook.domain.view_rows import CalendarRow, JobRow, Progress
from minutebook.schedule.description import describe
from minutebook.schedule.plan import Plan
from minutebook.schedule.preview import preview
from minutebook.times import format_instant

_CLOSED: Final = {
    "completed": "The job is completed: every instant that it had has come, and its executions have ended.",
    "dead": "The job is dead: its one execution was given up. Redrive that, or create a new job.",
    "cancelled": "The job is cancelled.",
}


def plan_of_job(view: View, tenant: str, job_id: str, row: JobRow) -> Plan:
    """The instants of a recurring job, on the dates that its calendars allow. Raises ScheduleError for no rule."""
    spec = when_of(row)
    part = view.parts[view.partition_of_job(tenant, job_id)]
    return plans.dated(tenant, job_id, spec, dates_of(spec.timing, partial(_calendar, part, tenant)))


def coming_of(services: Services, caller: Caller, job_id: str, count: int) -> Preview:
    """The rule of a job and its next `count` instants from now on; of a paused one those that its rule has.

    Raises Refused (not-found).
    """
    found = services.view.job(caller.tenant, job_id)
    if found is None:
        raise Refused("not-found")
    row, progress = found
    if not row.is_recurring:
        return Preview("once", [])
    plan = plan_of_job(services.view, caller.tenant, job_id, row)
    jitter_ms = (row.timing or DEFAULT).jitter_ms
    words = describe(plan.rule, jitter_ms)
    if progress.status not in ("active", "paused") or progress.next_at < 0:
        return Preview(words, [])
    after = services.clock.now() if progress.status == "paused" else progress.next_at - 1
    items = [
        PreviewInstant(*shown, due_at=format_instant(due_at(caller.tenant, job_id, at, jitter_ms)))
        for at, shown in preview(plan, after, count).items()
    ]
    return Preview(words, items)


def why_none(services: Services, caller: Caller, job_id: str) -> str:
    """Why a job has no next instant; empty where it has one. Raises Refused (not-found)."""
    found = services.view.job(caller.tenant, job_id)
    if found is None:
        raise Refused("not-found")
    row, progress = found
    if progress.coming_at >= 0:
        return ""
    return _CLOSED.get(progress.status) or _why_open(row, progress)


def _why_open(row: JobRow, progress: Progress) -> str:
    if progress.status == "paused":
        return "The job is paused: none of its instants comes due until it is resumed."
    if not row.is_recurring:
        return "Its one instant has come: see its execution."
    timing = row.timing or DEFAULT
    bounds = [
        f"it ends at {format_instant(timing.end_at)}" if timing.end_at is not None else "",
        f"it has at most {timing.max_runs} runs" if timing.max_runs is not None else "",
        f"its calendars are {', '.join(timing.calendars)}" if timing.calendars else "",
    ]
    said = "; ".join(bound for bound in bounds if bound)
    return "Its rule has no further instant" + (f": {said}." if said else ".")


def _calendar(part: PartitionView, tenant: str, name: str) -> CalendarRow | None:
    """A calendar as the partition of the job knows it; None if it is without effect."""
    found = part.calendar(tenant, name)
    return None if found is None or found.is_deleted else found
