"""Client of the HTTP API: one async core, and a thin sync facade over it.

An idempotency key is made once per call and kept over its retries, so that a repeat changes nothing. Reads carry the
consistency token of the last write: a client reads what it wrote. Retried are 429, 503 and connection faults alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from minutebook.client.errors import ApiError, UnavailableError, error_of
from minutebook.client.mint import mint_id
from minutebook.client.models import (
    BatchRequest,
    BatchResult,
    Command,
    Execution,
    ExecutionPage,
    Job,
    JobRequest,
    Problem,
    Queue,
    QueueRequest,
    RunNow,
)
from minutebook.client.settings import ClientSettings

T = TypeVar("T")

_BACKOFF_MAX_S = 8.0
_PAGE = 1000


class Client:
    """Async client. Use as a context manager, or `close` it.

    Every method raises DeniedError, NotFoundError, RefusedError, or UnavailableError once retries are used up.
    """

    def __init__(
        self, settings: ClientSettings | None = None, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._settings = settings or ClientSettings()
        headers = {"accept": "application/json"}
        key = self._settings.key()
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        self._http = httpx.AsyncClient(
            base_url=self._settings.url,
            headers=headers,
            timeout=self._settings.timeout_s,
            transport=transport,
        )
        self._position: str | None = None

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def submit(self, job: JobRequest, *, key: str | None = None) -> Job | Command:
        """Create a job. `key`: idempotency key, made if absent. A Command comes back where the decision takes long."""
        headers = {"idempotency-key": key or mint_id()}
        answer = await self._send("POST", "/v1/jobs", body=job, headers=headers)
        return _decided(answer, Job)

    async def submit_many(self, jobs: Sequence[JobRequest], *, key: str | None = None) -> BatchResult:
        """Create up to 500 jobs; job n has the idempotency key `<key>/<n>`. Each may be refused alone."""
        headers = {"idempotency-key": key or mint_id()}
        body = BatchRequest(list(jobs))
        return _decoded(await self._send("POST", "/v1/jobs/batch", body=body, headers=headers), BatchResult)

    async def get(self, job_id: str) -> Job:
        """A job as it stands."""
        return _decoded(await self._send("GET", _job_path(job_id)), Job)

    async def executions(self, job_id: str) -> AsyncIterator[Execution]:
        """All attempts of a job, by scheduled_at, then attempt."""
        cursor: str | None = None
        while True:
            query = {"limit": str(_PAGE)} | ({"cursor": cursor} if cursor else {})
            answer = await self._send("GET", _job_path(job_id) + "/executions", query=query)
            page = _decoded(answer, ExecutionPage)
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if cursor is None:
                return

    async def cancel(self, job_id: str) -> Command | None:
        """Cancel a job: no instant and no attempt after this. None = done; a Command where it takes long."""
        answer = await self._send("DELETE", _job_path(job_id))
        return _decoded(answer, Command) if answer.status_code == 202 else None

    async def run_now(self, job_id: str, *, key: str | None = None) -> RunNow | Command:
        """One execution at once, beside the schedule; a repeat with the same `key` runs once."""
        headers = {"idempotency-key": key or mint_id()}
        answer = await self._send("POST", _job_path(job_id) + "/run-now", headers=headers)
        return _decided(answer, RunNow)

    async def declare_queue(self, queue: QueueRequest) -> Queue | Command:
        """Declare a queue, or change it; answered once every partition knows it."""
        answer = await self._send("POST", "/v1/queues", body=queue)
        return _decided(answer, Queue)

    async def command(self, command_id: str) -> Command:
        """What became of a command."""
        return _decoded(await self._send("GET", f"/v1/commands/{quote(command_id, safe='')}"), Command)

    async def _send(
        self,
        method: str,
        path: str,
        *,
        body: msgspec.Struct | None = None,
        headers: dict[str, str] | None = None,
        query: dict[str, str] | None = None,
    ) -> httpx.Response:
        sent = dict(headers or {})
        content = None
        if body is not None:
            content = msgspec.json.encode(body)
            sent["content-type"] = "application/json"
        if method == "GET" and self._position is not None:
            sent["minutebook-after"] = self._position
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(UnavailableError),
            stop=stop_after_attempt(self._settings.retries_max + 1),
            wait=_wait_s,
            reraise=True,
        )
        answer: httpx.Response = await retrying(self._once, method, path, content, sent, query)
        return answer

    async def _once(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: dict[str, str],
        query: dict[str, str] | None,
    ) -> httpx.Response:
        try:
            answer = await self._http.request(method, path, content=content, headers=headers, params=query)
        except httpx.TransportError as error:
            raise UnavailableError(
                f"{self._settings.url} cannot be reached: {error or type(error).__name__}"
            ) from error
        if answer.is_error:
            raise _refusal(answer)
        self._position = answer.headers.get("minutebook-position", self._position)
        return answer


def _wait_s(state: RetryCallState) -> float:
    """What the API asked for, else 0.25, 0.5, 1, … 8 s."""
    fault = state.outcome.exception() if state.outcome is not None else None
    asked = fault.retry_after_s if isinstance(fault, UnavailableError) else None
    backoff: float = min(0.25 * 2 ** (state.attempt_number - 1), _BACKOFF_MAX_S)
    return backoff if asked is None else asked


def _refusal(answer: httpx.Response) -> ApiError:
    try:
        problem = msgspec.json.decode(answer.content, type=Problem)
    except msgspec.DecodeError:
        # Not our API's answer: a proxy in between, or another server at this address.
        title = f"HTTP {answer.status_code}"
        problem = Problem(
            type="about:blank",
            title=title,
            status=answer.status_code,
            detail="no problem details came with it",
            code="foreign",
            trace_id="",
        )
    after = answer.headers.get("retry-after", "")
    return error_of(problem, float(after) if after.isdecimal() else None)


def _decoded(answer: httpx.Response, kind: type[T]) -> T:
    return msgspec.json.decode(answer.content, type=kind)


def _decided(answer: httpx.Response, kind: type[T]) -> T | Command:
    """A result, or the command where it was not decided in time."""
    return _decoded(answer, Command) if answer.status_code == 202 else _decoded(answer, kind)


def _job_path(job_id: str) -> str:
    return f"/v1/jobs/{quote(job_id, safe='')}"


class SyncClient:
    """`Client` for code without an event loop. Use as a context manager, or `close` it."""

    def __init__(
        self, settings: ClientSettings | None = None, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._runner = asyncio.Runner()
        self._client = Client(settings, transport=transport)

    def __enter__(self) -> SyncClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._runner.run(self._client.close())
        self._runner.close()

    def submit(self, job: JobRequest, *, key: str | None = None) -> Job | Command:
        """See `Client.submit`."""
        return self._run(self._client.submit(job, key=key))

    def submit_many(self, jobs: Sequence[JobRequest], *, key: str | None = None) -> BatchResult:
        """See `Client.submit_many`."""
        return self._run(self._client.submit_many(jobs, key=key))

    def get(self, job_id: str) -> Job:
        """See `Client.get`."""
        return self._run(self._client.get(job_id))

    def executions(self, job_id: str) -> Iterator[Execution]:
        """See `Client.executions`."""
        found = self._client.executions(job_id)
        while True:
            try:
                yield self._run(_next(found))
            except StopAsyncIteration:
                return

    def cancel(self, job_id: str) -> Command | None:
        """See `Client.cancel`."""
        return self._run(self._client.cancel(job_id))

    def run_now(self, job_id: str, *, key: str | None = None) -> RunNow | Command:
        """See `Client.run_now`."""
        return self._run(self._client.run_now(job_id, key=key))

    def declare_queue(self, queue: QueueRequest) -> Queue | Command:
        """See `Client.declare_queue`."""
        return self._run(self._client.declare_queue(queue))

    def command(self, command_id: str) -> Command:
        """See `Client.command`."""
        return self._run(self._client.command(command_id))

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(call)


async def _next(found: AsyncIterator[T]) -> T:
    return await anext(found)
