"""Tenants: the caller's own; all of them for admins of the tenant that operates the installation."""

from __future__ import annotations

from bisect import bisect_left
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response

from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept
from api.decisions import caught_up, json_response
from api.described import AFTER, CURSOR, LIMIT, PREFER, described
from api.lists import counts_by_status
from api.parameters import limit_of, next_link, open_cursor, query_of, seal_cursor
from api.services import Services, services_of
from minutebook.client.key_models import Tenant, TenantPage

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.TENANTS_READ))]
_PATH: Final = "/v1/tenants"


@router.get(
    _PATH,
    operation_id="list_tenants",
    openapi_extra=described(
        answers={200: TenantPage},
        parameters=(LIMIT, CURSOR, AFTER, PREFER),
        refusals=("bad-parameter", "view-behind"),
    ),
)
async def list_tenants(request: Request, caller: Reading) -> Response:
    """List the tenants that the caller may see, by name: its own, or all where its tenant operates the installation."""
    services = services_of(request)
    check_accept(request)
    query = query_of(request, "limit", "cursor")
    limit = limit_of(query)
    await caught_up(request, services)
    secret, scope = services.keyring.secret, f"{caller.tenant}/tenants"
    start = open_cursor(secret, scope, query["cursor"]).decode() if "cursor" in query else ""
    found = tenants_of(services, caller)
    first = bisect_left(found, start)
    shown = found[first : first + limit]
    items = [Tenant(name, *counts_by_status(services.view, name)) for name in shown]
    if first + limit >= len(found):
        return json_response(TenantPage(items, None))
    cursor = seal_cursor(secret, scope, found[first + limit].encode())
    return json_response(TenantPage(items, cursor), headers=next_link(_PATH, query, cursor))


def tenants_of(services: Services, caller: Caller) -> list[str]:
    """Names of the tenants that the caller may see, in order."""
    if not services.settings.operator_tenant or caller.tenant != services.settings.operator_tenant:
        return [caller.tenant]
    given = {one.tenant for one in services.keyring.settings_keys.values()}
    return sorted(given | set(services.view.tenants()))
