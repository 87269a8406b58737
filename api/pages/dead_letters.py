"""Dead letters: what was given up, why, and running it again or discarding it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

import msgspec
from fastapi import Depends, Request, Response

from api.auth import Caller, Scope
from api.decisions import Asked
from api.operation_bodies import OperationWish, read_dead
from api.pages.access import Seen, page_router, ready
from api.pages.doing import Refusal, asked_in, reason_in, refusal, refusal_line
from api.pages.filters import filtered, show_filter
from api.pages.forms import Form, read_form
from api.pages.rendering import redirect, render
from api.parameters import query_of
from api.problems import Refused
from api.routes import executions, operations
from api.routes.dead_letters import FILTERS, dead_letters_page
from api.services import Services
from api.wishes import Wish
from minutebook.client.dead_letter_models import DeadLetterPage
from minutebook.client.models import FieldError
from minutebook.client.operation_models import DryRun
from minutebook.domain.operations import DEAD_KINDS
from minutebook.ids import is_execution_id

router = page_router()
Reading = Annotated[Caller, Depends(Seen(Scope.JOBS_READ))]
Operating = Annotated[Caller, Depends(Seen(Scope.JOBS_OPERATE))]
_ROWS: Final = 50
_ACTIONS: Final = {"redrive": executions.redrive, "discard": executions.discard}
_SAYS: Final = {"redrive": "run again", "discard": "discarded"}


@router.get("/dead-letters")
async def show_dead_letters(request: Request, caller: Reading) -> Response:
    """The list."""
    services = await ready(request)
    try:
        if (away := filtered(request, "/dead-letters", FILTERS)) is not None:
            return away
        return _page(request, services, caller, _query(request))
    except Refused as error:
        if error.code != "bad-parameter":
            raise
        return _page(request, services, caller, {}, refusal(request, error, Form({})))


@router.get("/dead-letters/reasons")
async def show_reasons(request: Request, caller: Reading) -> Response:
    """A part of a page: why those that fit were given up. Counting takes a while where they are many."""
    services = await ready(request)
    query = _query(request)
    counted = await operations.count(services, caller, _wish(query, {}))
    return render(request, "reasons.html", counted=counted, query=query)


@router.post("/dead-letters")
async def act(request: Request, caller: Operating) -> Response:
    """Redrive or discard the chosen ones, or all that match the filter: first counted, then started."""
    services = await ready(request)
    form = await read_form(request)
    query = _query(request)
    try:
        does = _does(form)
        if form.text("scope") == "all":
            return await _do_all(request, services, caller, query, form, does)
        return await _do_chosen(request, services, caller, query, form, does)
    except Refused as error:
        return _page(request, services, caller, query, refusal(request, error, form), form=form)


def _does(form: Form) -> str:
    """What the pressed button does. Raises Refused (invalid)."""
    does = form.text("does")
    if does not in DEAD_KINDS:
        raise Refused("invalid", "Choose what to do; nothing was done.")
    return does


async def _do_chosen(
    request: Request, services: Services, caller: Caller, query: dict[str, str], form: Form, does: str
) -> Response:
    names = form.texts("id")
    if not names:
        raise Refused("invalid", "Select dead letters first; nothing was done.")
    wish, asked = Wish(reason_in(form)), asked_in(form)._replace(action=f"page {does}")
    refusals = await asyncio.gather(*(_do(services, caller, name, does, wish, asked) for name in names))
    faults = [fault for fault in refusals if fault is not None]
    said = f"{len(names) - len(faults)} of {len(names)} {_SAYS[does]}."
    if faults:
        raise Refused("invalid", f"{said} The others were refused.", faults)
    return redirect(request, "/dead-letters", said, **query)


async def _do(
    services: Services, caller: Caller, name: str, does: str, wish: Wish, asked: Asked
) -> FieldError | None:
    try:
        if not is_execution_id(name):
            raise Refused("not-found")
        await _ACTIONS[does](services, caller, name, wish, asked)
    except Refused as error:
        return FieldError(name, refusal_line(error))
    return None


async def _do_all(
    request: Request, services: Services, caller: Caller, query: dict[str, str], form: Form, does: str
) -> Response:
    sent: dict[str, Any] = {"reason": reason_in(form)}
    rate = form.text("rate_per_s").strip()
    if rate:
        sent["rate_per_s"] = int(rate) if rate.isdecimal() and len(rate) < 10 else rate
    wish = _wish(query, sent, does)
    if form.text("step") != "start":
        counted = await operations.count(services, caller, wish)
        return _page(request, services, caller, query, counted=counted, form=form)
    started = await operations.start(services, caller, wish, f"dead-letters/{does}", asked_in(form))
    return redirect(request, f"/operations/{started.body.id}", f"The {does} goes on by itself.")


def _wish(query: dict[str, str], sent: dict[str, Any], does: str = "redrive") -> OperationWish:
    wanted = {name: query[name] for name in FILTERS if name in query}
    return read_dead(msgspec.json.encode({"filter": wanted, **sent}), does)


def _query(request: Request) -> dict[str, str]:
    query = query_of(request, *FILTERS, "cursor")
    return {name: value for name, value in query.items() if value}


def _page(
    request: Request,
    services: Services,
    caller: Caller,
    query: dict[str, str],
    refused: Refusal | None = None,
    *,
    counted: Any = None,
    form: Form | None = None,
) -> Response:
    wanted: dict[str, str] = {name: query[name] for name in FILTERS if name in query}
    try:
        page = dead_letters_page(services, caller, wanted, _ROWS, query.get("cursor"))
    except Refused as error:
        refused, page = refusal(request, error, Form({})), DeadLetterPage([], None)
    assert counted is None or isinstance(counted, DryRun)
    return render(
        request,
        "dead_letters.html",
        refused.status if refused else 200,
        page=page,
        query=query,
        filter_text=request.query_params.get("filter") or show_filter(query, FILTERS),
        refused=refused,
        counted=counted,
        form=form or Form({}),
    )
