"""Jobs: create, read, cancel, run now."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Depends, Request, Response
from msgspec import Raw

from api.answers import job_body
from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept, read_body
from api.decisions import (
    Asked,
    Decision,
    accepted_later,
    asked_of,
    caught_up,
    decide_for_job,
    json_response,
    preference_of,
)
from api.described import (
    AFTER,
    BODY,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    IF_NONE_MATCH,
    PREFER,
    REASON,
    WRITE,
    described,
)
from api.parameters import (
    expected_version_of,
    has_tag,
    query_of,
)
from api.problems import Refused
from api.services import Services, services_of
from api.submission import Submission, read_submission
from api.wishes import reason_of, refuse_reason
from minutebook.client.models import Command, Job, JobRequest, RunNow
from minutebook.domain.commands import CancelJob, RunJobNow, SubmitJob
from minutebook.ids import is_name, job_id_from_key, job_key, requested_execution_id
from minutebook.mint import mint_id
from minutebook.wire.topics import ending_in

_FREE_DIGITS: Final = 4

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
Writing = Annotated[Caller, Depends(Allowed(Scope.JOBS_WRITE))]


def checks_of(services: Services, caller: Caller) -> tuple[Callable[[str], bool], Callable[[str], str]]:
    """What a create body is checked against: whether the caller may use a queue, and what is wrong with a `notify`."""
    tenant = caller.tenant
    return partial(services.view.may_use, tenant), partial(services.targets.fault, tenant)


def submit_command(
    services: Services, caller: Caller, submission: Submission, key: str | None, traceparent: str
) -> SubmitJob:
    """The command for a create: the caller's id, else one from the key, else a new one."""
    is_keyed = submission.id is None and key is not None
    job_id = submission.id
    if job_id is None:
        job_id = _free_id(services, caller.tenant) if key is None else job_id_from_key(caller.tenant, key)
    return SubmitJob(
        tenant=caller.tenant,
        job_id=job_id,
        command_id=mint_id(),
        issued_at=services.clock.now(),
        actor=caller.actor,
        task=submission.task,
        payload=submission.payload,
        queue=submission.queue,
        run_at=submission.run_at,
        delay_ms=submission.delay_ms,
        cron=submission.cron,
        zone=submission.zone,
        late=submission.late,
        timeout_ms=submission.timeout_ms,
        is_keyed=is_keyed,
        traceparent=traceparent,
        priority=submission.priority,
        policy=submission.policy,
        limit=submission.limit,
        notify=submission.notify,
        every_ms=submission.every_ms,
        timing=submission.timing,
        tags=submission.tags,
    )


def _free_id(services: Services, tenant: str) -> str:
    """A new id in the partition where its command goes best: its last digits are those that make it so."""
    minted = mint_id()
    stem, first = minted[:-_FREE_DIGITS], int(minted[-_FREE_DIGITS:], 16)
    endings = (f"{first ^ turn:0{_FREE_DIGITS}x}" for turn in range(16**_FREE_DIGITS))
    partition = services.commands.choose()
    ending = ending_in(partition, services.view.partitions, job_key(tenant, stem), endings)
    return minted if ending is None else stem + ending


def check_payload(services: Services, command: SubmitJob) -> bool:
    """Whether there was a type to check its payload by. Raises Refused (bad-payload).

    Of a job that is there the payload was taken before, whatever its task takes now: the owner answers that repeat.
    """
    try:
        return services.task_types.check(command.task, command.payload)
    except Refused:
        if services.view.job(command.tenant, command.job_id) is None:
            raise
        return True


@router.post(
    "/v1/jobs",
    operation_id="create_job",
    status_code=201,
    openapi_extra=described(
        takes=JobRequest,
        example={
            "task": "email.send",
            "payload": {"user_id": 1},
            "cron": "0 7 * * MON-FRI",
            "zone": "Europe/Berlin",
        },
        answers={201: Job, 202: Command},
        parameters=(IDEMPOTENCY_KEY, PREFER),
        refusals=(
            *BODY,
            *WRITE,
            "id-exists",
            "bad-payload",
            "unknown-queue",
            "unknown-calendar",
            "queue-draining",
            "key-reused",
        ),
    ),
)
async def create_job(request: Request, caller: Writing) -> Response:
    """Create a job. Answered once the owner of its partition has decided."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    refuse_reason(request)
    asked = asked_of(request)
    body = await read_body(request, services.settings.body_timeout_s)
    decision = await create(services, caller, body, asked)
    if decision.row is None:
        return accepted_later(decision)
    return job_response(services, caller, decision.subject, 201, decision)


async def create(services: Services, caller: Caller, body: bytes, asked: Asked) -> Decision:
    """Create the job of a body; `subject` of the decision is its id. Raises Refused."""
    submission = read_submission(body, services.clock.now(), *checks_of(services, caller))
    command = submit_command(services, caller, submission, asked.key, asked.traceparent)
    check_payload(services, command)
    return await decide_for_job(services, command, asked.wait_s)


def find_job(services: Services, caller: Caller, job_id: str) -> Job:
    """A job as it stands. Raises Refused (not-found)."""
    found = services.view.job(caller.tenant, job_id) if is_name(job_id) else None
    if found is None:
        raise Refused("not-found")
    return job_body(job_id, *found)


def job_response(
    services: Services, caller: Caller, job_id: str, status: int = 200, decision: Decision | None = None
) -> Response:
    """A job as it stands. Raises Refused (not-found)."""
    job = find_job(services, caller, job_id)
    body = Raw(msgspec.json.encode(job))
    headers = {"etag": f'"{job.version}-{hashlib.sha256(body).hexdigest()[:16]}"'}
    if status == 201:
        headers["location"] = f"/v1/jobs/{job_id}"
    return json_response(body, status, headers, decision and decision.token())


@router.get(
    "/v1/jobs/{job_id}",
    operation_id="get_job",
    openapi_extra=described(
        answers={200: Job, 304: None},
        parameters=(IF_NONE_MATCH, AFTER, PREFER),
        refusals=("not-found", "bad-parameter", "view-behind"),
    ),
)
async def get_job(request: Request, caller: Reading, job_id: str) -> Response:
    """Read a job: what it runs, when, and where it stands. `ETag` is its version, then a digest of the answer."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    await caught_up(request, services)
    answer = job_response(services, caller, job_id)
    if has_tag(request, answer.headers["etag"]):
        return Response(status_code=304, headers={"etag": answer.headers["etag"]})
    return answer


@router.delete(
    "/v1/jobs/{job_id}",
    operation_id="cancel_job",
    status_code=204,
    openapi_extra=described(
        answers={204: None, 202: Command},
        parameters=(IF_MATCH, REASON, PREFER),
        refusals=(*WRITE, "not-found", "job-closed", "stale-version"),
    ),
)
async def cancel_job(request: Request, caller: Writing, job_id: str) -> Response:
    """Cancel a job: no instant and no attempt after this; a running attempt is asked to stop. `cancel` takes a reason."""
    services = services_of(request)
    query_of(request)
    if not is_name(job_id):
        raise Refused("not-found")
    command = CancelJob(
        tenant=caller.tenant,
        job_id=job_id,
        command_id=mint_id(),
        issued_at=services.clock.now(),
        actor=caller.actor,
        reason=reason_of(request),
        expected_version=expected_version_of(request),
    )
    decision = await decide_for_job(services, command, preference_of(request).wait_s)
    if decision.row is None:
        return accepted_later(decision)
    response = json_response(None, 204, token=decision.token())
    response.body = b""
    return response


@router.post(
    "/v1/jobs/{job_id}/run-now",
    operation_id="run_job",
    openapi_extra=described(
        answers={200: RunNow, 202: Command},
        parameters=(IDEMPOTENCY_KEY, REASON, PREFER),
        refusals=(*WRITE, "not-found", "job-closed"),
    ),
)
async def run_job(request: Request, caller: Writing, job_id: str) -> Response:
    """Run a job once at once, beside its schedule. With an Idempotency-Key a repeat runs once."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    if not is_name(job_id):
        raise Refused("not-found")
    decision = await run_now(services, caller, job_id, asked_of(request))
    if decision.row is None:
        return accepted_later(decision)
    body = RunNow(requested_execution_id(job_id, decision.command_id), job_id, decision.command_id)
    return json_response(body, 200, token=decision.token())


async def run_now(services: Services, caller: Caller, job_id: str, asked: Asked) -> Decision:
    """Run a job once at once. Raises Refused."""
    command = RunJobNow(
        tenant=caller.tenant,
        job_id=job_id,
        command_id=asked.command_id(caller.tenant, job_id),
        issued_at=services.clock.now(),
        actor=caller.actor,
        reason=asked.reason,
    )
    return await decide_for_job(services, command, asked.wait_s)
