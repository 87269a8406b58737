"""Schedules: what one will do next, and how crowded it is there. Nothing is written; no job needs to exist."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Depends, Request, Response
from msgspec import UNSET, UnsetType

from api import timings
from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept, check_distinct, read_body, read_object
from api.crowding import crowds
from api.decisions import json_response
from api.described import BODY, described
from api.fields import Fields
from api.parameters import query_of
from api.problems import Refused
from api.services import Services, services_of
from api.view import View
from minutebook.client.models import FieldError
from minutebook.client.preview_models import PREVIEW_MAX, Preview, PreviewInstant, PreviewRequest
from minutebook.domain.jitter import due_at
from minutebook.domain.known_calendars import dates_of
from minutebook.domain.timing import DEFAULT, Timing
from minutebook.errors import ScheduleError
from minutebook.ids import job_key
from minutebook.schedule.dates import Dates
from minutebook.schedule.description import describe
from minutebook.schedule.plan import Plan
from minutebook.schedule.preview import preview
from minutebook.times import format_instant, parse_instant

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
_FIELDS: Final = PreviewRequest.__struct_fields__
_COUNT: Final = 10


class Wanted(NamedTuple):
    """What is to be shown: so many instants of a plan, strictly later than `after` (ms, UTC). `job_id` may be empty."""

    plan: Plan
    jitter_ms: int
    job_id: str
    after: int
    limit: int


@router.post(
    "/v1/schedules/preview",
    operation_id="preview_schedule",
    openapi_extra=described(
        takes=PreviewRequest,
        example={"cron": "30 2 * * *", "zone": "Europe/Berlin", "after": "2026-03-28T12:00:00Z", "count": 3},
        answers={200: Preview},
        refusals=(*BODY, "bad-parameter", "unknown-calendar"),
    ),
)
async def preview_schedule(request: Request, caller: Reading) -> Response:
    """Say what a schedule means, list its next instants, and how many jobs are due in these minutes already."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    body = await read_body(request, services.settings.body_timeout_s)
    return json_response(await preview_of(services, caller, body))


async def preview_of(services: Services, caller: Caller, body: bytes) -> Preview:
    """What the schedule in a body means and does next. Raises Refused."""
    wanted = read_wanted(body, caller.tenant, services.clock.now(), services.view)
    coming = preview(wanted.plan, wanted.after, wanted.limit)
    items = [
        PreviewInstant(
            *shown,
            due_at=_due_at(wanted, caller.tenant, at),
            due_in_minute=crowd.due,
            hint=crowd.hint or UNSET,
        )
        for (at, shown), crowd in zip(
            coming.items(), await crowds(services.view, caller.tenant, coming), strict=True
        )
    ]
    return Preview(describe(wanted.plan.rule, wanted.jitter_ms), items)


def _due_at(wanted: Wanted, tenant: str, at: int) -> str | UnsetType:
    if not wanted.jitter_ms or not wanted.job_id:
        return UNSET
    return format_instant(due_at(tenant, wanted.job_id, at, wanted.jitter_ms))


def read_wanted(data: bytes, tenant: str, now: int, view: View) -> Wanted:
    """What a body asks for. `now`: ms since the epoch. Raises Refused naming the fields at fault."""
    members = read_object(data)
    fields = Fields(members)
    fields.refuse_unknown(_FIELDS)
    cron, every_ms = fields.text("cron"), timings.read_every(fields)
    zone, job_id = fields.text("zone"), fields.name("job_id", None)
    timing = timings.read_timing(fields, is_recurring=True) or DEFAULT
    after, count = fields.parsed("after", parse_instant), fields.whole("count")
    if len({"cron", "every"} & members.keys()) != 1:
        fields.fault("every" if "every" in members else "cron", "give either cron or every: what to look at")
    if count is not None and not 1 <= count <= PREVIEW_MAX:
        fields.fault("count", f"must be from 1 to {PREVIEW_MAX}")
    if fields.errors:
        raise Refused("invalid", errors=fields.errors)
    check_distinct(data, fields.names)
    key = None if job_id is None else job_key(tenant, job_id)
    start = now if after is None else after
    try:
        plan = timings.plan_of(cron, every_ms, "UTC" if zone is None else zone, timing, key, start)
    except ScheduleError as error:
        raise Refused("invalid", errors=[FieldError(f"/{error.field}", error.reason)]) from error
    plan = plan.on(_dates(view, tenant, timing))
    return Wanted(plan, timing.jitter_ms, job_id or "", start, _COUNT if count is None else count)


def _dates(view: View, tenant: str, timing: Timing) -> Dates | None:
    """The dates that the calendars of a tenant allow; None = any. Raises Refused for a calendar that is not there."""
    known = {name: view.calendar(tenant, name) for name in timing.calendars}
    errors = [
        FieldError(f"/calendars/{field}", "declare each calendar first: PUT /v1/calendars/{name}")
        for field, names in (("exclude", timing.exclude), ("include", timing.include))
        if any(known[name] is None for name in names)
    ]
    if errors:
        raise Refused("unknown-calendar", errors=errors)
    return dates_of(timing, known.__getitem__)
