"""What the log says of a job or an execution, and why one ran or did not: parts of pages, or pages of their own."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Request, Response

from api.auth import Caller, Scope
from api.pages.access import Seen, page_router, ready
from api.pages.rendering import render
from api.pages.session import is_fragment
from api.parameters import query_of
from api.routes.history import events_of_execution, events_page, why_execution
from minutebook.client.history_models import HistoryEvent
from minutebook.ids import job_of

router = page_router()
Reading = Annotated[Caller, Depends(Seen(Scope.JOBS_READ))]
_ROWS: Final = 200
QUIET: Final = frozenset({"progressed", "returned", "report_refused"})
"""Kinds of events of which several in a row are folded into one line."""


@router.get("/jobs/{job_id}/events")
async def show_job_events(request: Request, caller: Reading, job_id: str) -> Response:
    """Everything that the log says of a job, the earliest first."""
    services = await ready(request)
    cursor = query_of(request, "cursor").get("cursor")
    page = await events_page(services, caller, job_id, _ROWS, cursor)
    groups = folded(page.items)
    return render(
        request,
        "events.html",
        job_id=job_id,
        execution_id="",
        groups=groups,
        next_cursor=page.next_cursor,
        is_fragment=is_fragment(request),
    )


@router.get("/executions/{execution_id}/events")
async def show_execution_events(request: Request, caller: Reading, execution_id: str) -> Response:
    """Everything that the log says of an execution."""
    services = await ready(request)
    query_of(request)
    groups = folded(await events_of_execution(services, caller, execution_id))
    return render(
        request,
        "events.html",
        job_id=job_of(execution_id),
        execution_id=execution_id,
        groups=groups,
        next_cursor=None,
        is_fragment=is_fragment(request),
    )


@router.get("/executions/{execution_id}/why")
async def show_why(request: Request, caller: Reading, execution_id: str) -> Response:
    """Why an execution ran, ran late, waits, or did not run."""
    services = await ready(request)
    query_of(request)
    answer = await why_execution(services, caller, execution_id)
    return render(request, "why.html", answer=answer, is_fragment=is_fragment(request))


def folded(events: list[HistoryEvent]) -> list[list[HistoryEvent]]:
    """Events in order, those that are quiet and follow one another in one group."""
    groups: list[list[HistoryEvent]] = []
    for event in events:
        if groups and event.kind in QUIET and groups[-1][0].kind == event.kind:
            groups[-1].append(event)
        else:
            groups.append([event])
    return groups
