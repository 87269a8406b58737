"""Health: whether the process lives, has started, and can answer. No credential."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response

from api.catch_up import not_ready
from api.services import Services
from minutebook.client.models import Problem

router = APIRouter()


class Healthy(msgspec.Struct):
    """Nothing is wrong."""

    status: str = "ok"


_NOT_READY: dict[str, Any] = {
    "parameters": [],
    "responses": {
        "200": {"description": "Yes."},
        "503": {
            "description": "No, and why.",
            "content": {
                "application/problem+json": {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}
            },
        },
    },
}
_ALIVE: dict[str, Any] = {"parameters": [], "responses": {"200": {"description": "Yes."}}}


def services_at(request: Request) -> Services:
    """The services behind a request, ready or not."""
    found: Services = request.app.state.services
    return found


def _ok() -> Response:
    return Response(msgspec.json.encode(Healthy()), 200, media_type="application/json")


@router.get("/livez", operation_id="get_livez", openapi_extra=_ALIVE)
async def get_livez() -> Response:
    """Tell whether the process answers at all."""
    return _ok()


@router.get("/startupz", operation_id="get_startupz", openapi_extra=_NOT_READY)
async def get_startupz(request: Request) -> Response:
    """Tell whether the view has caught up with the log since the start."""
    readiness = services_at(request).readiness
    if not readiness.is_caught_up:
        raise not_ready(readiness.catch_up, readiness.unready())
    return _ok()


@router.get("/readyz", operation_id="get_readyz", openapi_extra=_NOT_READY)
async def get_readyz(request: Request) -> Response:
    """Tell whether requests can be answered now, by a clock that is right."""
    services = services_at(request)
    reason = services.readiness.unready() or services.broker_clock.fault(
        services.clock.now(), services.settings.clock_bound_ms
    )
    if reason:
        raise not_ready(services.readiness.catch_up, reason)
    return _ok()
