"""Changes of a job: edit, replace, pause, resume, cancel with a reason; and its versions."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Final, TypedDict

import msgspec
from fastapi import APIRouter, Depends, Request, Response

from api.answers import create_body, job_body, version_body
from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept, read_body
from api.decisions import (
    Asked,
    Decision,
    accepted_later,
    answer_for_job,
    asked_of,
    caught_up,
    decide_for_job,
    json_response,
    refusal_of,
)
from api.described import (
    AFTER,
    BODY,
    CURSOR,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    LIMIT,
    PREFER,
    REASON,
    WRITE,
    described,
    query_name,
)
from api.edits import MOMENTS, merged
from api.parameters import (
    flag_of,
    limit_of,
    next_link,
    open_cursor,
    query_of,
    seal_cursor,
)
from api.problems import Refused, refused_field
from api.put_effect import put_effect
from api.routes.jobs import checks_of, job_response, submit_command
from api.services import Services, services_of
from api.submission import Submission, read_submission
from api.wishes import Wish, read_wish
from minutebook.client.change_models import JobChange, JobVersionPage, ResumeRequest
from minutebook.client.models import Command, Job, JobRequest, ReasonRequest
from minutebook.client.put_models import PutEffect
from minutebook.domain.commands import CancelJob, EditJob, PauseJob, PurgeJob, ResumeJob, SubmitJob
from minutebook.domain.view_rows import JobRow, Progress
from minutebook.ids import is_name

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
Writing = Annotated[Caller, Depends(Allowed(Scope.JOBS_WRITE))]
Operating = Annotated[Caller, Depends(Allowed(Scope.JOBS_OPERATE))]
ATTEMPTS_MAX: Final = 5
"""A patch that expects no version is merged anew so often when somebody else was first."""
_DRY_RUN: Final = query_name(
    "dry_run", "`true` changes nothing: the answer is a PutEffect.", enum=["true", "false"], default="false"
)
_CHANGE: Final = (*WRITE, "not-found", "job-closed", "stale-version")
_EDIT: Final = (
    *BODY,
    *_CHANGE,
    "already-due",
    "bad-payload",
    "unknown-queue",
    "unknown-calendar",
    "queue-draining",
)


@router.patch(
    "/v1/jobs/{job_id}",
    operation_id="edit_job",
    openapi_extra=described(
        takes=JobChange,
        example={"cron": "30 7 * * MON-FRI", "retry": {"max_attempts": 3}},
        answers={200: Job, 202: Command},
        parameters=(IF_MATCH, IDEMPOTENCY_KEY, REASON, AFTER, PREFER),
        refusals=(*_EDIT, "view-behind"),
    ),
)
async def edit_job(request: Request, caller: Writing, job_id: str) -> Response:
    """Change what the body names; the rest stays. What is due already and what is open keep the version that they have."""
    services = _asked(request, job_id)
    asked = asked_of(request)
    data = await read_body(request, services.settings.body_timeout_s)
    await caught_up(request, services)
    return _answer(services, caller, job_id, await edit(services, caller, job_id, data, asked))


async def edit(services: Services, caller: Caller, job_id: str, data: bytes, asked: Asked) -> Decision:
    """Lay the patch in `data` over a job: what was decided, refused or not. Raises Refused for what is wrong before."""
    expected, key = asked.expected_version, asked.key
    if key is not None and (repeated := _repeated(services, caller, job_id, asked)) is not None:
        return repeated
    for attempt in range(ATTEMPTS_MAX):
        row, progress = await _version(services, caller.tenant, job_id, expected, asked.wait_s)
        base = create_body(job_body(job_id, row, progress))
        submission = read_submission(merged(base, data), services.clock.now(), *checks_of(services, caller))
        _check_id(submission, job_id)
        if not any(name in msgspec.json.decode(data) for name in MOMENTS):
            submission = msgspec.structs.replace(submission, late=row.late)
        command = _edit(services, caller, job_id, submission, _numbered(key, attempt), asked)
        command = msgspec.structs.replace(command, expected_version=row.version)
        _check_payload(services, command.job, row)
        decision = await answer_for_job(services, command, asked.wait_s)
        is_overtaken = decision.row is not None and decision.row.reason == "stale_version"
        if expected is not None or not is_overtaken:
            break
    return decision


@router.put(
    "/v1/jobs/{job_id}",
    operation_id="put_job",
    openapi_extra=described(
        takes=JobRequest,
        example={"task": "email.send", "payload": {"user_id": 1}, "cron": "0 7 * * MON-FRI"},
        answers={200: (Job, PutEffect), 201: Job, 202: Command},
        parameters=(_DRY_RUN, IF_MATCH, IDEMPOTENCY_KEY, REASON, AFTER, PREFER),
        refusals=(*_EDIT, "view-behind"),
    ),
)
async def put_job(request: Request, caller: Writing, job_id: str) -> Response:
    """Create a job under this id, or replace the one that is there. The same body twice changes nothing."""
    services = _asked(request, job_id, "dry_run")
    is_dry_run = flag_of(request, "dry_run")
    asked = asked_of(request)
    expected = asked.expected_version
    data = await read_body(request, services.settings.body_timeout_s)
    submission = read_submission(data, services.clock.now(), *checks_of(services, caller))
    _check_id(submission, job_id)
    if is_dry_run:
        await caught_up(request, services)
    found = services.view.job(caller.tenant, job_id)
    if is_dry_run:
        job = _edit(services, caller, job_id, submission, asked.key, asked).job
        _check_payload(services, job, None if found is None else found[0])
        return json_response(put_effect(services, caller, job, expected))
    replaces = found is not None or expected is not None
    for attempt in range(ATTEMPTS_MAX):
        whole = _edit(services, caller, job_id, submission, _numbered(asked.key, attempt), asked)
        whole = msgspec.structs.replace(whole, expected_version=expected)
        _check_payload(services, whole.job, None if found is None else found[0])
        decision = await answer_for_job(services, whole if replaces else whole.job, asked.wait_s)
        reason = None if decision.row is None else decision.row.reason
        if replaces and reason == "not_found" and expected is None:
            replaces = False
        elif not replaces and reason in ("exists", "id_exists"):
            replaces = True
        else:
            break
    return _answer(services, caller, job_id, decision, 200 if replaces else 201)


@router.post(
    "/v1/jobs/{job_id}/pause",
    operation_id="pause_job",
    openapi_extra=described(
        takes=ReasonRequest,
        is_body_optional=True,
        answers={200: Job, 202: Command},
        parameters=(IF_MATCH, IDEMPOTENCY_KEY, PREFER),
        refusals=(*BODY, *_CHANGE),
    ),
)
async def pause_job(request: Request, caller: Writing, job_id: str) -> Response:
    """No instant of the job comes due until it is resumed; what is open goes on."""
    services = _asked(request, job_id)
    wish = await read_wish(request, services.settings.body_timeout_s)
    decision = await pause(services, caller, job_id, wish, asked_of(request))
    return _answer(services, caller, job_id, decision)


async def pause(services: Services, caller: Caller, job_id: str, wish: Wish, asked: Asked) -> Decision:
    """Pause a job. Raises Refused."""
    command = PauseJob(**_about(services, caller, job_id, wish, asked))
    return await decide_for_job(services, command, asked.wait_s)


@router.post(
    "/v1/jobs/{job_id}/resume",
    operation_id="resume_job",
    openapi_extra=described(
        takes=ResumeRequest,
        is_body_optional=True,
        answers={200: Job, 202: Command},
        parameters=(IF_MATCH, IDEMPOTENCY_KEY, PREFER),
        refusals=(*BODY, *_CHANGE),
    ),
)
async def resume_job(request: Request, caller: Writing, job_id: str) -> Response:
    """Instants of the job come due again; those of its pause are skipped on record, or made up for with `catch_up`."""
    services = _asked(request, job_id)
    wish = await read_wish(request, services.settings.body_timeout_s, takes_catch_up=True)
    decision = await resume(services, caller, job_id, wish, asked_of(request))
    return _answer(services, caller, job_id, decision)


async def resume(services: Services, caller: Caller, job_id: str, wish: Wish, asked: Asked) -> Decision:
    """Let a paused job go on. Raises Refused."""
    about = _about(services, caller, job_id, wish, asked)
    command = ResumeJob(**about, is_caught_up=wish.is_caught_up)
    return await decide_for_job(services, command, asked.wait_s)


@router.post(
    "/v1/jobs/{job_id}/cancel",
    operation_id="cancel_job_with_reason",
    openapi_extra=described(
        takes=ReasonRequest,
        is_body_optional=True,
        answers={200: Job, 202: Command},
        parameters=(IF_MATCH, IDEMPOTENCY_KEY, PREFER),
        refusals=(*BODY, *_CHANGE),
    ),
)
async def cancel_job_with_reason(request: Request, caller: Writing, job_id: str) -> Response:
    """Cancel a job, as DELETE does, with a reason that stays on record."""
    services = _asked(request, job_id)
    wish = await read_wish(request, services.settings.body_timeout_s)
    decision = await cancel(services, caller, job_id, wish, asked_of(request))
    return _answer(services, caller, job_id, decision)


async def cancel(services: Services, caller: Caller, job_id: str, wish: Wish, asked: Asked) -> Decision:
    """Cancel a job. Raises Refused."""
    command = CancelJob(**_about(services, caller, job_id, wish, asked))
    return await decide_for_job(services, command, asked.wait_s)


@router.post(
    "/v1/jobs/{job_id}/purge",
    operation_id="purge_job",
    status_code=204,
    openapi_extra=described(
        takes=ReasonRequest,
        is_body_optional=True,
        answers={204: None, 202: Command},
        parameters=(IDEMPOTENCY_KEY, PREFER),
        refusals=(*BODY, *WRITE, "not-found", "not-closed"),
    ),
)
async def purge_job(request: Request, caller: Operating, job_id: str) -> Response:
    """A closed job and its history are shown no more. The log stays, and so does its id for 8 days."""
    services = _asked(request, job_id)
    wish = await read_wish(request, services.settings.body_timeout_s)
    decision = await purge(services, caller, job_id, wish, asked_of(request))
    if decision.row is None:
        return accepted_later(decision)
    response = json_response(None, 204, token=decision.token())
    response.body = b""
    return response


async def purge(services: Services, caller: Caller, job_id: str, wish: Wish, asked: Asked) -> Decision:
    """Take a closed job out of the views. Raises Refused."""
    command = PurgeJob(
        tenant=caller.tenant,
        job_id=job_id,
        command_id=asked.command_id(caller.tenant, job_id),
        issued_at=services.clock.now(),
        actor=caller.actor,
        reason=wish.reason,
    )
    return await decide_for_job(services, command, asked.wait_s)


@router.get(
    "/v1/jobs/{job_id}/versions",
    operation_id="list_job_versions",
    openapi_extra=described(
        answers={200: JobVersionPage},
        parameters=(LIMIT, CURSOR, AFTER, PREFER),
        refusals=("not-found", "bad-parameter", "view-behind"),
    ),
)
async def list_job_versions(request: Request, caller: Reading, job_id: str) -> Response:
    """List what the job is and was, the latest version first."""
    services = services_of(request)
    check_accept(request)
    query = query_of(request, "limit", "cursor")
    limit = limit_of(query)
    await caught_up(request, services)
    page = versions_page(services, caller, job_id, limit, query.get("cursor"))
    return json_response(page, headers=next_link(f"/v1/jobs/{job_id}/versions", query, page.next_cursor))


def versions_page(
    services: Services, caller: Caller, job_id: str, limit: int, cursor: str | None
) -> JobVersionPage:
    """Versions of a job from `cursor` on. Raises Refused: not-found, bad-parameter."""
    if not is_name(job_id) or services.view.job(caller.tenant, job_id) is None:
        raise Refused("not-found")
    secret, scope = services.keyring.secret, f"{caller.tenant}/{job_id}/versions"
    place = None if cursor is None else int(open_cursor(secret, scope, cursor))
    found = list(islice(services.view.versions(caller.tenant, job_id, place), limit + 1))
    items = [version_body(job_id, row) for row in found[:limit]]
    if len(found) <= limit:
        return JobVersionPage(items, None)
    return JobVersionPage(items, seal_cursor(secret, scope, str(found[limit].version).encode()))


def _asked(request: Request, job_id: str, *query: str) -> Services:
    """What answers a request to change that job. Raises Refused for what no job is called."""
    check_accept(request)
    query_of(request, *query)
    if not is_name(job_id):
        raise Refused("not-found")
    return services_of(request)


class _About(TypedDict):
    """What the commands that only name a job have."""

    tenant: str
    job_id: str
    command_id: str
    issued_at: int
    actor: str
    reason: str
    expected_version: int | None


def _about(services: Services, caller: Caller, job_id: str, wish: Wish, asked: Asked) -> _About:
    return _About(
        tenant=caller.tenant,
        job_id=job_id,
        command_id=asked.command_id(caller.tenant, job_id),
        issued_at=services.clock.now(),
        actor=caller.actor,
        reason=wish.reason,
        expected_version=asked.expected_version,
    )


def _check_id(submission: Submission, job_id: str) -> None:
    """Raises Refused for a body that is about another job."""
    if submission.id not in (None, job_id):
        raise refused_field("/id", "leave it out, or give the id of the path")


def _numbered(key: str | None, attempt: int) -> str | None:
    """The key of a further command of the same request."""
    return f"{key}/{attempt}" if key is not None and attempt else key


def _repeated(services: Services, caller: Caller, job_id: str, asked: Asked) -> Decision | None:
    """What an edit with that key was decided before; None if none was accepted."""
    partition = services.view.partition_of_job(caller.tenant, job_id)
    for attempt in range(ATTEMPTS_MAX):
        numbered = asked._replace(key=_numbered(asked.key, attempt))
        command_id = numbered.command_id(caller.tenant, job_id)
        row = services.view.parts[partition].command(caller.tenant, command_id, job_id)
        if row is not None and row.is_accepted:
            return Decision(command_id, job_id, partition, -1, row)
    return None


async def _version(
    services: Services, tenant: str, job_id: str, expected: int | None, wait_s: float
) -> tuple[JobRow, Progress]:
    """The job that a patch is laid over. Raises Refused: not-found, stale-version, view-behind."""
    found = services.view.job(tenant, job_id)
    if found is None:
        raise Refused("not-found")
    if expected is None or found[0].version == expected:
        return found
    if found[0].version > expected:
        detail = f"the job is at version {found[0].version}; read it again"
        raise refused_field("If-Match", detail, "stale-version")

    def has_version() -> bool:
        now = services.view.job(tenant, job_id)
        return now is not None and now[0].version >= expected

    if not await services.view.until(has_version, max(wait_s, 1)):
        raise Refused("view-behind")
    return await _version(services, tenant, job_id, expected, wait_s)


def _edit(
    services: Services, caller: Caller, job_id: str, submission: Submission, key: str | None, asked: Asked
) -> EditJob:
    """The command that makes the job what the submission says."""
    named = msgspec.structs.replace(submission, id=job_id)
    command_id = asked._replace(key=key).command_id(caller.tenant, job_id)
    job = submit_command(services, caller, named, None, asked.traceparent)
    job = msgspec.structs.replace(job, command_id=command_id)
    return EditJob(
        tenant=caller.tenant,
        job_id=job_id,
        command_id=command_id,
        issued_at=job.issued_at,
        actor=caller.actor,
        reason=asked.reason,
        job=job,
    )


def _check_payload(services: Services, job: SubmitJob, row: JobRow | None) -> None:
    """Raises Refused (bad-payload), but for a payload that the job has already."""
    if row is None or (job.task, job.payload) != (row.task, row.payload):
        services.task_types.check(job.task, job.payload)


def _answer(
    services: Services, caller: Caller, job_id: str, decision: Decision, status: int = 200
) -> Response:
    """The job as the decision left it. Raises Refused where the owner refuses."""
    if decision.row is None:
        return accepted_later(decision)
    if not decision.row.is_accepted:
        raise refusal_of(decision.row)
    return job_response(services, caller, job_id, status, decision)
