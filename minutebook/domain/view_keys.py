"""The read model of API keys: folded at the home of each; of a key itself there is nothing but its SHA-256."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from minutebook.domain import events as facts
from minutebook.domain.state import NONE_AT
from minutebook.domain.view_rows import JobRow, partition_prefix
from minutebook.errors import BrokenFrameError
from minutebook.ids import key_subject

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView

FAMILY: Final = "api_keys"
replace = msgspec.structs.replace


class KeyRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An API key. `expires_at` -1 = never, `revoked_at` -1 = it is not revoked."""

    role: str
    sha256: bytes
    label: str
    expires_at: int
    created_at: int
    created_by: str
    revoked_at: int = NONE_AT
    revoked_by: str = ""
    made_for_ms: int = NONE_AT
    """From its creation to the end that it was made with; -1 = it was made without."""

    def is_live(self, now: int) -> bool:
        """Whether it is good at `now`: neither revoked nor past its end."""
        return self.revoked_at == NONE_AT and (self.expires_at == NONE_AT or now < self.expires_at)


def key_row(prefix: bytes, tenant: str, key: str) -> bytes:
    """Key of an API key's row; those of one tenant follow one another by id."""
    return prefix + f"{tenant}\0{key}".encode()


def api_key(view: PartitionView, tenant: str, key: str) -> KeyRow | None:
    """The API key with that id, where this partition is its home."""
    return view.read(FAMILY, key_row(view.prefix, tenant, key), KeyRow)


def api_keys(view: PartitionView) -> Iterator[tuple[str, str, KeyRow]]:
    """(tenant, id, row) of the API keys whose home this is. Reads committed rows only."""
    end = partition_prefix(view.partition + 1)
    for key, row in view.rows_of(FAMILY, view.prefix, end, KeyRow):
        tenant, _, name = key[len(view.prefix) :].decode().partition("\0")
        yield tenant, name, row


def job_tenants(view: PartitionView) -> Iterator[str]:
    """Names of the tenants of this partition's jobs. Reads committed rows only: one for each tenant."""
    start, end = view.prefix, partition_prefix(view.partition + 1)
    while (found := next(view.rows_of("jobs", start, end, JobRow), None)) is not None:
        tenant = found[0][len(view.prefix) :].partition(b"\0")[0]
        yield tenant.decode()
        start = view.prefix + tenant + b"\1"


def _declared(view: PartitionView, event: facts.KeyDeclared) -> None:
    known = api_key(view, event.tenant, event.key)
    if known is not None:
        row = replace(known, expires_at=event.expires_at)
    else:
        made_for_ms = NONE_AT if event.expires_at == NONE_AT else event.expires_at - event.accepted_at
        row = KeyRow(
            event.role,
            event.sha256,
            event.label,
            event.expires_at,
            event.accepted_at,
            event.actor,
            made_for_ms=made_for_ms,
        )
    _put(view, event, row, "DeclareKey")


def _revoked(view: PartitionView, event: facts.KeyRevoked) -> None:
    known = api_key(view, event.tenant, event.key)
    if known is None:
        raise BrokenFrameError(f"key {event.tenant}/{event.key} is not there")
    row = replace(known, revoked_at=event.accepted_at, revoked_by=event.actor)
    _put(view, event, row, "RevokeKey")


def _put(view: PartitionView, event: facts.KeyDeclared | facts.KeyRevoked, row: KeyRow, command: str) -> None:
    view.dirty[FAMILY][key_row(view.prefix, event.tenant, event.key)] = row
    view.changed_keys.append((event.tenant, event.key, row))
    view.answer(event, command, job_id=key_subject(event.key), tenant=event.tenant)


FOLDS: Final[dict[type, Callable[[PartitionView, Any], None]]] = {
    facts.KeyDeclared: _declared,
    facts.KeyRevoked: _revoked,
}
