"""Calls about the past of a job, read from the log: a part of `Client` and `SyncClient`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from minutebook.client.answers import decoded
from minutebook.client.history_models import HistoryEvent, HistoryPage, WhyAnswer

T = TypeVar("T")


class HistoryCalls(ABC):
    """Calls over `_send` and `_items` of the client."""

    @abstractmethod
    async def _send(
        self, method: str, path: str, *, query: dict[str, str] | None = None
    ) -> httpx.Response: ...

    @abstractmethod
    def _items(
        self, path: str, kind: type[Any], query: dict[str, str] | None = None
    ) -> AsyncIterator[Any]: ...

    async def events(self, job_id: str) -> AsyncIterator[HistoryEvent]:
        """Everything that the log says of a job, in order, each with its place there."""
        async for item in self._items(f"/v1/jobs/{quote(job_id, safe='')}/events", HistoryPage):
            yield item

    async def why(self, job_id: str, at: str) -> WhyAnswer:
        """Why a job ran at an instant (RFC 3339), ran late, or did not run."""
        path = f"/v1/jobs/{quote(job_id, safe='')}/why"
        return decoded(await self._send("GET", path, query={"at": at}), WhyAnswer)

    async def why_execution(self, execution_id: str) -> WhyAnswer:
        """Why an execution ran, ran late, waits, or did not run."""
        return decoded(
            await self._send("GET", f"/v1/executions/{quote(execution_id, safe='')}/why"), WhyAnswer
        )


class SyncHistoryCalls(ABC):
    """The same for code without an event loop."""

    _client: HistoryCalls

    @abstractmethod
    def _each(self, found: AsyncIterator[T]) -> Iterator[T]: ...

    @abstractmethod
    def _run(self, call: Coroutine[Any, Any, T]) -> T: ...

    def events(self, job_id: str) -> Iterator[HistoryEvent]:
        """See `Client.events`."""
        return self._each(self._client.events(job_id))

    def why(self, job_id: str, at: str) -> WhyAnswer:
        """See `Client.why`."""
        return self._run(self._client.why(job_id, at))

    def why_execution(self, execution_id: str) -> WhyAnswer:
        """See `Client.why_execution`."""
        return self._run(self._client.why_execution(execution_id))
