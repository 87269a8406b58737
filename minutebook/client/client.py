"""Client of the HTTP API: one async core, and a thin sync facade over it.

An idempotency key is made once per call and kept over its retries, so that a repeat changes nothing. Reads carry a
consistency token of all writes so far: a client reads what it wrote, from whichever API process. Retried are 429, 503 and
connection faults alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from copy import copy
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar
from urllib.parse import quote

import httpx
import msgspec
from msgspec import UNSET, Raw, UnsetType
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from minutebook import tracing
from minutebook.client.access_calls import AccessCalls, SyncAccessCalls
from minutebook.client.answers import decided as _decided
from minutebook.client.answers import decoded as _decoded
from minutebook.client.answers import refusal as _refusal
from minutebook.client.bulk_calls import BulkCalls, SyncBulkCalls
from minutebook.client.calendars import Calendars, SyncCalendars
from minutebook.client.change_calls import ChangeCalls, SyncChangeCalls, job_path
from minutebook.client.dead_letter_models import DeadLetter, DeadLetterPage
from minutebook.client.errors import UnavailableError
from minutebook.client.fleet_calls import FleetCalls, SyncFleetCalls
from minutebook.client.history_calls import HistoryCalls, SyncHistoryCalls
from minutebook.client.limits import Limits, SyncLimits
from minutebook.client.list_calls import ListCalls, SyncListCalls
from minutebook.client.live_calls import LiveCalls, SyncLiveCalls
from minutebook.client.models import (
    Alert,
    AlertKind,
    AlertPage,
    Cause,
    Command,
    Execution,
    ExecutionPage,
    Job,
    JobRequest,
    Queue,
    QueuePage,
    QueueRequest,
    ReasonRequest,
    RedriveRequest,
    RunNow,
    WholeExecution,
)
from minutebook.client.operations import OperationCalls, SyncOperationCalls
from minutebook.client.positions import Seen
from minutebook.client.reasons import reason_headers
from minutebook.client.settings import ClientSettings
from minutebook.client.stepping import each
from minutebook.mint import mint_id

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_READING = ("GET", "PATCH")
"""What builds on what is there: it waits for what this client wrote last."""
_BACKOFF_MAX_S = 8.0
_PAGE = 1000
_WAIT_S_MAX = 30
_SILENT_MAX_S = 60.0
"""A stream says something every 15 s."""


class _Page(Protocol[T_co]):
    """A page of a list."""

    @property
    def items(self) -> Sequence[T_co]: ...

    @property
    def next_cursor(self) -> str | None: ...


class Client(
    BulkCalls, ChangeCalls, ListCalls, HistoryCalls, OperationCalls, FleetCalls, LiveCalls, AccessCalls
):
    """Async client. Use as a context manager, or `close` it.

    Every method raises DeniedError, NotFoundError, RefusedError, or UnavailableError once retries are used up, or the
    time that `within` gives.
    """

    def __init__(
        self, settings: ClientSettings | None = None, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._settings = settings or ClientSettings()
        headers = {"accept": "application/json", "user-agent": self._settings.user_agent}
        key = self._settings.key()
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        self._http = httpx.AsyncClient(
            base_url=self._settings.url,
            headers=headers,
            timeout=self._settings.timeout_s,
            transport=transport,
        )
        self._seen = Seen()
        self._deadline_s: float | None = None
        self._bind()

    def _bind(self) -> None:
        self.limits = Limits(self._send, self._items)
        """Limits of the tenant and of its jobs."""
        self.calendars = Calendars(self._send, self._items)
        """Calendars of the tenant."""

    def within(self, deadline_s: float) -> Self:
        """This client, each request of which ends after `deadline_s` with all its repeats: UnavailableError then.

        It has the same connections, and is not closed by itself. A write may have been done all the same: send it
        again with the same key. A list has a request for each page.
        """
        hurried = copy(self)
        hurried._deadline_s = deadline_s
        hurried._bind()
        return hurried

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def check_ready(self) -> None:
        """Raises UnavailableError with the reason where the API cannot answer now. Needs no key."""
        await self._send("GET", "/readyz")

    async def submit(self, job: JobRequest, *, key: str | None = None) -> Job | Command:
        """Create a job. `key`: idempotency key, made if absent. A Command comes back where the decision takes long."""
        headers = {"idempotency-key": key or mint_id()}
        answer = await self._send("POST", "/v1/jobs", body=job, headers=headers)
        return _decided(answer, Job)

    async def get(self, job_id: str) -> Job:
        """A job as it stands."""
        return _decoded(await self._send("GET", job_path(job_id)), Job)

    async def executions(self, job_id: str) -> AsyncIterator[Execution]:
        """All attempts of a job, by scheduled_at, then attempt."""
        async for item in self._items(job_path(job_id) + "/executions", ExecutionPage):
            yield item

    async def execution(self, execution_id: str, *, wait: int = 0) -> WholeExecution:
        """An execution with its attempts. `wait`: seconds to wait for its outcome, which may still be None then."""
        path = _execution_path(execution_id)
        while True:
            asked_s = min(max(wait, 0), _WAIT_S_MAX)
            answer = await self._send("GET", path, query={"wait": str(asked_s)} if asked_s else None)
            found = _decoded(answer, WholeExecution)
            wait -= asked_s
            if found.outcome is not None or wait <= 0:
                return found

    async def cancel_execution(
        self, execution_id: str, *, reason: str = "", key: str | None = None
    ) -> WholeExecution | Command:
        """No attempt of an execution after this; its job goes on. A repeat with the same `key` changes nothing."""
        headers = {"idempotency-key": key or mint_id()}
        path = _execution_path(execution_id) + "/cancel"
        answer = await self._send("POST", path, body=ReasonRequest(reason), headers=headers)
        return _decided(answer, WholeExecution)

    async def redrive(
        self,
        execution_id: str,
        *,
        payload: Raw | UnsetType = UNSET,
        reason: str = "",
        key: str | None = None,
    ) -> WholeExecution | Command:
        """Run a dead execution again, with another payload where one is given. A repeat with the same `key` runs once."""
        headers = {"idempotency-key": key or mint_id()}
        path = _execution_path(execution_id) + "/redrive"
        body = RedriveRequest(payload=payload, reason=reason)
        return _decided(await self._send("POST", path, body=body, headers=headers), WholeExecution)

    async def dead_letters(
        self,
        *,
        task: str | None = None,
        queue: str | None = None,
        error_type: str | None = None,
        cause: Cause | None = None,
    ) -> AsyncIterator[DeadLetter]:
        """Executions given up, and neither redriven nor discarded since, the earliest first; those that fit alone."""
        asked = {"task": task, "queue": queue, "error_type": error_type, "cause": cause}
        query = {name: value for name, value in asked.items() if value is not None}
        async for item in self._items("/v1/dead-letters", DeadLetterPage, query):
            yield item

    async def alerts(self, *, kind: AlertKind | None = None) -> AsyncIterator[Alert]:
        """The latest alerts, the newest first; only those of `kind` where one is given."""
        async for item in self._items("/v1/alerts", AlertPage, None if kind is None else {"kind": kind}):
            yield item

    async def run_now(self, job_id: str, *, reason: str = "", key: str | None = None) -> RunNow | Command:
        """One execution at once, beside the schedule; a repeat with the same `key` runs once."""
        headers = {"idempotency-key": key or mint_id(), **reason_headers(reason)}
        answer = await self._send("POST", job_path(job_id) + "/run-now", headers=headers)
        return _decided(answer, RunNow)

    async def declare_queue(self, queue: QueueRequest) -> Queue | Command:
        """Declare a queue, or change it; answered once every partition knows it."""
        answer = await self._send("POST", "/v1/queues", body=queue)
        return _decided(answer, Queue)

    async def queues(self) -> AsyncIterator[Queue]:
        """The queues that the caller may use, by name."""
        async for item in self._items("/v1/queues", QueuePage):
            yield item

    async def queue(self, name: str) -> Queue:
        """A queue that the caller may use."""
        return _decoded(await self._send("GET", f"/v1/queues/{quote(name, safe='')}"), Queue)

    async def pause_queue(self, name: str, *, reason: str = "") -> Queue | Command:
        """Grant nothing of a queue any more; answered once every partition knows it."""
        return await self._change_queue(name, "pause", reason)

    async def drain_queue(self, name: str, *, reason: str = "") -> Queue | Command:
        """Take no new job for a queue; answered once every partition knows it."""
        return await self._change_queue(name, "drain", reason)

    async def resume_queue(self, name: str, *, reason: str = "") -> Queue | Command:
        """Grant again what waits in a queue, and take jobs for it; answered once every partition knows it."""
        return await self._change_queue(name, "resume", reason)

    async def _change_queue(self, name: str, verb: str, reason: str) -> Queue | Command:
        path = f"/v1/queues/{quote(name, safe='')}/{verb}"
        return _decided(await self._send("POST", path, body=ReasonRequest(reason)), Queue)

    async def command(self, command_id: str) -> Command:
        """What became of a command."""
        return _decoded(await self._send("GET", f"/v1/commands/{quote(command_id, safe='')}"), Command)

    async def _items(
        self, path: str, kind: type[_Page[T]], query: dict[str, str] | None = None
    ) -> AsyncIterator[T]:
        """Items of a list, page after page."""
        asked = {"limit": str(_PAGE), **(query or {})}
        while True:
            page = _decoded(await self._send("GET", path, query=asked), kind)
            for item in page.items:
                yield item
            if page.next_cursor is None:
                return
            asked["cursor"] = page.next_cursor

    @asynccontextmanager
    async def _open(
        self, path: str, headers: dict[str, str], query: dict[str, str]
    ) -> AsyncIterator[AsyncIterator[str]]:
        """Lines of a stream."""
        timeout = httpx.Timeout(self._settings.timeout_s, read=_SILENT_MAX_S)
        try:
            async with self._http.stream(
                "GET", path, headers=headers, params=query, timeout=timeout
            ) as answer:
                if answer.is_error:
                    await answer.aread()
                    raise _refusal(answer)
                yield answer.aiter_lines()
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

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
        traceparent = tracing.current()
        if traceparent:
            sent["traceparent"] = traceparent
        content = None
        if body is not None:
            content = msgspec.json.encode(body)
            sent["content-type"] = "application/json"
        if method in _READING and self._seen.text is not None:
            sent["minutebook-after"] = self._seen.text
        try:
            async with asyncio.timeout(self._deadline_s):
                return await self._retried(UnavailableError, self._once, method, path, content, sent, query)
        except TimeoutError:
            raise UnavailableError(f"no answer within {self._deadline_s} s") from None

    async def _retried(
        self, again: type[UnavailableError], call: Callable[..., Coroutine[Any, Any, T]], *given: Any
    ) -> T:
        """What `call` answers to what is `given`; made again after each `again` that it raises, a bounded number of times."""
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(again),
            stop=stop_after_attempt(self._settings.retries_max + 1),
            wait=_wait_s,
            reraise=True,
        )
        answer: T = await retrying(call, *given)
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
            raise self._unreachable(error) from error
        if answer.is_error:
            raise _refusal(answer)
        position = answer.headers.get("minutebook-position")
        if position is not None:
            self._seen.add(position)
        return answer

    def _unreachable(self, error: httpx.TransportError) -> UnavailableError:
        return UnavailableError(f"{self._settings.url} cannot be reached: {error or type(error).__name__}")


def _wait_s(state: RetryCallState) -> float:
    """What the API asked for, else 0.25, 0.5, 1, … 8 s."""
    fault = state.outcome.exception() if state.outcome is not None else None
    asked = fault.retry_after_s if isinstance(fault, UnavailableError) else None
    backoff: float = min(0.25 * 2 ** (state.attempt_number - 1), _BACKOFF_MAX_S)
    return backoff if asked is None else asked


def _execution_path(execution_id: str) -> str:
    return f"/v1/executions/{quote(execution_id, safe='')}"


class SyncClient(
    SyncBulkCalls,
    SyncChangeCalls,
    SyncListCalls,
    SyncHistoryCalls,
    SyncOperationCalls,
    SyncFleetCalls,
    SyncLiveCalls,
    SyncAccessCalls,
):
    """`Client` for code without an event loop. Use as a context manager, or `close` it."""

    _client: Client

    def __init__(
        self, settings: ClientSettings | None = None, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._runner = asyncio.Runner()
        self._client = Client(settings, transport=transport)
        self._bind()

    def _bind(self) -> None:
        self.limits = SyncLimits(self._client.limits, self._runner)
        """See `Client.limits`."""
        self.calendars = SyncCalendars(self._client.calendars, self._runner)
        """See `Client.calendars`."""

    def within(self, deadline_s: float) -> Self:
        """See `Client.within`."""
        hurried = copy(self)
        hurried._client = self._client.within(deadline_s)
        hurried._bind()
        return hurried

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

    def check_ready(self) -> None:
        """See `Client.check_ready`."""
        self._run(self._client.check_ready())

    def submit(self, job: JobRequest, *, key: str | None = None) -> Job | Command:
        """See `Client.submit`."""
        return self._run(self._client.submit(job, key=key))

    def get(self, job_id: str) -> Job:
        """See `Client.get`."""
        return self._run(self._client.get(job_id))

    def executions(self, job_id: str) -> Iterator[Execution]:
        """See `Client.executions`."""
        return self._each(self._client.executions(job_id))

    def execution(self, execution_id: str, *, wait: int = 0) -> WholeExecution:
        """See `Client.execution`."""
        return self._run(self._client.execution(execution_id, wait=wait))

    def cancel_execution(
        self, execution_id: str, *, reason: str = "", key: str | None = None
    ) -> WholeExecution | Command:
        """See `Client.cancel_execution`."""
        return self._run(self._client.cancel_execution(execution_id, reason=reason, key=key))

    def redrive(
        self,
        execution_id: str,
        *,
        payload: Raw | UnsetType = UNSET,
        reason: str = "",
        key: str | None = None,
    ) -> WholeExecution | Command:
        """See `Client.redrive`."""
        return self._run(self._client.redrive(execution_id, payload=payload, reason=reason, key=key))

    def dead_letters(
        self,
        *,
        task: str | None = None,
        queue: str | None = None,
        error_type: str | None = None,
        cause: Cause | None = None,
    ) -> Iterator[DeadLetter]:
        """See `Client.dead_letters`."""
        found = self._client.dead_letters(task=task, queue=queue, error_type=error_type, cause=cause)
        return self._each(found)

    def alerts(self, *, kind: AlertKind | None = None) -> Iterator[Alert]:
        """See `Client.alerts`."""
        return self._each(self._client.alerts(kind=kind))

    def run_now(self, job_id: str, *, reason: str = "", key: str | None = None) -> RunNow | Command:
        """See `Client.run_now`."""
        return self._run(self._client.run_now(job_id, reason=reason, key=key))

    def declare_queue(self, queue: QueueRequest) -> Queue | Command:
        """See `Client.declare_queue`."""
        return self._run(self._client.declare_queue(queue))

    def queues(self) -> Iterator[Queue]:
        """See `Client.queues`."""
        return self._each(self._client.queues())

    def queue(self, name: str) -> Queue:
        """See `Client.queue`."""
        return self._run(self._client.queue(name))

    def pause_queue(self, name: str, *, reason: str = "") -> Queue | Command:
        """See `Client.pause_queue`."""
        return self._run(self._client.pause_queue(name, reason=reason))

    def drain_queue(self, name: str, *, reason: str = "") -> Queue | Command:
        """See `Client.drain_queue`."""
        return self._run(self._client.drain_queue(name, reason=reason))

    def resume_queue(self, name: str, *, reason: str = "") -> Queue | Command:
        """See `Client.resume_queue`."""
        return self._run(self._client.resume_queue(name, reason=reason))

    def command(self, command_id: str) -> Command:
        """See `Client.command`."""
        return self._run(self._client.command(command_id))

    def _each(self, found: AsyncIterator[T]) -> Iterator[T]:
        return each(self._runner, found)

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(call)
