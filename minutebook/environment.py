"""Names in the environment that look like settings and are none: a slip of the pen would otherwise go unnoticed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from pydantic_settings import BaseSettings

from minutebook.errors import SettingsError

OPTIONS: Final = tuple(
    f"MINUTEBOOK_{noun}_{verb}_"
    for noun, verbs in (
        ("KAFKA", ("START", "STATUS", "STOP")),
        ("TOPICS", ("CHECK", "CREATE")),
        ("WORKER", ("LIST", "QUIET", "RESUME", "RUN", "SHOW", "STOP")),
    )
    for verb in verbs
)
"""What names of options of commands begin with whose noun is called as a part with settings."""


def names_of(kind: type[BaseSettings]) -> list[str]:
    """Environment names of the settings in a class."""
    prefix = str(kind.model_config.get("env_prefix", ""))
    return [f"{prefix}{field}".upper() for field in kind.model_fields]


def unknown_names(
    environment: Mapping[str, str], prefixes: Iterable[str], known: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Names under one of `prefixes` that are not `known`, sorted, each with the nearest one, empty = none is near."""
    starts, there = tuple(prefixes), set(known)
    for name in sorted(environment):
        if name.upper().startswith(starts) and name.upper() not in there:
            yield name, next(iter(get_close_matches(name.upper(), there, 1)), "")


def require_known_names(environment: Mapping[str, str], *kinds: type[BaseSettings]) -> None:
    """Refuse names under the prefixes of `kinds` that are no settings. Raises SettingsError with the nearest ones."""
    prefixes = [str(kind.model_config.get("env_prefix", "")) for kind in kinds]
    known = [name for kind in kinds for name in names_of(kind)]
    faults = [
        f"{name} is no setting" + (f"; did you mean {near}?" if near else "")
        for name, near in unknown_names(environment, prefixes, known)
        if not name.upper().startswith(OPTIONS)
    ]
    if faults:
        raise SettingsError("\n".join(faults))
