"""Bodies and their JSON, taken strictly: what two readers could understand differently is refused.

msgspec refuses NaN, numbers beyond a double, byte order marks, lone surrogates and text that is not UTF-8. Duplicate
names, depth and integers beyond 64 bits it lets pass, so they are checked here.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

import msgspec
from msgspec import Raw
from starlette.requests import Request

from api.guard import body_limit
from api.problems import Refused, refused_field

DEPTH_MAX: Final = 64
_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 63) - 1
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')
_NAME_END: Final = re.compile(rb'"[ \t\r\n]*:')
_CLOSE: Final = {"connection": "close"}
_objects: Final = msgspec.json.Decoder(dict[str, Raw])


async def read_body(request: Request, timeout_s: float) -> bytes:
    """The whole body. Raises Refused: unsupported-media, too-large (chunked bodies too), body-too-slow."""
    _check_media(request)
    limit = body_limit(request.scope)
    parts: list[bytes] = []
    total = 0
    try:
        async with asyncio.timeout(timeout_s):
            async for part in request.stream():
                total += len(part)
                if total > limit:
                    raise Refused("too-large", f"The body ends at {limit} bytes.", headers=_CLOSE)
                parts.append(part)
    except TimeoutError:
        raise Refused("body-too-slow", headers=_CLOSE) from None
    return b"".join(parts)


def _check_media(request: Request) -> None:
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if kind.strip().lower() != "application/json" or charset not in ("", "utf-8"):
        raise Refused("unsupported-media", headers=_CLOSE)
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused("unsupported-media", headers=_CLOSE)


def check_accept(request: Request) -> None:
    """Raises Refused (not-acceptable) where the caller takes no JSON."""
    accept = request.headers.get("accept")
    if accept is None:
        return
    for item in accept.split(","):
        kind, *parameters = (part.strip().lower() for part in item.split(";"))
        if kind in ("*/*", "application/*", "application/json") and "q=0" not in parameters:
            return
    raise Refused("not-acceptable")


def read_object(data: bytes | Raw) -> dict[str, Raw]:
    """Members of the JSON object in `data`, their values as they were sent. Raises Refused.

    Values are only known to be well formed after `read_value`, names to be distinct after `check_distinct`.
    """
    if not data:
        raise Refused("malformed-json", "The body is empty: send a JSON object.")
    try:
        return _objects.decode(data)
    except msgspec.ValidationError:
        raise Refused("malformed-json", "The body must be a JSON object.") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Refused("malformed-json", _reason(error)) from None


def read_value(raw: Raw, pointer: str) -> Any:
    """The value in `raw`. Raises Refused naming `pointer`."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise refused_field(pointer, _reason(error)) from None


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return f"nested too deeply: at most {DEPTH_MAX} levels"
    if isinstance(error, msgspec.ValidationError):
        return "a number is out of range: integers have 64 bits, others are finite doubles"
    return "not well-formed JSON in UTF-8 (no byte order mark, no lone surrogate, no NaN)"


def check_value(value: Any, pointer: str) -> int:
    """How many names the objects in `value` have. Raises Refused for depth and for integers beyond 64 bits."""
    names = 0
    level: list[Any] = [value]
    depth = 0
    while level:
        below: list[Any] = []
        has_containers = False
        for item in level:
            kind = type(item)
            if kind is dict:
                has_containers = True
                names += len(item)
                below.extend(item.values())
            elif kind is list:
                has_containers = True
                below.extend(item)
            elif kind is int and not _INT_MIN <= item <= _INT_MAX:
                raise refused_field(pointer, "an integer is beyond 64 bits; send it as text")
        depth += has_containers
        if depth > DEPTH_MAX:
            raise refused_field(pointer, f"nested too deeply: at most {DEPTH_MAX} levels")
        level = below
    return names


def check_distinct(data: bytes | Raw, names: int) -> None:
    """Raises Refused unless the well-formed JSON in `data` has exactly `names` names, none of them twice in its object.

    Outside strings a colon follows a name and nothing else. Inside them a quote and a colon are rare, so that mostly
    these two are counted.
    """
    data = bytes(data)
    if len(_NAME_END.findall(data)) == names:
        return
    if _STRING.sub(b"", data).count(b":") != names:
        raise Refused("malformed-json", "A name occurs twice in one object; send each once.")
