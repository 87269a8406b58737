"""What OpenAPI says of a route beyond its path: bodies, answers, headers, refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from api.positions import Token, encode_token
from api.problems import TABLE

Answer = type[msgspec.Struct] | tuple[type[msgspec.Struct], ...] | None
"""The body of an answer, one of several where the request chooses, or none."""

BODY: Final = ("malformed-json", "body-too-slow", "unsupported-media", "invalid")
"""Refusals of routes that take a body."""
WRITE: Final = ("bad-parameter", "too-old", "not-durable", "overloaded")
"""Refusals of routes that send one command."""

_COMMON: Final = (
    "malformed",
    "no-credential",
    "denied",
    "not-acceptable",
    "too-large",
    "uri-too-long",
    "rate-limited",
    "headers-too-large",
    "internal",
    "not-ready",
)
"""Refusals that every route has: of its frame and its caller, before anybody looks at what is asked."""


def _header(name: str, description: str, example: str, pattern: str | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"} if pattern is None else {"type": "string", "pattern": pattern}
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": schema,
        "example": example,
    }


_KEY_PATTERN: Final = "^[\\x21-\\x7e]{1,255}$"
IDEMPOTENCY_KEY: Final = _header(
    "Idempotency-Key",
    "A repeat with the same key and body gets the first answer again.",
    "order-4711",
    _KEY_PATTERN,
)
REQUIRED_KEY: Final = IDEMPOTENCY_KEY | {"required": True}
PREFER: Final = _header("Prefer", "`wait=<seconds>` (default 5, at most 30) or `respond-async`.", "wait=10")
AFTER: Final = _header(
    "Minutebook-After",
    "A consistency token from Minutebook-Position: wait until it is visible.",
    encode_token(Token()),
)

REASON: Final = _header(
    "Minutebook-Reason",
    "Why, as percent-encoded UTF-8, at most 1,000 characters; it stays on record.",
    "^[\\x21-\\x7e]{0,9000}$",
)

IF_MATCH: Final = _header(
    "If-Match",
    'The ETag of the job as it was read, or its version, such as "3"; another one is refused.',
    '"3"',
    '^(\\*|"[1-9][0-9]{0,8}(-[0-9a-f]{16})?")$',
)
IF_NONE_MATCH: Final = _header(
    "If-None-Match", "An ETag: 304 while nothing has changed.", '"3-9f86d081884c7d65"'
)


def query_name(name: str, description: str, **schema: Any) -> dict[str, Any]:
    """A name of the query, a text where `schema` does not say otherwise."""
    shown = {"type": "string"} | schema
    return {"name": name, "in": "query", "required": False, "description": description, "schema": shown}


LIMIT: Final = query_name("limit", "Items of a page.", type="integer", minimum=1, maximum=1000, default=100)
CURSOR: Final = query_name("cursor", "`next_cursor` of the page before.", maxLength=1024)
AT: Final = query_name(
    "at", "An instant with its offset.", format="date-time", example="2026-06-01T07:00:00Z"
) | {"required": True}
WAIT: Final = query_name(
    "wait", "Seconds to wait for the outcome.", type="integer", minimum=0, maximum=30, default=0
)


def described(
    *,
    answers: Mapping[int, Answer],
    refusals: tuple[str, ...] = (),
    takes: type[msgspec.Struct] | None = None,
    is_body_optional: bool = False,
    example: dict[str, Any] | None = None,
    parameters: tuple[dict[str, Any], ...] = (),
    said: Mapping[int, str] = {},
) -> dict[str, Any]:
    """`openapi_extra` of a route. `refusals`: codes of the table beside those that every route has.

    `said`: what an answer means where that is not as everywhere.
    """
    texts = {**_ANSWERS, **said}
    found: dict[str, Any] = {
        "parameters": list(parameters),
        "responses": _responses(answers, refusals, texts),
    }
    if takes is not None:
        content: dict[str, Any] = {"schema": _reference(takes)}
        if example is not None:
            content["example"] = example
        found["requestBody"] = {"required": not is_body_optional, "content": {"application/json": content}}
    return found


def _one_of(kind: type[msgspec.Struct] | tuple[type[msgspec.Struct], ...]) -> dict[str, Any]:
    return {"anyOf": [_reference(one) for one in kind]} if isinstance(kind, tuple) else _reference(kind)


def _reference(kind: type[msgspec.Struct]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _responses(
    answers: Mapping[int, Answer], refusals: tuple[str, ...], texts: Mapping[int, str]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, kind in answers.items():
        found[str(status)] = {"description": texts[status]}
        if kind is not None:
            found[str(status)]["content"] = {"application/json": {"schema": _one_of(kind)}}
    by_status: dict[int, list[str]] = {}
    for code in sorted({*_COMMON, *refusals}):
        by_status.setdefault(TABLE[code].status, []).append(f"`{code}`: {TABLE[code].detail}")
    for status, lines in sorted(by_status.items()):
        problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
        found[str(status)] = {
            "description": "\n\n".join(lines),
            "content": {"application/problem+json": problem},
        }
    return found


_ANSWERS: Final = {
    200: "Done.",
    201: "Created, or created before by the same request.",
    202: "Durable, but not decided in time: `Location` names the command.",
    204: "Done, or done before.",
    304: "It is as it was.",
}
