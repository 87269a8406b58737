"""Queues: declared by people, known to every partition before the answer goes out."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response

from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept, check_distinct, check_value, read_body, read_object, read_value
from api.decisions import accepted_later, decide, json_response, preference_of, refusal_of
from api.described import BODY, PREFER, WRITE, described
from api.parameters import query_of
from api.positions import Token
from api.problems import Refused
from api.sender import Keyed
from api.services import services_of
from minutebook.client.mint import mint_id
from minutebook.client.models import Command, FieldError, Queue, QueueRequest
from minutebook.domain.commands import DeclareQueue
from minutebook.ids import is_name, queue_key

router = APIRouter()
Declaring = Annotated[Caller, Depends(Allowed(Scope.QUEUES_WRITE))]
_FIELDS: Final = ("name", "open", "tenants")
_TENANTS_MAX: Final = 100


@router.post(
    "/v1/queues",
    operation_id="declare_queue",
    openapi_extra=described(
        takes=QueueRequest,
        example={"name": "mail"},
        answers={200: Queue, 201: Queue, 202: Command},
        parameters=(PREFER,),
        refusals=(*BODY, *WRITE),
    ),
)
async def declare_queue(request: Request, caller: Declaring) -> Response:
    """Declare a queue, or change it. Answered once every partition knows it; the due topic of an open one is made first."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    wanted = read_queue(await read_body(request, services.settings.body_timeout_s))
    if wanted.open:
        await services.due_topics.make(wanted.name)
    command = DeclareQueue(
        name=wanted.name,
        command_id=mint_id(),
        issued_at=services.clock.now(),
        actor=caller.actor,
        is_open=wanted.open,
        tenants=wanted.tenants,
    )
    view = services.view
    home = view.partition_of_queue(wanted.name)
    wait_s = preference_of(request).wait_s
    decision = await decide(services, home, Keyed(queue_key(wanted.name), command), wait_s)
    if decision.row is None:
        return accepted_later(decision)
    if not decision.row.is_accepted:
        raise refusal_of(decision.row)
    declared = view.queue(home, wanted.name)
    version = declared.version if declared is not None else decision.row.version

    def is_everywhere() -> bool:
        copies = (view.queue(partition, wanted.name) for partition in range(view.partitions))
        return all(copy is not None and copy.version >= version for copy in copies)

    if not await view.until(is_everywhere, wait_s):
        return accepted_later(decision)
    token = Token({part.partition: part.cursor.position for part in view.parts})
    body = Queue(wanted.name, version, wanted.tenants, wanted.open)
    return json_response(body, 201 if decision.row.version == 1 else 200, token=token)


def read_queue(body: bytes) -> QueueRequest:
    """The queue in a body. Raises Refused naming every field at fault."""
    members = read_object(body)
    values: dict[str, Any] = {name: read_value(raw, f"/{name[:64]}") for name, raw in members.items()}
    errors = [
        FieldError("/" + ascii(name[:64])[1:-1], f"unknown field; known are {', '.join(_FIELDS)}")
        for name in values
        if name not in _FIELDS
    ]
    name = values.get("name")
    if not isinstance(name, str) or not is_name(name):
        errors.append(FieldError("/name", "is required: 1-128 ASCII letters, digits, ._-"))
    is_open = values.get("open", False)
    if not isinstance(is_open, bool):
        errors.append(FieldError("/open", "must be true or false"))
    tenants = values.get("tenants", [])
    if not isinstance(tenants, list) or len(tenants) > _TENANTS_MAX or not all(map(_is_tenant, tenants)):
        errors.append(FieldError("/tenants", f"must be a list of at most {_TENANTS_MAX} tenants"))
    if errors:
        raise Refused("invalid", errors=errors)
    check_distinct(body, check_value(values, ""))
    return QueueRequest(str(name), sorted(set(tenants)), is_open)


def _is_tenant(value: object) -> bool:
    return isinstance(value, str) and is_name(value)
