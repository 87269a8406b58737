"""Answers of the API as typed models."""

from __future__ import annotations

from typing import TypeVar

import httpx
import msgspec

from minutebook.client.models import Command

T = TypeVar("T")


def decoded(answer: httpx.Response, kind: type[T]) -> T:
    """The model in an answer."""
    return msgspec.json.decode(answer.content, type=kind)


def decided(answer: httpx.Response, kind: type[T]) -> T | Command:
    """A result, or the command where it was not decided in time."""
    return decoded(answer, Command) if answer.status_code == 202 else decoded(answer, kind)
