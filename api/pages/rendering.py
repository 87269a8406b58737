"""From a template to a response: what every page is given, and the headers that it is sent with."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from api.auth import Caller, Scope
from api.openapi import scope_of
from api.pages import charts, texts
from api.pages.compression import page_body
from api.pages.session import find_caller, forget_word, leave_word, path_of, prefix_of, word_left
from api.pages.static_files import address
from api.problems import TABLE
from api.services import Services
from minutebook.mint import mint_id

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
THEMES: Final = ("light", "dark")
_HEADERS: Final = {"content-security-policy": CSP, "referrer-policy": "same-origin"}


class Query(dict[str, str]):
    """The query of a page: what was not given is empty."""

    def __missing__(self, name: str) -> str:
        return ""


class Entry(NamedTuple):
    """A line of the navigation."""

    path: str
    title: str


NAVIGATION: Final = (
    Entry("/", "Overview"),
    Entry("/upcoming", "Upcoming"),
    Entry("/jobs", "Jobs"),
    Entry("/executions", "Executions"),
    Entry("/dead-letters", "Dead letters"),
    Entry("/operations", "Operations"),
    Entry("/queues", "Queues"),
    Entry("/workers", "Workers"),
    Entry("/limits", "Limits"),
    Entry("/partitions", "Partitions"),
    Entry("/audit", "Audit"),
)
"""Shown where there is such a page."""

_environment: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters |= {
    "later": texts.later,
    "show_instant": texts.show_instant,
    "show_duration": texts.show_duration,
    "show_ms": texts.show_ms,
    "show_json": texts.show_json,
    "show_count": texts.show_count,
    "show_short": texts.show_short,
}
_environment.filters |= {
    "filtered": lambda query, *names: {name: query[name] for name in names if query.get(name)},
    "without": lambda query, *names: {name: value for name, value in query.items() if name not in names},
    "lateness_rows": charts.lateness_rows,
    "longest": lambda spans: texts.show_ms(max(spans, default=0)),
}
_environment.globals |= {
    "show_age": texts.show_age,
    "show_between": texts.show_between,
    "show_since": texts.show_since,
    "show_clock": texts.show_clock,
    "charts": charts,
    "mint_id": mint_id,
    "Scope": Scope,
    "INVALID": TABLE["invalid"].detail,
}


def render(
    request: Request, template: str, status: int = 200, headers: dict[str, str] | None = None, **values: Any
) -> HTMLResponse:
    """The page that `template` makes of `values`, for who has the session.

    Templates also see: `visitor` (None = nobody), `may(scope)`, `now` (ms), `here` (path), `link(path, **query)`,
    `static(name)`, `navigation`, `environment`, `theme`, `word` (what was done just now), `is_masked`.
    """
    services: Services = request.app.state.services
    prefix, visitor = prefix_of(request), find_caller(request)
    word = word_left(request)
    shown = _environment.get_template(template).render(
        visitor=visitor,
        may=lambda scope: visitor is not None and visitor.may(scope),
        now=services.clock.now(),
        here=path_of(request),
        link=lambda path, **query: _link(prefix, path, query),
        prefix=prefix,
        static=lambda name: prefix + address(name),
        navigation=_navigation(request, visitor),
        environment=services.settings.environment,
        theme=_theme(request),
        word=word["text"] if word else "",
        is_masked=services.settings.is_payload_masked,
        **values | {"query": Query(values.get("query", {}))},
    )
    body, saying = page_body(request, shown.encode())
    response = HTMLResponse(body, status, _HEADERS | saying | (headers or {}))
    forget_word(request, response)
    return response


def redirect(request: Request, path: str, said: str = "", after: str = "", **query: str) -> RedirectResponse:
    """On to another page, which says what was done. `after`: the position that it must show."""
    response = RedirectResponse(_link(prefix_of(request), path, query), 303, _HEADERS)
    if said:
        leave_word(request, response, said, after)
    return response


def _link(prefix: str, path: str, query: dict[str, Any]) -> str:
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return prefix + path + (f"?{urlencode(given)}" if given else "")


def _theme(request: Request) -> str:
    theme = request.cookies.get("minutebook_theme", "")
    return theme if theme in THEMES else ""


def _navigation(request: Request, visitor: Caller | None) -> list[Entry]:
    """The pages that are there, and that who looks may see."""
    scopes = {
        route.path: scope_of(route)
        for route in request.app.routes
        if isinstance(route, APIRoute) and "GET" in (route.methods or ())
    }
    return [
        entry
        for entry in NAVIGATION
        if visitor is not None and (scope := scopes.get(entry.path)) and visitor.may(Scope(scope))
    ]
