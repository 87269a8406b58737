"""The client: what it sends, what it repeats, and what its errors mean."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import msgspec
import pytest
from msgspec import Raw
from pydantic import SecretStr

from minutebook.client import (
    ApiError,
    Client,
    ClientSettings,
    Command,
    DeniedError,
    Job,
    JobRequest,
    NotFoundError,
    RefusedError,
    SyncClient,
    UnavailableError,
)
from minutebook.client.models import Counts, Execution, ExecutionPage, Problem

Handler = Callable[[httpx.Request], httpx.Response]
NOW = "2030-01-01T00:00:00.000Z"
JOB = Job(
    id="a",
    task="t",
    payload=Raw(b'{"n":1}'),
    queue="default",
    run_at=NOW,
    cron=None,
    zone="UTC",
    late="refuse",
    timeout="PT5M",
    status="active",
    version=1,
    next_at=NOW,
    created_at=NOW,
    executions=Counts(0, 0, 0, 0, 0),
)


def settings(retries_max: int = 3) -> ClientSettings:
    return ClientSettings(url="http://api", api_key=SecretStr("key"), retries_max=retries_max)


def client_of(handler: Handler, retries_max: int = 3) -> Client:
    return Client(settings(retries_max), transport=httpx.MockTransport(handler))


def answer(status: int, body: msgspec.Struct | None = None, **headers: str) -> httpx.Response:
    content = b"" if body is None else msgspec.json.encode(body)
    return httpx.Response(
        status, content=content, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def problem(status: int, code: str = "code") -> Problem:
    return Problem(type="/problems/x", title="Title", status=status, detail="detail", code=code, trace_id="")


async def test_submit_sends_key_and_payload_bytes() -> None:
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return answer(201, JOB)

    async with client_of(handle) as client:
        job = await client.submit(JobRequest(task="t", payload=Raw(b'{"x":  1}'), delay="PT1M"), key="k")
    assert isinstance(job, Job)
    assert bytes(job.payload) == b'{"n":1}'
    assert seen[0].content == b'{"task":"t","payload":{"x":  1},"delay":"PT1M"}'
    assert (seen[0].headers["idempotency-key"], seen[0].headers["authorization"]) == ("k", "Bearer key")


@pytest.mark.parametrize("fault", [429, 503, "connection"])
async def test_repeat_keeps_its_idempotency_key(fault: int | str) -> None:
    keys: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["idempotency-key"])
        if len(keys) < 3:
            if isinstance(fault, str):
                raise httpx.ConnectError("refused")
            return answer(fault, problem(fault), retry_after="0")
        return answer(201, JOB)

    async with client_of(handle) as client:
        await client.submit(JobRequest(task="t"))
    assert len(keys) == 3
    assert len(set(keys)) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ApiError), (401, DeniedError), (403, DeniedError), (404, NotFoundError), (409, RefusedError),
        (422, RefusedError), (500, ApiError),
    ],
)  # fmt: skip
async def test_refusal_is_not_repeated(status: int, kind: type[ApiError]) -> None:
    calls = 0

    def handle(request: httpx.Request) -> httpx.Response:
        nonlocal calls
        calls += 1
        return answer(status, problem(status, "some-code"))

    async with client_of(handle) as client:
        with pytest.raises(kind) as raised:
            await client.get("a")
    assert calls == 1
    assert type(raised.value) is kind
    assert raised.value.problem is not None
    assert raised.value.problem.code == "some-code"


async def test_retries_end() -> None:
    calls = 0

    def handle(request: httpx.Request) -> httpx.Response:
        nonlocal calls
        calls += 1
        return answer(503, problem(503), retry_after="0")

    async with client_of(handle, retries_max=2) as client:
        with pytest.raises(UnavailableError):
            await client.get("a")
    assert calls == 3


async def test_answer_of_a_stranger_is_an_error_too() -> None:
    async with client_of(lambda request: httpx.Response(404, text="<html>")) as client:
        with pytest.raises(NotFoundError, match="HTTP 404"):
            await client.get("a")


async def test_read_waits_for_what_was_written() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            assert request.headers["minutebook-after"] == "token"
            return answer(200, JOB)
        return answer(204, minutebook_position="token")

    async with client_of(handle) as client:
        assert await client.cancel("a") is None
        await client.get("a")


async def test_undecided_write_gives_its_command() -> None:
    command = Command(command_id="c", outcome=None, job_id="a")
    async with client_of(lambda request: answer(202, command)) as client:
        assert await client.submit(JobRequest(task="t")) == command
        assert await client.cancel("a") == command
        assert await client.run_now("a") == command


def page(request: httpx.Request) -> httpx.Response:
    number = int(request.url.params.get("cursor", "0"))
    item = Execution(execution_id=f"a:{number}", attempt=1, status="queued", scheduled_at=NOW, due_at=NOW)
    return answer(200, ExecutionPage([item], str(number + 1) if number < 2 else None))


async def test_history_reads_all_pages() -> None:
    async with client_of(page) as client:
        assert [item.execution_id async for item in client.executions("a")] == ["a:0", "a:1", "a:2"]


def test_sync_client_does_the_same() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        return page(request) if request.url.path.endswith("executions") else answer(200, JOB)

    with SyncClient(settings(), transport=httpx.MockTransport(handle)) as client:
        assert client.get("a").id == "a"
        assert [item.execution_id for item in client.executions("a")] == ["a:0", "a:1", "a:2"]
