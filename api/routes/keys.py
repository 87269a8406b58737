"""API keys: made, rotated and revoked by admins of their tenant; and who is asking."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response

from api.api_keys import (
    Made,
    create_key,
    find_key,
    keys_of,
    read_key,
    read_rotation,
    revoke_key,
    rotate_key,
)
from api.auth import ROLES, Allowed, Caller, Scope
from api.bodies import check_accept, read_body, read_object
from api.decisions import accepted_later, asked_of, caught_up, json_response, preference_of
from api.described import (
    AFTER,
    BODY,
    CURSOR,
    IDEMPOTENCY_KEY,
    LIMIT,
    PREFER,
    REASON,
    WRITE,
    described,
    query_name,
)
from api.fields import Fields
from api.parameters import (
    limit_of,
    next_link,
    open_cursor,
    query_of,
    seal_cursor,
)
from api.problems import refused_field
from api.services import Services, services_of
from api.shared_facts import check
from api.wishes import has_body, read_wish
from minutebook.client.key_models import (
    CreatedKey,
    Key,
    KeyPage,
    KeyRequest,
    KeySource,
    Me,
    Role,
    RotationRequest,
)
from minutebook.client.models import Command, ReasonRequest
from minutebook.times import format_instant

router = APIRouter()
Managing = Annotated[Caller, Depends(Allowed(Scope.KEYS_MANAGE))]
Anybody = Annotated[Caller, Depends(Allowed(Scope.SELF_READ))]
_PATH: Final = "/v1/keys"
_MADE: Final = {
    201: "Made. The key is shown here and nowhere else.",
    202: "Durable, but not decided in time: `Location` names the command. The key is shown here and nowhere else.",
}


@router.get(
    "/v1/me",
    operation_id="get_me",
    openapi_extra=described(answers={200: Me}, refusals=("bad-parameter",)),
)
async def get_me(request: Request, caller: Anybody) -> Response:
    """Who is asking: the key of this request, its tenant, role and end, and the scopes that its role covers."""
    services_of(request)
    check_accept(request)
    query_of(request)
    role: Role = caller.role  # type: ignore[assignment]  # one of ROLES
    source: KeySource = "log" if caller.is_declared else "settings"
    expires_at = None if caller.expires_at is None else format_instant(caller.expires_at)
    scopes = sorted(ROLES[caller.role])
    return json_response(Me(caller.key, caller.tenant, role, caller.label, source, expires_at, list(scopes)))


@router.get(
    _PATH,
    operation_id="list_keys",
    openapi_extra=described(
        answers={200: KeyPage},
        parameters=(LIMIT, CURSOR, AFTER, PREFER),
        refusals=("bad-parameter", "view-behind"),
    ),
)
async def list_keys(request: Request, caller: Managing) -> Response:
    """List the keys of the caller's tenant by id, also those that are good no more. No key itself is shown."""
    services = services_of(request)
    check_accept(request)
    query = query_of(request, "limit", "cursor")
    limit = limit_of(query)
    await caught_up(request, services)
    secret, scope = services.keyring.secret, f"{caller.tenant}/keys"
    start = open_cursor(secret, scope, query["cursor"]).decode() if "cursor" in query else ""
    found = [key for key in keys_of(services, caller.tenant) if key.id >= start]
    if len(found) <= limit:
        return json_response(KeyPage(found, None))
    cursor = seal_cursor(secret, scope, found[limit].id.encode())
    return json_response(KeyPage(found[:limit], cursor), headers=next_link(_PATH, query, cursor))


@router.post(
    _PATH,
    operation_id="create_key",
    status_code=201,
    openapi_extra=described(
        takes=KeyRequest,
        example={"label": "deploy", "role": "submitter", "expires_in": "P90D"},
        answers={201: CreatedKey, 202: CreatedKey},
        parameters=(IDEMPOTENCY_KEY, REASON, PREFER),
        refusals=(*BODY, *WRITE, "key-exists", "too-many-keys"),
        said=_MADE,
    ),
)
async def make_key(request: Request, caller: Managing) -> Response:
    """Make a key for the caller's tenant. The answer shows it once; a repeat with the same Idempotency-Key is refused."""
    services, fields, data = await _body(request)
    wish = read_key(fields, services.clock.now())
    asked = asked_of(request)
    wish = wish._replace(reason=wish.reason or asked.reason)
    check(fields, data)
    command_id = asked.command_id(caller.tenant, "keys")
    return _made(await create_key(services, caller, wish, command_id, asked.wait_s))


@router.get(
    _PATH + "/{key_id}",
    operation_id="get_key",
    openapi_extra=described(
        answers={200: Key},
        parameters=(AFTER, PREFER),
        refusals=("not-found", "bad-parameter", "view-behind"),
    ),
)
async def get_key(request: Request, caller: Managing, key_id: str) -> Response:
    """Read what is known of a key: its role, its end, who made it. The key itself is kept nowhere."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    await caught_up(request, services)
    return json_response(find_key(services, caller.tenant, key_id))


@router.post(
    _PATH + "/{key_id}/rotate",
    operation_id="rotate_key",
    status_code=201,
    openapi_extra=described(
        takes=RotationRequest,
        is_body_optional=True,
        example={"old_expires_in": "P7D"},
        answers={201: CreatedKey, 202: CreatedKey},
        parameters=(IDEMPOTENCY_KEY, REASON, PREFER),
        refusals=(*BODY, *WRITE, "not-found", "key-exists", "key-closed", "key-in-settings", "too-many-keys"),
        said=_MADE,
    ),
)
async def make_next_key(request: Request, caller: Managing, key_id: str) -> Response:
    """Make a second key with the same label and role, and give the old one an end. The answer shows the new one once."""
    services, fields, data = await _body(request, is_optional=True)
    wish = read_rotation(fields, services.clock.now())
    asked = asked_of(request)
    wish = wish._replace(reason=wish.reason or asked.reason)
    check(fields, data)
    command_id = asked.command_id(caller.tenant, key_id)
    return _made(await rotate_key(services, caller, key_id, wish, command_id, asked.wait_s))


@router.post(
    _PATH + "/{key_id}/revoke",
    operation_id="revoke_key",
    openapi_extra=described(
        takes=ReasonRequest,
        is_body_optional=True,
        example={"reason": "it was in a log"},
        answers={200: Key, 202: Command},
        parameters=(
            query_name("force", "`true` also ends the key of this very request.", enum=["true", "false"]),
            REASON,
            PREFER,
        ),
        refusals=(*BODY, *WRITE, "not-found", "key-in-use", "key-in-settings"),
    ),
)
async def end_key(request: Request, caller: Managing, key_id: str) -> Response:
    """End a key at once, for good. Each API process refuses it as soon as its view has read that."""
    services = services_of(request)
    check_accept(request)
    force = query_of(request, "force").get("force", "false")
    if force not in ("true", "false"):
        raise refused_field("force", "must be true or false", "bad-parameter")
    wish = await read_wish(request, services.settings.body_timeout_s)
    wait_s = preference_of(request).wait_s
    decision = await revoke_key(services, caller, key_id, wish.reason, wait_s, is_forced=force == "true")
    if decision.row is None:
        return accepted_later(decision)
    return json_response(find_key(services, caller.tenant, key_id), token=decision.token())


async def _body(request: Request, *, is_optional: bool = False) -> tuple[Services, Fields, bytes]:
    services = services_of(request)
    check_accept(request)
    query_of(request)
    data = b"{}"
    if not is_optional or has_body(request):
        data = await read_body(request, services.settings.body_timeout_s)
    return services, Fields(read_object(data)), data


def _made(made: Made) -> Response:
    decision = made.decision
    is_decided = decision.row is not None
    where = f"{_PATH}/{made.key.id}" if is_decided else f"/v1/commands/{decision.command_id}"
    return json_response(made.key, 201 if is_decided else 202, {"location": where}, decision.token())
