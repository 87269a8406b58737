"""Who looks at the pages: a signed cookie that names a key, looked up anew for each request."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from fastapi import Request, Response
from itsdangerous import BadData, URLSafeSerializer

from api.actors import actor_of
from api.auth import Caller
from api.services import Services

COOKIE: Final = "minutebook_session"
SESSION_MS: Final = 12 * 3_600_000
_SAID: Final = "minutebook_said"


def prefix_of(request: Request) -> str:
    """What stands before every path here, without a slash at its end; mostly nothing."""
    prefix: str = request.scope.get("root_path", "")
    return prefix


def path_of(request: Request) -> str:
    """The path that was asked for, without the prefix."""
    path: str = request.scope["path"]
    return path.removeprefix(prefix_of(request))


def find_caller(request: Request) -> Caller | None:
    """Whose session a request belongs to; None without one, after its end, and when its key is known no more."""
    services: Services = request.app.state.services
    session = _opened(request, COOKIE)
    if session is None or session["until"] <= services.clock.now():
        return None
    caller = services.keyring.holder(session["key"])
    return (
        None
        if caller is None
        else caller._replace(actor=actor_of(request, caller.key, services.proxies, "page"))
    )


def start_session(request: Request, response: Response, key_hash: str) -> None:
    """Let the browser carry a session for the key with that SHA-256 in hex."""
    until = request.app.state.services.clock.now() + SESSION_MS
    _set(request, response, COOKIE, {"key": key_hash, "until": until}, SESSION_MS // 1000)


def end_session(request: Request, response: Response) -> None:
    """Let the browser forget its session."""
    response.delete_cookie(COOKIE, path=prefix_of(request) or "/")


def leave_word(request: Request, response: Response, text: str, after: str = "") -> None:
    """What the next page says, once. `after`: the position that its view must have reached."""
    _set(request, response, _SAID, {"text": text, "after": after}, 60)


def word_left(request: Request) -> dict[str, str] | None:
    """What `leave_word` left: `text` and `after`."""
    word: dict[str, str] | None = _opened(request, _SAID)
    return word


def forget_word(request: Request, response: Response) -> None:
    """It has been said."""
    if _SAID in request.cookies:
        response.delete_cookie(_SAID, path=prefix_of(request) or "/")


def _serializer(request: Request, name: str) -> URLSafeSerializer:
    services: Services = request.app.state.services
    return URLSafeSerializer(
        services.keyring.secret, salt=name, signer_kwargs={"digest_method": hashlib.sha256}
    )


def _opened(request: Request, name: str) -> Any:
    try:
        return _serializer(request, name).loads(request.cookies.get(name, ""))
    except BadData:
        return None


def _set(request: Request, response: Response, name: str, value: dict[str, Any], age_s: int) -> None:
    response.set_cookie(
        name,
        str(_serializer(request, name).dumps(value)),
        max_age=age_s,
        path=prefix_of(request) or "/",
        secure=_is_https(request),
        httponly=True,
        samesite="strict",
    )


def _is_https(request: Request) -> bool:
    # A proxy that ends TLS says so; whoever lies only makes the cookie stricter.
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))


def is_fragment(request: Request) -> bool:
    """Whether a script of ours asks for a part of a page."""
    return request.headers.get("hx-request") == "true"
