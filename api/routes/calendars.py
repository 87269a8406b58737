"""Calendars that jobs name: dates declared by people and programs, for all partitions at once."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from api import calendars
from api.auth import Allowed, Caller, Scope
from api.described import AFTER, BODY, CURSOR, LIMIT, PREFER, REASON, WRITE, described, query_name
from api.shared_facts import page_of
from minutebook.client.calendar_models import Calendar, CalendarEffect, CalendarPage, CalendarRequest
from minutebook.client.models import Command

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
Changing = Annotated[Caller, Depends(Allowed(Scope.CALENDARS_WRITE))]
_DRY_RUN = query_name(
    "dry_run",
    "`true` changes nothing: the answer is a CalendarEffect.",
    enum=["true", "false"],
    default="false",
)


@router.get(
    "/v1/calendars",
    operation_id="list_calendars",
    openapi_extra=described(
        answers={200: CalendarPage},
        parameters=(LIMIT, CURSOR, AFTER, PREFER),
        refusals=("bad-parameter", "view-behind"),
    ),
)
async def list_calendars(request: Request, caller: Reading) -> Response:
    """List the calendars of the caller's tenant by name."""
    return await page_of(
        request,
        caller,
        "/v1/calendars",
        lambda services, start: services.view.calendars(caller.tenant, start),
        lambda services, name, row: calendars.entry_shown(name, row),
        CalendarPage,
    )


@router.get(
    "/v1/calendars/{name}",
    operation_id="get_calendar",
    openapi_extra=described(
        answers={200: Calendar},
        parameters=(AFTER, PREFER),
        refusals=("not-found", "bad-parameter", "view-behind"),
    ),
)
async def get_calendar(request: Request, caller: Reading, name: str) -> Response:
    """Read a calendar: all its dates, in order."""
    return await calendars.read_calendar(request, caller, name)


@router.put(
    "/v1/calendars/{name}",
    operation_id="set_calendar",
    openapi_extra=described(
        takes=CalendarRequest,
        example={"dates": ["2026-12-25", {"first": "2026-12-31", "last": "2027-01-01"}]},
        answers={200: (Calendar, CalendarEffect), 201: Calendar, 202: Command},
        parameters=(_DRY_RUN, AFTER, PREFER),
        refusals=(*BODY, *WRITE, "not-found", "view-behind"),
    ),
)
async def set_calendar(request: Request, caller: Changing, name: str) -> Response:
    """Declare a calendar, or replace its dates. Answered once every partition knows it."""
    return await calendars.set_calendar(request, caller, name)


@router.delete(
    "/v1/calendars/{name}",
    operation_id="delete_calendar",
    openapi_extra=described(
        answers={200: CalendarEffect, 202: Command, 204: None},
        parameters=(_DRY_RUN, REASON, AFTER, PREFER),
        refusals=(*WRITE, "not-found", "view-behind"),
    ),
)
async def delete_calendar(request: Request, caller: Changing, name: str) -> Response:
    """Free the jobs that name it from its dates. Answered once every partition knows it."""
    return await calendars.delete_calendar(request, caller, name)
