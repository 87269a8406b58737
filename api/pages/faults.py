"""Refusals as people see them: a page for a browser, a problem for everybody else."""

from __future__ import annotations

from fastapi import Request, Response

from api.guard import trace_id_of
from api.pages.access import page_router
from api.pages.rendering import redirect, render
from api.pages.session import is_fragment, path_of
from api.problems import TABLE, Refused, problem_of, response_of

router = page_router()


def answer(request: Request, refused: Refused) -> Response:
    """The response to a refusal: who asked for a page gets one, and is sent to log in where that is what is missing."""
    if not _is_for_page(request):
        return response_of(refused, trace_id_of(request))
    if refused.code == "no-credential" and not is_fragment(request):
        return redirect(request, "/login", next=_wanted(request))
    kind = TABLE[refused.code]
    headers = dict(refused.headers)
    if kind.retry_after_s is not None:
        headers["retry-after"] = str(kind.retry_after_s)
    if refused.code == "no-credential":
        headers["hx-refresh"] = "true"  # the whole page, which leads to the login
    template = "problem_fragment.html" if is_fragment(request) else "fault.html"
    problem = problem_of(refused, trace_id_of(request))
    return render(request, template, kind.status, headers, problem=problem, retry_s=kind.retry_after_s)


@router.get("/problems/{code}")
async def show_problem(request: Request, code: str) -> Response:
    """What a problem's `type` names."""
    if code not in TABLE:
        raise Refused("not-found")
    return render(request, "problem_kind.html", kind=TABLE[code], code=code)


def _is_for_page(request: Request) -> bool:
    if path_of(request).startswith("/v1/"):
        return False
    return "text/html" in request.headers.get("accept", "") or is_fragment(request)


def _wanted(request: Request) -> str:
    """Where to go on after the login: the page that was asked for, or the one whose form was sent."""
    query = request.url.query if request.method == "GET" else ""
    return path_of(request) + (f"?{query}" if query else "")
