"""API keys for people: what there is, a new one, one that takes the place of another, and the end of one.

A key itself is made here, answered once, and kept nowhere. Functions answer models, for routes and pages alike.
"""

from __future__ import annotations

import hashlib
from typing import Final, Literal, NamedTuple

import msgspec

from api.auth import Caller
from api.decisions import Decision, decide, refusal_of
from api.fields import Fields
from api.lanes import Keyed
from api.problems import Refused
from api.services import Services
from api.wishes import read_reason
from minutebook.client.key_models import CreatedKey, Key, KeyStatus, Role
from minutebook.domain.api_keys import ROLES, label_fault
from minutebook.domain.commands import DeclareKey, KeyCommand, RevokeKey
from minutebook.domain.state import NONE_AT
from minutebook.domain.subjects import key_of
from minutebook.domain.view_keys import KeyRow
from minutebook.ids import is_name
from minutebook.mint import mint_api_key, mint_id
from minutebook.times import format_instant, parse_duration, parse_instant
from minutebook.wire.topics import partition_of

LIVE_MAX: Final = 2
"""Keys of one label that are live at once: the old and the new one of a rotation."""
_DAY_MS: Final = 86_400_000
_EXPIRES_IN_MS_MAX: Final = 3_650 * _DAY_MS
_OLD_MS_MAX: Final = 365 * _DAY_MS
_OLD_MS: Final = 7 * _DAY_MS
_MS_MIN: Final = 1_000
_ID_CHARS: Final = 16
_CREATE: Final = ("label", "role", "expires_in", "expires_at", "reason")
_ROTATE: Final = ("old_expires_in", "expires_in", "expires_at", "reason")


class KeyWish(NamedTuple):
    """A key as it is wanted. `expires_at`: ms, None = never."""

    label: str
    role: str
    expires_at: int | None
    reason: str


class RotationWish(NamedTuple):
    """How a key is to be replaced. `expires_at`: ms, of the new one; None = as long as the old one was made for."""

    old_ms: int
    expires_at: int | None
    reason: str


class Made(NamedTuple):
    """A new key, and what was decided."""

    key: CreatedKey
    decision: Decision


def read_key(fields: Fields, now: int) -> KeyWish:
    """What a body says of a key; what is wrong with it is noted. `now`: ms."""
    fields.refuse_unknown(_CREATE)
    label = fields.text("label")
    if label is None or not label:
        if not fields.errors:
            fields.fault("label", "is required: what the key is for")
    elif fault := label_fault(label):
        fields.fault("label", fault)
    if "role" not in fields.members:
        fields.fault("role", f"is required: one of {', '.join(ROLES)}")
    role = fields.choice("role", ROLES)
    return KeyWish(label or "", role, _expires_at(fields, now), read_reason(fields))


def read_rotation(fields: Fields, now: int) -> RotationWish:
    """What a body says of a rotation; what is wrong with it is noted. `now`: ms."""
    fields.refuse_unknown(_ROTATE)
    old_ms = fields.parsed("old_expires_in", parse_duration)
    if old_ms is not None and not _MS_MIN <= old_ms <= _OLD_MS_MAX:
        fields.fault("old_expires_in", "must be from PT1S to P365D")
    return RotationWish(_OLD_MS if old_ms is None else old_ms, _expires_at(fields, now), read_reason(fields))


def _expires_at(fields: Fields, now: int) -> int | None:
    expires_in = fields.parsed("expires_in", parse_duration)
    expires_at = fields.parsed("expires_at", parse_instant)
    if "expires_in" in fields.members and "expires_at" in fields.members:
        fields.fault("expires_at", "give at most one of expires_in, expires_at")
    if expires_in is not None:
        if not _MS_MIN <= expires_in <= _EXPIRES_IN_MS_MAX:
            fields.fault("expires_in", "must be from PT1S to P3650D")
        return now + expires_in
    if expires_at is not None and not now < expires_at <= now + _EXPIRES_IN_MS_MAX:
        fields.fault("expires_at", "must be later than now, at most 3650 days")
    return expires_at


def keys_of(services: Services, tenant: str) -> list[Key]:
    """All keys of a tenant by id: those of the log, ended ones too, and those of the settings."""
    now = services.clock.now()
    declared = [_shown(key, row, now) for key, row in services.view.keys.of_tenant(tenant)]
    given = [_of_settings(one) for one in services.keyring.settings_keys.values() if one.tenant == tenant]
    return sorted([*declared, *given], key=lambda key: (key.id, key.source))


def find_key(services: Services, tenant: str, key: str) -> Key:
    """A key of a tenant. Raises Refused (not-found)."""
    row = services.view.keys.get(tenant, key)
    if row is not None:
        return _shown(key, row, services.clock.now())
    for one in services.keyring.settings_keys.values():
        if (one.tenant, one.key) == (tenant, key):
            return _of_settings(one)
    raise Refused("not-found")


async def create_key(
    services: Services, caller: Caller, wish: KeyWish, command_id: str, wait_s: float
) -> Made:
    """A new key. `command_id` gives it its id, so that a repeat makes no second one. Raises Refused."""
    _check_room(services, caller.tenant, wish.label, command_id)
    key_id = command_id.replace("-", "")[-_ID_CHARS:]
    api_key = mint_api_key(key_id)
    command = DeclareKey(
        tenant=caller.tenant,
        key=key_id,
        command_id=command_id,
        issued_at=services.clock.now(),
        actor=caller.actor,
        reason=wish.reason,
        role=wish.role,
        sha256=hashlib.sha256(api_key.encode()).digest(),
        label=wish.label,
        expires_at=wish.expires_at,
    )
    if services.view.keys.get(caller.tenant, key_id) is not None:
        raise Refused("key-exists")
    decision = await _decide(services, command, wait_s)
    expires_at = None if wish.expires_at is None else format_instant(wish.expires_at)
    role: Role = command.role  # type: ignore[assignment]  # one of ROLES
    return Made(CreatedKey(api_key, key_id, role, wish.label, expires_at, command_id), decision)


async def rotate_key(
    services: Services, caller: Caller, key: str, wish: RotationWish, command_id: str, wait_s: float
) -> Made:
    """A second live key like `key`, which gets an end. Raises Refused.

    The old key's end is decided first: of a rotation that fails in between nothing is left that nobody holds.
    """
    now = services.clock.now()
    row = _declared(services, caller.tenant, key)
    if not row.is_live(now):
        raise Refused("key-closed")
    _check_room(services, caller.tenant, row.label, command_id)
    old_end = now + wish.old_ms if row.expires_at == NONE_AT else min(row.expires_at, now + wish.old_ms)
    shorter = DeclareKey(
        tenant=caller.tenant,
        key=key,
        command_id=mint_id(),
        issued_at=now,
        actor=caller.actor,
        reason=wish.reason,
        role=row.role,
        sha256=row.sha256,
        label=row.label,
        expires_at=old_end,
    )
    await _decide(services, shorter, wait_s)
    expires_at = wish.expires_at
    if expires_at is None and row.made_for_ms != NONE_AT:
        expires_at = now + row.made_for_ms
    made = await create_key(
        services, caller, KeyWish(row.label, row.role, expires_at, wish.reason), command_id, wait_s
    )
    return made._replace(key=msgspec.structs.replace(made.key, old=find_key(services, caller.tenant, key)))


async def revoke_key(
    services: Services, caller: Caller, key: str, reason: str, wait_s: float, *, is_forced: bool
) -> Decision:
    """The end of a key, at once. Raises Refused: also key-in-use for the caller's own, unless `is_forced`."""
    _declared(services, caller.tenant, key)
    if key == caller.key and caller.is_declared and not is_forced:
        raise Refused("key-in-use")
    command = RevokeKey(
        tenant=caller.tenant,
        key=key,
        command_id=mint_id(),
        issued_at=services.clock.now(),
        actor=caller.actor,
        reason=reason,
    )
    return await _decide(services, command, wait_s)


def _declared(services: Services, tenant: str, key: str) -> KeyRow:
    """A key that the log has declared. Raises Refused: not-found, key-in-settings."""
    if not is_name(key):
        raise Refused("not-found")
    row = services.view.keys.get(tenant, key)
    if row is None:
        find_key(services, tenant, key)
        raise Refused("key-in-settings")
    return row


def _check_room(services: Services, tenant: str, label: str, command_id: str) -> None:
    """Raises Refused (too-many-keys) where no further key of that label may be live, but for a repeat."""
    now = services.clock.now()
    repeated = command_id.replace("-", "")[-_ID_CHARS:]
    live = [
        key
        for key, row in services.view.keys.of_tenant(tenant)
        if row.label == label and row.is_live(now) and key != repeated
    ]
    if len(live) >= LIVE_MAX:
        raise Refused("too-many-keys")


async def _decide(services: Services, command: KeyCommand, wait_s: float) -> Decision:
    """What the key's home says. Raises Refused where it refuses."""
    key = key_of(command)
    home = partition_of(key, services.view.partitions)
    decision = await decide(services, home, Keyed(key, command), wait_s)
    if decision.row is not None and not decision.row.is_accepted:
        raise refusal_of(decision.row)
    return decision


def _shown(key: str, row: KeyRow, now: int) -> Key:
    status: KeyStatus = "live" if row.is_live(now) else "expired" if row.revoked_at == NONE_AT else "revoked"
    role: Role = row.role  # type: ignore[assignment]  # one of ROLES, as its home has checked
    is_revoked = row.revoked_at != NONE_AT
    return Key(
        key,
        role,
        row.label,
        status,
        "log",
        format_instant(row.created_at),
        row.created_by,
        None if row.expires_at == NONE_AT else format_instant(row.expires_at),
        format_instant(row.revoked_at) if is_revoked else None,
        row.revoked_by if is_revoked else None,
    )


def _of_settings(holder: Caller) -> Key:
    live: Literal["live"] = "live"
    role: Role = holder.role  # type: ignore[assignment]  # one of ROLES, as the settings have checked
    return Key(holder.key, role, "", live, "settings", None, None, None, None, None)
