"""What is due in the next hours, days and months."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept
from api.decisions import caught_up, json_response
from api.described import AFTER, PREFER, described, query_name
from api.parameters import query_of
from api.services import services_of
from api.upcoming import range_of, upcoming
from minutebook.client.live_models import Upcoming

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]


@router.get(
    "/v1/upcoming",
    operation_id="get_upcoming",
    openapi_extra=described(
        answers={200: Upcoming},
        parameters=(
            query_name("from", "The first instant; the present one if left out.", format="date-time"),
            query_name(
                "until",
                "The end, not included: at most 180 minutes, 168 hours or 92 days later, which is the default.",
                format="date-time",
            ),
            query_name("by", "Length of a bucket.", enum=["minute", "hour", "day"], default="minute"),
            AFTER,
            PREFER,
        ),
        refusals=("bad-parameter", "view-behind"),
    ),
)
async def get_upcoming(request: Request, caller: Reading) -> Response:
    """Count the jobs that are due in each minute, hour or day (UTC). A job that recurs is counted at its next instant."""
    services = services_of(request)
    check_accept(request)
    wanted = range_of(query_of(request, "from", "until", "by"), services.clock.now())
    await caught_up(request, services)
    return json_response(await upcoming(services.view, caller.tenant, wanted))
