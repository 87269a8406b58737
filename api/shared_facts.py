"""Requests on what a tenant declares for all partitions, limits and calendars: what is the same for each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypedDict, TypeVar

import msgspec
from fastapi import Request, Response

from api.auth import Caller
from api.bodies import check_accept, check_distinct
from api.decisions import accepted_later, caught_up, json_response, preference_of
from api.everywhere import decide_everywhere
from api.fields import Fields
from api.parameters import limit_of, next_link, open_cursor, query_of, seal_cursor
from api.positions import encode_token
from api.problems import Refused
from api.services import Services, services_of
from minutebook.domain.commands import CalendarCommand, LimitCommand
from minutebook.mint import mint_id

T = TypeVar("T")


class About(TypedDict):
    """What every command on one has."""

    tenant: str
    name: str
    command_id: str
    issued_at: int
    actor: str


def about(services: Services, caller: Caller, name: str) -> About:
    """The fields of a new command of this caller on what has that name."""
    return {
        "tenant": caller.tenant,
        "name": name,
        "command_id": mint_id(),
        "issued_at": services.clock.now(),
        "actor": caller.actor,
    }


def check(fields: Fields, data: bytes) -> None:
    """Raises Refused for what is wrong with a body."""
    if fields.errors:
        raise Refused("invalid", errors=fields.errors)
    check_distinct(data, fields.names)


async def decided(
    request: Request,
    services: Services,
    command: LimitCommand | CalendarCommand,
    version_in: Callable[[int], int | None],
    shown: Callable[[], msgspec.Struct | None] | None,
    status: int = 200,
) -> Response:
    """The answer once every partition knows what the command is about as it left it.

    `version_in` as in `decide_everywhere`; `shown` answers it as callers see it, with `status`; None for a command that
    deletes it. Raises Refused where its home refuses.
    """
    decision, token = await decide_everywhere(services, command, version_in, preference_of(request).wait_s)
    if token is None:
        return accepted_later(decision)
    if shown is None:
        return Response(status_code=204, headers={"minutebook-position": encode_token(token)})
    body = shown()
    if body is None:
        raise Refused("not-found")  # deleted by somebody else meanwhile
    return json_response(body, status, token=token)


async def page_of(
    request: Request,
    caller: Caller,
    path: str,
    rows: Callable[[Services, str], Iterator[tuple[str, T]]],
    shown: Callable[[Services, str, T], msgspec.Struct],
    page: Callable[[list[Any], str | None], msgspec.Struct],
) -> Response:
    """A page of the list at `path`. `rows` answers (name, row) by name from a name on. Raises Refused."""
    services = services_of(request)
    check_accept(request)
    query = query_of(request, "limit", "cursor")
    limit = limit_of(query)
    await caught_up(request, services)
    secret, scope = services.keyring.secret, f"{caller.tenant}/{path.rpartition('/')[2]}"
    start = open_cursor(secret, scope, query["cursor"]).decode() if "cursor" in query else ""
    found = list(islice(rows(services, start), limit + 1))
    items = [shown(services, name, row) for name, row in found[:limit]]
    if len(found) <= limit:
        return json_response(page(items, None))
    cursor = seal_cursor(secret, scope, found[limit][0].encode())
    return json_response(page(items, cursor), headers=next_link(path, query, cursor))
