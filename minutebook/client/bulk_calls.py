"""Calls for many jobs, and for the outcome of one: a part of `Client` and `SyncClient`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import httpx

from minutebook.client.answers import decoded
from minutebook.client.bulk import IN_FLIGHT, LINGER_S, Body, Submitted, Tally, submit_each
from minutebook.client.errors import RefusedError, UnavailableError
from minutebook.client.models import BatchRequest, BatchResult, Command, Job, JobRequest, WholeExecution
from minutebook.ids import execution_id
from minutebook.mint import mint_id
from minutebook.times import parse_instant

T = TypeVar("T")
_BUSY = frozenset({429, 503})


class _NotYetError(UnavailableError):
    """An answer came, and says to ask again."""


class BulkCalls(ABC):
    """Calls over `_send` and other calls of the client."""

    @abstractmethod
    async def _send(
        self, method: str, path: str, *, body: Any = None, headers: dict[str, str] | None = None
    ) -> httpx.Response: ...

    @abstractmethod
    async def _retried(
        self, again: type[UnavailableError], call: Callable[..., Coroutine[Any, Any, T]]
    ) -> T: ...

    @abstractmethod
    async def submit(self, job: JobRequest, *, key: str | None = None) -> Job | Command:
        """Create a job."""

    @abstractmethod
    async def get(self, job_id: str) -> Job:
        """A job as it stands."""

    @abstractmethod
    async def command(self, command_id: str) -> Command:
        """What became of a command."""

    @abstractmethod
    def executions(self, job_id: str) -> AsyncIterator[Any]:
        """All attempts of a job."""

    @abstractmethod
    async def execution(self, execution_id: str, *, wait: int = 0) -> WholeExecution:
        """An execution with its attempts."""

    async def run(self, job: JobRequest, *, wait: int = 30, key: str | None = None) -> WholeExecution:
        """Create a job and wait for the outcome of its first execution, up to `wait` seconds from when it can be read.

        The outcome is None where it took longer. Raises RefusedError too where the owner refused the job only later.
        """
        made = await self.submit(job, key=key)
        if isinstance(made, Command):
            made = await self._decided_later(made)
        if made.next_at is not None:
            return await self.execution(execution_id(made.id, parse_instant(made.next_at)), wait=wait)
        async for attempt in self.executions(made.id):
            return await self.execution(attempt.execution_id, wait=wait)
        raise RefusedError(f"job {made.id} has no instant: nothing runs that could be waited for")

    async def _decided_later(self, command: Command) -> Job:
        """The job of a create that was not decided in time. The command can be read once its partition has gone on."""

        async def ask() -> Command:
            found = await self.command(command.command_id)
            if found.outcome is None:
                raise _NotYetError("the owner of the job's partition has not decided yet")
            return found

        found = await self._retried(_NotYetError, ask)
        if found.outcome == "rejected":
            raise RefusedError(f"{found.reason}: {found.detail}")
        return await self.get(str(found.job_id))

    async def submit_many(self, jobs: Sequence[JobRequest], *, key: str | None = None) -> BatchResult:
        """Create up to 500 jobs; job n has the idempotency key `<key>/<n>`. Each may be refused alone."""
        headers = {"idempotency-key": key or mint_id()}
        body = BatchRequest(list(jobs))
        return decoded(await self._send("POST", "/v1/jobs/batch", body=body, headers=headers), BatchResult)

    async def submit_all(
        self,
        jobs: Iterable[JobRequest] | AsyncIterable[JobRequest],
        *,
        key: str | None = None,
        in_order: bool = True,
        in_flight: int = IN_FLIGHT,
        on_progress: Callable[[Tally], None] | None = None,
    ) -> AsyncIterator[Submitted]:
        """Create all `jobs`, which may be endless, in batches of up to 500, `in_flight` of them at a time.

        What became of each comes in their order, or with `in_order=False` as it is known. A job that is refused does not
        hold up others; what could not be sent although it was repeated comes as refused with status 503. Nothing more is
        taken from `jobs` while `in_flight` batches are under way. The same jobs sent again with the same `key` make none
        twice; without one, a batch also goes out when an async iterable brings nothing more for a moment.
        `on_progress` is told after each batch. Raises DeniedError, and what `jobs` raises.
        """
        found = submit_each(
            self._send_batch,
            jobs,
            key or mint_id(),
            is_ordered=in_order,
            in_flight=in_flight,
            linger_s=LINGER_S if key is None else None,
            on_progress=on_progress,
        )
        try:
            async for item in found:
                yield item
        finally:
            await found.aclose()

    async def _send_batch(self, body: Body, key: str) -> BatchResult:
        """One batch; again as a whole while the API is too busy for some of it, which makes no job twice."""
        latest: list[BatchResult] = []

        async def send() -> BatchResult:
            headers = {"idempotency-key": key}
            answer = await self._send("POST", "/v1/jobs/batch", body=body, headers=headers)
            result = decoded(answer, BatchResult)
            latest[:] = [result]
            busy = next((item.problem for item in result.items if item.status in _BUSY), None)
            if busy is not None:
                raise _NotYetError(busy.detail, busy)
            return result

        try:
            return await self._retried(_NotYetError, send)
        except _NotYetError:
            return latest[0]


class SyncBulkCalls(ABC):
    """The same for code without an event loop."""

    _client: BulkCalls

    @abstractmethod
    def _each(self, found: AsyncIterator[T]) -> Iterator[T]: ...

    @abstractmethod
    def _run(self, call: Coroutine[Any, Any, T]) -> T: ...

    def run(self, job: JobRequest, *, wait: int = 30, key: str | None = None) -> WholeExecution:
        """See `Client.run`."""
        return self._run(self._client.run(job, wait=wait, key=key))

    def submit_many(self, jobs: Sequence[JobRequest], *, key: str | None = None) -> BatchResult:
        """See `Client.submit_many`."""
        return self._run(self._client.submit_many(jobs, key=key))

    def submit_all(
        self,
        jobs: Iterable[JobRequest],
        *,
        key: str | None = None,
        in_order: bool = True,
        in_flight: int = IN_FLIGHT,
        on_progress: Callable[[Tally], None] | None = None,
    ) -> Iterator[Submitted]:
        """See `Client.submit_all`."""
        found = self._client.submit_all(
            jobs, key=key, in_order=in_order, in_flight=in_flight, on_progress=on_progress
        )
        return self._each(found)
