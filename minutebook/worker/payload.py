"""Payload bytes to the value that a task takes, by the type that it declares, and that type for others to check by."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final, get_args, get_origin

import msgspec
from pydantic import BaseModel, TypeAdapter, ValidationError

from minutebook.domain.tasks import SCHEMA_BYTES_MAX

FAULTS_SHOWN_MAX: Final = 8
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


def schema_of(annotation: Any) -> str:
    """JSON Schema of what `reader_of` reads, as JSON text, the same for equal types; empty = any payload.

    Empty too for a type whose schema cannot be made, or has more than 64 KiB: such payloads are checked by the reader alone.
    """
    parts = list(_parts(annotation))
    try:
        if any(_is_pydantic(part) for part in parts):
            schema: Any = TypeAdapter(annotation).json_schema()
        elif any(_is_structured(part) for part in parts):
            schema = msgspec.json.schema(annotation)
        else:
            return ""
    except Exception:  # whatever the library says of a part that JSON Schema cannot say
        return ""
    text = msgspec.json.encode(schema, order="sorted")
    return "" if len(text) > SCHEMA_BYTES_MAX else text.decode()


def fault_of(error: Exception) -> str:
    """What is wrong with a payload that a reader refused, each fault with its path; what was sent is not repeated."""
    if not isinstance(error, ValidationError):
        return str(error)
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [f"{_path(fault['loc'])}: {fault['msg']}" for fault in faults[:FAULTS_SHOWN_MAX]]
    more = len(faults) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _path(places: tuple[int | str, ...]) -> str:
    return "$" + "".join(f"[{place}]" if isinstance(place, int) else f".{place}" for place in places)


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
