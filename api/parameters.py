"""Query names, headers and cursors: everything that is neither path nor body."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from fastapi import Request

from api.problems import Refused, refused_field
from minutebook import tracing
from minutebook.ids import command_id_from_key, is_idempotency_key
from minutebook.mint import mint_id
from minutebook.times import parse_instant

LIMIT_MAX: Final = 1000
WAIT_S_MAX: Final = 30
_WAIT_S: Final = re.compile(r"\d{1,2}", re.ASCII)
_LIMIT: Final = re.compile(r"[1-9]\d{0,3}", re.ASCII)
_JOB_TAG: Final = re.compile(r'"([1-9]\d{0,8})(?:-[0-9a-f]{16})?"', re.ASCII)
_CURSOR_CHARS_MAX: Final = 1024
_SIGNATURE_BYTES: Final = 16


def query_of(request: Request, *names: str) -> dict[str, str]:
    """The query, by name. Raises Refused (bad-parameter) for a name that is unknown here, or repeated."""
    found: dict[str, str] = {}
    if not request.scope["query_string"]:
        return found
    for name, value in request.query_params.multi_items():
        if name not in names:
            known = ", ".join(names) or "none"
            raise refused_field(
                ascii(name[:64])[1:-1], f"unknown query name; known here: {known}", "bad-parameter"
            )
        if name in found:
            raise refused_field(name, "give it once", "bad-parameter")
        found[name] = value
    return found


def limit_of(query: dict[str, str]) -> int:
    """Items of a page. Raises Refused (bad-parameter)."""
    text = query.get("limit", "100")
    if not _LIMIT.fullmatch(text) or int(text) > LIMIT_MAX:
        raise refused_field("limit", f"must be a whole number from 1 to {LIMIT_MAX}", "bad-parameter")
    return int(text)


def instant_of_query(query: dict[str, str], name: str, default: int) -> int:
    """An instant (ms, UTC) of the query. Raises Refused (bad-parameter)."""
    if name not in query:
        return default
    try:
        return parse_instant(query[name])
    except ValueError as error:
        raise refused_field(name, str(error), "bad-parameter") from None


def wait_of(query: dict[str, str]) -> int:
    """Seconds to wait. Raises Refused (bad-parameter)."""
    text = query.get("wait", "0")
    if not _WAIT_S.fullmatch(text) or int(text) > WAIT_S_MAX:
        raise refused_field(
            "wait", f"must be a whole number of seconds from 0 to {WAIT_S_MAX}", "bad-parameter"
        )
    return int(text)


def flag_of(request: Request, name: str) -> bool:
    """A name of the query that is `true`, `false`, or not there. Raises Refused (bad-parameter)."""
    text = request.query_params.get(name, "false")
    if text not in ("true", "false"):
        raise refused_field(name, "must be true or false", "bad-parameter")
    return text == "true"


def idempotency_key_of(request: Request, *, is_required: bool = False) -> str | None:
    """The `Idempotency-Key`. Raises Refused (bad-parameter)."""
    keys = request.headers.getlist("idempotency-key")
    if not keys and not is_required:
        return None
    if len(keys) != 1 or not is_idempotency_key(keys[0]):
        raise refused_field("Idempotency-Key", "send one, of 1-255 visible ASCII characters", "bad-parameter")
    return keys[0]


def command_id_of(action: str, tenant: str, subject: str, key: str | None) -> str:
    """Id of the command for an action on `subject`: the same for the same action and key, a new one without a key.

    A key that comes again with another action means that one: no key has a blank, so the two stay apart.
    """
    return mint_id() if key is None else command_id_from_key(tenant, subject, f"{action} {key}")


def expected_version_of(request: Request) -> int | None:
    """The version of a job that `If-Match` names; None without the header, or for `*`. Raises Refused (bad-parameter).

    Of an entity tag its version alone is compared: what else changes of a job is no change of its definition.
    """
    tags = request.headers.getlist("if-match")
    if not tags or tags == ["*"]:
        return None
    found = _JOB_TAG.fullmatch(tags[0])
    if len(tags) != 1 or found is None:
        raise refused_field(
            "If-Match", 'send one ETag of the job, or its version, such as "3"', "bad-parameter"
        )
    return int(found.group(1))


def has_tag(request: Request, tag: str) -> bool:
    """Whether `If-None-Match` names the entity tag: the caller has what it stands for."""
    tags = (item.strip().removeprefix("W/") for item in request.headers.get("if-none-match", "").split(","))
    return any(item in (tag, "*") for item in tags)


def traceparent_of(request: Request) -> str:
    """W3C trace context that a job's runs go on with: the request's own span, else the caller's, empty where there is none."""
    text = tracing.current() or request.headers.get("traceparent", "")
    return text if re.fullmatch(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", text) else ""


def next_link(path: str, query: Mapping[str, str], cursor: str | None) -> dict[str, str]:
    """The header `Link` to the page after one that was asked for by `query`; none after the last."""
    if cursor is None:
        return {}
    return {"link": f'<{path}?{urlencode({**query, "cursor": cursor})}>; rel="next"'}


def seal_cursor(secret: bytes, scope: str, place: bytes) -> str:
    """A cursor for `place` that is good within `scope` alone."""
    return base64.urlsafe_b64encode(_signature(secret, scope, place) + place).decode().rstrip("=")


def open_cursor(secret: bytes, scope: str, text: str) -> bytes:
    """The place in a cursor. Raises Refused (bad-parameter), the same for a forged one and for somebody else's."""
    try:
        if len(text) > _CURSOR_CHARS_MAX:
            raise ValueError("too long")
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise _bad_cursor() from None
    signature, place = data[:_SIGNATURE_BYTES], data[_SIGNATURE_BYTES:]
    if not hmac.compare_digest(signature, _signature(secret, scope, place)):
        raise _bad_cursor()
    return place


def _bad_cursor() -> Refused:
    return refused_field(
        "cursor", "send a next_cursor of this very list, or none to start anew", "bad-parameter"
    )


def _signature(secret: bytes, scope: str, place: bytes) -> bytes:
    return hmac.new(secret, scope.encode() + b"\0" + place, hashlib.sha256).digest()[:_SIGNATURE_BYTES]
