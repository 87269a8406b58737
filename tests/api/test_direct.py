"""Which routes are called without FastAPI's solver: those whose handler takes the request, the caller and parts of the path."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute

from api.auth import Allowed, Caller, Scope
from api.direct import call_directly
from tests.api.memory import Installation

Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
router = APIRouter()


@router.get("/direct/{name}")
async def direct(request: Request, who: Reading, name: str) -> Response:
    return Response(name)


@router.get("/number/{number}")
async def number_in_path(request: Request, caller: Reading, number: int) -> Response:
    return Response()


@router.get("/query")
async def query(request: Request, caller: Reading, text: str) -> Response:
    return Response()


@router.get("/public")
async def public(request: Request) -> Response:
    return Response()


def is_called_directly(route: APIRoute) -> bool:
    before = route.app
    call_directly(route)
    return route.app is not before


def test_a_handler_that_asks_for_more_is_left_to_fastapi() -> None:
    found = {route.path: is_called_directly(route) for route in router.routes if isinstance(route, APIRoute)}
    assert found == {"/direct/{name}": True, "/number/{number}": False, "/query": False, "/public": False}


def test_all_routes_of_the_api_are_called_directly(world: Installation) -> None:
    for route in world.app.routes:
        if isinstance(route, APIRoute) and route.path.startswith("/v1/"):
            assert route.app.__module__ == "api.direct", route.path
