"""History of a job: one item an attempt."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response

from api.answers import execution_bodies, upcoming_body
from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept
from api.decisions import caught_up, json_response
from api.described import AFTER, CURSOR, LIMIT, PREFER, described
from api.parameters import limit_of, open_cursor, query_of, seal_cursor
from api.problems import Refused
from api.services import Services, services_of
from minutebook.client.models import Execution, ExecutionPage
from minutebook.ids import is_name

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
_NUMBER: Final = struct.Struct(">I")
_UPCOMING: Final = b"\xff"
"""Place of the job's next instant, which has no row yet: after all that have one."""


@router.get(
    "/v1/jobs/{job_id}/executions",
    operation_id="list_executions",
    openapi_extra=described(
        answers={200: ExecutionPage},
        parameters=(LIMIT, CURSOR, AFTER, PREFER),
        refusals=("not-found", "bad-parameter", "view-behind"),
    ),
)
async def list_executions(request: Request, caller: Reading, job_id: str) -> Response:
    """List the attempts of a job, by scheduled_at, then attempt; the next instant comes last, as `scheduled`."""
    services = services_of(request)
    check_accept(request)
    query = query_of(request, "limit", "cursor")
    limit = limit_of(query)
    await caught_up(request, services)
    if not is_name(job_id) or services.view.job(caller.tenant, job_id) is None:
        raise Refused("not-found")
    scope = f"{caller.tenant}/{job_id}/executions"
    start, number = b"", 0
    if "cursor" in query:
        place = open_cursor(services.keyring.secret, scope, query["cursor"])
        number, start = _NUMBER.unpack_from(place)[0], place[_NUMBER.size :]
    items: list[Execution] = []
    for key, item in _from(services, caller.tenant, job_id, start, number):
        if len(items) == limit:
            cursor = seal_cursor(services.keyring.secret, scope, _NUMBER.pack(item.attempt) + key)
            query_text = f"limit={limit}&cursor={cursor}"
            link = {"link": f'</v1/jobs/{job_id}/executions?{query_text}>; rel="next"'}
            return json_response(ExecutionPage(items, cursor), headers=link)
        items.append(item)
    return json_response(ExecutionPage(items, None))


def _from(
    services: Services, tenant: str, job_id: str, start: bytes, number: int
) -> Iterator[tuple[bytes, Execution]]:
    """(place, item) from attempt `number` of the execution at `start` on."""
    view = services.view
    part = view.parts[view.partition_of_job(tenant, job_id)]
    if start != _UPCOMING:
        for key, name, row in view.executions(tenant, job_id, start):
            for item in execution_bodies(name, row, part.worker):
                if key != start or item.attempt >= number:
                    yield key, item
    found = view.job(tenant, job_id)
    if found is not None and found[1].next_at >= 0:
        yield _UPCOMING, upcoming_body(job_id, found[1].next_at)
