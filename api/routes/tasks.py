"""Tasks as workers have declared them: what payload each takes."""

from __future__ import annotations

from bisect import bisect_left
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response
from msgspec import Raw

from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept
from api.decisions import caught_up, json_response
from api.described import AFTER, CURSOR, LIMIT, PREFER, described
from api.parameters import limit_of, next_link, open_cursor, query_of, seal_cursor
from api.problems import Refused
from api.services import Services, services_of
from minutebook.client.fleet import DeclaredTask, DeclaredTaskPage, WholeTask
from minutebook.domain.view_rows import TaskRow
from minutebook.ids import is_name
from minutebook.times import format_instant

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
_PATH: Final = "/v1/tasks"


@router.get(
    _PATH,
    operation_id="list_tasks",
    openapi_extra=described(
        answers={200: DeclaredTaskPage},
        parameters=(LIMIT, CURSOR, AFTER, PREFER),
        refusals=("bad-parameter", "view-behind"),
    ),
)
async def list_tasks(request: Request, caller: Reading) -> Response:
    """List the tasks that workers have declared, by name. They belong to no tenant."""
    services = services_of(request)
    check_accept(request)
    query = query_of(request, "limit", "cursor")
    limit = limit_of(query)
    await caught_up(request, services)
    secret, scope = services.keyring.secret, f"{caller.tenant}/tasks"
    start = open_cursor(secret, scope, query["cursor"]).decode() if "cursor" in query else ""
    found = services.view.tasks()
    first = bisect_left(found, start, key=lambda item: item[0])
    items = [_body(name, row) for name, row in found[first : first + limit]]
    if first + limit >= len(found):
        return json_response(DeclaredTaskPage(items, None))
    cursor = seal_cursor(secret, scope, found[first + limit][0].encode())
    return json_response(DeclaredTaskPage(items, cursor), headers=next_link(_PATH, query, cursor))


@router.get(
    "/v1/tasks/{name}",
    operation_id="get_task",
    openapi_extra=described(
        answers={200: WholeTask},
        parameters=(AFTER, PREFER),
        refusals=("not-found", "bad-parameter", "view-behind"),
    ),
)
async def get_task(request: Request, caller: Reading, name: str) -> Response:
    """Read a declared task with the JSON Schema of its payload."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    await caught_up(request, services)
    row = services.view.task(name) if is_name(name) else None
    if row is None:
        raise Refused("not-found")
    it = _body(name, row)
    schema = Raw(row.payload_schema.encode() or b"null")
    return json_response(
        WholeTask(
            name=it.name,
            version=it.version,
            typed=it.typed,
            declared_at=it.declared_at,
            declared_by=it.declared_by,
            payload_schema=schema,
        )
    )


def tasks_of(services: Services) -> list[DeclaredTask]:
    """All declared tasks, by name."""
    return [_body(name, row) for name, row in services.view.tasks()]


def _body(name: str, row: TaskRow) -> DeclaredTask:
    return DeclaredTask(
        name=name,
        version=row.version,
        typed=bool(row.payload_schema),
        declared_at=format_instant(row.accepted_at),
        declared_by=row.actor,
    )
