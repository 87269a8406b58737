"""What the API takes and answers about API keys and who holds them, typed once for both sides."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from minutebook.client.models import AttemptStatus, DurationText, InstantText, JobStatus

Role = Literal["viewer", "submitter", "operator", "admin", "worker"]
KeyStatus = Literal["live", "expired", "revoked"]
KeySource = Literal["log", "settings"]
_Reason = Annotated[str, Meta(max_length=1000, description="why; it stays on record")]
_ExpiresIn = Annotated[DurationText | UnsetType, Meta(description="from now on, up to P3650D")]
_ExpiresAt = Annotated[InstantText | UnsetType, Meta(description="or when; neither = never")]


class KeyRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Make an API key."""

    label: Annotated[str, Meta(min_length=1, max_length=128, description="what it is for; printable")]
    role: Role
    expires_in: _ExpiresIn = UNSET
    expires_at: _ExpiresAt = UNSET
    reason: _Reason = ""


class RotationRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Make a second key like one that is there, whose end comes then."""

    old_expires_in: Annotated[
        DurationText, Meta(description="end of the old key, from now on; up to P365D")
    ] = "P7D"
    expires_in: Annotated[
        DurationText | UnsetType,
        Meta(description="of the new key; left out = for as long as the old one was made"),
    ] = UNSET
    expires_at: Annotated[InstantText | UnsetType, Meta(description="or when")] = UNSET
    reason: _Reason = ""


class Key(msgspec.Struct):
    """An API key, without the key. Those of the settings have no label, no times and no end."""

    id: str
    role: Role
    label: str
    status: KeyStatus
    source: KeySource
    created_at: InstantText | None
    created_by: str | None
    expires_at: InstantText | None
    revoked_at: InstantText | None
    revoked_by: str | None


class KeyPage(msgspec.Struct):
    """A page of API keys."""

    items: list[Key]
    next_cursor: str | None


class CreatedKey(msgspec.Struct):
    """A new API key. `api_key` is shown here and nowhere else; `old` is the key that it takes the place of."""

    api_key: str
    id: str
    role: Role
    label: str
    expires_at: InstantText | None
    command_id: str
    old: Key | None = None


class Me(msgspec.Struct):
    """Who is asking: the key that a request came with, and what it may do."""

    key_id: str
    tenant: str
    role: Role
    label: str
    source: KeySource
    expires_at: InstantText | None
    scopes: list[str]


class Tenant(msgspec.Struct):
    """A tenant, and how its jobs stand, from counts that are kept."""

    name: str
    jobs: Annotated[dict[JobStatus, int], Meta(description="jobs by status")]
    executions: Annotated[dict[AttemptStatus, int], Meta(description="executions by status")]


class TenantPage(msgspec.Struct):
    """A page of tenants."""

    items: list[Tenant]
    next_cursor: str | None
