"""Calls about workers and the tasks that they declare: a part of `Client` and `SyncClient`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import httpx

from minutebook.client.answers import decided, decoded
from minutebook.client.fleet import (
    DeclaredTask,
    DeclaredTaskPage,
    WholeTask,
    WholeWorker,
    Worker,
    WorkerPage,
)
from minutebook.client.models import Command, ReasonRequest

T = TypeVar("T")
Wish = Literal["quiet", "resume", "stop"]


class FleetCalls(ABC):
    """Calls about workers and tasks, over `_send` and `_items` of the client."""

    @abstractmethod
    async def _send(self, method: str, path: str, *, body: Any = None) -> httpx.Response: ...

    @abstractmethod
    def _items(self, path: str, kind: type[Any]) -> AsyncIterator[Any]: ...

    async def tasks(self) -> AsyncIterator[DeclaredTask]:
        """The tasks that workers have declared, by name."""
        async for item in self._items("/v1/tasks", DeclaredTaskPage):
            yield item

    async def task(self, name: str) -> WholeTask:
        """A declared task with the JSON Schema of its payload."""
        return decoded(await self._send("GET", f"/v1/tasks/{quote(name, safe='')}"), WholeTask)

    async def workers(self) -> AsyncIterator[Worker]:
        """The workers heard of lately, by name."""
        async for item in self._items("/v1/workers", WorkerPage):
            yield item

    async def worker(self, worker_id: str) -> WholeWorker:
        """A worker with its sessions and what it runs."""
        return decoded(await self._send("GET", _worker_path(worker_id)), WholeWorker)

    async def ask_worker(self, worker_id: str, what: Wish, *, reason: str = "") -> Worker | Command:
        """Ask a worker to take no more grants (`quiet`), to take them again (`resume`), or to finish and exit (`stop`).

        Answered once the wish is on record; `worker` shows when it is obeyed.
        """
        path = f"{_worker_path(worker_id)}/{what}"
        return decided(await self._send("POST", path, body=ReasonRequest(reason)), Worker)


class SyncFleetCalls(ABC):
    """The same for code without an event loop."""

    _client: FleetCalls

    @abstractmethod
    def _each(self, found: AsyncIterator[T]) -> Iterator[T]: ...

    @abstractmethod
    def _run(self, call: Coroutine[Any, Any, T]) -> T: ...

    def tasks(self) -> Iterator[DeclaredTask]:
        """See `Client.tasks`."""
        return self._each(self._client.tasks())

    def task(self, name: str) -> WholeTask:
        """See `Client.task`."""
        return self._run(self._client.task(name))

    def workers(self) -> Iterator[Worker]:
        """See `Client.workers`."""
        return self._each(self._client.workers())

    def worker(self, worker_id: str) -> WholeWorker:
        """See `Client.worker`."""
        return self._run(self._client.worker(worker_id))

    def ask_worker(self, worker_id: str, what: Wish, *, reason: str = "") -> Worker | Command:
        """See `Client.ask_worker`."""
        return self._run(self._client.ask_worker(worker_id, what, reason=reason))


def _worker_path(worker_id: str) -> str:
    return f"/v1/workers/{quote(worker_id, safe='')}"
