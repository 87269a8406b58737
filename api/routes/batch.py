"""Many creates in one request: each is accepted or refused alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Depends, Request, Response
from msgspec import Raw

from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept, check_distinct, read_body, read_object
from api.decisions import Decision, decide_all, json_response, preference_of, refusal_of
from api.described import BODY, PREFER, REQUIRED_KEY, described
from api.guard import trace_id_of
from api.lanes import Keyed
from api.parameters import idempotency_key_of, query_of, traceparent_of
from api.positions import Token
from api.problems import Refused, problem_of, refused_field
from api.routes.jobs import check_payload, checks_of, submit_command
from api.services import Services, services_of
from api.submission import SubmissionReader
from minutebook.client.models import BatchItem, BatchRequest, BatchResult
from minutebook.ids import job_key

ITEMS_MAX: Final = 500
_KEY_CHARS_MAX: Final = 251
"""So that `<key>/<n>` is a key too."""

router = APIRouter()
Writing = Annotated[Caller, Depends(Allowed(Scope.JOBS_WRITE))]


@router.post(
    "/v1/jobs/batch",
    operation_id="create_jobs",
    openapi_extra=described(
        takes=BatchRequest,
        example={"jobs": [{"task": "email.send", "payload": {"user_id": 1}, "delay": "PT1M"}]},
        answers={200: BatchResult},
        parameters=(REQUIRED_KEY, PREFER),
        refusals=(*BODY, "bad-parameter"),
    ),
)
async def create_jobs(request: Request, caller: Writing) -> Response:
    """Create up to 500 jobs. Item n has the Idempotency-Key `<key>/<n>`, so a repeat makes none twice."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    key = idempotency_key_of(request, is_required=True)
    if key is None or len(key) > _KEY_CHARS_MAX:
        raise refused_field(
            "Idempotency-Key", f"at most {_KEY_CHARS_MAX} characters for a batch", "bad-parameter"
        )
    items = _items(await read_body(request, services.settings.body_timeout_s))
    traceparent, wait_s = traceparent_of(request), preference_of(request).wait_s
    results: list[Decision | Refused | None] = [None] * len(items)

    async def decide_share(partition: int, share: list[tuple[int, Keyed]]) -> None:
        try:
            decisions = await decide_all(services, partition, [keyed for _, keyed in share], wait_s)
        except Refused as refused:
            for number, _ in share:
                results[number] = refused
            return
        for (number, _), decision in zip(share, decisions, strict=True):
            results[number] = decision

    by_partition = await _read(services, caller, items, key, traceparent, results)
    await asyncio.gather(*(decide_share(*share) for share in by_partition.items()))
    trace_id = trace_id_of(request)
    body = BatchResult([_result(result, trace_id) for result in results if result is not None])
    return json_response(body, 200, token=_token(results))


async def _read(
    services: Services,
    caller: Caller,
    items: Sequence[Raw],
    key: str,
    traceparent: str,
    results: list[Decision | Refused | None],
) -> dict[int, list[tuple[int, Keyed]]]:
    """Numbers and commands of what may be submitted, by partition; why the others may not is put into `results`."""
    may_use, notify_fault = checks_of(services, caller)
    reader = SubmissionReader(services.clock.now(), cache(may_use), notify_fault)
    by_partition: dict[int, list[tuple[int, Keyed]]] = {}
    for number, item in enumerate(items):
        try:
            submission = reader.read(item)
            command = submit_command(services, caller, submission, f"{key}/{number}", traceparent)
            is_checked = check_payload(services, command)
        except Refused as refused:
            results[number] = refused
            continue
        if is_checked:
            await asyncio.sleep(0)  # a check takes its time: others get their turn between two
        partition = services.view.partition_of_job(caller.tenant, command.job_id)
        keyed = Keyed(job_key(caller.tenant, command.job_id), command)
        by_partition.setdefault(partition, []).append((number, keyed))
    return by_partition


def _items(body: bytes) -> list[Raw]:
    members = read_object(body)
    if set(members) != {"jobs"}:
        raise refused_field("/jobs", "send one field, `jobs`: the list of creates")
    try:
        items = msgspec.json.decode(members["jobs"], type=list[Raw])
    except (msgspec.DecodeError, RecursionError):
        raise refused_field("/jobs", "must be a list of creates") from None
    if not 1 <= len(items) <= ITEMS_MAX:
        raise refused_field("/jobs", f"must have 1 to {ITEMS_MAX} creates, not {len(items)}")
    # The items are checked one by one; around them there is one name.
    check_distinct(body.replace(members["jobs"], b"0", 1), 1)
    return items


def _result(result: Decision | Refused, trace_id: str) -> BatchItem:
    if isinstance(result, Decision):
        if result.row is None:
            return BatchItem(status=202, id=result.subject, command_id=result.command_id)
        if result.row.is_accepted:
            return BatchItem(status=201, id=result.subject, command_id=result.command_id)
        result = refusal_of(result.row)
    problem = problem_of(result, trace_id)
    return BatchItem(status=problem.status, problem=problem)


def _token(results: Sequence[Decision | Refused | None]) -> Token:
    """The furthest position of each partition."""
    events: dict[int, int] = {}
    commands: dict[int, int] = {}
    for result in results:
        if isinstance(result, Decision):
            found, at = (commands, result.offset) if result.row is None else (events, result.row.position)
            if at > found.get(result.partition, -1):
                found[result.partition] = at
    return Token(events, commands)
