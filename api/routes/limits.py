"""Limits of jobs that name them: declared, paused and deleted by people and tasks, for all partitions at once."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from api import limits
from api.auth import Allowed, Caller, Scope
from api.described import AFTER, BODY, CURSOR, LIMIT, PREFER, REASON, WRITE, described
from api.shared_facts import page_of
from minutebook.client.models import Command, Limit, LimitPage, LimitRequest, PauseRequest, ReasonRequest

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
Changing = Annotated[Caller, Depends(Allowed(Scope.LIMITS_WRITE))]


@router.get(
    "/v1/limits",
    operation_id="list_limits",
    openapi_extra=described(
        answers={200: LimitPage},
        parameters=(LIMIT, CURSOR, AFTER, PREFER),
        refusals=("bad-parameter", "view-behind"),
    ),
)
async def list_limits(request: Request, caller: Reading) -> Response:
    """List the limits of the caller's tenant by name, the tenant-wide one first."""
    return await page_of(
        request,
        caller,
        "/v1/limits",
        lambda services, start: services.view.limits(caller.tenant, start),
        lambda services, name, row: limits.limit_shown(services, caller.tenant, name, row),
        LimitPage,
    )


@router.get(
    "/v1/limits/{name}",
    operation_id="get_limit",
    openapi_extra=described(
        answers={200: Limit},
        parameters=(AFTER, PREFER),
        refusals=("not-found", "bad-parameter", "view-behind"),
    ),
)
async def get_limit(request: Request, caller: Reading, name: str) -> Response:
    """Read a limit: its bounds, and until when it is paused."""
    return await limits.read_limit(request, caller, name)


@router.put(
    "/v1/limits/{name}",
    operation_id="set_limit",
    openapi_extra=described(
        takes=LimitRequest,
        example={"concurrency": 10, "rate_count": 100, "rate_period": "PT1M"},
        answers={200: Limit, 201: Limit, 202: Command},
        parameters=(PREFER,),
        refusals=(*BODY, *WRITE, "not-found"),
    ),
)
async def set_limit(request: Request, caller: Changing, name: str) -> Response:
    """Declare a limit, or replace its bounds. Answered once every partition knows it."""
    return await limits.set_limit(request, caller, name)


@router.delete(
    "/v1/limits/{name}",
    operation_id="delete_limit",
    openapi_extra=described(
        answers={202: Command, 204: None},
        parameters=(REASON, PREFER),
        refusals=(*WRITE, "not-found"),
    ),
)
async def delete_limit(request: Request, caller: Changing, name: str) -> Response:
    """Free the jobs that name it from its limit. Answered once every partition knows it."""
    return await limits.delete_limit(request, caller, name)


@router.post(
    "/v1/limits/{name}/pause",
    operation_id="pause_limit",
    openapi_extra=described(
        takes=PauseRequest,
        example={"until": "PT30S", "reason": "429"},
        answers={200: Limit, 202: Command},
        parameters=(PREFER,),
        refusals=(*BODY, *WRITE, "not-found"),
    ),
)
async def pause_limit(request: Request, caller: Changing, name: str) -> Response:
    """Start nothing of the jobs that name it for a while; what runs goes on. Answered once every partition knows it."""
    return await limits.pause_limit(request, caller, name)


@router.post(
    "/v1/limits/{name}/resume",
    operation_id="resume_limit",
    openapi_extra=described(
        takes=ReasonRequest,
        is_body_optional=True,
        answers={200: Limit, 202: Command},
        parameters=(PREFER,),
        refusals=(*BODY, *WRITE, "not-found"),
    ),
)
async def resume_limit(request: Request, caller: Changing, name: str) -> Response:
    """Start the jobs that name it again before the pause is over. Answered once every partition knows it."""
    return await limits.resume_limit(request, caller, name)
