"""Workers: who is there, what each runs, and wishes to them: take no more, go on, leave."""

from __future__ import annotations

from bisect import bisect_left
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response

from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept
from api.decisions import Decision, accepted_later, decide, json_response, preference_of, refusal_of
from api.described import BODY, CURSOR, LIMIT, PREFER, WRITE, described
from api.held_runs import held_by
from api.lanes import Keyed
from api.parameters import limit_of, next_link, open_cursor, query_of, seal_cursor
from api.problems import Refused
from api.services import Services, services_of
from api.wishes import Wish, read_wish
from api.workers_view import HEARD_MS, SeenSession, SeenWorker
from minutebook.client.fleet import ServedQueue, WholeWorker, Worker, WorkerPage, WorkerSession
from minutebook.client.models import Command, ReasonRequest
from minutebook.domain.commands import AskWorker
from minutebook.domain.workers import QUIET, RESUME, STOP
from minutebook.ids import worker_key
from minutebook.mint import mint_id
from minutebook.times import format_duration, format_instant
from minutebook.wire.topics import partition_of

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
Operating = Annotated[Caller, Depends(Allowed(Scope.WORKERS_OPERATE))]
_PATH: Final = "/v1/workers"
_ASKING: Final[dict[str, Any]] = described(
    takes=ReasonRequest,
    is_body_optional=True,
    example={"reason": "the host is to be rebooted"},
    answers={200: Worker, 202: Command},
    parameters=(PREFER,),
    refusals=(*BODY, *WRITE, "not-found", "worker-silent", "worker-stops"),
)


@router.get(
    _PATH,
    operation_id="list_workers",
    openapi_extra=described(
        answers={200: WorkerPage}, parameters=(LIMIT, CURSOR), refusals=("bad-parameter",)
    ),
)
async def list_workers(request: Request, caller: Reading) -> Response:
    """List the workers heard of in the last minutes, by name. Their pulses say it, and no log keeps it."""
    services = services_of(request)
    check_accept(request)
    query = query_of(request, "limit", "cursor")
    limit = limit_of(query)
    secret, scope = services.keyring.secret, f"{caller.tenant}/workers"
    name, _, worker_id = (
        open_cursor(secret, scope, query["cursor"]).decode() if "cursor" in query else ""
    ).rpartition("\0")
    now = services.clock.now()
    found = services.workers.workers(now)
    first = bisect_left(found, (name, worker_id), key=lambda worker: (worker.name, worker.id))
    items = [_body(worker, now) for worker in found[first : first + limit]]
    if first + limit >= len(found):
        return json_response(WorkerPage(items, None))
    following = found[first + limit]
    cursor = seal_cursor(secret, scope, f"{following.name}\0{following.id}".encode())
    return json_response(WorkerPage(items, cursor), headers=next_link(_PATH, query, cursor))


@router.get(
    "/v1/workers/{worker_id}",
    operation_id="get_worker",
    openapi_extra=described(answers={200: WholeWorker}, refusals=("not-found", "bad-parameter")),
)
async def get_worker(request: Request, caller: Reading, worker_id: str) -> Response:
    """Read a worker: its sessions, and what it runs for the caller's tenant. Of other tenants there is a count alone."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    return json_response(await whole_worker(services, caller, worker_id))


async def whole_worker(services: Services, caller: Caller, worker_id: str) -> WholeWorker:
    """A worker with what it runs for the caller's tenant. Raises Refused (not-found)."""
    worker = _worker(services, worker_id)
    executions, not_shown = await held_by(worker, caller.tenant, services.view, services.frames)
    sessions = sorted(worker.sessions.values(), key=lambda session: session.partition)
    return WholeWorker(
        **_fields(worker, services.clock.now()),
        sessions=[_session(session) for session in sessions],
        executions=executions,
        not_shown=max(0, not_shown),
    )


def workers_of(services: Services) -> list[Worker]:
    """All workers heard of lately, by name."""
    now = services.clock.now()
    return [_body(worker, now) for worker in services.workers.workers(now)]


@router.post("/v1/workers/{worker_id}/quiet", operation_id="quiet_worker", openapi_extra=_ASKING)
async def quiet_worker(request: Request, caller: Operating, worker_id: str) -> Response:
    """Ask a worker to take no more grants; what it runs goes on. Answered once the wish is on record."""
    return await _ask(request, caller, worker_id, QUIET)


@router.post("/v1/workers/{worker_id}/resume", operation_id="resume_worker", openapi_extra=_ASKING)
async def resume_worker(request: Request, caller: Operating, worker_id: str) -> Response:
    """Ask a worker to take grants again."""
    return await _ask(request, caller, worker_id, RESUME)


@router.post("/v1/workers/{worker_id}/stop", operation_id="stop_worker", openapi_extra=_ASKING)
async def stop_worker(request: Request, caller: Operating, worker_id: str) -> Response:
    """Ask a worker to leave as on SIGTERM: finish what runs within its grace, hand back the rest, and exit. It is final."""
    return await _ask(request, caller, worker_id, STOP)


async def _ask(request: Request, caller: Caller, worker_id: str, what: str) -> Response:
    services = services_of(request)
    check_accept(request)
    query_of(request)
    wish = await read_wish(request, services.settings.body_timeout_s)
    decision = await ask(services, caller, worker_id, what, wish, preference_of(request).wait_s)
    if decision.row is None:
        return accepted_later(decision)
    body = _body(_worker(services, worker_id), services.clock.now())
    return json_response(body, token=decision.token())


async def ask(
    services: Services, caller: Caller, worker_id: str, what: str, wish: Wish, wait_s: float
) -> Decision:
    """Put a wish to a worker on record. Raises Refused: not-found, worker-silent, worker-stops."""
    worker = _worker(services, worker_id)
    if services.clock.now() - worker.stamp > HEARD_MS:
        raise Refused("worker-silent")
    command = AskWorker(
        name=worker_id,
        command_id=mint_id(),
        issued_at=services.clock.now(),
        actor=caller.actor,
        reason=wish.reason,
        what=what,
    )
    key = worker_key(worker_id)
    home = partition_of(key, services.view.partitions)
    decision = await decide(services, home, Keyed(key, command), wait_s)
    if decision.row is not None and not decision.row.is_accepted:
        raise refusal_of(decision.row)
    return decision


def _worker(services: Services, worker_id: str) -> SeenWorker:
    """A worker heard of lately. Raises Refused (not-found)."""
    found = services.workers.worker(worker_id, services.clock.now())
    if found is None:
        raise Refused("not-found")
    return found


def _body(worker: SeenWorker, now: int) -> Worker:
    return Worker(**_fields(worker, now))


def _fields(worker: SeenWorker, now: int) -> dict[str, Any]:
    sessions = worker.sessions.values()
    return {
        "id": worker.id,
        "name": worker.name,
        "version": worker.version,
        "status": worker.status(now),
        "running": sum(session.running for session in sessions),
        "offered": sum(session.offered for session in sessions),
        "tasks": worker.tasks,
        "queues": [ServedQueue(queue.name, queue.cap) for queue in worker.queues],
        "lease": format_duration(worker.lease_ms),
        "last_pulse_at": format_instant(worker.stamp),
    }


def _session(session: SeenSession) -> WorkerSession:
    return WorkerSession(
        partition=session.partition,
        session=session.name,
        running=session.running,
        offered=session.offered,
        last_pulse_at=format_instant(session.stamp),
    )
