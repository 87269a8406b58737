"""An execution: its attempts on one line of time, what they said, and what can be done about it."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import msgspec
from fastapi import Depends, Request, Response
from msgspec import Raw

from api.auth import Caller, Scope
from api.pages import charts
from api.pages.access import Seen, page_router, ready
from api.pages.doing import (
    Action,
    Done,
    Refusal,
    asked_in,
    check_confirmed,
    chosen,
    reason_in,
    refusal,
    wish_of,
)
from api.pages.forms import Form, read_form
from api.pages.job_form import payload_of
from api.pages.rendering import redirect, render
from api.pages.texts import show_json
from api.parameters import query_of
from api.problems import Refused
from api.routes import executions, jobs
from api.services import Services
from api.wishes import parse_wish
from minutebook.client.models import Execution, WholeExecution
from minutebook.times import format_instant, parse_instant

router = page_router()
Reading = Annotated[Caller, Depends(Seen(Scope.JOBS_READ))]
Writing = Annotated[Caller, Depends(Seen(Scope.JOBS_WRITE))]
_ATTEMPTS: Final = 100
"""Attempts that are drawn, the latest ones; the table has them all."""


@router.get("/executions/{execution_id}")
async def show_execution(request: Request, caller: Reading, execution_id: str) -> Response:
    """The page."""
    services = await ready(request)
    return _page(request, services, caller, execution_id)


@router.get("/executions/{execution_id}/json")
async def download_execution(request: Request, caller: Reading, execution_id: str) -> Response:
    """The execution as the API has it, as a file."""
    services = await ready(request)
    found = executions.find_execution(services, caller.tenant, execution_id)
    if services.settings.is_payload_masked:
        found.attempts = [msgspec.structs.replace(one, result=Raw(b"null")) for one in found.attempts]
    name = execution_id.replace(":", "_")
    headers = {"content-disposition": f'attachment; filename="{name}.json"'}
    return Response(msgspec.json.encode(found), headers=headers, media_type="application/json")


@router.post("/executions/{execution_id}")
async def act_on_execution(request: Request, caller: Writing, execution_id: str) -> Response:
    """Do what the form says, and show it; refused, stay and say why."""
    services = await ready(request)
    form = await read_form(request)
    try:
        done = await chosen(_ACTIONS, form, caller).act(services, caller, execution_id, form)
    except Refused as error:
        if error.code == "not-found":
            raise
        return _page(request, services, caller, execution_id, refusal(request, error, form))
    return redirect(request, f"/executions/{execution_id}", done.word(), done.after())


async def _cancel(services: Services, caller: Caller, name: str, form: Form) -> Done:
    check_confirmed(form)
    decision = await executions.cancel(services, caller, name, wish_of(form), asked_in(form))
    return Done("The execution is cancelled; a running attempt is asked to stop.", decision)


async def _redrive(services: Services, caller: Caller, name: str, form: Form) -> Done:
    payload = _payload_in(form)
    body = {"reason": reason_in(form)} | ({} if payload is None else {"payload": payload})
    wish = parse_wish(msgspec.json.encode(body), takes_payload=True)
    decision = await executions.redrive(services, caller, name, wish, asked_in(form))
    return Done("The execution runs again.", decision)


async def _discard(services: Services, caller: Caller, name: str, form: Form) -> Done:
    check_confirmed(form)
    decision = await executions.discard(services, caller, name, wish_of(form), asked_in(form))
    return Done("The execution is discarded.", decision)


_ACTIONS: Final = {
    "cancel": Action(Scope.JOBS_WRITE, _cancel),
    "redrive": Action(Scope.JOBS_OPERATE, _redrive),
    "discard": Action(Scope.JOBS_OPERATE, _discard),
}


def _payload_in(form: Form) -> Raw | None:
    """The payload that was edited; None where it was left as it is. Raises Refused (invalid)."""
    text = form.lines("payload").strip()
    is_same = not text or text == form.lines("payload_before").strip()
    return None if is_same else payload_of(text)


def _page(
    request: Request, services: Services, caller: Caller, name: str, refused: Refusal | None = None
) -> Response:
    query_of(request)
    found = executions.find_execution(services, caller.tenant, name)
    now = services.clock.now()
    drawn = [one for one in found.attempts if one.queued_at or one.started_at][-_ATTEMPTS:]
    first = min((parse_instant(one.due_at) for one in drawn), default=now)
    last = max((_end(one, now) for one in drawn), default=now)
    lines = [Line(one, _spans(one, first, max(last, first + 1), now)) for one in drawn]
    payload = executions.payload_of(services, caller.tenant, found)
    return render(
        request,
        "execution.html",
        refused.status if refused else 200,
        execution=found,
        job=jobs.find_job(services, caller, found.job_id),
        lines=lines,
        first_at=format_instant(first),
        last_at=format_instant(last),
        payload=None if payload is None else show_json(payload),
        refused=refused,
        form=refused.form if refused else Form({}),
        skipped=_skipped(found),
    )


class Line(NamedTuple):
    """An attempt on the line of time that all share: stretches, each with its tone and what it means."""

    attempt: Execution
    spans: list[tuple[charts.Span, str, str]]


def _end(attempt: Execution, now: int) -> int:
    return now if attempt.ended_at is None else parse_instant(attempt.ended_at)


def _spans(attempt: Execution, first: int, last: int, now: int) -> list[tuple[charts.Span, str, str]]:
    due, end = parse_instant(attempt.due_at), _end(attempt, now)
    started = end if attempt.started_at is None else parse_instant(attempt.started_at)
    queued = started if attempt.queued_at is None else parse_instant(attempt.queued_at)
    found = []
    for start, stop, tone, says in (
        (due, queued, "off", "due, not queued yet"),
        (queued, started, "wait", "queued"),
        (started, end, _TONES.get(attempt.status, "run"), attempt.status),
    ):
        if stop > start or (tone != "off" and tone != "wait" and attempt.started_at is not None):
            found.append((charts.span(start, stop, first, last), tone, says))
    return found


_TONES: Final = {"succeeded": "ok", "failed": "bad", "lost": "bad", "cancelled": "off", "running": "run"}


def _skipped(found: WholeExecution) -> Execution | None:
    """The range that it is, where no attempt was ever made."""
    last = found.attempts[-1]
    return last if last.status == "skipped" else None
