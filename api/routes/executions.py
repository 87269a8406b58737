"""Executions: the history of a job, one of them with its attempts, and what can be done about one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response
from msgspec import Raw

from api.answers import Around, execution_bodies, upcoming_body, upcoming_row, whole_body
from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept
from api.decisions import (
    Asked,
    Decision,
    accepted_later,
    asked_of,
    caught_up,
    decide_for_job,
    json_response,
)
from api.described import AFTER, BODY, CURSOR, IDEMPOTENCY_KEY, LIMIT, PREFER, WAIT, WRITE, described
from api.parameters import (
    limit_of,
    next_link,
    open_cursor,
    query_of,
    seal_cursor,
    wait_of,
)
from api.problems import Refused
from api.services import Services, services_of
from api.wishes import Wish, read_wish
from minutebook.client.models import (
    Command,
    Execution,
    ExecutionPage,
    ReasonRequest,
    RedriveRequest,
    WholeExecution,
)
from minutebook.domain.commands import CancelExecution, DiscardExecution, RedriveExecution
from minutebook.domain.view_rows import ExecutionRow
from minutebook.ids import execution_id, is_execution_id, is_name, job_of

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
Writing = Annotated[Caller, Depends(Allowed(Scope.JOBS_WRITE))]
Operating = Annotated[Caller, Depends(Allowed(Scope.JOBS_OPERATE))]
_NUMBER: Final = struct.Struct(">I")
_UPCOMING: Final = b"\xff"
"""Place of the job's next instant, which has no row yet: after all that have one."""
_STATE_REFUSALS: Final = ("execution-closed", "not-dead", "discarded")


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
            link = next_link(f"/v1/jobs/{job_id}/executions", query, cursor)
            return json_response(ExecutionPage(items, cursor), headers=link)
        items.append(item)
    return json_response(ExecutionPage(items, None))


def _from(
    services: Services, tenant: str, job_id: str, start: bytes, number: int
) -> Iterator[tuple[bytes, Execution]]:
    """(place, item) from attempt `number` of the execution at `start` on."""
    view = services.view
    if start != _UPCOMING:
        around = _around(services, tenant, job_id)
        for key, name, row in view.executions(tenant, job_id, start):
            for item in execution_bodies(name, row, around):
                if key != start or item.attempt >= number:
                    yield key, item
    found = view.job(tenant, job_id)
    if found is not None and found[1].coming_at >= 0:
        yield _UPCOMING, upcoming_body(tenant, job_id, found[0], found[1].coming_at)


@router.get(
    "/v1/executions/{execution_id}",
    operation_id="get_execution",
    openapi_extra=described(
        answers={200: WholeExecution},
        parameters=(WAIT, AFTER, PREFER),
        refusals=("not-found", "bad-parameter", "view-behind"),
    ),
)
async def get_execution(request: Request, caller: Reading, execution_id: str) -> Response:
    """Read an execution with its attempts. With `wait` the answer comes with its outcome, or after so many seconds."""
    services = services_of(request)
    check_accept(request)
    wait_s = wait_of(query_of(request, "wait"))
    await caught_up(request, services)
    found = find_execution(services, caller.tenant, execution_id)
    if found.outcome is None and wait_s:
        await services.view.until(_has_ended(services, caller.tenant, execution_id), wait_s)
        found = find_execution(services, caller.tenant, execution_id)
    return json_response(found)


@router.post(
    "/v1/executions/{execution_id}/cancel",
    operation_id="cancel_execution",
    openapi_extra=described(
        takes=ReasonRequest,
        is_body_optional=True,
        example={"reason": "sent by hand"},
        answers={200: WholeExecution, 202: Command},
        parameters=(IDEMPOTENCY_KEY, PREFER),
        refusals=(*BODY, *WRITE, "not-found", "execution-closed"),
    ),
)
async def cancel_execution(request: Request, caller: Writing, execution_id: str) -> Response:
    """Cancel an execution: no attempt after this; a running one is asked to stop. The job goes on."""
    services = services_of(request)
    asked = _asked_about(request, execution_id)
    wish = await read_wish(request, services.settings.body_timeout_s)
    return _answer(services, caller, execution_id, await cancel(services, caller, execution_id, wish, asked))


async def cancel(services: Services, caller: Caller, name: str, wish: Wish, asked: Asked) -> Decision:
    """Cancel an execution. Raises Refused."""
    command = CancelExecution(
        tenant=caller.tenant,
        job_id=job_of(name),
        command_id=asked.command_id(caller.tenant, name),
        issued_at=services.clock.now(),
        actor=caller.actor,
        reason=wish.reason,
        execution=name,
    )
    return await _decide(services, command, asked)


@router.post(
    "/v1/executions/{execution_id}/redrive",
    operation_id="redrive_execution",
    openapi_extra=described(
        takes=RedriveRequest,
        is_body_optional=True,
        example={"payload": {"user_id": 2}, "reason": "the user was merged"},
        answers={200: WholeExecution, 202: Command},
        parameters=(IDEMPOTENCY_KEY, PREFER),
        refusals=(*BODY, *WRITE, "not-found", "bad-payload", "not-dead", "discarded"),
    ),
)
async def redrive_execution(request: Request, caller: Operating, execution_id: str) -> Response:
    """Run a dead execution again. It keeps its id and its history; an edited payload is that of this execution alone."""
    services = services_of(request)
    asked = _asked_about(request, execution_id)
    wish = await read_wish(request, services.settings.body_timeout_s, takes_payload=True)
    return _answer(services, caller, execution_id, await redrive(services, caller, execution_id, wish, asked))


async def redrive(services: Services, caller: Caller, name: str, wish: Wish, asked: Asked) -> Decision:
    """Run a dead execution again. Raises Refused."""
    job = services.view.job(caller.tenant, job_of(name))
    if wish.payload is not None and job is not None:
        services.task_types.check(job[0].task, wish.payload)
    command = RedriveExecution(
        tenant=caller.tenant,
        job_id=job_of(name),
        command_id=asked.command_id(caller.tenant, name),
        issued_at=services.clock.now(),
        actor=caller.actor,
        reason=wish.reason,
        execution=name,
        payload=wish.payload,
    )
    return await _decide(services, command, asked)


@router.post(
    "/v1/executions/{execution_id}/discard",
    operation_id="discard_execution",
    openapi_extra=described(
        takes=ReasonRequest,
        is_body_optional=True,
        example={"reason": "sent by hand"},
        answers={200: WholeExecution, 202: Command},
        parameters=(IDEMPOTENCY_KEY, PREFER),
        refusals=(*BODY, *WRITE, "not-found", "not-dead"),
    ),
)
async def discard_execution(request: Request, caller: Operating, execution_id: str) -> Response:
    """Say that a dead execution needs no attention any more. It leaves the dead letters, stays in the history, and can be
    redriven no more.
    """
    services = services_of(request)
    asked = _asked_about(request, execution_id)
    wish = await read_wish(request, services.settings.body_timeout_s)
    return _answer(services, caller, execution_id, await discard(services, caller, execution_id, wish, asked))


async def discard(services: Services, caller: Caller, name: str, wish: Wish, asked: Asked) -> Decision:
    """A dead execution needs no attention any more. Raises Refused."""
    command = DiscardExecution(
        tenant=caller.tenant,
        job_id=job_of(name),
        command_id=asked.command_id(caller.tenant, name),
        issued_at=services.clock.now(),
        actor=caller.actor,
        reason=wish.reason,
        execution=name,
    )
    return await _decide(services, command, asked)


def _asked_about(request: Request, name: str) -> Asked:
    """What is asked of an action on an execution. Raises Refused for what is wrong before the body."""
    check_accept(request)
    query_of(request)
    if not is_execution_id(name):
        raise Refused("not-found")
    return asked_of(request)


async def _decide(
    services: Services, command: CancelExecution | RedriveExecution | DiscardExecution, asked: Asked
) -> Decision:
    """The owner's decision. Raises Refused."""
    try:
        return await decide_for_job(services, command, asked.wait_s)
    except Refused as refused:
        if refused.code in _STATE_REFUSALS:
            # One that never was is not found, whatever the owner says of its state.
            find_execution(services, command.tenant, command.execution)
        raise


def _answer(services: Services, caller: Caller, name: str, decision: Decision) -> Response:
    """The execution as the decision left it."""
    if decision.row is None:
        return accepted_later(decision)
    return json_response(find_execution(services, caller.tenant, name), token=decision.token())


def find_execution(services: Services, tenant: str, name: str) -> WholeExecution:
    """An execution, that at its job's next instant too. Raises Refused (not-found)."""
    if not is_execution_id(name):
        raise Refused("not-found")
    row = _row(services, tenant, name)
    if row is None:
        raise Refused("not-found")
    return whole_body(name, row, _around(services, tenant, job_of(name)))


def payload_of(services: Services, tenant: str, execution: WholeExecution) -> Raw | None:
    """What an execution runs with; None where it was edited at a redrive, which is no version of its job."""
    version = next(services.view.versions(tenant, execution.job_id, execution.version), None)
    return Raw(version.payload) if version is not None and version.version == execution.version else None


def _row(services: Services, tenant: str, name: str) -> ExecutionRow | None:
    row = services.view.execution(tenant, name)
    if row is not None:
        return row
    job_id = job_of(name)
    job = services.view.job(tenant, job_id)
    if job is None or execution_id(job_id, job[1].coming_at) != name:
        return None
    return upcoming_row(tenant, job_id, job[0], job[1].coming_at)


def _around(services: Services, tenant: str, job_id: str) -> Around:
    view = services.view
    worker_of = view.parts[view.partition_of_job(tenant, job_id)].worker
    return Around(worker_of, view.waiting_for(tenant, job_id, services.clock.now()))


def _has_ended(services: Services, tenant: str, name: str) -> Callable[[], bool]:
    """Whether an execution has its outcome, or will never be; looks again only where its partition has moved."""
    view = services.view
    part = view.parts[view.partition_of_job(tenant, job_of(name))]
    seen = part.cursor.position

    def has_ended() -> bool:
        nonlocal seen
        if part.cursor.position == seen:
            return False
        seen = part.cursor.position
        row = _row(services, tenant, name)
        return row is None or bool(row.outcome)

    return has_ended
