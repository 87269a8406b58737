"""Events of limits and of their permits, on the way from home to attempt and back. `events` names them beside all others."""

from __future__ import annotations

import msgspec


class LimitDeclared(msgspec.Struct, frozen=True, gc=False):
    """At the limit's home."""

    tenant: str
    name: str  # empty = the tenant-wide one
    version: int
    concurrency: int  # -1 = any number
    rate_count: int  # -1 = any number
    rate_period_ms: int  # -1 = no rate
    paused_until: int  # -1 = not paused
    is_deleted: bool
    command_id: str
    actor: str
    reason: str
    accepted_at: int  # the broker's stamp of the command


class LimitCopied(msgspec.Struct, frozen=True, gc=False):
    """At each partition, the home's too; an older version than the known one changes nothing."""

    tenant: str
    name: str  # empty = the tenant-wide one
    version: int
    concurrency: int  # -1 = any number
    rate_count: int  # -1 = any number
    rate_period_ms: int  # -1 = no rate
    paused_until: int  # -1 = not paused
    is_deleted: bool


class PermitsAsked(msgspec.Struct, frozen=True, gc=False):
    """A partition could use permits of a limit; the limit's home is told."""

    tenant: str
    limit: str  # empty = the tenant-wide one
    version: int  # of the limit
    home: int  # partition
    count: int  # more than asked for before; 0 = only the priority is another
    priority: int  # the highest that waits


class PermitsDemanded(msgspec.Struct, frozen=True, gc=False):
    """At the limit's home: a partition has asked."""

    tenant: str
    limit: str
    version: int
    partition: int
    count: int
    priority: int


class PermitsGranted(msgspec.Struct, frozen=True, gc=False):
    """At the limit's home. The token of a row is the permit."""

    tenant: str
    limit: str
    version: int
    partitions: list[int]  # one per permit


class PermitsReceived(msgspec.Struct, frozen=True, gc=False):
    """At the partition that has asked."""

    tenant: str
    limit: str
    version: int
    permits: list[int]


class PermitsReleased(msgspec.Struct, frozen=True, gc=False):
    """A partition gives permits back: their attempts have ended, or nobody could use them."""

    tenant: str
    limit: str
    home: int  # partition
    permits: list[int]


class PermitsReturned(msgspec.Struct, frozen=True, gc=False):
    """At the limit's home: permits are back."""

    tenant: str
    limit: str
    permits: list[int]
