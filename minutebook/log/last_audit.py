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
from minutebook.times import datetime_of, parse_instant

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

    def __post_init__(self) -> None:
        _check_instants(self.made_at)


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

    def __post_init__(self) -> None:
        _check_instants(self.made_at, self.first_at, self.last_at)


class LastAudits(msgspec.Struct, frozen=True):
    """What is known of each; None = nothing was ever left there, or its fault says why it cannot be read."""

    verify: LastVerify | None = None
    completeness: LastCompleteness | None = None
    verify_fault: str = ""
    completeness_fault: str = ""


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
    """The last results in a folder. A file that cannot be read, or is none of ours, is a fault of its own, without its path."""
    verify, verify_fault = _read(_path(folder, "verify"), LastVerify)
    completeness, completeness_fault = _read(_path(folder, "completeness"), LastCompleteness)
    return LastAudits(verify, completeness, verify_fault, completeness_fault)


def _path(folder: Path, name: Name) -> Path:
    return folder / f"last-{name}.json"


def _check_instants(*texts: str) -> None:
    """Raises ValueError for what no page can show as an instant; a decoder makes it its own error."""
    for text in texts:
        try:
            datetime_of(parse_instant(text))
        except OverflowError:
            raise ValueError("an instant beyond the calendar") from None


def _read(path: Path, kind: type[T]) -> tuple[T | None, str]:
    """A result, None where there is none; and why it cannot be read, empty where it can."""
    try:
        with path.open("rb") as file:
            data = file.read(_BYTES_MAX + 1)
        if len(data) > _BYTES_MAX:
            return None, f"{path.name} is larger than a result is"
        return msgspec.json.decode(data, type=kind), ""
    except FileNotFoundError:
        return None, ""
    except OSError as error:  # its own text has the path, which is nothing for tenants
        return None, f"{path.name} cannot be read: {error.strerror or type(error).__name__}"
    except (msgspec.DecodeError, RecursionError) as error:
        return None, f"{path.name} cannot be read: {error}"
