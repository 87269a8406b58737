"""The application: routes, limits around them, and problems for whatever is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException
from starlette.routing import Match

from api.direct import call_directly
from api.guard import Guard, trace_id_of
from api.openapi import scope_of
from api.pages import dead_letters as dead_letter_pages
from api.pages import executions as execution_pages
from api.pages import faults, job_edit, login, past, static_files
from api.pages import job as job_page
from api.pages import jobs as job_pages
from api.pages.live_pages import LIVE_PAGES
from api.problems import Refused, response_of
from api.routes import (
    alerts,
    audit_log,
    batch,
    calendars,
    commands,
    dead_letters,
    executions,
    health,
    history,
    job_changes,
    jobs,
    keys,
    limits,
    lists,
    live,
    operations,
    partitions,
    queues,
    schedules,
    tasks,
    tenant_limit,
    tenants,
    upcoming,
    workers,
)
from api.services import Services

PUBLIC: Final = frozenset({"/livez", "/startupz", "/readyz"})
"""Paths that need no credential."""
TRACED: Final = "/v1/"
"""Health and pages have no spans: one is of no interest, the other's addresses may hold a token."""

PUBLIC_PAGES: Final = frozenset({"/login", "/logout", "/problems/{code}", "/static/{digest}/{name}"})
"""Pages that need no session."""

_PAGES: Final = (
    *LIVE_PAGES,
    job_pages,
    job_edit,
    job_page,
    execution_pages,
    past,
    dead_letter_pages,
    faults,
    login,
    static_files,
)

_CODES: Final = {400: "malformed", 404: "not-found", 405: "method-not-allowed", 413: "too-large"}


_TELEMETRY: Final[TelemetryConfig] = {
    "exclude": lambda scope: not str(scope["path"]).startswith(TRACED),
    "logs": False,  # it would tell messages of exceptions
    "metrics": False,
    "operation_spans": False,
}
"""FastAPI makes a span of each request where a provider of OpenTelemetry is set; a job's runs go on under it."""


def create_app(services: Services) -> FastAPI:
    """The application over `services`. Raises TypeError for a route that declares no scope and is not public."""
    app = bare_app(services, faults.answer)
    for module in (
        batch,
        jobs,
        lists,
        job_changes,
        executions,
        dead_letters,
        commands,
        queues,
        limits,
        tenant_limit,
        calendars,
        alerts,
        operations,
        schedules,
        tasks,
        workers,
        keys,
        audit_log,
        tenants,
        history,
        live,
        upcoming,
        partitions,
        health,
        *_PAGES,
    ):
        # As they are: routers that are included are matched anew for each request.
        app.router.routes.extend(module.router.routes)
    for route in app.routes:
        if (
            isinstance(route, APIRoute)
            and scope_of(route) is None
            and route.path not in PUBLIC | PUBLIC_PAGES
        ):
            raise TypeError(f"{route.path} declares no scope: give it an `Allowed` dependency")
        if isinstance(route, APIRoute):
            call_directly(route)
    return app


def problem_answer(request: Request, refused: Refused) -> Response:
    """The problem that a refusal is."""
    return response_of(refused, trace_id_of(request))


def bare_app(services: Services, answer: Callable[[Request, Refused], Response] = problem_answer) -> FastAPI:
    """An application without routes, whose every refusal is told by `answer`."""
    app = FastAPI(
        openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False, telemetry=_TELEMETRY
    )
    app.state.services = services
    app.add_middleware(Guard, answer=answer, prefix=services.settings.path_prefix)

    async def on_refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return answer(request, error)

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = {"allow": ", ".join(_allowed(request))} if error.status_code == 405 else {}
        return answer(request, Refused(_CODES.get(error.status_code, "malformed"), headers=headers))

    async def on_validation(request: Request, error: Exception) -> Response:
        return answer(request, Refused("malformed"))

    app.add_exception_handler(Refused, on_refused)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_validation)
    return app


def _allowed(request: Request) -> list[str]:
    """Methods of the path: a path can have several routes."""
    found: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, APIRoute) and route.matches(request.scope)[0] is not Match.NONE:
            found |= set(route.methods or ())
    return sorted(found)
