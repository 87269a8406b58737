"""The list of jobs: filtered, with the columns that are wanted, and what is done to some or to all that match."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

import msgspec
from fastapi import Depends, Request, Response

from api.auth import Caller, Scope
from api.decisions import Asked
from api.list_filters import DUE_FILTERS, JOB_FILTERS, JOB_ORDERS, JOB_STATUSES
from api.operation_bodies import OperationWish, read_operation
from api.pages.access import Seen, page_router, ready
from api.pages.doing import Refusal, asked_in, check_confirmed, reason_in, refusal, refusal_line
from api.pages.filters import filtered, show_filter
from api.pages.forms import Form, read_form
from api.pages.rendering import redirect, render
from api.parameters import query_of
from api.problems import Refused
from api.routes import job_changes, jobs, operations
from api.routes.lists import jobs_page
from api.services import Services
from api.wishes import Wish
from minutebook.client.list_models import JobPage
from minutebook.client.models import FieldError
from minutebook.client.operation_models import JobDryRun

router = page_router()
Reading = Annotated[Caller, Depends(Seen(Scope.JOBS_READ))]
Writing = Annotated[Caller, Depends(Seen(Scope.JOBS_WRITE))]
COLUMNS: Final = {
    "task": "Task",
    "schedule": "Schedule",
    "queue": "Queue",
    "next": "Next",
    "executions": "Executions",
    "tags": "Tags",
    "priority": "Priority",
    "version": "Version",
    "created": "Created",
}
_SHOWN: Final = "task,schedule,queue,next,executions"
_KEPT: Final = ("order", "columns")
_ROWS: Final = "50"
_VERBS: Final = {"pause": "paused", "resume": "resumed", "cancel": "cancelled", "run_now": "run"}
_OF_OPERATIONS: Final = ("pause", "resume", "cancel")


@router.get("/jobs")
async def show_jobs(request: Request, caller: Reading) -> Response:
    """The list."""
    services = await ready(request)
    if "column" in request.query_params:
        return _choose(request)
    try:
        if (away := filtered(request, "/jobs", JOB_FILTERS, _KEPT)) is not None:
            return away
        return await _page(request, services, caller, _query(request))
    except Refused as error:
        if error.code != "bad-parameter":
            raise
        refused = refusal(request, error, Form({}))
        return await _page(request, services, caller, {}, refused)


@router.post("/jobs")
async def act_on_jobs(request: Request, caller: Writing) -> Response:
    """Do something to the chosen ones, or to all that match the filter: first counted, then, confirmed, started."""
    services = await ready(request)
    form = await read_form(request)
    query = _query(request)
    try:
        if form.text("scope") == "all":
            return await _act_on_all(request, services, caller, query, form)
        return await _act_on_chosen(request, services, caller, query, form)
    except Refused as error:
        return await _page(request, services, caller, query, refusal(request, error, form))


async def _act_on_chosen(
    request: Request, services: Services, caller: Caller, query: dict[str, str], form: Form
) -> Response:
    does = form.text("do")
    if does not in _VERBS:
        raise Refused("not-found", "The page has no such action; load it again.")
    chosen = form.texts("id")
    if not chosen:
        raise Refused("invalid", "Select jobs first; nothing was done.")
    if does == "cancel":
        check_confirmed(form)
    wish, asked = Wish(reason_in(form)), asked_in(form)
    refusals = await asyncio.gather(*(_do(services, caller, does, name, wish, asked) for name in chosen))
    faults = [fault for fault in refusals if fault is not None]
    said = f"{len(chosen) - len(faults)} of {len(chosen)} jobs {_VERBS[does]}."
    if faults:
        raise Refused("invalid", f"{said} The others were refused.", faults)
    return redirect(request, "/jobs", said, **query)


async def _do(
    services: Services, caller: Caller, does: str, chosen: str, wish: Wish, asked: Asked
) -> FieldError | None:
    """Do it to one job, as it was seen; why not, where it is refused."""
    job_id, _, version = chosen.partition("/")
    seen = asked._replace(
        expected_version=int(version) if version.isdecimal() and len(version) < 10 else None
    )
    try:
        if does == "run_now":
            await jobs.run_now(services, caller, job_id, seen)
        else:
            await getattr(job_changes, does)(services, caller, job_id, wish, seen)
    except Refused as error:
        return FieldError(job_id, refusal_line(error))
    return None


async def _act_on_all(
    request: Request, services: Services, caller: Caller, query: dict[str, str], form: Form
) -> Response:
    if not caller.may(Scope.JOBS_OPERATE):
        raise Refused("denied")
    kind = form.text("do")
    if kind not in _OF_OPERATIONS:
        raise Refused("not-found", "The page has no such action; load it again.")
    wish = _wish(kind, query, reason_in(form))
    if form.text("step") != "start":
        counted = await operations.count(services, caller, wish)
        assert isinstance(counted, JobDryRun)
        return await _page(request, services, caller, query, counted=counted, kind=kind)
    if kind == "cancel":
        check_confirmed(form)
    started = await operations.start(services, caller, wish, "operations", asked_in(form))
    return redirect(request, f"/operations/{started.body.id}", "The operation goes on by itself.")


def _wish(kind: str, query: dict[str, str], reason: str) -> OperationWish:
    """The operation on all jobs that a query shows. Raises Refused for a filter that no operation has."""
    names = {"from": "created_from", "until": "created_until"}
    wanted = {names.get(name, name): query[name] for name in JOB_FILTERS if name in query}
    return read_operation(msgspec.json.encode({"kind": kind, "filter": wanted, "reason": reason}))


def _query(request: Request) -> dict[str, str]:
    """The query without what is empty. Raises Refused (bad-parameter)."""
    query = query_of(request, *JOB_FILTERS, *_KEPT, "cursor")
    return {name: value for name, value in query.items() if value}


def _choose(request: Request) -> Response:
    """On to the address with the columns that were ticked."""
    chosen = [name for name in request.query_params.getlist("column") if name in COLUMNS]
    query = {
        name: value
        for name, value in request.query_params.items()
        if name in (*JOB_FILTERS, "order") and value
    }
    columns = ",".join(chosen)
    return redirect(request, "/jobs", **query | {"columns": "" if columns == _SHOWN else columns or "none"})


async def _page(
    request: Request,
    services: Services,
    caller: Caller,
    query: dict[str, str],
    refused: Refusal | None = None,
    **shown: Any,
) -> Response:
    listed = {name: value for name, value in query.items() if name != "columns"}
    try:
        page = jobs_page(services, caller, listed | {"limit": _ROWS})
    except Refused as error:
        refused, page = refusal(request, error, Form({})), JobPage([], None)
    is_bound = any(name in query for name in DUE_FILTERS)
    order = query.get("order", "due" if is_bound else JOB_ORDERS[0])
    is_by_due = order.endswith("due")
    columns = [name for name in query.get("columns", _SHOWN).split(",") if name in COLUMNS]
    typed = request.query_params.get("filter", "")
    return render(
        request,
        "jobs.html",
        refused.status if refused else 200,
        page=page,
        query=query,
        filter_text=typed or show_filter(query, JOB_FILTERS),
        columns=columns,
        all_columns=COLUMNS,
        statuses=JOB_STATUSES,
        order=order,
        is_by_due=is_by_due,
        refused=refused,
        counted=shown.get("counted"),
        kind=shown.get("kind", ""),
        # What is due when changes with each run: an operation on all has no such filter, and by the next instant the
        # list leaves out jobs that it would act on.
        can_be_all=query.get("status", "active") in ("active", "paused") and not (is_bound or is_by_due),
    )
