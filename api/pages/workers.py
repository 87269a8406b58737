"""Workers: who is there, what each runs, and wishes to them."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Request, Response

from api.auth import Caller, Scope
from api.pages.access import Seen, page_router, ready
from api.pages.doing import LATER, WAIT_S, Refusal, refusal, wish_of
from api.pages.forms import read_form
from api.pages.live import show_live
from api.pages.rendering import redirect
from api.positions import encode_token
from api.problems import Refused
from api.routes.workers import ask, whole_worker, workers_of
from api.services import Services
from minutebook.domain.workers import QUIET, RESUME, STOP

router = page_router()
Reading = Annotated[Caller, Depends(Seen(Scope.JOBS_READ))]
Operating = Annotated[Caller, Depends(Seen(Scope.WORKERS_OPERATE))]
_SAID: Final = {
    QUIET: "Asked to take no more grants. It shows as quiet once it does.",
    RESUME: "Asked to take grants again.",
    STOP: "Asked to leave. It finishes what it runs, within its grace, and exits.",
}


@router.get("/workers")
async def show_workers(request: Request, caller: Reading) -> Response:
    """All workers heard of lately."""
    services = await ready(request)
    return show_live(request, "workers", "worker task", every_s=3, workers=workers_of(services))


@router.get("/workers/{worker_id}")
async def show_worker(request: Request, caller: Reading, worker_id: str) -> Response:
    """A worker with its sessions and what it runs."""
    return await _show(request, await ready(request), caller, worker_id)


@router.post("/workers/{worker_id}")
async def ask_worker(request: Request, caller: Operating, worker_id: str) -> Response:
    """A wish to a worker: quiet, resume, stop."""
    services = await ready(request)
    form = await read_form(request)
    what = form.text("do")
    if what not in _SAID:
        raise Refused("malformed", "Send the form of the page.")
    try:
        decision = await ask(services, caller, worker_id, what, wish_of(form), WAIT_S)
    except Refused as refused:
        return await _show(request, services, caller, worker_id, refusal(request, refused, form))
    said = LATER if decision.row is None else _SAID[what]
    return redirect(request, f"/workers/{worker_id}", said, encode_token(decision.token()))


async def _show(
    request: Request, services: Services, caller: Caller, worker_id: str, refused: Refusal | None = None
) -> Response:
    worker = await whole_worker(services, caller, worker_id)
    status = 200 if refused is None else refused.status
    return show_live(request, "worker", "worker execution", status, 3, worker=worker, refused=refused)
