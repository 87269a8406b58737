"""A job: what it runs and when, how its executions fared, what it was before, and what can be done about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from fastapi import Depends, Request, Response
from msgspec import UNSET, Raw

from api.auth import Caller, Scope
from api.coming import coming_of, why_none
from api.list_filters import ATTEMPT_STATUSES
from api.operation_bodies import OperationWish, read_backfill
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
from api.pages.rendering import redirect, render
from api.pages.texts import show_json
from api.parameters import query_of
from api.problems import Refused
from api.routes import job_changes, jobs, operations
from api.routes.lists import executions_page
from api.services import Services
from api.wishes import Wish
from minutebook.client.change_models import JobVersion
from minutebook.client.list_models import ExecutionSummary
from minutebook.client.operation_models import BackfillDryRun
from minutebook.ids import requested_execution_id
from minutebook.times import parse_instant

router = page_router()
Reading = Annotated[Caller, Depends(Seen(Scope.JOBS_READ))]
Writing = Annotated[Caller, Depends(Seen(Scope.JOBS_WRITE))]
_COMING: Final = 5
_LATENESS: Final = 30
_HISTORY: Final = "25"
_VERSIONS: Final = 10
_QUERY: Final = ("status", "cursor", "versions")


@router.get("/jobs/{job_id}")
async def show_job(request: Request, caller: Reading, job_id: str) -> Response:
    """The page."""
    services = await ready(request)
    return _page(request, services, caller, job_id)


@router.post("/jobs/{job_id}")
async def act_on_job(request: Request, caller: Writing, job_id: str) -> Response:
    """Do what the form says, and show it; refused, stay and say why."""
    services = await ready(request)
    form = await read_form(request)
    try:
        action = chosen(_ACTIONS, form, caller)
        if form.text("step") == "count":
            counted = await operations.count(services, caller, _backfill_wish(job_id, form))
            return _page(request, services, caller, job_id, counted=counted, form=form)
        done = await action.act(services, caller, job_id, form)
    except Refused as error:
        if error.code == "not-found":
            raise
        return _page(request, services, caller, job_id, refused=refusal(request, error, form), form=form)
    return redirect(request, done.path or f"/jobs/{job_id}", done.word(), done.after())


async def _pause(services: Services, caller: Caller, job_id: str, form: Form) -> Done:
    decision = await job_changes.pause(services, caller, job_id, wish_of(form), asked_in(form))
    return Done("The job is paused: nothing of it comes due until it is resumed.", decision)


async def _resume(services: Services, caller: Caller, job_id: str, form: Form) -> Done:
    is_caught_up = form.text("catch_up") == "yes"
    wish = Wish(reason_in(form), is_caught_up=is_caught_up)
    decision = await job_changes.resume(services, caller, job_id, wish, asked_in(form))
    return Done("The job goes on.", decision)


async def _cancel(services: Services, caller: Caller, job_id: str, form: Form) -> Done:
    check_confirmed(form)
    decision = await job_changes.cancel(services, caller, job_id, wish_of(form), asked_in(form))
    return Done("The job is cancelled.", decision)


async def _run_now(services: Services, caller: Caller, job_id: str, form: Form) -> Done:
    decision = await jobs.run_now(services, caller, job_id, asked_in(form))
    made = requested_execution_id(job_id, decision.command_id)
    path = "" if decision.row is None else f"/executions/{made}"
    return Done("The job runs once, beside its schedule.", decision, path)


async def _purge(services: Services, caller: Caller, job_id: str, form: Form) -> Done:
    check_confirmed(form)
    decision = await job_changes.purge(services, caller, job_id, wish_of(form), asked_in(form))
    return Done(f"The job {job_id} and its history are shown no more.", decision, "/jobs")


async def _backfill(services: Services, caller: Caller, job_id: str, form: Form) -> Done:
    wish = _backfill_wish(job_id, form)
    started = await operations.start(services, caller, wish, f"jobs/{job_id}/backfill", asked_in(form))
    return Done("The backfill goes on by itself.", started.decision, f"/operations/{started.body.id}")


_ACTIONS: Final = {
    "pause": Action(Scope.JOBS_WRITE, _pause),
    "resume": Action(Scope.JOBS_WRITE, _resume),
    "cancel": Action(Scope.JOBS_WRITE, _cancel),
    "run_now": Action(Scope.JOBS_WRITE, _run_now),
    "purge": Action(Scope.JOBS_OPERATE, _purge),
    "backfill": Action(Scope.JOBS_OPERATE, _backfill),
}


def _backfill_wish(job_id: str, form: Form) -> OperationWish:
    """The backfill in a form. Raises Refused (invalid) naming its fields."""
    body: dict[str, Any] = {"from": form.text("from").strip(), "until": form.text("until").strip()}
    rate = form.text("rate_per_s").strip()
    if rate:
        body["rate_per_s"] = int(rate) if rate.isdecimal() and len(rate) < 10 else rate
    return read_backfill(msgspec.json.encode(body | {"reason": reason_in(form)}), job_id)


class Change(NamedTuple):
    """A field that a version of a job has otherwise than the one before; None = it was not given."""

    name: str
    before: str | None
    after: str | None


def _page(
    request: Request,
    services: Services,
    caller: Caller,
    job_id: str,
    *,
    refused: Refusal | None = None,
    counted: Any = None,
    form: Form | None = None,
) -> Response:
    query = query_of(request, *_QUERY)
    job = jobs.find_job(services, caller, job_id)
    wanted = {name: query[name] for name in ("status", "cursor") if query.get(name)}
    history = executions_page(services, caller, wanted | {"job_id": job_id, "limit": _HISTORY})
    latest = executions_page(services, caller, {"job_id": job_id, "limit": str(_LATENESS)})
    versions = job_changes.versions_page(
        services, caller, job_id, _VERSIONS + 1, query.get("versions") or None
    )
    assert counted is None or isinstance(counted, BackfillDryRun)
    return render(
        request,
        "job.html",
        refused.status if refused else 200,
        job=job,
        coming=coming_of(services, caller, job_id, _COMING),
        why_none=why_none(services, caller, job_id),
        history=history,
        latenesses=list(_latenesses(latest.items)),
        versions=list(_versions(versions.items)),
        next_versions=versions.next_cursor,
        statuses=ATTEMPT_STATUSES,
        query=query,
        refused=refused,
        counted=counted,
        form=form or Form({}),
    )


def _latenesses(items: list[ExecutionSummary]) -> Iterator[charts.Lateness]:
    for item in reversed(items):
        if item.count is None:
            late_ms = None
            if item.started_at is not None:
                late_ms = max(0, parse_instant(item.started_at) - parse_instant(item.due_at))
            yield charts.Lateness(item.execution_id, item.scheduled_at, item.status, late_ms)


def _versions(items: list[JobVersion]) -> Iterator[tuple[JobVersion, list[Change] | None]]:
    """Versions, the latest first, each with what it changed; None = the one before is not on this page."""
    for number, item in enumerate(items[:_VERSIONS]):
        before = items[number + 1] if number + 1 < len(items) else None
        yield item, None if before is None else list(_changes(before.body, item.body))


def _changes(before: msgspec.Struct, after: msgspec.Struct, prefix: str = "") -> Iterator[Change]:
    for name in after.__struct_fields__:
        old, new = getattr(before, name), getattr(after, name)
        if isinstance(old, msgspec.Struct) or isinstance(new, msgspec.Struct):
            default = type(new if isinstance(new, msgspec.Struct) else old)()
            old, new = (default if one is UNSET else one for one in (old, new))
            yield from _changes(old, new, f"{prefix}{name}.")
        elif old != new:
            yield Change(prefix + name, _shown(old), _shown(new))


def _shown(value: Any) -> str | None:
    if value is UNSET:
        return None
    if isinstance(value, str):
        return value
    return show_json(value if isinstance(value, Raw) else msgspec.json.encode(value))
