"""The outermost layer: limits that hold before a route is looked for, and problems for whatever goes wrong inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import Refused, new_trace_id
from api.rates import SCOPE_KEY
from minutebook import tracing

BODY_BYTES_MAX: Final = 1 << 20
BATCH_BYTES_MAX: Final = 8 << 20
BATCH_PATH: Final = "/v1/jobs/batch"
_TARGET_BYTES_MAX: Final = 8 << 10
_HEADERS_BYTES_MAX: Final = 32 << 10
_CLOSE: Final = {"connection": "close"}
_ALWAYS: Final = (b"x-content-type-options", b"nosniff")
_NOT_KEPT: Final = (b"cache-control", b"no-store")

_log = structlog.get_logger()


def body_limit(scope: Scope) -> int:
    """Most bytes of a body for what is asked there."""
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    return BATCH_BYTES_MAX if path == BATCH_PATH else BODY_BYTES_MAX


def trace_id_of(request: Request) -> str:
    """Trace id of the request's span, of the caller's `traceparent`, or a new one."""
    traced = tracing.current_trace_id()
    if traced:
        return traced
    parts = request.headers.get("traceparent", "").split("-")
    is_given = (
        len(parts) == 4 and len(parts[1]) == 32 and all(digit in "0123456789abcdef" for digit in parts[1])
    )
    return parts[1] if is_given else new_trace_id()


class Guard:
    """ASGI middleware; see the module. `answer`: the response to a refusal; `prefix`: what stands before every path."""

    def __init__(self, app: ASGIApp, answer: Callable[[Request, Refused], Response], prefix: str) -> None:
        self._app = app
        self._answer = answer
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it. Other kinds of scope pass untouched."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["root_path"] = self._prefix
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = [*message["headers"], _ALWAYS, *scope.get(SCOPE_KEY, ())]
                is_kept = any(name == b"cache-control" for name, _ in headers)
                message["headers"] = headers if is_kept else [*headers, _NOT_KEPT]
            await send(message)

        request = Request(scope, receive)
        try:
            _check_frame(request)
            await self._app(scope, receive, sending)
        except Refused as refused:
            await self._answer(request, refused)(scope, receive, sending)
        except ClientDisconnect:
            return
        except Exception:
            trace_id = trace_id_of(request)
            _log.exception("request_failed", trace_id=trace_id, method=scope["method"])
            if started:
                raise
            await self._answer(request, Refused("internal"))(scope, receive, sending)


def _check_frame(request: Request) -> None:
    """Raises Refused for a request line, headers or an announced body beyond the limits."""
    scope = request.scope
    if len(scope.get("raw_path") or scope["path"].encode()) + len(scope["query_string"]) > _TARGET_BYTES_MAX:
        raise Refused("uri-too-long", headers=_CLOSE)
    length = None
    is_chunked = False
    total = 0
    for name, value in scope["headers"]:
        total += len(name) + len(value)
        if name == b"content-length":
            if length is not None or not value.isdigit():
                raise Refused("malformed", "Send one Content-Length of digits alone.", headers=_CLOSE)
            length = int(value[:20])
        elif name == b"transfer-encoding":
            is_chunked = True
    if total > _HEADERS_BYTES_MAX:
        raise Refused("headers-too-large", headers=_CLOSE)
    if length is not None and is_chunked:
        raise Refused("malformed", "Send Content-Length or Transfer-Encoding, not both.", headers=_CLOSE)
    if length is not None and length > (limit := body_limit(scope)):
        raise Refused("too-large", f"The body ends at {limit} bytes.", headers=_CLOSE)
