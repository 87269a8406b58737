"""Queues: what waits in each, and whether it may; and the tasks that no worker knows."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Final, NamedTuple

from fastapi import Depends, Request, Response

from api.auth import Caller, Scope
from api.pages.access import Seen, page_router, ready
from api.pages.doing import LATER, WAIT_S, Refusal, refusal, wish_of
from api.pages.forms import read_form
from api.pages.live import show_live
from api.pages.rendering import redirect
from api.positions import encode_token
from api.problems import Refused
from api.routes.lists import executions_page
from api.routes.queues import Kind, change, find_queue, queues_of
from api.routes.tasks import tasks_of
from api.routes.workers import workers_of
from api.services import Services
from minutebook.client.fleet import DeclaredTask, Worker
from minutebook.domain.commands import DrainQueue, PauseQueue, ResumeQueue

router = page_router()
Reading = Annotated[Caller, Depends(Seen(Scope.JOBS_READ))]
Declaring = Annotated[Caller, Depends(Seen(Scope.QUEUES_WRITE))]
_KINDS: Final = "queue task worker execution"
_WAITING: Final = "500"
"""Executions that are looked at to say how deep the queues are."""
_ACTIONS: Final[dict[str, tuple[Kind, str]]] = {
    "pause": (PauseQueue, "Paused: every partition knows it, and nothing more of it starts."),
    "drain": (DrainQueue, "Draining: no new job is taken for it."),
    "resume": (ResumeQueue, "Resumed: what waits is granted again."),
}


class KnownTask(NamedTuple):
    """A declared task, and how many live workers know it."""

    task: DeclaredTask
    workers: int


@router.get("/queues")
async def show_queues(request: Request, caller: Reading) -> Response:
    """All queues that the caller may use, and the declared tasks."""
    services = await ready(request)
    workers = workers_of(services)
    waiting = executions_page(services, caller, {"status": "queued", "order": "scheduled", "limit": _WAITING})
    return show_live(
        request,
        "queues",
        _KINDS,
        queues=list(queues_of(services, caller)),
        served=_served(workers),
        depth=Counter(it.queue for it in waiting.items),
        oldest={it.queue: it.due_at for it in reversed(waiting.items)},
        is_all=waiting.next_cursor is None,
        tasks=known_tasks(services, workers),
    )


@router.get("/queues/{name}")
async def show_queue(request: Request, caller: Reading, name: str) -> Response:
    """A queue."""
    return _show(request, await ready(request), caller, name)


@router.post("/queues/{name}")
async def change_queue(request: Request, caller: Declaring, name: str) -> Response:
    """Pause, drain or resume it."""
    services = await ready(request)
    form = await read_form(request)
    kind, said = _ACTIONS.get(form.text("do"), (None, ""))
    if kind is None:
        raise Refused("malformed", "Send the form of the page.")
    find_queue(services, caller, name)
    try:
        _, (_, token) = await change(services, caller, name, kind, wish_of(form), WAIT_S)
    except Refused as refused:
        return _show(request, services, caller, name, refusal(request, refused, form))
    if token is None:
        return redirect(request, f"/queues/{name}", LATER)
    return redirect(request, f"/queues/{name}", said, encode_token(token))


def _show(
    request: Request, services: Services, caller: Caller, name: str, refused: Refusal | None = None
) -> Response:
    queue = find_queue(services, caller, name)
    workers = [
        worker
        for worker in workers_of(services)
        if not worker.queues or any(served.name == name for served in worker.queues)
    ]
    asked = {"status": "queued", "queue": name, "order": "scheduled", "limit": _WAITING}
    waiting = executions_page(services, caller, asked)
    return show_live(
        request,
        "queue",
        _KINDS,
        200 if refused is None else refused.status,
        queue=queue,
        workers=workers,
        waiting=waiting,
        refused=refused,
    )


def _served(workers: list[Worker]) -> Counter[str]:
    """How many live workers serve a queue; those that name none serve all of them, under an empty name."""
    found: Counter[str] = Counter()
    for worker in workers:
        if worker.status != "silent":
            found.update([queue.name for queue in worker.queues] or [""])
    return found


def known_tasks(services: Services, workers: list[Worker]) -> list[KnownTask]:
    """Declared tasks, those first that nobody knows."""
    known = Counter(task for worker in workers if worker.status != "silent" for task in worker.tasks)
    found = [KnownTask(task, known[task.name]) for task in tasks_of(services)]
    return sorted(found, key=lambda it: (it.workers > 0, it.task.name))
