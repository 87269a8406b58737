"""Log in with an API key, or by a link that is good once; log out."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from fastapi import Request, Response

from api.pages.access import page_router
from api.pages.forms import read_form
from api.pages.rendering import redirect, render
from api.pages.session import end_session, find_caller, start_session
from api.problems import TABLE, Refused, problem_of
from api.services import Services
from api.settings import key_hash

router = page_router()


@router.get("/login")
async def show_login(request: Request) -> Response:
    """The form; with a `token` that is good, the way in."""
    following = _following(request.query_params.get("next", ""))
    if token := request.query_params.get("token", ""):
        return _use_link(request, token)
    if find_caller(request) is not None:
        return _go_to(request, following)
    # A strict cookie does not come along from another site; asked for by the page itself, it does.
    is_elsewhere = request.headers.get("sec-fetch-site") == "cross-site"
    return render(request, "login.html", following=following, is_tried_again=is_elsewhere, problem=None)


@router.post("/login")
async def log_in(request: Request) -> Response:
    """A session for whoever has a key."""
    form = await read_form(request)
    services: Services = request.app.state.services
    following = _following(form.text("next"))
    key = form.text("key").strip()
    if services.keyring.find(key) is None:
        detail = "No such key is known here. Paste a whole API key, as it was given out."
        problem = problem_of(Refused("no-credential", detail), "")
        status = TABLE["no-credential"].status
        return render(
            request, "login.html", status, following=following, is_tried_again=False, problem=problem
        )
    response = _go_to(request, following)
    start_session(request, response, key_hash(key))
    return response


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """The end of the session here. Its key stays good."""
    response = redirect(request, "/login")
    end_session(request, response)
    return response


def _use_link(request: Request, token: str) -> Response:
    services: Services = request.app.state.services
    name = services.login_link.use(token, services.clock.now())
    if name is None or services.keyring.holder(name) is None:
        detail = (
            "This link was used, or is older than 10 minutes. Log in with a key, or start the process anew."
        )
        problem = problem_of(Refused("no-credential", detail), "")
        return render(request, "login.html", 401, following="/", is_tried_again=False, problem=problem)
    # A page that goes on by itself: the cookie comes along with what our own page asks for.
    response = render(request, "logged_in.html")
    start_session(request, response, name)
    return response


def _following(text: str) -> str:
    """Where to go on: a path here, never an address elsewhere."""
    parts = urlsplit(text)
    is_ours = (
        text.startswith("/") and not text.startswith(("//", "/\\")) and not (parts.scheme or parts.netloc)
    )
    return text if is_ours and text.isprintable() else "/"


def _go_to(request: Request, following: str) -> Response:
    parts = urlsplit(following)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return redirect(request, parts.path, **query)
