"""Bulk operations: many executions run again, or instants that never ran, or jobs are changed; listed, watched and
cancelled.
"""

from __future__ import annotations

import struct
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Depends, Request, Response

from api.auth import Allowed, Caller, Scope
from api.backfill import check_job, check_wish, count_instants
from api.bodies import check_accept, read_body
from api.decisions import (
    Asked,
    Decision,
    accepted_later,
    asked_of,
    caught_up,
    decide,
    json_response,
    preference_of,
    refusal_of,
)
from api.described import (
    AFTER,
    BODY,
    CURSOR,
    IDEMPOTENCY_KEY,
    LIMIT,
    PREFER,
    WAIT,
    WRITE,
    described,
)
from api.dry_run import count_dead, count_jobs
from api.lanes import Keyed
from api.operation_bodies import (
    OperationWish,
    operation_body,
    pending_body,
    read_backfill,
    read_dead,
    read_operation,
)
from api.parameters import (
    idempotency_key_of,
    limit_of,
    next_link,
    open_cursor,
    query_of,
    seal_cursor,
    wait_of,
)
from api.problems import Refused
from api.services import Services, services_of
from api.wishes import Wish, read_wish, reason_of
from minutebook.client.models import Command, ReasonRequest
from minutebook.client.operation_models import (
    BackfillDryRun,
    BackfillRequest,
    DiscardManyRequest,
    DryRun,
    JobDryRun,
    Operation,
    OperationPage,
    OperationRequest,
    RedriveManyRequest,
)
from minutebook.domain.commands import CancelOperation, OperationCommand, StartOperation
from minutebook.domain.operations import DEAD_KINDS, JOB_KINDS
from minutebook.domain.state import NONE_AT
from minutebook.domain.view_operations import OperationRow
from minutebook.ids import command_id_from_key, is_name, operation_key

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
Operating = Annotated[Caller, Depends(Allowed(Scope.JOBS_OPERATE))]
_AT: Final = struct.Struct(">q")
_STARTS: Final = (*BODY, *WRITE, "key-reused", "too-many-operations", "view-behind")
_SAID: Final = {
    200: "Of a dry run: how many there are. Nothing is changed.",
    202: "The operation, which goes on by itself: `Location` names it.",
}


@router.post(
    "/v1/dead-letters/redrive",
    operation_id="redrive_dead_letters",
    openapi_extra=described(
        takes=RedriveManyRequest,
        example={"filter": {"task": "report.build"}, "rate_per_s": 50, "reason": "the database is back"},
        answers={200: DryRun, 202: Operation},
        said=_SAID,
        parameters=(IDEMPOTENCY_KEY, PREFER, AFTER),
        refusals=_STARTS,
    ),
)
async def redrive_dead_letters(request: Request, caller: Operating) -> Response:
    """Run all dead executions again that fit and were given up before now. The key is required but for a dry run."""
    wish = read_dead(await _body_of(request), "redrive")
    return await _start(request, caller, wish, "dead-letters/redrive")


@router.post(
    "/v1/dead-letters/discard",
    operation_id="discard_dead_letters",
    openapi_extra=described(
        takes=DiscardManyRequest,
        example={"filter": {"task": "report.build"}, "reason": "the reports are no longer wanted"},
        answers={200: DryRun, 202: Operation},
        said=_SAID,
        parameters=(IDEMPOTENCY_KEY, PREFER, AFTER),
        refusals=_STARTS,
    ),
)
async def discard_dead_letters(request: Request, caller: Operating) -> Response:
    """Discard all dead executions that fit and were given up before now. The key is required but for a dry run."""
    wish = read_dead(await _body_of(request), "discard")
    return await _start(request, caller, wish, "dead-letters/discard")


@router.post(
    "/v1/operations",
    operation_id="start_operation",
    openapi_extra=described(
        takes=OperationRequest,
        example={
            "kind": "backfill",
            "filter": {"job_id": "nightly", "from": "2026-06-01T00:00:00Z", "until": "2026-06-08T00:00:00Z"},
            "reason": "paused by mistake",
        },
        answers={200: (DryRun, BackfillDryRun, JobDryRun), 202: Operation},
        said=_SAID,
        parameters=(IDEMPOTENCY_KEY, PREFER, AFTER),
        refusals=(*_STARTS, "not-found", "job-closed"),
    ),
)
async def start_operation(request: Request, caller: Operating) -> Response:
    """Do something to many executions, or to many jobs. The key is required but for a dry run."""
    wish = read_operation(await _body_of(request))
    return await _start(request, caller, wish, "operations")


@router.post(
    "/v1/jobs/{job_id}/backfill",
    operation_id="backfill_job",
    openapi_extra=described(
        takes=BackfillRequest,
        example={
            "from": "2026-06-01T00:00:00Z",
            "until": "2026-06-08T00:00:00Z",
            "rate_per_s": 1,
            "reason": "paused by mistake",
        },
        answers={200: BackfillDryRun, 202: Operation},
        said=_SAID,
        parameters=(IDEMPOTENCY_KEY, PREFER, AFTER),
        refusals=(*_STARTS, "not-found", "job-closed"),
    ),
)
async def backfill_job(request: Request, caller: Operating, job_id: str) -> Response:
    """Run past instants of a job that never ran. The key is required but for a dry run."""
    if not is_name(job_id):
        raise Refused("not-found")
    wish = read_backfill(await _body_of(request), job_id)
    return await _start(request, caller, wish, f"jobs/{job_id}/backfill")


async def _body_of(request: Request) -> bytes:
    check_accept(request)
    query_of(request)
    return await read_body(request, services_of(request).settings.body_timeout_s)


async def _start(request: Request, caller: Caller, wish: OperationWish, subject: str) -> Response:
    """Start what is wished for, or count it. `subject`: what a key of the caller is told apart by."""
    services = services_of(request)
    key = idempotency_key_of(request, is_required=not wish.is_dry_run)
    wish = wish._replace(reason=wish.reason or reason_of(request))
    if wish.kind == "backfill":
        check_wish(wish, services.clock.now())
    await caught_up(request, services)
    if wish.is_dry_run:
        return json_response(await count(services, caller, wish))
    started = await start(services, caller, wish, subject, Asked(preference_of(request).wait_s, key))
    headers = {"location": f"/v1/operations/{started.body.id}"}
    return json_response(started.body, 202, headers, started.decision.token())


class Started(NamedTuple):
    """An operation that was started, as far as it was decided."""

    body: Operation
    decision: Decision


async def start(
    services: Services, caller: Caller, wish: OperationWish, subject: str, asked: Asked
) -> Started:
    """Start what is wished for. `subject`: what a key of the caller is told apart by. Raises Refused."""
    if wish.kind == "backfill":
        check_wish(wish, services.clock.now())
    name = command_id_from_key(caller.tenant, subject, asked.key or "")
    if wish.kind == "backfill" and services.view.operation(caller.tenant, name) is None:
        check_job(services.view, caller.tenant, wish)
    command = StartOperation(
        tenant=caller.tenant,
        operation=name,
        command_id=name,
        issued_at=services.clock.now(),
        actor=caller.actor,
        reason=wish.reason,
        kind=wish.kind,
        filter=wish.wanted,
        rate_per_s=wish.rate_per_s,
    )
    decision = await _decide(services, command, asked.wait_s)
    if decision.row is None:
        return Started(pending_body(command), decision)
    if not decision.row.is_accepted:
        raise refusal_of(decision.row)
    found = _found(services, caller, name)
    if (found.fact.kind, found.fact.filter, found.fact.rate_per_s, found.fact.reason) != (
        command.kind,
        command.filter,
        command.rate_per_s,
        command.reason,
    ):
        raise Refused("key-reused")
    return Started(_body(services, found), decision)


async def count(
    services: Services, caller: Caller, wish: OperationWish
) -> DryRun | BackfillDryRun | JobDryRun:
    """What an operation would be about. Raises Refused."""
    if wish.kind == "backfill":
        check_wish(wish, services.clock.now())
    if wish.kind in JOB_KINDS:
        return await count_jobs(services.view, caller.tenant, wish.kind, wish.wanted)
    if wish.kind in DEAD_KINDS:
        return await count_dead(services.view, caller.tenant, wish.wanted)
    plan = check_job(services.view, caller.tenant, wish)
    return await count_instants(services.view, caller.tenant, wish.wanted, plan, services.clock.now())


@router.get(
    "/v1/operations",
    operation_id="list_operations",
    openapi_extra=described(
        answers={200: OperationPage},
        parameters=(LIMIT, CURSOR, AFTER, PREFER),
        refusals=("bad-parameter", "view-behind"),
    ),
)
async def list_operations(request: Request, caller: Reading) -> Response:
    """List bulk operations, the latest first."""
    services = services_of(request)
    check_accept(request)
    query = query_of(request, "limit", "cursor")
    limit = limit_of(query)
    await caught_up(request, services)
    page = operations_page(services, caller, limit, query.get("cursor"))
    return json_response(page, headers=next_link("/v1/operations", query, page.next_cursor))


def operations_page(services: Services, caller: Caller, limit: int, cursor: str | None) -> OperationPage:
    """Operations from `cursor` on. Raises Refused (bad-parameter)."""
    rows = sorted(services.view.operations(caller.tenant), key=_place, reverse=True)
    secret, scope = services.keyring.secret, f"{caller.tenant}/operations"
    if cursor is not None:
        first = open_cursor(secret, scope, cursor)
        rows = [row for row in rows if _place(row) <= first]
    following = seal_cursor(secret, scope, _place(rows[limit])) if len(rows) > limit else None
    return OperationPage([_body(services, row) for row in rows[:limit]], following)


def find_operation(services: Services, caller: Caller, operation_id: str) -> Operation:
    """An operation as it stands. Raises Refused (not-found)."""
    return _body(services, _found(services, caller, operation_id))


@router.get(
    "/v1/operations/{operation_id}",
    operation_id="get_operation",
    openapi_extra=described(
        answers={200: Operation},
        parameters=(WAIT, AFTER, PREFER),
        refusals=("not-found", "bad-parameter", "view-behind"),
    ),
)
async def get_operation(request: Request, caller: Reading, operation_id: str) -> Response:
    """Read a bulk operation and how far it is. With `wait` the answer comes with its end, or after so many seconds."""
    services = services_of(request)
    check_accept(request)
    wait_s = wait_of(query_of(request, "wait"))
    await caught_up(request, services)
    if wait_s and _found(services, caller, operation_id).ended_at == NONE_AT:
        await services.view.until(lambda: _found(services, caller, operation_id).ended_at != NONE_AT, wait_s)
    return json_response(find_operation(services, caller, operation_id))


@router.post(
    "/v1/operations/{operation_id}/cancel",
    operation_id="cancel_operation",
    openapi_extra=described(
        takes=ReasonRequest,
        is_body_optional=True,
        example={"reason": "the database is down again"},
        answers={200: Operation, 202: Command},
        parameters=(IDEMPOTENCY_KEY, PREFER),
        refusals=(*BODY, *WRITE, "not-found", "operation-ended"),
    ),
)
async def cancel_operation(request: Request, caller: Operating, operation_id: str) -> Response:
    """Cancel a bulk operation: no more of it, within a moment; what is done stays."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    if not is_name(operation_id):
        raise Refused("not-found")
    asked = asked_of(request)
    wish = await read_wish(request, services.settings.body_timeout_s)
    decision = await cancel(services, caller, operation_id, wish, asked)
    if decision.row is None:
        return accepted_later(decision)
    return json_response(find_operation(services, caller, operation_id), token=decision.token())


async def cancel(services: Services, caller: Caller, operation_id: str, wish: Wish, asked: Asked) -> Decision:
    """Cancel a bulk operation. Raises Refused."""
    command = CancelOperation(
        tenant=caller.tenant,
        operation=operation_id,
        command_id=asked.command_id(caller.tenant, operation_id),
        issued_at=services.clock.now(),
        actor=caller.actor,
        reason=wish.reason,
    )
    decision = await _decide(services, command, asked.wait_s)
    if decision.row is not None:
        # One that never was is not found, whatever the owner says of its state.
        found = _found(services, caller, operation_id)
        if not decision.row.is_accepted and not found.fact.is_cancelled:
            raise refusal_of(decision.row)
    return decision


async def _decide(services: Services, command: OperationCommand, wait_s: float) -> Decision:
    key = operation_key(command.tenant, command.operation)
    home = services.view.partition_of_operation(command.tenant, command.operation)
    return await decide(services, home, Keyed(key, command), wait_s)


def _found(services: Services, caller: Caller, operation_id: str) -> OperationRow:
    """An operation of the caller's tenant. Raises Refused (not-found)."""
    row = services.view.operation(caller.tenant, operation_id) if is_name(operation_id) else None
    if row is None:
        raise Refused("not-found")
    return row


def _body(services: Services, row: OperationRow) -> Operation:
    return operation_body(row, services.view.partitions, services.view.refusal(row))


def _place(row: OperationRow) -> bytes:
    """Where an operation stands in the list: by its start, then by its id."""
    return _AT.pack(row.fact.accepted_at) + row.fact.operation.encode()
