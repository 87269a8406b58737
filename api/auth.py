"""Who is asking, and what they may do. The tenant comes from the credential alone.

Deny by default: a scope that no role names is nobody's, and every route declares the scope that it needs.
"""

from __future__ import annotations

import hashlib
import hmac
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from fastapi import Request

from api.problems import Refused
from api.settings import KeyHolder

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
    PARTITIONS_READ = "partitions:read"


_ROLES: Final[dict[str, frozenset[Scope]]] = {
    "viewer": frozenset({Scope.JOBS_READ}),
    "submitter": frozenset({Scope.JOBS_READ, Scope.JOBS_WRITE}),
    "operator": frozenset(Scope),
    "admin": frozenset(Scope),
    "worker": frozenset({Scope.JOBS_READ}),
}


class Caller(NamedTuple):
    """Who sent a request. `actor` names the credential in the log without revealing it."""

    tenant: str
    role: str
    actor: str

    def may(self, scope: Scope) -> bool:
        """Whether the role covers `scope`."""
        return scope in _ROLES.get(self.role, ())


class Keyring:
    """The known keys, by SHA-256."""

    def __init__(self, keys: dict[str, KeyHolder]) -> None:
        self._keys = [
            (bytes.fromhex(name), Caller(holder.tenant, holder.role, f"key:{name[:12]}"))
            for name, holder in keys.items()
        ]
        self.secret = hashlib.sha256(b"cursors" + b"".join(sorted(name for name, _ in self._keys))).digest()
        """Signs cursors: the same in every process that knows the same keys."""

    def find(self, key: str) -> Caller | None:
        """Whose key that is. Takes the same time whichever key it is like."""
        wanted = hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
        found = None
        for name, caller in self._keys:
            if hmac.compare_digest(name, wanted):
                found = caller
        return found

    def holder(self, key_hash: str) -> Caller | None:
        """Whose key has that SHA-256 in hex; None for one that is not known, or no more."""
        return next((caller for name, caller in self._keys if name.hex() == key_hash), None)


class Allowed:
    """Dependency of a route: the caller, whose role covers `scope`."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    async def __call__(self, request: Request) -> Caller:
        """The caller. Raises Refused: no-credential, rate-limited, denied."""
        services: Services = request.app.state.services
        credentials = request.headers.getlist("authorization")
        scheme, _, key = (credentials or [""])[0].partition(" ")
        caller = None
        if len(credentials) == 1 and scheme.lower() == "bearer" and key:
            caller = services.keyring.find(key.strip())
        if caller is None:
            raise Refused("no-credential")
        services.rates.take(request, caller.actor, services.clock.monotonic())
        if not caller.may(self.scope):
            raise Refused("denied")
        return caller
