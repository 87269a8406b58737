"""Dead letters: what was given up in any partition, in one list."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Annotated, Final, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request, Response

from api.answers import dead_letter_body
from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept
from api.decisions import caught_up, json_response
from api.described import AFTER, CURSOR, LIMIT, PREFER, described, query_name
from api.parameters import limit_of, next_link, open_cursor, query_of, seal_cursor
from api.problems import refused_field
from api.services import Services, services_of
from minutebook.client.dead_letter_models import DeadLetter, DeadLetterPage
from minutebook.client.models import Cause
from minutebook.domain.view_rows import DeadRow, JobRow

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
LOOKED_AT_MAX: Final = 2_000
"""Rows that one request looks at: a filter that few fit must not hold up others. Then the page ends early."""
_CAUSES: Final = get_args(Cause)
FILTERS: Final = {"task": 128, "queue": 128, "error_type": 256, "cause": 128}
"""Names of the query that filter, and how many characters each has at most."""
_AT: Final = struct.Struct(">q")


@router.get(
    "/v1/dead-letters",
    operation_id="list_dead_letters",
    openapi_extra=described(
        answers={200: DeadLetterPage},
        parameters=(
            query_name("task", "Only those of this task.", maxLength=128),
            query_name("queue", "Only those of this queue.", maxLength=128),
            query_name("error_type", "Only those whose last error had this type.", maxLength=256),
            query_name("cause", "Only those given up for this cause.", enum=list(_CAUSES)),
            LIMIT,
            CURSOR,
            AFTER,
            PREFER,
        ),
        refusals=("bad-parameter", "view-behind"),
    ),
)
async def list_dead_letters(request: Request, caller: Reading) -> Response:
    """List executions that were given up, and neither redriven nor discarded since, the earliest first. A page may end early."""
    services = services_of(request)
    check_accept(request)
    query = query_of(request, *FILTERS, "limit", "cursor")
    limit = limit_of(query)
    wanted: dict[str, str] = {name: query[name] for name in FILTERS if name in query}
    await caught_up(request, services)
    page = dead_letters_page(services, caller, wanted, limit, query.get("cursor"))
    return json_response(page, headers=next_link("/v1/dead-letters", query, page.next_cursor))


def dead_letters_page(
    services: Services, caller: Caller, wanted: Mapping[str, str], limit: int, cursor: str | None
) -> DeadLetterPage:
    """The page from `cursor` on of those that fit `wanted`, by FILTERS. Raises Refused (bad-parameter)."""
    for name, value in wanted.items():
        if len(value) > FILTERS[name]:
            raise refused_field(name, f"has at most {FILTERS[name]} characters", "bad-parameter")
    if wanted.get("cause", _CAUSES[0]) not in _CAUSES:
        raise refused_field("cause", f"must be one of {', '.join(_CAUSES)}", "bad-parameter")
    tenant = caller.tenant
    secret, scope = services.keyring.secret, f"{tenant}/dead-letters?{urlencode(wanted)}"
    at, start = 0, ""
    if cursor is not None:
        place = open_cursor(secret, scope, cursor)
        at, start = _AT.unpack_from(place)[0], place[_AT.size :].decode()
    items: list[DeadLetter] = []
    for number, (given_up_at, name, dead, job) in enumerate(services.view.dead(tenant, at, start)):
        if len(items) == limit or number == LOOKED_AT_MAX:
            following = seal_cursor(secret, scope, _AT.pack(given_up_at) + name.encode())
            return DeadLetterPage(items, following)
        if _fits(wanted, dead, job):
            items.append(dead_letter_body(name, given_up_at, dead, job))
    return DeadLetterPage(items, None)


def _fits(wanted: Mapping[str, str], dead: DeadRow, job: JobRow) -> bool:
    found = {"task": job.task, "queue": job.queue, "error_type": dead.error_type, "cause": dead.cause}
    return all(found[name] == value for name, value in wanted.items())
