"""The audit log for people: every command of the caller's tenant, the latest first. For routes and pages alike."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from api.actors import parts_of
from api.auth import Caller, Scope
from api.decisions import code_of
from api.parameters import open_cursor, seal_cursor
from api.services import Services
from minutebook.client.audit_models import AuditEntry, AuditPage, LogPosition, SubjectKind
from minutebook.client.models import Via
from minutebook.domain.subjects import KIND_OF, name_in
from minutebook.domain.view_audit import AT_MAX, Audited, place_of
from minutebook.times import format_instant

SCANNED_MAX: Final = 10_000
"""Commands looked at for one page: a filter that fits few of them must not hold up everybody."""
_AT: Final = struct.Struct(">q")
_Place = tuple[int, str, str, str]


class AuditFilter(NamedTuple):
    """Which commands are meant: those that fit all that is given. `from_at` and `until_at`: ms; until is not included."""

    key: str = ""
    command: str = ""
    subject: str = ""
    is_accepted: bool | None = None
    from_at: int = 0
    until_at: int = AT_MAX

    def fits(self, found: Audited) -> bool:
        """Whether a command is meant, as far as it is not a matter of time."""
        row = found.row
        return (
            self.command in ("", row.command)
            and (not self.subject or self.subject in (name_in(row.subject), row.subject, row.execution))
            and self.is_accepted in (None, row.is_accepted)
            and self.key in ("", parts_of(row.actor).key)
        )


class _Found(NamedTuple):
    tenant: str
    partition: int
    audited: Audited

    @property
    def place(self) -> _Place:
        return (*place_of(self.audited), self.tenant)


def audit_page(
    services: Services, caller: Caller, wanted: AuditFilter, limit: int, cursor: str | None
) -> AuditPage:
    """A page of at most `limit` commands behind `cursor`. Raises Refused (bad-parameter) for a cursor that is none."""
    secret, scope = services.keyring.secret, f"{caller.tenant}/{caller.role}/audit-log?{wanted}"
    place = None if cursor is None else _opened(open_cursor(secret, scope, cursor))
    items: list[AuditEntry] = []
    following: _Place | None = None
    rest = _rest(services, caller, wanted, place)
    for found in islice(rest, SCANNED_MAX):
        if len(items) == limit:
            following = found.place
            break
        if wanted.fits(found.audited):
            items.append(_entry(found))
    else:
        more = next(rest, None)
        following = None if more is None else more.place
    return AuditPage(items, None if following is None else seal_cursor(secret, scope, _sealed(following)))


def _rest(services: Services, caller: Caller, wanted: AuditFilter, place: _Place | None) -> Iterator[_Found]:
    """What the caller may see from `place` on, within the times that are wanted."""
    at = wanted.until_at - 1 if place is None else -place[0]
    tenants = (caller.tenant, "") if caller.may(Scope.KEYS_MANAGE) else (caller.tenant,)
    of_each = (_of_tenant(services, tenant, at) for tenant in tenants)
    for found in heapq.merge(*of_each, key=lambda found: found.place):
        if found.audited.at < wanted.from_at:
            return
        if place is None or found.place >= place:
            yield found


def _of_tenant(services: Services, tenant: str, at: int) -> Iterator[_Found]:
    for partition, found in services.view.audited(tenant, at):
        yield _Found(tenant, partition, found)


def _entry(found: _Found) -> AuditEntry:
    row = found.audited.row
    parts = parts_of(row.actor)
    via: Via | None = parts.via  # type: ignore[assignment]  # one of them, or it is no actor of ours
    kind: SubjectKind = KIND_OF.get(row.command, "job")  # type: ignore[assignment]  # one of them
    code = row.code or None
    return AuditEntry(
        at=format_instant(found.audited.at),
        tenant=found.tenant or None,
        actor=row.actor,
        key_id=parts.key,
        via=via,
        address=parts.address,
        operation_id=parts.operation,
        reason=row.reason,
        command=row.command,
        command_id=row.command_id,
        subject_kind=kind,
        subject=row.subject if kind == "job" else name_in(row.subject),
        execution_id=row.execution or None,
        accepted=row.is_accepted,
        code=code if row.is_accepted or code is None else code_of(code),
        detail=row.detail or None,
        version=row.version or None,
        position=LogPosition(found.partition, row.position),
    )


def _sealed(place: _Place) -> bytes:
    return _AT.pack(place[0]) + "\0".join(place[1:]).encode()


def _opened(data: bytes) -> _Place:
    command_id, subject, tenant = data[_AT.size :].decode().split("\0")
    return _AT.unpack_from(data)[0], command_id, subject, tenant
