"""Calls about access: API keys, who is asking, the audit log, tenants. A part of `Client` and `SyncClient`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from msgspec import UNSET

from minutebook.client.answers import decided, decoded
from minutebook.client.audit_models import AuditEntry, AuditPage
from minutebook.client.key_models import (
    CreatedKey,
    Key,
    KeyPage,
    KeyRequest,
    Me,
    Role,
    RotationRequest,
    Tenant,
    TenantPage,
)
from minutebook.client.models import Command, ReasonRequest
from minutebook.mint import mint_id

T = TypeVar("T")


class AccessCalls(ABC):
    """Calls about access, over `_send` and `_items` of the client."""

    @abstractmethod
    async def _send(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        headers: dict[str, str] | None = None,
        query: dict[str, str] | None = None,
    ) -> httpx.Response: ...

    @abstractmethod
    def _items(
        self, path: str, kind: type[Any], query: dict[str, str] | None = None
    ) -> AsyncIterator[Any]: ...

    async def me(self) -> Me:
        """The key that this client calls with: its tenant, role and end."""
        return decoded(await self._send("GET", "/v1/me"), Me)

    async def api_keys(self) -> AsyncIterator[Key]:
        """The API keys of the tenant by id, also those that are good no more. No key itself is shown."""
        async for item in self._items("/v1/keys", KeyPage):
            yield item

    async def api_key(self, key_id: str) -> Key:
        """What is known of an API key."""
        return decoded(await self._send("GET", _key_path(key_id)), Key)

    async def create_api_key(
        self,
        label: str,
        role: Role,
        *,
        expires_in: str | None = None,
        expires_at: str | None = None,
        reason: str = "",
        key: str | None = None,
    ) -> CreatedKey:
        """Make an API key, which is shown this once. At most one of `expires_in` (ISO 8601) and `expires_at`; neither =
        it is good for ever. A repeat with the same idempotency `key` raises RefusedError: it makes no second one.
        """
        body = KeyRequest(
            label=label,
            role=role,
            expires_in=UNSET if expires_in is None else expires_in,
            expires_at=UNSET if expires_at is None else expires_at,
            reason=reason,
        )
        headers = {"idempotency-key": key or mint_id()}
        return decoded(await self._send("POST", "/v1/keys", body=body, headers=headers), CreatedKey)

    async def rotate_api_key(
        self, key_id: str, *, old_expires_in: str = "P7D", reason: str = "", key: str | None = None
    ) -> CreatedKey:
        """Make a second API key like one that is there, whose end comes after `old_expires_in` (ISO 8601)."""
        body = RotationRequest(old_expires_in=old_expires_in, reason=reason)
        headers = {"idempotency-key": key or mint_id()}
        answer = await self._send("POST", f"{_key_path(key_id)}/rotate", body=body, headers=headers)
        return decoded(answer, CreatedKey)

    async def revoke_api_key(
        self, key_id: str, *, reason: str = "", is_forced: bool = False
    ) -> Key | Command:
        """End an API key at once, for good. `is_forced`: also if it is the one that this client calls with."""
        query = {"force": "true"} if is_forced else None
        path = f"{_key_path(key_id)}/revoke"
        return decided(await self._send("POST", path, body=ReasonRequest(reason), query=query), Key)

    async def audit_log(
        self,
        *,
        key_id: str | None = None,
        command: str | None = None,
        subject: str | None = None,
        accepted: bool | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> AsyncIterator[AuditEntry]:
        """Commands of the tenant, the latest first; only those that fit what is given. Instants are RFC 3339."""
        said = None if accepted is None else str(accepted).lower()
        asked = {
            "key": key_id,
            "command": command,
            "subject": subject,
            "accepted": said,
            "from": from_at,
            "until": until_at,
        }
        query = {name: value for name, value in asked.items() if value is not None}
        async for item in self._items("/v1/audit-log", AuditPage, query):
            yield item

    async def tenants(self) -> AsyncIterator[Tenant]:
        """The tenants that the caller may see, by name."""
        async for item in self._items("/v1/tenants", TenantPage):
            yield item


class SyncAccessCalls(ABC):
    """The same for code without an event loop."""

    _client: AccessCalls

    @abstractmethod
    def _each(self, found: AsyncIterator[T]) -> Iterator[T]: ...

    @abstractmethod
    def _run(self, call: Coroutine[Any, Any, T]) -> T: ...

    def me(self) -> Me:
        """See `Client.me`."""
        return self._run(self._client.me())

    def api_keys(self) -> Iterator[Key]:
        """See `Client.api_keys`."""
        return self._each(self._client.api_keys())

    def api_key(self, key_id: str) -> Key:
        """See `Client.api_key`."""
        return self._run(self._client.api_key(key_id))

    def create_api_key(
        self,
        label: str,
        role: Role,
        *,
        expires_in: str | None = None,
        expires_at: str | None = None,
        reason: str = "",
        key: str | None = None,
    ) -> CreatedKey:
        """See `Client.create_api_key`."""
        return self._run(
            self._client.create_api_key(
                label, role, expires_in=expires_in, expires_at=expires_at, reason=reason, key=key
            )
        )

    def rotate_api_key(
        self, key_id: str, *, old_expires_in: str = "P7D", reason: str = "", key: str | None = None
    ) -> CreatedKey:
        """See `Client.rotate_api_key`."""
        return self._run(
            self._client.rotate_api_key(key_id, old_expires_in=old_expires_in, reason=reason, key=key)
        )

    def revoke_api_key(self, key_id: str, *, reason: str = "", is_forced: bool = False) -> Key | Command:
        """See `Client.revoke_api_key`."""
        return self._run(self._client.revoke_api_key(key_id, reason=reason, is_forced=is_forced))

    def audit_log(
        self,
        *,
        key_id: str | None = None,
        command: str | None = None,
        subject: str | None = None,
        accepted: bool | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> Iterator[AuditEntry]:
        """See `Client.audit_log`."""
        return self._each(
            self._client.audit_log(
                key_id=key_id,
                command=command,
                subject=subject,
                accepted=accepted,
                from_at=from_at,
                until_at=until_at,
            )
        )

    def tenants(self) -> Iterator[Tenant]:
        """See `Client.tenants`."""
        return self._each(self._client.tenants())


def _key_path(key_id: str) -> str:
    return f"/v1/keys/{quote(key_id, safe='')}"
