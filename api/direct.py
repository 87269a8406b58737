"""Routes called without FastAPI's solver: our handlers take the request, the caller and texts of the path, no more.

FastAPI would gather the same for each request anew, with two stacks for dependencies that need closing, which costs as much
as reading and checking a whole create body.
"""

from __future__ import annotations

from typing import NamedTuple

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from api.auth import Allowed

_REQUEST = "request"


class _Called(NamedTuple):
    """The one dependency of a handler, and the name of its parameter."""

    allowed: Allowed
    name: str


def call_directly(route: APIRoute) -> None:
    """Let `route` call its handler itself, where the handler asks for nothing else. To be done before the first request."""
    called = _called(route.dependant)
    if called is not None:
        route.app = _direct(route, called)


def _called(dependant: Dependant) -> _Called | None:
    others = (
        dependant.query_params,
        dependant.header_params,
        dependant.cookie_params,
        dependant.body_params,
    )
    if any(others) or dependant.request_param_name != _REQUEST or len(dependant.dependencies) != 1:
        return None
    (only,) = dependant.dependencies
    if not isinstance(only.call, Allowed) or only.name is None:
        return None
    if any(field.field_info.annotation is not str for field in dependant.path_params):
        return None
    return _Called(only.call, only.name)


def _direct(route: APIRoute, called: _Called) -> ASGIApp:
    handler, (allowed, name) = route.endpoint, called

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        caller = await allowed(request)
        response = await handler(request=request, **{name: caller}, **scope["path_params"])
        await response(scope, receive, send)

    return app
