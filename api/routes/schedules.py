"""Schedules: what an expression will do next. Nothing is written; no job needs to exist."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response

from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept, check_distinct, read_body, read_object
from api.decisions import json_response
from api.described import BODY, described
from api.fields import Fields
from api.parameters import query_of
from api.problems import Refused
from api.services import services_of
from minutebook.client.models import FieldError
from minutebook.client.preview_models import PREVIEW_MAX, Preview, PreviewInstant, PreviewRequest
from minutebook.client.times import parse_instant
from minutebook.errors import ScheduleError
from minutebook.ids import Instant, job_key
from minutebook.schedule import Cron
from minutebook.schedule.description import describe
from minutebook.schedule.preview import preview

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
_FIELDS: Final = PreviewRequest.__struct_fields__
_COUNT: Final = 10


@router.post(
    "/v1/schedules/preview",
    operation_id="preview_schedule",
    openapi_extra=described(
        takes=PreviewRequest,
        example={"cron": "30 2 * * *", "zone": "Europe/Berlin", "after": "2026-03-28T12:00:00Z", "count": 3},
        answers={200: Preview},
        refusals=(*BODY, "bad-parameter"),
    ),
)
async def preview_schedule(request: Request, caller: Reading) -> Response:
    """Say what a cron expression means, and list its next instants."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    body = await read_body(request, services.settings.body_timeout_s)
    cron, after, count = read_wanted(body, caller.tenant, services.clock.now())
    items = [PreviewInstant(*coming) for coming in preview(cron, after, count)]
    return json_response(Preview(describe(cron.rule), items))


def read_wanted(data: bytes, tenant: str, now: int) -> tuple[Cron, Instant, int]:
    """Schedule, start and number of instants that a body asks for. `now`: ms since the epoch.

    Raises Refused naming the fields at fault.
    """
    members = read_object(data)
    fields = Fields(members)
    fields.refuse_unknown(_FIELDS)
    rules: dict[str, Any] = {name: fields.text(name) for name in ("zone", "gap", "fold", "day_match")}
    text, job_id = fields.text("cron"), fields.name("job_id", None)
    after, count = fields.parsed("after", parse_instant), fields.whole("count")
    if "cron" not in members:
        fields.fault("cron", "is required: the expression to look at")
    if count is not None and not 1 <= count <= PREVIEW_MAX:
        fields.fault("count", f"must be from 1 to {PREVIEW_MAX}")
    if fields.errors:
        raise Refused("invalid", errors=fields.errors)
    check_distinct(data, fields.names)
    rules["job_key"] = None if job_id is None else job_key(tenant, job_id)
    try:
        cron = Cron(text or "", **{name: value for name, value in rules.items() if value is not None})
    except ScheduleError as error:
        raise Refused("invalid", errors=[FieldError(f"/{error.field}", error.reason)]) from error
    return cron, Instant(now if after is None else after), _COUNT if count is None else count
