"""Calls on bulk operations: the part of `Client` and `SyncClient` that is about many executions at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import httpx
import msgspec
from msgspec import UNSET

from minutebook.client.discard_calls import DiscardCalls, SyncDiscardCalls
from minutebook.client.models import Command, ReasonRequest
from minutebook.client.operation_models import (
    BackfillDryRun,
    BackfillRequest,
    DeadLetterFilter,
    DryRun,
    JobDryRun,
    JobFilter,
    JobOperationKind,
    Operation,
    OperationFilter,
    OperationPage,
    OperationRequest,
    RedriveManyRequest,
)
from minutebook.mint import mint_id

T = TypeVar("T")
_WAIT_S_MAX = 30
_REDRIVE = "/v1/dead-letters/redrive"
_OPERATIONS = "/v1/operations"


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

    def _items(self, path: str, kind: Any, query: dict[str, str] | None = None) -> AsyncIterator[Any]: ...


class OperationCalls(DiscardCalls):
    """Of the async client."""

    async def count_dead_letters(self: _Sending, wanted: DeadLetterFilter) -> DryRun:
        """How many dead executions fit, and why they were given up; nothing is changed."""
        body = RedriveManyRequest(filter=wanted, dry_run=True)
        return msgspec.json.decode((await self._send("POST", _REDRIVE, body=body)).content, type=DryRun)

    async def redrive_many(
        self: _Sending,
        wanted: DeadLetterFilter,
        *,
        rate_per_s: int | None = None,
        reason: str = "",
        key: str | None = None,
    ) -> Operation:
        """Run all dead executions again that fit and were given up before now; a repeat with the same `key` starts nothing."""
        rate = UNSET if rate_per_s is None else rate_per_s
        body = RedriveManyRequest(filter=wanted, rate_per_s=rate, reason=reason)
        return await _started(self, _REDRIVE, body, key)

    async def count_backfill(self: _Sending, job_id: str, from_at: str, until_at: str) -> BackfillDryRun:
        """How many instants of a job a backfill of that range would run, and why not the others; nothing is changed."""
        body = BackfillRequest(from_at=from_at, until_at=until_at, dry_run=True)
        answer = await self._send("POST", _backfill(job_id), body=body)
        return msgspec.json.decode(answer.content, type=BackfillDryRun)

    async def backfill(
        self: _Sending,
        job_id: str,
        from_at: str,
        until_at: str,
        *,
        rate_per_s: int | None = None,
        reason: str = "",
        key: str | None = None,
    ) -> Operation:
        """Run the instants of a job from `from_at` until before `until_at` (RFC 3339) that never ran; a repeat with the
        same `key` starts nothing."""
        rate = UNSET if rate_per_s is None else rate_per_s
        body = BackfillRequest(from_at=from_at, until_at=until_at, rate_per_s=rate, reason=reason)
        return await _started(self, _backfill(job_id), body, key)

    async def count_jobs(self: _Sending, kind: JobOperationKind, wanted: JobFilter) -> JobDryRun:
        """How many jobs a pause, a resume or a cancel of all that fit would change; nothing is changed."""
        body = OperationRequest(kind=kind, filter=_filter_of(wanted), dry_run=True)
        answer = await self._send("POST", _OPERATIONS, body=body)
        return msgspec.json.decode(answer.content, type=JobDryRun)

    async def change_jobs(
        self: _Sending,
        kind: JobOperationKind,
        wanted: JobFilter,
        *,
        rate_per_s: int | None = None,
        reason: str = "",
        key: str | None = None,
    ) -> Operation:
        """Pause, resume or cancel all jobs that fit and were created before now; a repeat with the same `key` starts nothing."""
        rate = UNSET if rate_per_s is None else rate_per_s
        body = OperationRequest(kind=kind, filter=_filter_of(wanted), rate_per_s=rate, reason=reason)
        return await _started(self, _OPERATIONS, body, key)

    async def operation(self: _Sending, operation_id: str, *, wait: int = 0) -> Operation:
        """An operation and how far it is. `wait`: seconds to wait for its end, 30 at most."""
        asked_s = min(max(wait, 0), _WAIT_S_MAX)
        answer = await self._send(
            "GET", _path(operation_id), query={"wait": str(asked_s)} if asked_s else None
        )
        return msgspec.json.decode(answer.content, type=Operation)

    async def operations(self: _Sending) -> AsyncIterator[Operation]:
        """All operations, the latest first."""
        async for item in self._items(_OPERATIONS, OperationPage):
            yield item

    async def cancel_operation(
        self: _Sending, operation_id: str, *, reason: str = "", key: str | None = None
    ) -> Operation | Command:
        """No more of an operation; what is done stays. A Command comes back where the decision takes long."""
        answer = await self._send(
            "POST",
            _path(operation_id) + "/cancel",
            body=ReasonRequest(reason),
            headers={"idempotency-key": key or mint_id()},
        )
        if answer.status_code == 202:
            return msgspec.json.decode(answer.content, type=Command)
        return msgspec.json.decode(answer.content, type=Operation)


class _Running(Protocol):
    """What the sync calls need of their client."""

    _client: Any

    def _run(self, call: Coroutine[Any, Any, T]) -> T: ...

    def _each(self, found: AsyncIterator[T]) -> Iterator[T]: ...


class SyncOperationCalls(SyncDiscardCalls):
    """Of the sync client."""

    def count_dead_letters(self: _Running, wanted: DeadLetterFilter) -> DryRun:
        """See `OperationCalls.count_dead_letters`."""
        found: DryRun = self._run(self._client.count_dead_letters(wanted))
        return found

    def redrive_many(
        self: _Running,
        wanted: DeadLetterFilter,
        *,
        rate_per_s: int | None = None,
        reason: str = "",
        key: str | None = None,
    ) -> Operation:
        """See `OperationCalls.redrive_many`."""
        call = self._client.redrive_many(wanted, rate_per_s=rate_per_s, reason=reason, key=key)
        found: Operation = self._run(call)
        return found

    def count_backfill(self: _Running, job_id: str, from_at: str, until_at: str) -> BackfillDryRun:
        """See `OperationCalls.count_backfill`."""
        found: BackfillDryRun = self._run(self._client.count_backfill(job_id, from_at, until_at))
        return found

    def backfill(
        self: _Running,
        job_id: str,
        from_at: str,
        until_at: str,
        *,
        rate_per_s: int | None = None,
        reason: str = "",
        key: str | None = None,
    ) -> Operation:
        """See `OperationCalls.backfill`."""
        call = self._client.backfill(job_id, from_at, until_at, rate_per_s=rate_per_s, reason=reason, key=key)
        found: Operation = self._run(call)
        return found

    def count_jobs(self: _Running, kind: JobOperationKind, wanted: JobFilter) -> JobDryRun:
        """See `OperationCalls.count_jobs`."""
        found: JobDryRun = self._run(self._client.count_jobs(kind, wanted))
        return found

    def change_jobs(
        self: _Running,
        kind: JobOperationKind,
        wanted: JobFilter,
        *,
        rate_per_s: int | None = None,
        reason: str = "",
        key: str | None = None,
    ) -> Operation:
        """See `OperationCalls.change_jobs`."""
        call = self._client.change_jobs(kind, wanted, rate_per_s=rate_per_s, reason=reason, key=key)
        found: Operation = self._run(call)
        return found

    def operation(self: _Running, operation_id: str, *, wait: int = 0) -> Operation:
        """See `OperationCalls.operation`."""
        found: Operation = self._run(self._client.operation(operation_id, wait=wait))
        return found

    def operations(self: _Running) -> Iterator[Operation]:
        """See `OperationCalls.operations`."""
        return self._each(self._client.operations())

    def cancel_operation(
        self: _Running, operation_id: str, *, reason: str = "", key: str | None = None
    ) -> Operation | Command:
        """See `OperationCalls.cancel_operation`."""
        found: Operation | Command = self._run(
            self._client.cancel_operation(operation_id, reason=reason, key=key)
        )
        return found


async def _started(client: _Sending, path: str, body: msgspec.Struct, key: str | None) -> Operation:
    """The operation that a body asks for; `key` is made if not given."""
    answer = await client._send("POST", path, body=body, headers={"idempotency-key": key or mint_id()})
    return msgspec.json.decode(answer.content, type=Operation)


def _filter_of(wanted: JobFilter) -> OperationFilter:
    return OperationFilter(**msgspec.structs.asdict(wanted))


def _backfill(job_id: str) -> str:
    return f"/v1/jobs/{quote(job_id, safe='')}/backfill"


def _path(operation_id: str) -> str:
    return f"{_OPERATIONS}/{quote(operation_id, safe='')}"
