"""What happened to a job, and why: read from the log."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response

from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept
from api.decisions import caught_up, json_response
from api.described import AFTER, AT, CURSOR, LIMIT, PREFER, described
from api.history import story_of, why_of, why_of_execution
from api.parameters import limit_of, next_link, open_cursor, query_of, seal_cursor
from api.problems import Refused, refused_field
from api.services import Services, services_of
from minutebook.client.history_models import HistoryEvent, HistoryPage, WhyAnswer
from minutebook.history.bodies import event_body, why_body
from minutebook.history.steps import Wanted
from minutebook.ids import is_execution_id, is_name, job_of
from minutebook.times import parse_instant

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
_REFUSALS: Final = ("not-found", "bad-parameter", "view-behind", "history-too-long")


@router.get(
    "/v1/jobs/{job_id}/events",
    operation_id="list_job_events",
    openapi_extra=described(
        answers={200: HistoryPage}, parameters=(LIMIT, CURSOR, AFTER, PREFER), refusals=_REFUSALS
    ),
)
async def list_job_events(request: Request, caller: Reading, job_id: str) -> Response:
    """List everything that the log says of a job, in the order in which it was decided, each with its place there."""
    services = services_of(request)
    check_accept(request)
    query = query_of(request, "limit", "cursor")
    limit = limit_of(query)
    await caught_up(request, services)
    page = await events_page(services, caller, job_id, limit, query.get("cursor"))
    return json_response(page, headers=next_link(f"/v1/jobs/{job_id}/events", query, page.next_cursor))


async def events_page(
    services: Services, caller: Caller, job_id: str, limit: int, cursor: str | None
) -> HistoryPage:
    """What the log says of a job from `cursor` on. Raises Refused."""
    _check_job(services, caller, job_id)
    scope = f"{caller.tenant}/{job_id}/events"
    start = 0 if cursor is None else int(open_cursor(services.keyring.secret, scope, cursor))
    steps = (await story_of(services, Wanted(caller.tenant, job_id)))[start:]
    items = [event_body(step) for step in steps[:limit]]
    if len(steps) <= limit:
        return HistoryPage(items, None)
    # Nothing is ever put between what is there: a number is a place.
    following = seal_cursor(services.keyring.secret, scope, str(start + limit).encode())
    return HistoryPage(items, following)


async def events_of_execution(services: Services, caller: Caller, name: str) -> list[HistoryEvent]:
    """What the log says of an execution. Raises Refused."""
    _check_execution(services, caller, name)
    return [event_body(step) for step in await story_of(services, Wanted(caller.tenant, job_of(name), name))]


@router.get(
    "/v1/jobs/{job_id}/why",
    operation_id="explain_job",
    openapi_extra=described(answers={200: WhyAnswer}, parameters=(AT, AFTER, PREFER), refusals=_REFUSALS),
)
async def explain_job(request: Request, caller: Reading, job_id: str) -> Response:
    """Explain why a job ran at an instant, ran late, or did not run: facts from the log, each with its place there."""
    services = services_of(request)
    check_accept(request)
    query = query_of(request, "at")
    try:
        at = parse_instant(query.get("at", ""))
    except ValueError as error:
        raise refused_field("at", str(error), "bad-parameter") from None
    await caught_up(request, services)
    _check_job(services, caller, job_id)
    return json_response(why_body(await why_of(services, caller.tenant, job_id, at)))


@router.get(
    "/v1/executions/{execution_id}/why",
    operation_id="explain_execution",
    openapi_extra=described(answers={200: WhyAnswer}, parameters=(AFTER, PREFER), refusals=_REFUSALS),
)
async def explain_execution(request: Request, caller: Reading, execution_id: str) -> Response:
    """Explain why an execution ran, ran late, waits, or did not run."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    await caught_up(request, services)
    return json_response(await why_execution(services, caller, execution_id))


async def why_execution(services: Services, caller: Caller, name: str) -> WhyAnswer:
    """Why an execution ran, ran late, waits, or did not run. Raises Refused."""
    _check_execution(services, caller, name)
    return why_body(await why_of_execution(services, caller.tenant, name))


def _check_execution(services: Services, caller: Caller, name: str) -> None:
    if not is_execution_id(name):
        raise Refused("not-found")
    _check_job(services, caller, job_of(name))


def _check_job(services: Services, caller: Caller, job_id: str) -> None:
    if not is_name(job_id) or services.view.job(caller.tenant, job_id) is None:
        raise Refused("not-found")
