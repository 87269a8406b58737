"""Bulk operations: how far each is, and its end."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from fastapi import Depends, Request, Response

from api.auth import Caller, Scope
from api.decisions import Asked
from api.pages.access import Seen, page_router, ready
from api.pages.doing import LATER, WAIT_S, Refusal, refusal, wish_of
from api.pages.forms import read_form
from api.pages.live import show_live
from api.pages.rendering import redirect
from api.positions import encode_token
from api.problems import Refused
from api.routes.operations import cancel, find_operation, operations_page
from api.services import Services
from minutebook.client.operation_models import Operation

router = page_router()
Reading = Annotated[Caller, Depends(Seen(Scope.JOBS_READ))]
Operating = Annotated[Caller, Depends(Seen(Scope.JOBS_OPERATE))]
_PAGE: Final = 50
_KINDS: Final = "operation"


@router.get("/operations")
async def show_operations(request: Request, caller: Reading) -> Response:
    """Operations, the latest first."""
    services = await ready(request)
    page = operations_page(services, caller, _PAGE, request.query_params.get("cursor"))
    return show_live(
        request, "operations", _KINDS, every_s=5, page=page, filter_of=filter_of, share_of=share_of
    )


@router.get("/operations/{operation_id}")
async def show_operation(request: Request, caller: Reading, operation_id: str) -> Response:
    """An operation."""
    return _show(request, await ready(request), caller, operation_id)


@router.post("/operations/{operation_id}")
async def cancel_operation(request: Request, caller: Operating, operation_id: str) -> Response:
    """End it: what is done stays."""
    services = await ready(request)
    form = await read_form(request)
    try:
        asked = Asked(WAIT_S, form.text("key") or None)
        decision = await cancel(services, caller, operation_id, wish_of(form), asked)
    except Refused as refused:
        return _show(request, services, caller, operation_id, refusal(request, refused, form))
    said = LATER if decision.row is None else "Cancelled: what is done stays, no more is done."
    return redirect(request, f"/operations/{operation_id}", said, encode_token(decision.token()))


def _show(
    request: Request, services: Services, caller: Caller, operation_id: str, refused: Refusal | None = None
) -> Response:
    operation = find_operation(services, caller, operation_id)
    status = 200 if refused is None else refused.status
    return show_live(
        request,
        "operation",
        _KINDS,
        status,
        every_s=2,
        operation=operation,
        refused=refused,
        filter_of=filter_of,
        share_of=share_of,
    )


def filter_of(operation: Operation) -> list[tuple[str, Any]]:
    """(name, value) of what an operation is about; nothing for everything."""
    return list(msgspec.to_builtins(operation.filter).items())


def share_of(operation: Operation) -> int | None:
    """How much of it is settled, in percent; None while it is counted."""
    progress = operation.progress
    if progress.matched is None:
        return None
    return 100 * (progress.done + progress.refused) // progress.matched if progress.matched else 100
