"""Requests on limits: what their bodies say, and the answer once every partition knows the limit.

An empty name is that of the tenant-wide limit.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from fastapi import Request, Response

from api.answers import limit_body
from api.auth import Caller
from api.bodies import check_accept, read_body, read_object
from api.decisions import caught_up, json_response
from api.fields import Fields
from api.parameters import LIMIT_MAX, query_of
from api.problems import Refused
from api.services import Services, services_of
from api.shared_facts import about, check, decided
from api.wishes import read_reason, read_wish, reason_of, refuse_reason
from minutebook.client.models import Limit
from minutebook.domain.commands import (
    DeclareLimit,
    DeleteLimit,
    LimitCommand,
    PauseLimit,
)
from minutebook.domain.limits import faults
from minutebook.domain.view_rows import LimitRow
from minutebook.ids import is_name
from minutebook.times import parse_duration, parse_instant

_BOUNDS: Final = ("concurrency", "rate_count", "rate_period")
_PAUSE: Final = ("until", "reason")


async def read_limit(request: Request, caller: Caller, name: str) -> Response:
    """A limit as it stands. Raises Refused."""
    services = _asked(request, name)
    await caught_up(request, services)
    return json_response(find_limit(services, caller, name))


async def set_limit(request: Request, caller: Caller, name: str) -> Response:
    """Declare a limit, or replace its bounds. Raises Refused."""
    services = _asked(request, name)
    refuse_reason(request)
    data = await read_body(request, services.settings.body_timeout_s)
    fields = Fields(read_object(data))
    fields.refuse_unknown(_BOUNDS)
    command = DeclareLimit(
        **about(services, caller, name),
        concurrency=fields.whole("concurrency"),
        rate_count=fields.whole("rate_count"),
        rate_period_ms=fields.parsed("rate_period", parse_duration),
    )
    if not fields.errors:
        for field, remedy in faults(command):
            fields.fault(field, remedy)
    check(fields, data)
    is_new = services.view.limit(caller.tenant, name) is None
    return await _decided(request, services, command, 201 if is_new else 200)


async def pause_limit(request: Request, caller: Caller, name: str) -> Response:
    """Start nothing under a limit until an instant. Raises Refused."""
    services = _asked(request, name)
    data = await read_body(request, services.settings.body_timeout_s)
    fields = Fields(read_object(data))
    fields.refuse_unknown(_PAUSE)
    until = for_ms = None
    text = fields.text("until")
    if text is not None and text.startswith("P"):
        for_ms = fields.parsed("until", parse_duration)
    elif text is not None:
        until = fields.parsed("until", parse_instant)
    elif "until" not in fields.members:
        fields.fault("until", "is required: an instant with its offset, or a duration such as PT30S")
    reason = read_reason(fields) or reason_of(request)
    check(fields, data)
    command = pause_command(services, caller, name, reason, until=until, for_ms=for_ms)
    return await _decided(request, services, command)


def pause_command(
    services: Services,
    caller: Caller,
    name: str,
    reason: str,
    *,
    until: int | None = None,
    for_ms: int | None = None,
) -> PauseLimit:
    """The command that pauses a limit until an instant or for a while (ms); without either it ends the pause."""
    return PauseLimit(**about(services, caller, name), reason=reason, until=until, for_ms=for_ms)


async def resume_limit(request: Request, caller: Caller, name: str) -> Response:
    """End the pause of a limit. Raises Refused."""
    services = _asked(request, name)
    wish = await read_wish(request, services.settings.body_timeout_s)
    return await _decided(request, services, pause_command(services, caller, name, wish.reason))


async def delete_limit(request: Request, caller: Caller, name: str) -> Response:
    """Free the jobs of a limit from it. Raises Refused."""
    services = _asked(request, name)
    command = DeleteLimit(**about(services, caller, name), reason=reason_of(request))
    return await _decided(request, services, command)


def limit_shown(services: Services, tenant: str, name: str, row: LimitRow) -> Limit:
    """The limit as callers see it."""
    return limit_body(name, row, services.view.permits_used(tenant, name), services.clock.now())


def versions_of(services: Services, command: LimitCommand) -> Callable[[int], int | None]:
    """The version that each partition knows of what a command is about."""

    def version_in(partition: int) -> int | None:
        copy = services.view.parts[partition].limit(command.tenant, command.name)
        return None if copy is None else copy.version

    return version_in


def limits_of(services: Services, caller: Caller) -> list[Limit]:
    """The first limits of a tenant by name, the tenant-wide one before them, a page of them at most."""
    rows = islice(services.view.limits(caller.tenant, ""), LIMIT_MAX)
    return [limit_shown(services, caller.tenant, name, row) for name, row in rows]


def find_limit(services: Services, caller: Caller, name: str) -> Limit:
    """A limit as it stands. Raises Refused (not-found)."""
    row = services.view.limit(caller.tenant, name)
    if row is None:
        raise Refused("not-found")
    return limit_shown(services, caller.tenant, name, row)


def _asked(request: Request, name: str) -> Services:
    """What answers a request on that limit. Raises Refused for what no limit is called."""
    check_accept(request)
    query_of(request)
    if name and not is_name(name):
        raise Refused("not-found")
    return services_of(request)


async def _decided(
    request: Request, services: Services, command: LimitCommand, status: int = 200
) -> Response:
    """The limit, once every partition knows it as the command left it. Raises Refused where its home refuses."""
    tenant, name = command.tenant, command.name

    def shown() -> Limit | None:
        row = services.view.limit(tenant, name)
        return None if row is None else limit_shown(services, tenant, name, row)

    version_in = versions_of(services, command)
    deletes = isinstance(command, DeleteLimit)
    return await decided(request, services, command, version_in, None if deletes else shown, status)
