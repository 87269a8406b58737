"""The latest alerts of a tenant, from all partitions in one list."""

from __future__ import annotations

import struct
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response

from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept
from api.decisions import caught_up, json_response
from api.described import AFTER, CURSOR, LIMIT, PREFER, described, query_name
from api.notifier.message import alert_body
from api.parameters import limit_of, next_link, open_cursor, query_of, seal_cursor
from api.problems import refused_field
from api.services import Services, services_of
from minutebook.client.models import AlertPage
from minutebook.domain.alerts import KINDS

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
_AT: Final = struct.Struct(">q")


@router.get(
    "/v1/alerts",
    operation_id="list_alerts",
    openapi_extra=described(
        answers={200: AlertPage},
        parameters=(
            query_name("kind", "Only those of this kind.", enum=list(KINDS)),
            LIMIT,
            CURSOR,
            AFTER,
            PREFER,
        ),
        refusals=("bad-parameter", "view-behind"),
    ),
)
async def list_alerts(request: Request, caller: Reading) -> Response:
    """List the latest alerts, the newest first. Each partition keeps 200 of a tenant."""
    services = services_of(request)
    check_accept(request)
    query = query_of(request, "kind", "limit", "cursor")
    limit, kind = limit_of(query), query.get("kind", "")
    if "kind" in query and kind not in KINDS:
        raise refused_field("kind", f"must be one of {', '.join(KINDS)}", "bad-parameter")
    await caught_up(request, services)
    page = alerts_page(services, caller.tenant, kind, limit, query.get("cursor"))
    return json_response(page, headers=next_link("/v1/alerts", query, page.next_cursor))


def alerts_page(services: Services, tenant: str, kind: str, limit: int, cursor: str | None) -> AlertPage:
    """The page behind `cursor`, which names the last item of the page before: what is new since comes before it."""
    secret, scope = services.keyring.secret, f"{tenant}/alerts?{kind}"
    found = [alert for alert in services.view.alerts(tenant) if kind in ("", alert.kind)]
    if cursor is not None:
        place = open_cursor(secret, scope, cursor)
        last = _AT.unpack_from(place)[0], place[_AT.size :].decode()
        found = [alert for alert in found if (alert.at, alert.id) < last]
    page = found[:limit]
    following = None
    if len(found) > limit:
        following = seal_cursor(secret, scope, _AT.pack(page[-1].at) + page[-1].id.encode())
    return AlertPage([alert_body(alert) for alert in page], following)
