"""Queues: declared, paused, drained and resumed by people; every partition knows it before the answer goes out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Final, NamedTuple

from fastapi import APIRouter, Depends, Request, Response

from api.answers import queue_body
from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept, check_distinct, check_value, read_body, read_object, read_value
from api.decisions import accepted_later, caught_up, json_response, preference_of
from api.described import AFTER, BODY, CURSOR, LIMIT, PREFER, WRITE, described
from api.everywhere import Spread, decide_everywhere
from api.parameters import limit_of, next_link, open_cursor, query_of, seal_cursor
from api.problems import Refused
from api.services import Services, services_of
from api.wishes import Wish, read_wish, refuse_reason
from minutebook.client.models import Command, FieldError, Queue, QueuePage, QueueRequest, ReasonRequest
from minutebook.domain.commands import DeclareQueue, DrainQueue, PauseQueue, QueueCommand, ResumeQueue
from minutebook.domain.view_rows import QueueRow
from minutebook.ids import is_name
from minutebook.mint import mint_id

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
Declaring = Annotated[Caller, Depends(Allowed(Scope.QUEUES_WRITE))]
_FIELDS: Final = ("name", "open", "tenants")
_TENANTS_MAX: Final = 100
Kind = type[PauseQueue | DrainQueue | ResumeQueue]


@router.post(
    "/v1/queues",
    operation_id="declare_queue",
    openapi_extra=described(
        takes=QueueRequest,
        example={"name": "mail"},
        answers={200: Queue, 201: Queue, 202: Command},
        parameters=(PREFER,),
        refusals=(*BODY, *WRITE, "queue-taken"),
    ),
)
async def declare_queue(request: Request, caller: Declaring) -> Response:
    """Declare a queue, or change it. Answered once every partition knows it; the due topic of an open one is made first."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    refuse_reason(request)
    wanted = read_queue(await read_body(request, services.settings.body_timeout_s))
    if is_hidden(services, caller, wanted.name):
        raise Refused("queue-taken", errors=[FieldError("/name", "taken; choose another one")])
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
    return _answer(services, command, await _spread(services, command, preference_of(request).wait_s))


@router.get(
    "/v1/queues",
    operation_id="list_queues",
    openapi_extra=described(
        answers={200: QueuePage},
        parameters=(LIMIT, CURSOR, AFTER, PREFER),
        refusals=("bad-parameter", "view-behind"),
    ),
)
async def list_queues(request: Request, caller: Reading) -> Response:
    """List the queues that the caller may use, by name; an admin sees all of them."""
    services = services_of(request)
    check_accept(request)
    query = query_of(request, "limit", "cursor")
    limit = limit_of(query)
    await caught_up(request, services)
    secret, scope = services.keyring.secret, f"{caller.tenant}/{caller.role}/queues"
    start = open_cursor(secret, scope, query["cursor"]).decode() if "cursor" in query else ""
    found = list(islice(queues_of(services, caller, start), limit + 1))
    if len(found) <= limit:
        return json_response(QueuePage(found, None))
    cursor = seal_cursor(secret, scope, found.pop().name.encode())
    return json_response(QueuePage(found, cursor), headers=next_link("/v1/queues", query, cursor))


@router.get(
    "/v1/queues/{name}",
    operation_id="get_queue",
    openapi_extra=described(
        answers={200: Queue},
        parameters=(AFTER, PREFER),
        refusals=("not-found", "bad-parameter", "view-behind"),
    ),
)
async def get_queue(request: Request, caller: Reading, name: str) -> Response:
    """Read a queue: who may use it, and whether it is paused."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    await caught_up(request, services)
    return json_response(find_queue(services, caller, name))


def queues_of(services: Services, caller: Caller, start: str = "") -> Iterator[Queue]:
    """The queues that the caller may use, by name from `start` on."""
    shown = (_shown(caller, name, row) for name, row in services.view.queues() if name >= start)
    return (queue for queue in shown if queue is not None)


def find_queue(services: Services, caller: Caller, name: str) -> Queue:
    """A queue as the caller may see it. Raises Refused (not-found)."""
    view = services.view
    row = view.queue(view.partition_of_queue(name), name) if is_name(name) else None
    queue = None if row is None else _shown(caller, name, row)
    if queue is None:
        raise Refused("not-found")
    return queue


def is_hidden(services: Services, caller: Caller, name: str) -> bool:
    """Whether a queue is there, but for other tenants than the caller's."""
    row = services.view.queue(services.view.partition_of_queue(name), name)
    return row is not None and _shown(caller, name, row) is None


@router.post(
    "/v1/queues/{name}/pause",
    operation_id="pause_queue",
    openapi_extra=described(
        takes=ReasonRequest,
        is_body_optional=True,
        example={"reason": "the mail server is down"},
        answers={200: Queue, 202: Command},
        parameters=(PREFER,),
        refusals=(*BODY, *WRITE, "not-found"),
    ),
)
async def pause_queue(request: Request, caller: Declaring, name: str) -> Response:
    """Grant nothing of a queue any more; what runs goes on. Answered once every partition knows it."""
    return await _change(request, caller, name, PauseQueue)


@router.post(
    "/v1/queues/{name}/drain",
    operation_id="drain_queue",
    openapi_extra=described(
        takes=ReasonRequest,
        is_body_optional=True,
        example={"reason": "its consumer is retired"},
        answers={200: Queue, 202: Command},
        parameters=(PREFER,),
        refusals=(*BODY, *WRITE, "not-found"),
    ),
)
async def drain_queue(request: Request, caller: Declaring, name: str) -> Response:
    """Take no new job for a queue; what it has goes on. Answered once every partition knows it."""
    return await _change(request, caller, name, DrainQueue)


@router.post(
    "/v1/queues/{name}/resume",
    operation_id="resume_queue",
    openapi_extra=described(
        takes=ReasonRequest,
        is_body_optional=True,
        answers={200: Queue, 202: Command},
        parameters=(PREFER,),
        refusals=(*BODY, *WRITE, "not-found"),
    ),
)
async def resume_queue(request: Request, caller: Declaring, name: str) -> Response:
    """Grant again what waits in a queue, and take jobs for it. Answered once every partition knows it."""
    return await _change(request, caller, name, ResumeQueue)


async def _change(request: Request, caller: Caller, name: str, kind: Kind) -> Response:
    services = services_of(request)
    check_accept(request)
    query_of(request)
    if not is_name(name) or is_hidden(services, caller, name):
        raise Refused("not-found")
    wish = await read_wish(request, services.settings.body_timeout_s)
    return _answer(services, *await change(services, caller, name, kind, wish, preference_of(request).wait_s))


class Changed(NamedTuple):
    """A command on a queue, and what became of it."""

    command: QueueCommand
    spread: Spread


async def change(
    services: Services, caller: Caller, name: str, kind: Kind, wish: Wish, wait_s: float
) -> Changed:
    """Pause, drain or resume a queue. Raises Refused where its home refuses."""
    command = kind(
        name=name,
        command_id=mint_id(),
        issued_at=services.clock.now(),
        actor=caller.actor,
        reason=wish.reason,
    )
    return Changed(command, await _spread(services, command, wait_s))


async def _spread(services: Services, command: QueueCommand, wait_s: float) -> Spread:
    def version_in(partition: int) -> int | None:
        copy = services.view.queue(partition, command.name)
        return None if copy is None else copy.version

    return await decide_everywhere(services, command, version_in, wait_s)


def _answer(services: Services, command: QueueCommand, spread: Spread) -> Response:
    """The queue, once every partition knows it as the command left it."""
    view, name = services.view, command.name
    decision, token = spread
    changed = view.queue(view.partition_of_queue(name), name)
    if token is None or decision.row is None or changed is None:
        return accepted_later(decision)
    is_new = isinstance(command, DeclareQueue) and decision.row.version == 1
    return json_response(queue_body(name, changed), 201 if is_new else 200, token=token)


def _shown(caller: Caller, name: str, row: QueueRow) -> Queue | None:
    """The queue as the caller may see it: nothing of those for others, and no other tenant's name.

    An admin looks after queues of all tenants; an operator after those of its own, whose tenants it may declare.
    """
    queue = queue_body(name, row)
    if caller.role == "admin" or not queue.tenants:
        return queue
    if caller.tenant not in queue.tenants:
        return None
    if not caller.may(Scope.QUEUES_WRITE):
        queue.tenants = [caller.tenant]
    return queue


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
