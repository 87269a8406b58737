"""API keys that the log has declared, by hash and by tenant: in memory, for each request asks."""

from __future__ import annotations

from collections.abc import Iterable

from minutebook.domain.view_keys import KeyRow


class KeyIndex:
    """Kept up by the view. Two keys of one hash are two keys: either may be revoked alone."""

    def __init__(self) -> None:
        self._by_hash: dict[bytes, dict[tuple[str, str], KeyRow]] = {}
        self._by_tenant: dict[str, dict[str, KeyRow]] = {}

    def put(self, tenant: str, key: str, row: KeyRow) -> None:
        """A key is there, or has changed. `key`: its id."""
        known = self._by_tenant.setdefault(tenant, {})
        before = known.get(key)
        if before is not None and before.sha256 != row.sha256:
            del self._by_hash[before.sha256][tenant, key]
        known[key] = row
        self._by_hash.setdefault(row.sha256, {})[tenant, key] = row

    def replace(self, rows: Iterable[tuple[str, str, KeyRow]]) -> None:
        """These and no others: (tenant, id, row)."""
        self._by_hash.clear()
        self._by_tenant.clear()
        for row in rows:
            self.put(*row)

    def with_hash(self, sha256: bytes, now: int) -> tuple[str, str, KeyRow] | None:
        """(tenant, id, row) of the key with that SHA-256 that is good at `now` (ms); None if there is none."""
        for (tenant, key), row in self._by_hash.get(sha256, {}).items():
            if row.is_live(now):
                return tenant, key, row
        return None

    def get(self, tenant: str, key: str) -> KeyRow | None:
        """The key of a tenant with that id, also one that is good no more."""
        return self._by_tenant.get(tenant, {}).get(key)

    def of_tenant(self, tenant: str) -> list[tuple[str, KeyRow]]:
        """(id, row) of all keys of a tenant by id, also of those that are good no more."""
        return sorted(self._by_tenant.get(tenant, {}).items())

    def tenants(self) -> set[str]:
        """Names of all tenants that have, or had, a key."""
        return set(self._by_tenant)
