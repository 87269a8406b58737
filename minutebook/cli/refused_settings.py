"""A settings class that refuses the environment, told by the names of the environment."""

from __future__ import annotations

from pydantic import ValidationError

from minutebook.cli.setting_parts import PARTS


def refused_settings(error: ValueError) -> str:
    """Each refused setting by its environment name, a line each; empty for an error that is of something else."""
    if not isinstance(error, ValidationError):
        return ""
    prefixes = {part.name: part.prefix for part in PARTS}
    prefix = prefixes.get(error.title)
    if prefix is None:
        return ""
    return "\n".join(
        f"{prefix}{str(one['loc'][0]).upper() if one['loc'] else '*'}: {one['msg']}" for one in error.errors()
    )
