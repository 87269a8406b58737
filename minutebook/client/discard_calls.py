"""Calls that discard dead executions: a part of `Client` and `SyncClient`."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import httpx
import msgspec
from msgspec import UNSET

from minutebook.client.answers import decided, decoded
from minutebook.client.models import Command, ReasonRequest, WholeExecution
from minutebook.client.operation_models import DeadLetterFilter, DiscardManyRequest, Operation
from minutebook.mint import mint_id

T = TypeVar("T")


class _Sending(Protocol):
    """What these calls need of the client."""

    async def _send(
        self,
        method: str,
        path: str,
        *,
        body: msgspec.Struct | None = None,
        headers: dict[str, str] | None = None,
        query: dict[str, str] | None = None,
    ) -> httpx.Response: ...


class DiscardCalls:
    """Of the async client. A repeat with the same `key` changes nothing."""

    async def discard(
        self: _Sending, execution_id: str, *, reason: str = "", key: str | None = None
    ) -> WholeExecution | Command:
        """A dead execution needs no attention any more; it can be redriven no more. A Command comes back where the
        decision takes long.
        """
        path = f"/v1/executions/{quote(execution_id, safe='')}/discard"
        headers = {"idempotency-key": key or mint_id()}
        answer = await self._send("POST", path, body=ReasonRequest(reason), headers=headers)
        return decided(answer, WholeExecution)

    async def discard_many(
        self: _Sending,
        wanted: DeadLetterFilter,
        *,
        rate_per_s: int | None = None,
        reason: str = "",
        key: str | None = None,
    ) -> Operation:
        """Discard all dead executions that fit and were given up before now; `count_dead_letters` says how many."""
        rate = UNSET if rate_per_s is None else rate_per_s
        body = DiscardManyRequest(filter=wanted, rate_per_s=rate, reason=reason)
        headers = {"idempotency-key": key or mint_id()}
        return decoded(
            await self._send("POST", "/v1/dead-letters/discard", body=body, headers=headers), Operation
        )


class _Running(Protocol):
    """What the sync calls need of their client."""

    _client: Any

    def _run(self, call: Coroutine[Any, Any, T]) -> T: ...


class SyncDiscardCalls:
    """Of the sync client."""

    def discard(
        self: _Running, execution_id: str, *, reason: str = "", key: str | None = None
    ) -> WholeExecution | Command:
        """See `DiscardCalls.discard`."""
        call = self._client.discard(execution_id, reason=reason, key=key)
        found: WholeExecution | Command = self._run(call)
        return found

    def discard_many(
        self: _Running,
        wanted: DeadLetterFilter,
        *,
        rate_per_s: int | None = None,
        reason: str = "",
        key: str | None = None,
    ) -> Operation:
        """See `DiscardCalls.discard_many`."""
        call = self._client.discard_many(wanted, rate_per_s=rate_per_s, reason=reason, key=key)
        found: Operation = self._run(call)
        return found
