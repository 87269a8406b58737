"""What every page asks of a request before anything else: a session, a role, and for a form that it is ours."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from api.auth import Allowed, Caller
from api.pages.session import find_caller, word_left
from api.positions import decode_token
from api.problems import Refused
from api.services import Services, services_of

_OURS: Final = ("same-origin", "none")
_READING: Final = ("GET", "HEAD")
_BEHIND_S: Final = 2


def page_router() -> APIRouter:
    """A router for a module of pages: answers are HTML, the API's document does not list them, forms must be ours."""
    return APIRouter(
        include_in_schema=False, default_response_class=HTMLResponse, dependencies=[Depends(check_origin)]
    )


class Seen(Allowed):
    """Dependency of a page: the caller of its session, whose role covers `scope`."""

    async def __call__(self, request: Request) -> Caller:
        """The caller. Raises Refused: no-credential (a browser is sent to log in), denied."""
        caller = find_caller(request)
        if caller is None:
            raise Refused("no-credential")
        if not caller.may(self.scope):
            raise Refused("denied")
        return caller


async def check_origin(request: Request) -> None:
    """Raises Refused (denied) for what another site lets a browser send.

    Browsers say it in `Sec-Fetch-Site`, but over plain HTTP only in `Origin`.
    """
    if request.method in _READING:
        return
    site = request.headers.get("sec-fetch-site")
    if site is None:
        origin = urlsplit(request.headers.get("origin", "")).netloc
        site = "same-origin" if origin and origin == request.headers.get("host") else "cross-site"
    if site not in _OURS:
        raise Refused("denied", "The form came from another site; open the page here and send it again.")


async def ready(request: Request) -> Services:
    """The services, once the view shows what this browser did before. Raises Refused: not-ready, view-behind."""
    services = services_of(request)
    word = word_left(request)
    if word and word["after"]:
        token = decode_token(word["after"], services.view.partitions)
        if not await services.view.until(lambda: services.view.has_reached(token), _BEHIND_S):
            raise Refused("view-behind")
    return services
