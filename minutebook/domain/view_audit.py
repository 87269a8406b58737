"""The read model's record of commands: who wanted what, when, from where and why, and what was decided.

Left out are submissions that were accepted, which their jobs tell of themselves: a row for each would cost as much as
a job's own. Left out, too, are workers that declare a task as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from minutebook import ids
from minutebook.domain.commands import NamedCommand
from minutebook.domain.keys import DAY_MS
from minutebook.domain.view_index import shelf_of, shelves_between
from minutebook.domain.view_retention import audit_shelf, first_audit

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView
    from minutebook.domain.view_rows import CommandRow

FAMILY: Final = "audit"
AT_MAX: Final = (1 << 63) - 1
_BEFORE = struct.Struct(">q")
_TENANTLESS: Final = frozenset(kind.__name__ for kind in NamedCommand.__args__)


class AuditRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A command that was decided. `code`: why it was refused, or that it changed nothing. `position`: offset of the
    frame. `execution`: the one that it is about, where it is about one.
    """

    command: str
    subject: str
    command_id: str
    actor: str
    reason: str
    is_accepted: bool
    code: str
    detail: str
    version: int
    position: int
    execution: str = ""


class Audited(NamedTuple):
    """A row with its place: the latest first, then by command id and subject."""

    at: int
    row: AuditRow


def place_of(found: Audited) -> tuple[int, str, str]:
    """By what the commands of a tenant are in order."""
    return -found.at, found.row.command_id, found.row.subject


def audit_row(partition: int, tenant: str, at: int, command_id: str, subject: str) -> bytes:
    """Key of a command that was decided at `at`: on a shelf, those of a tenant (empty = of none) sort by time, the
    latest first."""
    shelf = shelf_of(partition, audit_shelf(at))
    return _start(shelf, tenant, at) + f"{command_id}\0{subject}".encode()


def _start(shelf: bytes, tenant: str, at: int) -> bytes:
    """First key on a shelf of a tenant's commands that were decided at `at` or before."""
    return shelf + f"{tenant}\0".encode() + _BEFORE.pack(AT_MAX - at)


def note(
    view: PartitionView, tenant: str, row: CommandRow, event: Any, actor: str | None, why: str | None
) -> None:
    """Keep a command that `event` has answered by `row`: `actor` and reason are the event's where they are None."""
    command_id: str = event.command_id
    if not _is_kept(tenant, command_id, row):
        return
    kept = AuditRow(
        row.command,
        row.job_id,
        command_id,
        event.actor if actor is None else actor,
        getattr(event, "reason", "") if why is None else why,
        row.is_accepted,
        row.reason,
        row.detail,
        row.version,
        row.position,
        getattr(event, "execution", ""),
    )
    view.dirty[FAMILY][audit_row(view.partition, tenant, row.answered_at, command_id, row.job_id)] = kept


def _is_kept(tenant: str, command_id: str, row: CommandRow) -> bool:
    """Names that are none stand in the log alone: in a key they could pass for somebody else's."""
    if row.is_accepted and row.command in ("", "SubmitJob"):
        return False
    if row.is_accepted and row.command == "DeclareTask" and row.reason:
        return False
    is_tenant = not tenant if row.command in _TENANTLESS else ids.is_name(tenant)
    return is_tenant and ids.is_command_id(command_id)


def audited(view: PartitionView, tenant: str, at: int) -> Iterator[Audited]:
    """Commands of a tenant (empty = of none) that were decided at `at` or before. Reads committed rows only."""
    first, last = first_audit(view.retention, view.today), audit_shelf(min(at, (view.today + 1) * DAY_MS))
    for number in shelves_between(view.rows, FAMILY, view.partition, first, last, is_ascending=False):
        shelf = shelf_of(view.partition, number)
        own = shelf + f"{tenant}\0".encode()
        for key, row in view.rows_of(FAMILY, _start(shelf, tenant, at), own[:-1] + b"\1", AuditRow):
            yield Audited(AT_MAX - int(_BEFORE.unpack_from(key, len(own))[0]), row)
