"""The limits that a partition knows, and which of them apply to a job: asked for each execution that waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minutebook.domain import keys
from minutebook.domain.state import Limit

if TYPE_CHECKING:
    from minutebook.domain.book import Family

TENANT_WIDE: Final = ""
"""Name of the limit that holds for all jobs of a tenant."""
REMEMBERED_MAX: Final = 20_000


class KnownLimits:
    """Reads and writes the family of limits. What applies is remembered until a limit changes."""

    def __init__(self, limits: Family[Limit]) -> None:
        self._limits = limits
        self._are_any = any(True for _ in limits.scan(b""))
        self._applying: dict[tuple[str, str], tuple[str, ...]] = {}

    def get(self, tenant: str, name: str) -> Limit | None:
        """A limit; None for one that was never declared, or is deleted."""
        found = self._limits.get(keys.limit_row(tenant, name)) if self._are_any else None
        return None if found is None or found.is_deleted else found

    def put(self, tenant: str, name: str, limit: Limit) -> None:
        """Write `limit`, unless a version as new is known."""
        row = keys.limit_row(tenant, name)
        known = self._limits.get(row)
        if known is None or known.version < limit.version:
            self._limits.put(row, limit)
            self._are_any = True
            self._applying.clear()

    def of(self, tenant: str, key: str) -> tuple[str, ...]:
        """Names of the limits that hold for a job with that key (empty = none): the key's first, then the tenant's."""
        if not self._are_any:
            return ()
        found = self._applying.get((tenant, key))
        if found is None:
            if len(self._applying) >= REMEMBERED_MAX:
                self._applying.clear()
            names = (key, TENANT_WIDE) if key else (TENANT_WIDE,)
            found = tuple(name for name in names if self.get(tenant, name) is not None)
            self._applying[tenant, key] = found
        return found

    def discard(self) -> None:
        """What was pending is forgotten: call it before the family forgets it."""
        if self._limits.pending:
            self._applying.clear()
