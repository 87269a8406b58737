"""Who is asking, and what they may do. The tenant comes from the credential alone.

Deny by default: a scope that no role names is nobody's, and every route declares the scope that it needs.
"""

from __future__ import annotations

import hashlib
import hmac
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from fastapi import Request

from api.actors import actor_of
from api.catch_up import not_ready
from api.key_index import KeyIndex
from api.problems import Refused
from api.settings import KeyHolder
from minutebook.clock import Clock
from minutebook.domain.state import NONE_AT

if TYPE_CHECKING:
    from api.services import Services

if TYPE_CHECKING:
    from api.services import Services


class Scope(StrEnum):
    """What a route needs."""

    JOBS_READ = "jobs:read"
    JOBS_WRITE = "jobs:write"
    JOBS_OPERATE = "jobs:operate"
    QUEUES_WRITE = "queues:write"
    LIMITS_WRITE = "limits:write"
    CALENDARS_WRITE = "calendars:write"
    WORKERS_OPERATE = "workers:operate"
    SELF_READ = "self:read"
    AUDIT_READ = "audit:read"
    KEYS_MANAGE = "keys:manage"
    TENANTS_READ = "tenants:read"
    PARTITIONS_READ = "partitions:read"


_READS: Final = frozenset({Scope.SELF_READ, Scope.JOBS_READ})
_OPERATES: Final = _READS | {
    Scope.JOBS_WRITE,
    Scope.JOBS_OPERATE,
    Scope.QUEUES_WRITE,
    Scope.LIMITS_WRITE,
    Scope.CALENDARS_WRITE,
    Scope.WORKERS_OPERATE,
    Scope.AUDIT_READ,
    Scope.PARTITIONS_READ,
}
ROLES: Final[dict[str, frozenset[Scope]]] = {
    "viewer": _READS,
    "submitter": _READS | {Scope.JOBS_WRITE},
    "operator": _OPERATES,
    "admin": _OPERATES | {Scope.KEYS_MANAGE, Scope.TENANTS_READ},
    "worker": _READS,
}
"""What each role may do: no scope is a role's unless it is named here."""

SHORT_HASH_CHARS: Final = 12
"""Of the hash of a key of the settings: its id, as it has no other."""


class Caller(NamedTuple):
    """Who sent a request. `actor` names the credential in the log without revealing it. `expires_at`: ms, None = never."""

    tenant: str
    role: str
    actor: str
    key: str = ""
    label: str = ""
    expires_at: int | None = None
    is_declared: bool = False
    """Whether the key is one that the log has declared, rather than one of the settings."""

    def may(self, scope: Scope) -> bool:
        """Whether the role covers `scope`."""
        return scope in ROLES.get(self.role, ())


class Keyring:
    """The known keys, by SHA-256: those of the settings, and those that the log has declared and that are good now."""

    def __init__(
        self, keys: dict[str, KeyHolder], declared: KeyIndex, clock: Clock, cursor_key: bytes
    ) -> None:
        self.settings_keys: dict[bytes, Caller] = {}
        for name, holder in keys.items():
            key = name[:SHORT_HASH_CHARS]
            self.settings_keys[bytes.fromhex(name)] = Caller(holder.tenant, holder.role, f"key:{key}", key)
        self._declared = declared
        self._clock = clock
        self.secret = cursor_key
        """Signs cursors: the same in every process that has the same settings."""

    def find(self, key: str) -> Caller | None:
        """Whose key that is."""
        return self._holder(hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest())

    def holder(self, key_hash: str) -> Caller | None:
        """Whose key it is that has that SHA-256 in hex."""
        return self._holder(bytes.fromhex(key_hash))

    def _holder(self, wanted: bytes) -> Caller | None:
        """By its hash, which nobody can choose: how long the search takes tells nothing of a key."""
        of_settings = self.settings_keys.get(wanted)
        if of_settings is not None:
            return of_settings
        found = self._declared.with_hash(wanted, self._clock.now())
        if found is None or not hmac.compare_digest(found[2].sha256, wanted):
            return None
        tenant, key, row = found
        expires_at = None if row.expires_at == NONE_AT else row.expires_at
        return Caller(tenant, row.role, f"key:{key}", key, row.label, expires_at, is_declared=True)


class Allowed:
    """Dependency of a route: the caller, whose role covers `scope`."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    async def __call__(self, request: Request) -> Caller:
        """The caller, its actor with the surface and the address. Raises Refused: no-credential, not-ready, rate-limited,
        denied."""
        services: Services = request.app.state.services
        credentials = request.headers.getlist("authorization")
        scheme, _, key = (credentials or [""])[0].partition(" ")
        is_given = len(credentials) == 1 and scheme.lower() == "bearer" and bool(key)
        caller = services.keyring.find(key.strip()) if is_given else None
        if caller is None:
            if is_given and services.readiness.unready():
                # It may be one of those that the view has yet to read.
                raise not_ready(services.readiness.catch_up)
            raise Refused("no-credential")
        services.rates.take(request, caller.actor, services.clock.monotonic())
        if not caller.may(self.scope):
            raise Refused("denied")
        return caller._replace(actor=actor_of(request, caller.key, services.proxies))
