"""Pages that follow what happens: one part of each is asked for anew by the script, when something of it has changed."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse
from fastapi.sse import EventSourceResponse

from api.auth import Caller, Scope
from api.live.changes import Wish
from api.pages.access import Seen, page_router
from api.pages.rendering import render
from api.problems import Refused
from api.routes.live import last_seen
from api.services import services_of

router = page_router()
Reading = Annotated[Caller, Depends(Seen(Scope.JOBS_READ))]
STREAM: Final = "/stream"
_LIFE_S: Final = 900


@router.get(STREAM)
async def follow(request: Request, caller: Reading) -> Response:
    """The stream of `/v1/stream` for the session of a browser. All pages of a tenant share its messages."""
    services = services_of(request)
    if len(services.live) >= services.settings.streams_max:
        raise Refused("too-many-streams")
    wish = Wish(caller.tenant, sees_all=caller.may(Scope.QUEUES_WRITE))
    stream = services.live.stream(wish, last_seen(request, services.view.partitions), _LIFE_S)
    return EventSourceResponse(stream, headers={"x-accel-buffering": "no"})


def show_live(
    request: Request, name: str, kinds: str, status: int = 200, every_s: int = 10, **values: Any
) -> HTMLResponse:
    """The page `<name>.html`, or for the script its live part alone, `<name>_live.html`.

    `kinds`: what must have changed for the part to be asked for anew, beside every `every_s` seconds.
    """
    is_part = request.headers.get("hx-request") == "true"
    query = f"?{request.url.query}" if request.url.query else ""
    template = f"{name}_live.html" if is_part else f"{name}.html"
    return render(
        request,
        template,
        status,
        kinds=kinds,
        every_ms=every_s * 1_000,
        asked=query,
        stream=STREAM,
        part=f"{name}_live.html",
        **values,
    )
