"""Calls about what happens now and soon: a part of `Client` and `SyncClient`."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal, NamedTuple, TypeVar

import httpx
import msgspec

from minutebook.client.answers import decoded
from minutebook.client.errors import UnavailableError
from minutebook.client.live_models import Change, Changes, PartitionPage, Reset, Upcoming

T = TypeVar("T")
By = Literal["minute", "hour", "day"]
_AGAIN_S: Final = 1.0
_AGAIN_MAX_S: Final = 15.0


class _Event(NamedTuple):
    """A server-sent event. `name` empty: a comment alone."""

    name: str
    data: str
    id: str


class LiveCalls(ABC):
    """Calls about changes, due counts and partitions, over `_send` and `_open` of the client."""

    @abstractmethod
    async def _send(
        self, method: str, path: str, *, query: dict[str, str] | None = None
    ) -> httpx.Response: ...

    @abstractmethod
    def _open(
        self, path: str, headers: dict[str, str], query: dict[str, str]
    ) -> AbstractAsyncContextManager[AsyncIterator[str]]: ...

    async def changes(
        self,
        *,
        job_id: str | None = None,
        task: str | None = None,
        queue: str | None = None,
        status: str | None = None,
    ) -> AsyncIterator[Change | Reset]:
        """What changes from now on, each subject at most four times a second. After a `Reset`, read anew what you show.

        Goes on for ever: a broken connection is made again, and what was missed is told. Raises DeniedError, RefusedError.
        """
        asked = {"job_id": job_id, "task": task, "queue": queue, "status": status}
        query = {name: value for name, value in asked.items() if value is not None}
        headers = {"accept": "text/event-stream"}
        again_s = _AGAIN_S
        while True:
            try:
                async with self._open("/v1/stream", headers, query) as lines:
                    async for event in _events(lines):
                        again_s = _AGAIN_S
                        if event.id:
                            headers["last-event-id"] = event.id
                        for told in _told(event):
                            yield told
            except UnavailableError:
                await asyncio.sleep(again_s)
                again_s = min(2 * again_s, _AGAIN_MAX_S)

    async def upcoming(
        self, *, by: By = "minute", from_: str | None = None, until: str | None = None
    ) -> Upcoming:
        """How many jobs are due in each minute, hour or day of a range of RFC 3339 instants, by default from now on."""
        asked = {"by": by, "from": from_, "until": until}
        query = {name: value for name, value in asked.items() if value is not None}
        return decoded(await self._send("GET", "/v1/upcoming", query=query), Upcoming)

    async def partitions(self) -> PartitionPage:
        """The partitions with their owners, and how far the view of the answering process has read them."""
        return decoded(await self._send("GET", "/v1/partitions"), PartitionPage)


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[_Event]:
    """Events out of the lines of a stream."""
    fields: dict[str, str] = {}
    async for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            yield _Event(fields.get("event", ""), fields.get("data", ""), fields.get("id", ""))
            fields = {}


def _told(event: _Event) -> list[Change | Reset]:
    if event.name == "changes":
        return list(msgspec.json.decode(event.data, type=Changes).changes)
    return [msgspec.json.decode(event.data, type=Reset)] if event.name == "reset" else []


class SyncLiveCalls(ABC):
    """The same for code without an event loop."""

    _client: LiveCalls

    @abstractmethod
    def _each(self, found: AsyncIterator[T]) -> Iterator[T]: ...

    @abstractmethod
    def _run(self, call: Coroutine[Any, Any, T]) -> T: ...

    def changes(
        self,
        *,
        job_id: str | None = None,
        task: str | None = None,
        queue: str | None = None,
        status: str | None = None,
    ) -> Iterator[Change | Reset]:
        """See `Client.changes`."""
        return self._each(self._client.changes(job_id=job_id, task=task, queue=queue, status=status))

    def upcoming(self, *, by: By = "minute", from_: str | None = None, until: str | None = None) -> Upcoming:
        """See `Client.upcoming`."""
        return self._run(self._client.upcoming(by=by, from_=from_, until=until))

    def partitions(self) -> PartitionPage:
        """See `Client.partitions`."""
        return self._run(self._client.partitions())
