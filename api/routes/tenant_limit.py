"""The limit that holds for all jobs of the caller's tenant. A path of its own, for any name may be that of another limit."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from api import limits
from api.auth import Allowed, Caller, Scope
from api.described import AFTER, BODY, PREFER, REASON, WRITE, described
from minutebook.client.models import Command, Limit, LimitRequest, PauseRequest, ReasonRequest
from minutebook.domain.known_limits import TENANT_WIDE

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
Changing = Annotated[Caller, Depends(Allowed(Scope.LIMITS_WRITE))]


@router.get(
    "/v1/tenant-limit",
    operation_id="get_tenant_limit",
    openapi_extra=described(
        answers={200: Limit},
        parameters=(AFTER, PREFER),
        refusals=("not-found", "bad-parameter", "view-behind"),
    ),
)
async def get_tenant_limit(request: Request, caller: Reading) -> Response:
    """Read the limit of the tenant: its bounds, and until when it is paused."""
    return await limits.read_limit(request, caller, TENANT_WIDE)


@router.put(
    "/v1/tenant-limit",
    operation_id="set_tenant_limit",
    openapi_extra=described(
        takes=LimitRequest,
        example={"concurrency": 10, "rate_count": 100, "rate_period": "PT1M"},
        answers={200: Limit, 201: Limit, 202: Command},
        parameters=(PREFER,),
        refusals=(*BODY, *WRITE, "not-found"),
    ),
)
async def set_tenant_limit(request: Request, caller: Changing) -> Response:
    """Declare the limit of the tenant, or replace its bounds. Answered once every partition knows it."""
    return await limits.set_limit(request, caller, TENANT_WIDE)


@router.delete(
    "/v1/tenant-limit",
    operation_id="delete_tenant_limit",
    openapi_extra=described(
        answers={202: Command, 204: None},
        parameters=(REASON, PREFER),
        refusals=(*WRITE, "not-found"),
    ),
)
async def delete_tenant_limit(request: Request, caller: Changing) -> Response:
    """Free the tenant's jobs from its limit. Answered once every partition knows it."""
    return await limits.delete_limit(request, caller, TENANT_WIDE)


@router.post(
    "/v1/tenant-limit/pause",
    operation_id="pause_tenant_limit",
    openapi_extra=described(
        takes=PauseRequest,
        example={"until": "PT30S", "reason": "429"},
        answers={200: Limit, 202: Command},
        parameters=(PREFER,),
        refusals=(*BODY, *WRITE, "not-found"),
    ),
)
async def pause_tenant_limit(request: Request, caller: Changing) -> Response:
    """Start nothing of the tenant's jobs for a while; what runs goes on. Answered once every partition knows it."""
    return await limits.pause_limit(request, caller, TENANT_WIDE)


@router.post(
    "/v1/tenant-limit/resume",
    operation_id="resume_tenant_limit",
    openapi_extra=described(
        takes=ReasonRequest,
        is_body_optional=True,
        answers={200: Limit, 202: Command},
        parameters=(PREFER,),
        refusals=(*BODY, *WRITE, "not-found"),
    ),
)
async def resume_tenant_limit(request: Request, caller: Changing) -> Response:
    """Start the tenant's jobs again before the pause is over. Answered once every partition knows it."""
    return await limits.resume_limit(request, caller, TENANT_WIDE)
