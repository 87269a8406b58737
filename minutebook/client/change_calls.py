"""Calls that change jobs: a part of `Client` and `SyncClient`.

Given a job as it was read, each sends its version in `If-Match`: what somebody else has changed meanwhile is not
overwritten, but refused (StaleVersionError). Given an id alone, it holds for whatever version is there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from minutebook.client.answers import decided, decoded
from minutebook.client.change_models import JobChange, JobVersion, JobVersionPage, ResumeRequest
from minutebook.client.models import Command, Job, JobRequest, ReasonRequest
from minutebook.client.put_models import PutEffect
from minutebook.client.reasons import reason_headers
from minutebook.mint import mint_id

T = TypeVar("T")


class ChangeCalls(ABC):
    """Calls that change jobs, over `_send` and `_items` of the client. A repeat with the same `key` changes nothing.

    `reason` stays on record, but for that of a `put` that creates the job.
    """

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
    def _items(self, path: str, kind: type[Any]) -> AsyncIterator[Any]: ...

    async def edit(
        self, job: Job | str, change: JobChange, *, reason: str = "", key: str | None = None
    ) -> Job | Command:
        """Change what `change` names; the rest stays. What is due already or open keeps the version that it has."""
        return decided(await self._change(job, "PATCH", "", change, key, reason), Job)

    async def put(
        self,
        job: Job | str,
        body: JobRequest,
        *,
        version: int | None = None,
        reason: str = "",
        key: str | None = None,
    ) -> Job | Command:
        """Create a job under this id, or replace all of it. The same body twice changes nothing.

        `version`: the one that is to be replaced, where the job is given by its id.
        """
        return decided(await self._change(job, "PUT", "", body, key, reason, version), Job)

    async def would_put(self, job_id: str, body: JobRequest) -> PutEffect:
        """What `put` would do; nothing is changed. Raises RefusedError for a body that it would not take."""
        answer = await self._send("PUT", job_path(job_id), body=body, query={"dry_run": "true"})
        return decoded(answer, PutEffect)

    async def pause(self, job: Job | str, *, reason: str = "", key: str | None = None) -> Job | Command:
        """No instant of a job comes due until it is resumed; what is open goes on."""
        return decided(await self._change(job, "POST", "/pause", ReasonRequest(reason), key), Job)

    async def resume(
        self, job: Job | str, *, catch_up: bool = False, reason: str = "", key: str | None = None
    ) -> Job | Command:
        """Instants of a job come due again; those of its pause are skipped on record, or made up for by `catch_up`."""
        return decided(await self._change(job, "POST", "/resume", ResumeRequest(reason, catch_up), key), Job)

    async def cancel(self, job: Job | str, *, reason: str = "", key: str | None = None) -> Command | None:
        """Cancel a job: no instant and no attempt after this. None = done; a Command where it takes long."""
        answer = await self._change(job, "POST", "/cancel", ReasonRequest(reason), key)
        return decoded(answer, Command) if answer.status_code == 202 else None

    async def purge(self, job_id: str, *, reason: str = "", key: str | None = None) -> Command | None:
        """A closed job and its history are shown no more. None = done; a Command where it takes long."""
        answer = await self._change(job_id, "POST", "/purge", ReasonRequest(reason), key)
        return decoded(answer, Command) if answer.status_code == 202 else None

    async def versions(self, job_id: str) -> AsyncIterator[JobVersion]:
        """What a job is and was, the latest version first."""
        async for item in self._items(job_path(job_id) + "/versions", JobVersionPage):
            yield item

    async def _change(
        self,
        job: Job | str,
        method: str,
        verb: str,
        body: msgspec.Struct,
        key: str | None,
        reason: str = "",
        version: int | None = None,
    ) -> httpx.Response:
        headers = {"idempotency-key": key or mint_id(), **reason_headers(reason)}
        job_id = job
        if isinstance(job, Job):
            job_id, version = job.id, job.version
        if version is not None:
            headers["if-match"] = f'"{version}"'
        return await self._send(method, job_path(str(job_id)) + verb, body=body, headers=headers)


class SyncChangeCalls(ABC):
    """The same for code without an event loop."""

    _client: ChangeCalls

    @abstractmethod
    def _each(self, found: AsyncIterator[T]) -> Iterator[T]: ...

    @abstractmethod
    def _run(self, call: Coroutine[Any, Any, T]) -> T: ...

    def edit(
        self, job: Job | str, change: JobChange, *, reason: str = "", key: str | None = None
    ) -> Job | Command:
        """See `Client.edit`."""
        return self._run(self._client.edit(job, change, reason=reason, key=key))

    def put(
        self,
        job: Job | str,
        body: JobRequest,
        *,
        version: int | None = None,
        reason: str = "",
        key: str | None = None,
    ) -> Job | Command:
        """See `Client.put`."""
        return self._run(self._client.put(job, body, version=version, reason=reason, key=key))

    def would_put(self, job_id: str, body: JobRequest) -> PutEffect:
        """See `Client.would_put`."""
        return self._run(self._client.would_put(job_id, body))

    def pause(self, job: Job | str, *, reason: str = "", key: str | None = None) -> Job | Command:
        """See `Client.pause`."""
        return self._run(self._client.pause(job, reason=reason, key=key))

    def resume(
        self, job: Job | str, *, catch_up: bool = False, reason: str = "", key: str | None = None
    ) -> Job | Command:
        """See `Client.resume`."""
        return self._run(self._client.resume(job, catch_up=catch_up, reason=reason, key=key))

    def cancel(self, job: Job | str, *, reason: str = "", key: str | None = None) -> Command | None:
        """See `Client.cancel`."""
        return self._run(self._client.cancel(job, reason=reason, key=key))

    def purge(self, job_id: str, *, reason: str = "", key: str | None = None) -> Command | None:
        """See `Client.purge`."""
        return self._run(self._client.purge(job_id, reason=reason, key=key))

    def versions(self, job_id: str) -> Iterator[JobVersion]:
        """See `Client.versions`."""
        return self._each(self._client.versions(job_id))


def job_path(job_id: str) -> str:
    """Path of a job."""
    return f"/v1/jobs/{quote(job_id, safe='')}"
