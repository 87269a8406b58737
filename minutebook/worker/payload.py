"""Payload bytes to the value that a task takes, by the annotation of its first argument."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final, get_args, get_origin

import msgspec
from pydantic import BaseModel, TypeAdapter

Reader = Callable[[bytes], Any]

_PLAIN: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder()


def reader_of(annotation: Any) -> Reader:
    """Reads JSON into `annotation` where that holds a pydantic model, msgspec Struct or dataclass, else as plain JSON.

    The reader raises on a payload that does not fit; which exception depends on the library.
    """
    parts = list(_parts(annotation))
    if any(_is_pydantic(part) for part in parts):
        return TypeAdapter(annotation).validate_json
    if any(_is_structured(part) for part in parts):
        return msgspec.json.Decoder(annotation).decode
    return _PLAIN.decode


def _parts(annotation: Any) -> list[Any]:
    """`annotation` and everything inside its brackets."""
    found = [get_origin(annotation) or annotation]
    for inner in get_args(annotation):
        found += _parts(inner)
    return found


def _is_pydantic(part: Any) -> bool:
    return isinstance(part, type) and (issubclass(part, BaseModel) or hasattr(part, "__pydantic_validator__"))


def _is_structured(part: Any) -> bool:
    return isinstance(part, type) and (issubclass(part, msgspec.Struct) or dataclasses.is_dataclass(part))
