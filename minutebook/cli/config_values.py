"""The settings of all parts as this environment gives them: value, and where it comes from. Secrets are masked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from pydantic import SecretStr, ValidationError
from pydantic_settings import BaseSettings

from minutebook.cli.setting_parts import env_name, installed
from minutebook.cli.surroundings import ADDED

MASK: Final = "********"
_USERINFO: Final = re.compile(r"(?<=://)[^/@\s]*(?=@)")
_FILE: Final = "_file"


class Setting(msgspec.Struct):
    """A setting as this environment gives it; `refused` says why it cannot be taken."""

    name: str
    value: str | None
    source: Literal["environment", "file", "default"]
    part: str
    refused: str = ""


def settings(environment: Mapping[str, str]) -> Iterator[Setting]:
    """All settings of the parts that are installed here."""
    there = {name.upper() for name in environment}
    for part, kind in installed():
        values, refused = _values(kind)
        for field in kind.model_fields:
            name = env_name(kind, field)
            file = values.get(field + _FILE)
            is_given = name in there
            yield Setting(
                name,
                f"in {file}" if file is not None and not is_given else _shown(values.get(field)),
                _source(name, is_given=is_given, is_in_file=file is not None),
                part.title,
                refused.get(field) or (refused.get("", "") if is_given else ""),
            )


def _source(name: str, *, is_given: bool, is_in_file: bool) -> Literal["environment", "file", "default"]:
    if name in ADDED:
        return "file" if ADDED[name] == "file" else "default"
    if is_given:
        return "environment"
    return "file" if is_in_file else "default"


def _values(kind: type[BaseSettings]) -> tuple[dict[str, Any], dict[str, str]]:
    """Values by field, and what is refused by field; by `""` what several are refused for together."""
    try:
        taken = kind()
        return {name: getattr(taken, name) for name in kind.model_fields}, {}
    except ValidationError as error:
        refused = {str(one["loc"][0]) if one["loc"] else "": one["msg"] for one in error.errors()}
        defaults = {name: field.get_default() for name, field in kind.model_fields.items()}
        return defaults, refused


def _shown(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, dict):  # of tenants or keys: whose they are, not what
        return ", ".join(f"{str(name)[:12]}: {MASK}" for name in value) or None
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or None
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return str(Path(text)) if isinstance(value, Path) else _USERINFO.sub(MASK, text) or None
