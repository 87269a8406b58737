"""Commands: what became of one that was answered with 202."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept
from api.decisions import caught_up, json_response
from api.described import AFTER, PREFER, described
from api.parameters import query_of
from api.problems import Refused
from api.routes.queues import is_hidden
from api.services import services_of
from minutebook.client.models import Command
from minutebook.ids import is_command_id

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]


@router.get(
    "/v1/commands/{command_id}",
    operation_id="get_command",
    openapi_extra=described(
        answers={200: Command},
        parameters=(AFTER, PREFER),
        refusals=("not-found", "bad-parameter", "view-behind"),
    ),
)
async def get_command(request: Request, caller: Reading, command_id: str) -> Response:
    """Read the outcome of a command; null while its owner has not decided."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    await caught_up(request, services)
    if not is_command_id(command_id):
        raise Refused("not-found")
    # Commands for queues and workers are of no tenant; whoever may declare queues may see them.
    tenants = (caller.tenant, "") if caller.may(Scope.QUEUES_WRITE) else (caller.tenant,)
    for tenant in tenants:
        found = services.view.command(tenant, command_id)
        if found is not None and (tenant or not is_hidden(services, caller, found[1].job_id)):
            row = found[1]
            body = Command(
                command_id=command_id,
                outcome="accepted" if row.is_accepted else "rejected",
                job_id=row.job_id,
                reason=row.reason or None,
                detail=row.detail or None,
            )
            return json_response(body)
    for tenant in tenants:
        subject = services.undecided.get(tenant, command_id)
        if subject is not None and (tenant or not is_hidden(services, caller, subject)):
            return json_response(Command(command_id=command_id, outcome=None, job_id=subject))
    raise Refused("not-found")
