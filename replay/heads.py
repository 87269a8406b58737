"""Heads of chains, kept by whoever wants to prove later that nothing before them was changed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from minutebook.errors import SettingsError
from minutebook.log.written import write_whole


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The chain's head (hex) of a partition after the record at `position`."""

    position: int
    head: str


class Heads(msgspec.Struct, frozen=True, kw_only=True):
    """Heads of a log, by partition."""

    log_id: str
    partitions: dict[int, Head]


def read_heads(path: Path) -> Heads:
    """Heads that `write_heads` wrote. Raises SettingsError for a file that holds none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Heads)
    except (OSError, msgspec.DecodeError) as error:
        raise SettingsError(f"{path} holds no heads: {error}") from error


def write_heads(path: Path, heads: Heads) -> None:
    """Keep heads in a file, in one step: those that were there stay until these are durable.

    Raises SettingsError where it cannot be written.
    """
    try:
        write_whole(path, msgspec.json.format(msgspec.json.encode(heads), indent=2) + b"\n")
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error}") from error
