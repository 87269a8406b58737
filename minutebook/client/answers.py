"""Answers of the API: a result, a command, or a refusal."""

from __future__ import annotations

from typing import TypeVar

import httpx
import msgspec

from minutebook.client.errors import ApiError, error_of
from minutebook.client.models import Command, Problem

T = TypeVar("T")


def refusal(answer: httpx.Response) -> ApiError:
    """The error in an answer that is none of 2xx."""
    try:
        problem = msgspec.json.decode(answer.content, type=Problem)
    except msgspec.DecodeError:
        # Not our API's answer: a proxy in between, or another server at this address.
        title = f"HTTP {answer.status_code}"
        problem = Problem(
            type="about:blank",
            title=title,
            status=answer.status_code,
            detail="no problem details came with it",
            code="foreign",
            trace_id="",
        )
    after = answer.headers.get("retry-after", "")
    return error_of(problem, float(after) if after.isdecimal() else None)


def decoded(answer: httpx.Response, kind: type[T]) -> T:
    """The result in an answer."""
    return msgspec.json.decode(answer.content, type=kind)


def decided(answer: httpx.Response, kind: type[T]) -> T | Command:
    """A result, or the command where it was not decided in time."""
    return decoded(answer, Command) if answer.status_code == 202 else decoded(answer, kind)
