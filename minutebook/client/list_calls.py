"""Calls that list jobs and executions over all of a tenant: a part of `Client` and `SyncClient`.

Filters are those of the query, and as there only what is given holds; instants are RFC 3339 text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, Final, TypeVar

import httpx

from minutebook.client.answers import decoded
from minutebook.client.list_models import (
    ExecutionOrder,
    ExecutionsPage,
    ExecutionSummary,
    JobOrder,
    JobPage,
    Overview,
)
from minutebook.client.models import AttemptStatus, Job, JobStatus

T = TypeVar("T")
_PAGE_MAX: Final = 1_000


class ListCalls(ABC):
    """Calls over `_send` and `_items` of the client."""

    @abstractmethod
    async def _send(self, method: str, path: str) -> httpx.Response: ...

    @abstractmethod
    def _items(
        self, path: str, kind: type[Any], query: dict[str, str] | None = None
    ) -> AsyncIterator[Any]: ...

    async def jobs(
        self,
        *,
        status: JobStatus | None = None,
        task: str | None = None,
        queue: str | None = None,
        tag: str | None = None,
        created_from: str | None = None,
        created_until: str | None = None,
        due_from: str | None = None,
        due_until: str | None = None,
        order: JobOrder | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Job]:
        """Jobs by the instant at which they were created, the latest first; at most `limit` of them.

        With `due_from` or `due_until`, those whose next instant lies there, the earliest first. With `order="due"` or
        `"-due"`, only those that have a next instant.
        """
        query = _query(
            status=status,
            task=task,
            queue=queue,
            tag=tag,
            due_from=due_from,
            due_until=due_until,
            order=order,
            **{"from": created_from, "until": created_until},
        )
        async for item in self._first("/v1/jobs", JobPage, query, limit):
            yield item

    async def all_executions(
        self,
        *,
        status: AttemptStatus | None = None,
        task: str | None = None,
        queue: str | None = None,
        job_id: str | None = None,
        error_type: str | None = None,
        scheduled_from: str | None = None,
        scheduled_until: str | None = None,
        order: ExecutionOrder | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[ExecutionSummary]:
        """Executions of all jobs by scheduled_at, the latest first; those that are scheduled, the earliest first.

        At most `limit` of them.
        """
        query = _query(
            status=status,
            task=task,
            queue=queue,
            job_id=job_id,
            error_type=error_type,
            order=order,
            **{"from": scheduled_from, "until": scheduled_until},
        )
        async for item in self._first("/v1/executions", ExecutionsPage, query, limit):
            yield item

    async def _first(
        self, path: str, kind: type[Any], query: dict[str, str], limit: int | None
    ) -> AsyncIterator[Any]:
        """The first `limit` items of a list, all if None; no page is larger than what is wanted."""
        if limit is not None:
            query["limit"] = str(max(1, min(limit, _PAGE_MAX)))
        count = 0
        async for item in self._items(path, kind, query):
            yield item
            count += 1
            if count == limit:
                return

    async def overview(self) -> Overview:
        """How the jobs of the tenant stand."""
        return decoded(await self._send("GET", "/v1/overview"), Overview)


class SyncListCalls(ABC):
    """The same for code without an event loop."""

    _client: ListCalls

    @abstractmethod
    def _each(self, found: AsyncIterator[T]) -> Iterator[T]: ...

    @abstractmethod
    def _run(self, call: Coroutine[Any, Any, T]) -> T: ...

    def jobs(
        self,
        *,
        status: JobStatus | None = None,
        task: str | None = None,
        queue: str | None = None,
        tag: str | None = None,
        created_from: str | None = None,
        created_until: str | None = None,
        due_from: str | None = None,
        due_until: str | None = None,
        order: JobOrder | None = None,
        limit: int | None = None,
    ) -> Iterator[Job]:
        """See `Client.jobs`."""
        found = self._client.jobs(
            status=status,
            task=task,
            queue=queue,
            tag=tag,
            created_from=created_from,
            created_until=created_until,
            due_from=due_from,
            due_until=due_until,
            order=order,
            limit=limit,
        )
        return self._each(found)

    def all_executions(
        self,
        *,
        status: AttemptStatus | None = None,
        task: str | None = None,
        queue: str | None = None,
        job_id: str | None = None,
        error_type: str | None = None,
        scheduled_from: str | None = None,
        scheduled_until: str | None = None,
        order: ExecutionOrder | None = None,
        limit: int | None = None,
    ) -> Iterator[ExecutionSummary]:
        """See `Client.all_executions`."""
        found = self._client.all_executions(
            status=status,
            task=task,
            queue=queue,
            job_id=job_id,
            error_type=error_type,
            scheduled_from=scheduled_from,
            scheduled_until=scheduled_until,
            order=order,
            limit=limit,
        )
        return self._each(found)

    def overview(self) -> Overview:
        """See `Client.overview`."""
        return self._run(self._client.overview())


def _query(**asked: str | None) -> dict[str, str]:
    return {name: value for name, value in asked.items() if value is not None}
