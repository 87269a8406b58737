"""Lists of all jobs and executions of a tenant, and the overview of how they stand."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request, Response

from api import lists
from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept
from api.decisions import caught_up, json_response
from api.described import AFTER, CURSOR, LIMIT, PREFER, described, query_name
from api.list_filters import (
    ATTEMPT_STATUSES,
    ERROR_TYPE_MAX,
    EXECUTION_FILTERS,
    EXECUTION_ORDERS,
    JOB_FILTERS,
    JOB_ORDERS,
    JOB_STATUSES,
    execution_filter,
    job_filter,
)
from api.parameters import limit_of, next_link, open_cursor, query_of, seal_cursor
from api.services import Services, services_of
from minutebook.client.list_models import ExecutionsPage, JobPage, Overview

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
_TASK: Final = query_name("task", "Only those of this task.", maxLength=128)
_QUEUE: Final = query_name("queue", "Only those of this queue.", maxLength=128)


def _instants(what: str) -> tuple[dict[str, Any], ...]:
    """The names of the query that bound a list by time."""
    return (
        query_name("from", f"Only those {what} then or later.", format="date-time"),
        query_name("until", f"Only those {what} before.", format="date-time"),
    )


@router.get(
    "/v1/jobs",
    operation_id="list_jobs",
    openapi_extra=described(
        answers={200: JobPage},
        parameters=(
            query_name("status", "Only those that are so.", enum=list(JOB_STATUSES)),
            _TASK,
            _QUEUE,
            query_name("tag", "Only those with this tag.", maxLength=128),
            *_instants("created"),
            query_name("due_from", "Only those whose next instant is then or later.", format="date-time"),
            query_name("due_until", "Only those whose next instant is before.", format="date-time"),
            query_name(
                "order",
                "`-created`: the latest first, the default; `due`: by the next instant, only those that "
                "have one, the default beside `due_from` and `due_until`.",
                enum=list(JOB_ORDERS),
            ),
            LIMIT,
            CURSOR,
            AFTER,
            PREFER,
        ),
        refusals=("bad-parameter", "view-behind"),
    ),
)
async def list_jobs(request: Request, caller: Reading) -> Response:
    """List jobs by the instant at which they were created, or by their next one. A page may end early, and still have a
    next one."""
    services = services_of(request)
    check_accept(request)
    query = query_of(request, *JOB_FILTERS, "order", "limit", "cursor")
    await caught_up(request, services)
    page = jobs_page(services, caller, query)
    return json_response(page, headers=next_link("/v1/jobs", query, page.next_cursor))


def jobs_page(services: Services, caller: Caller, query: dict[str, str]) -> JobPage:
    """The page of jobs that a query asks for. Raises Refused (bad-parameter)."""
    asked, limit = job_filter(query), limit_of(query)
    place = _place(services, caller, "jobs", query)
    items, following = lists.list_jobs(services, caller.tenant, asked, place, limit)
    return JobPage(items, _cursor(services, caller, "jobs", query, following))


@router.get(
    "/v1/executions",
    operation_id="list_all_executions",
    openapi_extra=described(
        answers={200: ExecutionsPage},
        parameters=(
            query_name("status", "Only those whose latest attempt is so.", enum=list(ATTEMPT_STATUSES)),
            _TASK,
            _QUEUE,
            query_name("job_id", "Only those of this job.", maxLength=128),
            query_name(
                "error_type", "Only those given up with an error of this type.", maxLength=ERROR_TYPE_MAX
            ),
            *_instants("scheduled"),
            query_name(
                "order",
                "`-scheduled`: the latest first, the default unless `status` is `scheduled`.",
                enum=list(EXECUTION_ORDERS),
            ),
            LIMIT,
            CURSOR,
            AFTER,
            PREFER,
        ),
        refusals=("bad-parameter", "view-behind"),
    ),
)
async def list_all_executions(request: Request, caller: Reading) -> Response:
    """List executions of all jobs by scheduled_at; a job's next instant is none yet. A page may end early."""
    services = services_of(request)
    check_accept(request)
    query = query_of(request, *EXECUTION_FILTERS, "order", "limit", "cursor")
    await caught_up(request, services)
    page = executions_page(services, caller, query)
    return json_response(page, headers=next_link("/v1/executions", query, page.next_cursor))


def executions_page(services: Services, caller: Caller, query: dict[str, str]) -> ExecutionsPage:
    """The page of executions that a query asks for. Raises Refused (bad-parameter)."""
    asked, limit = execution_filter(query), limit_of(query)
    place = _place(services, caller, "executions", query)
    items, following = lists.list_executions(services, caller.tenant, asked, place, limit)
    return ExecutionsPage(items, _cursor(services, caller, "executions", query, following))


@router.get(
    "/v1/overview",
    operation_id="get_overview",
    openapi_extra=described(
        answers={200: Overview},
        parameters=(AFTER, PREFER),
        refusals=("bad-parameter", "view-behind"),
    ),
)
async def get_overview(request: Request, caller: Reading) -> Response:
    """How the jobs of the tenant stand: counts by status, what is due, and how late attempts start."""
    services = services_of(request)
    check_accept(request)
    query_of(request)
    await caught_up(request, services)
    return json_response(lists.overview(services, caller.tenant))


def _scope(caller: Caller, name: str, query: dict[str, str]) -> str:
    """What a cursor is good for: this list of this tenant, filtered and in order as asked for."""
    asked = sorted((key, value) for key, value in query.items() if key not in ("limit", "cursor"))
    return f"{caller.tenant}/{name}?{urlencode(asked)}"


def _place(services: Services, caller: Caller, name: str, query: dict[str, str]) -> bytes:
    if "cursor" not in query:
        return b""
    return open_cursor(services.keyring.secret, _scope(caller, name, query), query["cursor"])


def _cursor(services: Services, caller: Caller, name: str, query: dict[str, str], place: bytes) -> str | None:
    return seal_cursor(services.keyring.secret, _scope(caller, name, query), place) if place else None
