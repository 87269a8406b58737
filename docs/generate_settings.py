"""`python -m docs.generate_settings` writes `docs/reference/settings.md` from the settings classes."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from minutebook.cli import setting_parts

PAGE: Final = Path(__file__).parent / "reference" / "settings.md"
PARTS: Final[tuple[tuple[str, str, type[BaseSettings]], ...]] = tuple(
    (part.title, part.use, part.kind()) for part in setting_parts.PARTS
)
_HEAD: Final = """# Settings

Read once from the environment when a process starts, and passed on; nothing else reads it. A value that cannot be taken
stops the start. Durations and sizes name their unit: `_S` seconds, `_MS` milliseconds, `_BYTES`. This page is written by
`python -m docs.generate_settings`.
"""
_BOUNDS: Final = {
    "ge": "at least {:,}",
    "gt": "above {:,}",
    "le": "at most {:,}",
    "lt": "below {:,}",
    "max_length": "at most {:,} characters",
}
"""How pydantic calls a bound -> what it says."""


def page() -> str:
    """The page as it must be."""
    return "\n".join([_HEAD, *(_section(*part) for part in PARTS)])


def _section(title: str, use: str, kind: type[BaseSettings]) -> str:
    prefix = str(kind.model_config.get("env_prefix"))
    rows = [_row(prefix, name, field) for name, field in kind.model_fields.items()]
    return "\n".join(
        [f"## {title}", "", use, "", "| name | value | default | meaning |", "|---|---|---|---|", *rows, ""]
    )


def _row(prefix: str, name: str, field: FieldInfo) -> str:
    if not field.description:
        raise ValueError(f"{prefix}{name.upper()} says nowhere what it means: give its Field a description")
    value = ", ".join([kind_of(field.annotation), *_bounds(field)])
    return f"| `{prefix}{name.upper()}` | {value} | {_default(field)} | {field.description} |"


def kind_of(annotation: Any) -> str:
    """What a value looks like in the environment."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return kind_of(next(part for part in inner if part is not type(None)))
    if origin is Annotated:
        return kind_of(inner[0])
    if origin is Literal:
        return " ".join(f"`{choice}`" for choice in inner)
    known = {
        int: "whole number",
        float: "number",
        Path: "path",
        tuple: "names",
        dict: "JSON",
        bool: "`true` `false`",
    }
    return known.get(origin or annotation, "text")


def _bounds(field: FieldInfo) -> Iterator[str]:
    for bound in field.metadata:
        yield from (
            text.format(getattr(bound, name)) for name, text in _BOUNDS.items() if hasattr(bound, name)
        )


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "made at the start"
    value = field.default
    return "none" if value is None or value in ("", (), {}) else f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(page())
