"""Bodies of actions: why something is done, and what belongs to it. No body at all says nothing."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from starlette.requests import Request

from api.bodies import check_distinct, read_body, read_object
from api.fields import Fields
from api.problems import Refused, refused_field
from minutebook.domain.commands import REASON_CHARS_MAX

REASON_HEADER: Final = "Minutebook-Reason"
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
    if not has_body(request):
        return Wish(reason_of(request))
    data = await read_body(request, timeout_s)
    wish = parse_wish(data, takes_payload=takes_payload, takes_catch_up=takes_catch_up)
    return wish._replace(reason=wish.reason or reason_of(request))


def parse_wish(data: bytes, *, takes_payload: bool = False, takes_catch_up: bool = False) -> Wish:
    """The wish in the bytes of a body. Raises Refused naming every field at fault."""
    members = read_object(data)
    fields = Fields(members)
    fields.refuse_unknown(_REDRIVE if takes_payload else _RESUME if takes_catch_up else _REASON)
    reason = read_reason(fields)
    payload = fields.payload() if takes_payload and "payload" in members else None
    is_caught_up = fields.value("catch_up")
    if is_caught_up is not None and type(is_caught_up) is not bool:
        fields.fault("catch_up", "must be true or false")
    if fields.errors:
        raise Refused("invalid", errors=fields.errors)
    check_distinct(data, fields.names)
    return Wish(reason, payload, is_caught_up is True)


def read_reason(fields: Fields) -> str:
    """The field `reason` of a body, empty where it is left out; what is wrong with it is noted."""
    reason = fields.text("reason") or ""
    if len(reason) > REASON_CHARS_MAX:
        fields.fault("reason", f"ends at {REASON_CHARS_MAX} characters")
    return reason


def reason_of(request: Request) -> str:
    """The reason in the header, for requests whose body has none. Raises Refused (bad-parameter)."""
    given = request.headers.getlist(REASON_HEADER)
    if not given:
        return ""
    try:
        reason = unquote_to_bytes(given[0].encode("ascii")).decode()
    except UnicodeError:
        raise refused_field(REASON_HEADER, "percent-encoded UTF-8", "bad-parameter") from None
    if len(given) > 1 or len(reason) > REASON_CHARS_MAX:
        detail = f"once, at most {REASON_CHARS_MAX} characters, percent-encoded UTF-8"
        raise refused_field(REASON_HEADER, detail, "bad-parameter")
    return reason


def refuse_reason(request: Request) -> None:
    """Raises Refused (bad-parameter) for a reason that would be lost: some commands have none."""
    if REASON_HEADER in request.headers:
        raise refused_field(REASON_HEADER, "is kept of no such command; leave it out", "bad-parameter")


def has_body(request: Request) -> bool:
    """Whether there is a body at all."""
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"
