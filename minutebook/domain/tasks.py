"""What payload a task takes, as its workers say: decided at the task's home. Owners keep a digest and check no payload
against it; the API does, before it sends a command.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.commands import DeclareTask
from minutebook.domain.events import Event
from minutebook.domain.refusal import Refusal, answered

SCHEMA_BYTES_MAX: Final = 64 << 10
SCHEMA_DEPTH_MAX: Final = 64
_REFERENCES: Final = ("$ref", "$dynamicRef")


def declare_task(book: Book, command: DeclareTask, stamp: int) -> Event:
    """Event of a declaration; one that says nothing new makes no version. Raises Refusal for what is no schema."""
    check_schema(command.payload_schema)
    known = book.tasks.get(command.name.encode())
    digest = hashlib.sha256(command.payload_schema.encode()).digest()
    if known is not None and known.schema_sha256 == digest:
        return answered(command, "exists")
    version = 1 if known is None else known.version + 1
    return facts.TaskDeclared(
        command.name, version, command.payload_schema, command.command_id, command.actor, stamp
    )


def check_schema(text: str) -> None:
    """Raises Refusal unless `text` is empty or a JSON Schema that needs nothing but itself."""
    if not text:
        return
    if len(text.encode("utf-8", "surrogatepass")) > SCHEMA_BYTES_MAX:
        raise _refusal(f"ends at {SCHEMA_BYTES_MAX} bytes; declare a type with fewer parts, or none")
    try:
        schema = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        raise _refusal("must be a JSON object in UTF-8: a JSON Schema of draft 2020-12") from None
    _check_parts(schema)


def _check_parts(schema: dict[str, Any]) -> None:
    parts: list[tuple[Any, int]] = [(schema, 1)]
    while parts:
        part, depth = parts.pop()
        if depth > SCHEMA_DEPTH_MAX:
            raise _refusal(f"is nested deeper than {SCHEMA_DEPTH_MAX}; use $defs")
        if isinstance(part, dict):
            for name in _REFERENCES:
                where = part.get(name)
                if isinstance(where, str) and not where.startswith("#"):
                    raise _refusal(f"{name} must start with #: nothing is fetched, so put it into $defs")
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        parts.extend((one, depth + 1) for one in inner)


def _refusal(detail: str) -> Refusal:
    return Refusal("invalid", "payload_schema", detail)
