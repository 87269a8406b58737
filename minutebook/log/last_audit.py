"""The last results of audits, as small files in their reports' folder: audits leave them there, pages show them.

A result is written whole or not at all, in place of the one before. It says how far an audit came and how much it found; what
it found is in the report itself. Nothing in it names a job: instants that are missing are counted for each tenant.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from minutebook.errors import SettingsError
from minutebook.log.written import write_whole

T = TypeVar("T")
_BYTES_MAX: Final = 4 << 20
"""More than the results of thousands of partitions, or tenants, have."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A partition, and the offset of the last record that was read there; -1 = none."""

    partition: int
    position: int


class LastVerify(msgspec.Struct, frozen=True, kw_only=True):
    """What `replay verify` came to: `findings` differences in so many records, the first of them at `first`."""

    made_at: str
    ok: bool
    is_interrupted: bool
    records: int
    through: list[Place]
    findings: int
    first: Place | None


class Accounted(msgspec.Struct, frozen=True, kw_only=True):
    """Instants that the schedules of a tenant implied, and those of them that are missing."""

    implied: int
    missing: int


class LastCompleteness(msgspec.Struct, frozen=True, kw_only=True):
    """What `replay completeness` over all tenants came to."""

    made_at: str
    first_at: str
    last_at: str
    tenants: dict[str, Accounted]
    behind_the_log: Annotated[list[int], Meta(description="partitions whose log ends before `last_at`")]


class LastAudits(msgspec.Struct, frozen=True):
    """What is known; None = nothing was ever left there."""

    verify: LastVerify | None = None
    completeness: LastCompleteness | None = None


Name = Literal["verify", "completeness"]


def keep_last(folder: Path, result: LastVerify | LastCompleteness) -> Path:
    """Leave a result in a folder, which is made where it is not there; the file. Raises SettingsError."""
    name: Name = "verify" if isinstance(result, LastVerify) else "completeness"
    path = _path(folder, name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error}") from error
    return path


def read_last(folder: Path) -> LastAudits:
    """The last results in a folder. Raises SettingsError for a file that cannot be read or is none of ours."""
    return LastAudits(
        _read(_path(folder, "verify"), LastVerify), _read(_path(folder, "completeness"), LastCompleteness)
    )


def _path(folder: Path, name: Name) -> Path:
    return folder / f"last-{name}.json"


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        with path.open("rb") as file:
            data = file.read(_BYTES_MAX + 1)
        if len(data) > _BYTES_MAX:
            raise SettingsError(f"{path.name} is larger than a result is")
        return msgspec.json.decode(data, type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise SettingsError(f"{path.name} cannot be read: {error}") from error
