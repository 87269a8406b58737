"""From a request to a decision: the command made durable, then awaited in the view as the caller prefers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
from fastapi import Request, Response

from api.lanes import Keyed
from api.parameters import command_id_of, expected_version_of, idempotency_key_of, traceparent_of
from api.positions import Token, decode_token, encode_token
from api.problems import Refused
from api.services import Services
from api.wishes import reason_of
from minutebook.client.models import Command as CommandBody
from minutebook.client.models import FieldError
from minutebook.domain.commands import JobCommand, SubmitJob
from minutebook.domain.subjects import subject_of
from minutebook.domain.view_rows import CommandRow
from minutebook.ids import job_key

_WAIT_S: Final = 5
_WAIT_S_MAX: Final = 30
_PREFERRED_WAIT: Final = re.compile(r"wait\s*=\s*\"?(\d{1,5})\"?", re.ASCII)
_REASONS: Final = {
    "key_reused": "key-reused",
    "id_exists": "id-exists",
    "unknown_queue": "unknown-queue",
    "unknown_calendar": "unknown-calendar",
    "queue_draining": "queue-draining",
    "not_found": "not-found",
    "job_closed": "job-closed",
    "not_closed": "not-closed",
    "stale_version": "stale-version",
    "already_due": "already-due",
    "not_open": "execution-closed",
    "not_dead": "not-dead",
    "discarded": "discarded",
    "operation_ended": "operation-ended",
    "too_many": "too-many-operations",
    "too_old": "too-old",
    "worker_stops": "worker-stops",
    "key_exists": "key-exists",
}
"""Owner's reason -> code of the problem; every other reason is `invalid`."""

_HEADERS: Final = {"Idempotency-Key": "Idempotency-Key", "expected_version": "If-Match"}
"""Owner's field -> the header that it came from; every other field is one of the body."""


class Preference(NamedTuple):
    """RFC 7240 `Prefer`: how long to wait for a decision, 0 = not at all."""

    wait_s: int


class Asked(NamedTuple):
    """What a request says of its command beside path and body. `wait_s`: for the decision, 0 = not at all.

    `action`: what a key is for: with another action it means that one. `reason`: where the body has no field for it.
    """

    wait_s: float = _WAIT_S
    key: str | None = None
    expected_version: int | None = None
    traceparent: str = ""
    action: str = ""
    reason: str = ""

    def command_id(self, tenant: str, subject: str) -> str:
        """Id of the command for the action on `subject`: the same for the same action and key, a new one without a key."""
        return command_id_of(self.action, tenant, subject, self.key)


class Decision(NamedTuple):
    """What became of a command: `row` None = durable, but not decided in time."""

    command_id: str
    subject: str
    partition: int
    offset: int
    row: CommandRow | None

    def token(self) -> Token:
        """What a view must have reached to show it."""
        if self.row is None:
            return Token(commands={self.partition: self.offset})
        return Token(events={self.partition: self.row.position})


def preference_of(request: Request) -> Preference:
    """`Prefer: wait=<s>` (at most 30) or `respond-async`; what is unknown is ignored, as the RFC asks."""
    text = request.headers.get("prefer", "")
    if "respond-async" in text:
        return Preference(0)
    found = _PREFERRED_WAIT.search(text)
    return Preference(min(int(found.group(1)), _WAIT_S_MAX) if found else _WAIT_S)


def asked_of(request: Request) -> Asked:
    """What the headers say. Raises Refused (bad-parameter)."""
    return Asked(
        preference_of(request).wait_s,
        idempotency_key_of(request),
        expected_version_of(request),
        traceparent_of(request),
        f"{request.method} {request.scope['route'].path}",
        reason_of(request),
    )


async def decide(services: Services, partition: int, keyed: Keyed, wait_s: float) -> Decision:
    """Make a command durable and wait for its answer. Raises Refused where it did not become durable."""
    (decision,) = await decide_all(services, partition, [keyed], wait_s)
    return decision


async def decide_all(
    services: Services, partition: int, commands: Sequence[Keyed], wait_s: float
) -> list[Decision]:
    """The same for commands of one partition, which are answered together."""
    view = services.view
    part = view.parts[partition]
    subjects = [(*subject_of(keyed.command), keyed.command.command_id) for keyed in commands]
    # A repeat of an answered command gets no second answer. That of a create has an id that is new each time.
    unanswered = [
        (keyed, subject)
        for keyed, subject in zip(commands, subjects, strict=True)
        if isinstance(keyed.command, SubmitJob) or part.command(subject[0], subject[2], subject[1]) is None
    ]
    offset = -1
    if unanswered:
        answered = view.expect(partition, [subject for _, subject in unanswered])
        try:
            offset = await services.commands.send(partition, [keyed for keyed, _ in unanswered])
            if wait_s:
                async with asyncio.timeout(wait_s):
                    await answered
        except TimeoutError:
            pass
        finally:
            answered.cancel()
    decisions = []
    for tenant, subject, command_id in subjects:
        row = part.command(tenant, command_id, subject)
        if row is None:
            services.undecided.add(tenant, command_id, subject)
        decisions.append(Decision(command_id, subject, partition, offset, row))
    return decisions


async def answer_for_job(services: Services, command: JobCommand, wait_s: float) -> Decision:
    """The same for one command on a job: what became of it, refused or not."""
    partition = services.view.partition_of_job(command.tenant, command.job_id)
    keyed = Keyed(job_key(command.tenant, command.job_id), command)
    return await decide(services, partition, keyed, wait_s)


async def decide_for_job(services: Services, command: JobCommand, wait_s: float) -> Decision:
    """As `answer_for_job`. Raises Refused where the owner refuses, too."""
    decision = await answer_for_job(services, command, wait_s)
    if decision.row is not None and not decision.row.is_accepted:
        raise refusal_of(decision.row)
    return decision


def code_of(reason: str) -> str:
    """Code of the problem that an owner's reason stands for."""
    return _REASONS.get(reason, "invalid")


def refusal_of(row: CommandRow) -> Refused:
    """The owner's refusal, as a problem. What is not there is told in the same words everywhere."""
    code = code_of(row.reason)
    if code == "not-found" or not row.field:
        return Refused(code)
    pointer = _HEADERS.get(row.field) or f"/{row.field}"
    return Refused(code, errors=[FieldError(pointer, row.detail or row.reason)])


def accepted_later(decision: Decision) -> Response:
    """202: durable, and where to look."""
    body = CommandBody(command_id=decision.command_id, outcome=None, job_id=decision.subject)
    headers = {"location": f"/v1/commands/{decision.command_id}"}
    return json_response(body, 202, headers, decision.token())


def json_response(
    body: Any, status: int = 200, headers: dict[str, str] | None = None, token: Token | None = None
) -> Response:
    """`body` as JSON, with the consistency token of a write."""
    sent = dict(headers or {})
    if token is not None:
        sent["minutebook-position"] = encode_token(token)
    return Response(msgspec.json.encode(body), status, sent, "application/json")


async def caught_up(request: Request, services: Services) -> None:
    """Wait until the view shows what `Minutebook-After` names. Raises Refused: bad-parameter, view-behind."""
    text = request.headers.get("minutebook-after")
    if text is None:
        return
    token = decode_token(text, services.view.partitions)
    is_reached = await services.view.until(
        lambda: services.view.has_reached(token), max(preference_of(request).wait_s, 1)
    )
    if not is_reached:
        raise Refused("view-behind")
