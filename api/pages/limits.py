"""Limits: how much of each is used, what waits for it, and its pause."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Request, Response

from api.auth import Caller, Scope
from api.everywhere import decide_everywhere
from api.limits import find_limit, limits_of, pause_command, versions_of
from api.pages.access import Seen, page_router, ready
from api.pages.doing import LATER, WAIT_S, Refusal, refusal, wish_of
from api.pages.forms import Form, read_form
from api.pages.live import show_live
from api.pages.rendering import redirect
from api.positions import encode_token
from api.problems import Refused, refused_field
from api.services import Services
from minutebook.domain.known_limits import TENANT_WIDE
from minutebook.times import parse_short_duration

router = page_router()
Reading = Annotated[Caller, Depends(Seen(Scope.JOBS_READ))]
Changing = Annotated[Caller, Depends(Seen(Scope.LIMITS_WRITE))]
_KINDS: Final = "limit execution"
_SAID: Final = {
    "pause": "Paused: every partition knows it, and nothing under it starts until then.",
    "resume": "Resumed: jobs under it start again.",
}


@router.get("/limits")
async def show_limits(request: Request, caller: Reading) -> Response:
    """All limits of the tenant."""
    services = await ready(request)
    return show_live(request, "limits", _KINDS, limits=limits_of(services, caller))


@router.get("/limits/{name}")
async def show_limit(request: Request, caller: Reading, name: str) -> Response:
    """A limit."""
    return _show(request, await ready(request), caller, name)


@router.get("/tenant-limit")
async def show_tenant_limit(request: Request, caller: Reading) -> Response:
    """The limit of the tenant."""
    return _show(request, await ready(request), caller, TENANT_WIDE)


@router.post("/limits/{name}")
async def change_limit(request: Request, caller: Changing, name: str) -> Response:
    """Pause it or resume it."""
    return await _change(request, caller, name)


@router.post("/tenant-limit")
async def change_tenant_limit(request: Request, caller: Changing) -> Response:
    """Pause or resume the limit of the tenant."""
    return await _change(request, caller, TENANT_WIDE)


async def _change(request: Request, caller: Caller, name: str) -> Response:
    services = await ready(request)
    form = await read_form(request)
    what = form.text("do")
    if what not in _SAID:
        raise Refused("malformed", "Send the form of the page.")
    find_limit(services, caller, name)
    try:
        for_ms = _length_ms(form) if what == "pause" else None
        command = pause_command(services, caller, name, wish_of(form).reason, for_ms=for_ms)
        version_in = versions_of(services, command)
        _, token = await decide_everywhere(services, command, version_in, WAIT_S)
    except Refused as refused:
        return _show(request, services, caller, name, refusal(request, refused, form))
    path = f"/limits/{name}" if name else "/tenant-limit"
    if token is None:
        return redirect(request, path, LATER)
    return redirect(request, path, _SAID[what], encode_token(token))


def _length_ms(form: Form) -> int:
    """For how long to pause. Raises Refused."""
    try:
        return parse_short_duration(form.text("length").strip())
    except ValueError as error:
        raise refused_field("/length", str(error)) from None


def _show(
    request: Request, services: Services, caller: Caller, name: str, refused: Refusal | None = None
) -> Response:
    limit = find_limit(services, caller, name)
    status = 200 if refused is None else refused.status
    return show_live(request, "limit", _KINDS, status, limit=limit, refused=refused)
