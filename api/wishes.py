"""Bodies of actions: why something is done, and what belongs to it. No body at all says nothing."""

from __future__ import annotations

from typing import Final, NamedTuple

from starlette.requests import Request

from api.bodies import check_distinct, read_body, read_object
from api.fields import Fields
from api.problems import Refused
from minutebook.domain.commands import REASON_CHARS_MAX

_REASON: Final = ("reason",)
_REDRIVE: Final = ("payload", "reason")
_RESUME: Final = ("catch_up", "reason")


class Wish(NamedTuple):
    """What a caller says of an action. `payload` None = left out."""

    reason: str = ""
    payload: bytes | None = None
    is_caught_up: bool = False


async def read_wish(
    request: Request, timeout_s: float, *, takes_payload: bool = False, takes_catch_up: bool = False
) -> Wish:
    """The wish in a body. Raises Refused naming every field at fault."""
    if not _has_body(request):
        return Wish()
    data = await read_body(request, timeout_s)
    return parse_wish(data, takes_payload=takes_payload, takes_catch_up=takes_catch_up)


def parse_wish(data: bytes, *, takes_payload: bool = False, takes_catch_up: bool = False) -> Wish:
    """The wish in the bytes of a body. Raises Refused naming every field at fault."""
    members = read_object(data)
    fields = Fields(members)
    fields.refuse_unknown(_REDRIVE if takes_payload else _RESUME if takes_catch_up else _REASON)
    reason = fields.text("reason") or ""
    if len(reason) > REASON_CHARS_MAX:
        fields.fault("reason", f"ends at {REASON_CHARS_MAX} characters")
    payload = fields.payload() if takes_payload and "payload" in members else None
    is_caught_up = fields.value("catch_up")
    if is_caught_up is not None and type(is_caught_up) is not bool:
        fields.fault("catch_up", "must be true or false")
    if fields.errors:
        raise Refused("invalid", errors=fields.errors)
    check_distinct(data, fields.names)
    return Wish(reason, payload, is_caught_up is True)


def _has_body(request: Request) -> bool:
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"
