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
    BackfillDryRun,
    Client,
    ClientSettings,
    Command,
    DeadLetterFilter,
    DeniedError,
    DryRun,
    Job,
    JobChange,
    JobRequest,
    JobVersion,
    NotFoundError,
    RefusedError,
    RetryChange,
    StaleVersionError,
    SyncClient,
    UnavailableError,
)
from minutebook.client.change_models import JobVersionPage
from minutebook.client.dead_letter_models import DeadLetterPage
from minutebook.client.list_models import DueSoon, ExecutionsPage, JobPage, Lateness, Overview
from minutebook.client.models import (
    AlertPage,
    Counts,
    Execution,
    ExecutionPage,
    Outcome,
    Problem,
    Queue,
    QueuePage,
    WholeExecution,
)
from minutebook.client.operation_models import Operation, OperationFilter, OperationPage, OperationProgress

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

OVERVIEW = Overview({"active": 1}, {"running": 2}, DueSoon(0, 1, 2), Lateness(1, None, 3_600), [0] * 60, NOW)


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


async def test_a_change_names_the_version_that_was_read() -> None:
    """Given the job; given its id alone, it holds for any version. A key is kept over repeats."""
    asked: list[tuple[str, str, str | None, bytes]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        assert request.headers["idempotency-key"]
        match = request.headers.get("if-match")
        asked.append((request.method, request.url.path, match, request.content))
        return answer(200, JOB)

    change = JobChange(cron="0 7 * * *", retry=RetryChange(max_attempts=5), deadline=None)
    async with client_of(handle) as client:
        assert await client.edit(JOB, change) == JOB
        assert await client.edit("a", JobChange(priority=5)) == JOB
        assert await client.put(JOB, JobRequest(task="t")) == JOB
        assert await client.pause(JOB, reason="why") == JOB
        assert await client.resume(JOB, catch_up=True) == JOB
        assert await client.cancel(JOB) is None
    edited = b'{"cron":"0 7 * * *","retry":{"max_attempts":5},"deadline":null}'
    assert asked == [
        ("PATCH", "/v1/jobs/a", '"1"', edited),
        ("PATCH", "/v1/jobs/a", None, b'{"priority":5}'),
        ("PUT", "/v1/jobs/a", '"1"', b'{"task":"t"}'),
        ("POST", "/v1/jobs/a/pause", '"1"', b'{"reason":"why"}'),
        ("POST", "/v1/jobs/a/resume", '"1"', b'{"catch_up":true}'),
        ("POST", "/v1/jobs/a/cancel", '"1"', b"{}"),
    ]


async def test_a_version_that_is_no_more_is_an_error_of_its_own() -> None:
    problem = Problem(
        type="/problems/stale-version", title="T", status=412, detail="d", code="stale-version", trace_id="x"
    )
    async with client_of(lambda request: answer(412, problem)) as client:
        with pytest.raises(StaleVersionError):
            await client.pause(JOB)


def test_changes_work_without_an_event_loop_too() -> None:
    pages = JobVersionPage(
        [JobVersion(version=1, changed_at=NOW, reason="", body=JobRequest(task="t"))], None
    )

    def handle(request: httpx.Request) -> httpx.Response:
        return answer(200, pages if request.url.path.endswith("versions") else JOB)

    settings = ClientSettings(url="http://api", retries_max=0)
    with SyncClient(settings, transport=httpx.MockTransport(handle)) as client:
        assert client.edit(JOB, JobChange()) == client.put("a", JobRequest(task="t")) == JOB
        assert client.pause("a") == client.resume("a") == JOB
        assert client.purge("a", reason="asked to") is None
        assert client.cancel("a") is None
        assert [item.version for item in client.versions("a")] == [1]


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


async def test_wait_goes_on_in_pieces_until_the_outcome() -> None:
    asked: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.params.get("wait", ""))
        return answer(200, whole("succeeded" if len(asked) == 3 else None))

    async with client_of(handle) as client:
        assert (await client.execution("a:1", wait=100)).outcome == "succeeded"
        assert asked == ["30", "30", "30"]
        asked.clear()
        assert (await client.execution("a:1", wait=40)).outcome is None
        assert asked == ["30", "10"]
        asked.clear()
        assert (await client.execution("a:1")).outcome is None
        assert asked == [""]


def whole(outcome: Outcome | None) -> WholeExecution:
    attempt = Execution(execution_id="a:1", attempt=1, status="queued", scheduled_at=NOW, due_at=NOW)
    return WholeExecution(
        execution_id="a:1",
        job_id="a",
        status="queued",
        outcome=outcome,
        generation=0,
        scheduled_at=NOW,
        attempts=[attempt],
    )


async def test_actions_send_what_is_given_and_a_key() -> None:
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return answer(200, Queue("q", 1, []) if "queues" in request.url.path else whole(None))

    async with client_of(handle) as client:
        await client.redrive("a:1", payload=Raw(b'{"n":  2}'), reason="typo", key="k")
        await client.redrive("a:1")
        await client.cancel_execution("a:1", reason="by hand")
        await client.pause_queue("q", reason="night")
        await client.drain_queue("q")
        await client.resume_queue("q")
    assert [(request.url.path, request.content) for request in seen] == [
        ("/v1/executions/a:1/redrive", b'{"payload":{"n":  2},"reason":"typo"}'),
        ("/v1/executions/a:1/redrive", b"{}"),
        ("/v1/executions/a:1/cancel", b'{"reason":"by hand"}'),
        ("/v1/queues/q/pause", b'{"reason":"night"}'),
        ("/v1/queues/q/drain", b"{}"),
        ("/v1/queues/q/resume", b"{}"),
    ]
    keys = [request.headers["idempotency-key"] for request in seen[:3]]
    assert (keys[0], len(set(keys))) == ("k", 3)


async def test_dead_letters_keep_their_filter_over_pages() -> None:
    asked: list[dict[str, str]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(dict(request.url.params))
        return answer(200, DeadLetterPage([], None if "cursor" in request.url.params else "next"))

    async with client_of(handle) as client:
        assert [item async for item in client.dead_letters(task="t", cause="losses")] == []
    wanted = {"task": "t", "cause": "losses", "limit": "1000"}
    assert asked == [wanted, wanted | {"cursor": "next"}]


async def test_lists_keep_their_filter_over_pages() -> None:
    asked: list[tuple[str, dict[str, str]]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append((request.url.path, dict(request.url.params)))
        cursor = None if "cursor" in request.url.params else "next"
        is_jobs = request.url.path == "/v1/jobs"
        return answer(200, JobPage([JOB], cursor) if is_jobs else ExecutionsPage([], cursor))

    async with client_of(handle) as client:
        found = [item.id async for item in client.jobs(tag="x", created_from=NOW, order="created")]
        assert [item async for item in client.all_executions(error_type="E", scheduled_until=NOW)] == []
        assert [item.id async for item in client.jobs(due_from=NOW, due_until=NOW, limit=1)] == ["a"]
    assert found == ["a", "a"]
    jobs = {"tag": "x", "from": NOW, "order": "created", "limit": "1000"}
    executions = {"error_type": "E", "until": NOW, "limit": "1000"}
    assert asked == [
        ("/v1/jobs", jobs),
        ("/v1/jobs", jobs | {"cursor": "next"}),
        ("/v1/executions", executions),
        ("/v1/executions", executions | {"cursor": "next"}),
        ("/v1/jobs", {"due_from": NOW, "due_until": NOW, "limit": "1"}),
    ]


async def test_alerts_keep_their_kind_over_pages() -> None:
    asked: list[dict[str, str]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(dict(request.url.params))
        return answer(200, AlertPage([], None if "cursor" in request.url.params else "next"))

    async with client_of(handle) as client:
        assert [item async for item in client.alerts(kind="task_unknown")] == []
    wanted = {"kind": "task_unknown", "limit": "1000"}
    assert asked == [wanted, wanted | {"cursor": "next"}]


@pytest.mark.parametrize("result", [b"null", b'{"sent" : 1.0}', b"[1]", b'"text"', b"0"])
async def test_result_comes_byte_for_byte(result: bytes) -> None:
    found = whole("succeeded")
    found.attempts[0].result = Raw(result)
    async with client_of(lambda request: answer(200, found)) as client:
        (attempt,) = (await client.execution("a:1")).attempts
    assert bytes(attempt.result) == result
    assert bytes(whole(None).attempts[0].result) == b"null"


def test_sync_client_does_the_same() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/queues":
            return answer(200, QueuePage([Queue("q", 1, [], paused=True)], None))
        if request.url.path == "/v1/overview":
            return answer(200, OVERVIEW)
        if request.url.path == "/v1/jobs":
            return answer(200, JobPage([JOB], None))
        if request.url.path == "/v1/executions":
            return answer(200, ExecutionsPage([], None))
        if request.url.path == "/v1/alerts":
            return answer(200, AlertPage([], None))
        if request.url.path == "/v1/dead-letters":
            return answer(200, DeadLetterPage([], None))
        if "/v1/executions/" in request.url.path:
            return answer(200, whole("dead"))
        return page(request) if request.url.path.endswith("executions") else answer(200, JOB)

    with SyncClient(settings(), transport=httpx.MockTransport(handle)) as client:
        assert client.get("a").id == "a"
        assert [item.execution_id for item in client.executions("a")] == ["a:0", "a:1", "a:2"]
        assert [item.paused for item in client.queues()] == [True]
        assert list(client.dead_letters(queue="q")) == []
        assert list(client.alerts()) == []
        assert [job.id for job in client.jobs(status="active")] == ["a"]
        assert list(client.all_executions(job_id="a")) == []
        assert client.overview() == OVERVIEW
        assert client.execution("a:1", wait=1) == client.redrive("a:1") == client.cancel_execution("a:1")


OPERATION = Operation(
    id="op",
    kind="redrive",
    state="running",
    filter=OperationFilter(task="t"),
    rate_per_s=None,
    reason="",
    actor="",
    progress=OperationProgress(matched=None, done=0, refused=0, left=None),
)

FILLED = BackfillDryRun(matched=2, would_run=0, refused=2, first_at=None, last_at=None, reasons=[])
WEEK = ("2026-06-01T00:00:00Z", "2026-06-08T00:00:00Z")


def operations(seen: list[httpx.Request]) -> Handler:
    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        if b"dry_run" in request.content and "backfill" in request.url.path:
            return answer(200, FILLED)
        if b"dry_run" in request.content:
            return answer(200, DryRun(matched=0, complete=True, reasons=[]))
        if request.url.path == "/v1/operations":
            return answer(200, OperationPage([OPERATION], None))
        if b"late" in request.content:
            return answer(202, Command(command_id="c", outcome=None))
        return answer(200 if "cancel" in request.url.path else 202, OPERATION)

    return handle


async def test_calls_on_operations_say_what_is_meant() -> None:
    seen: list[httpx.Request] = []
    wanted = DeadLetterFilter(task="t", given_up_from="2030-01-01T00:00:00Z")
    async with client_of(operations(seen)) as client:
        assert (await client.count_dead_letters(wanted)).matched == 0
        assert await client.redrive_many(wanted, rate_per_s=5, reason="fixed", key="k") == OPERATION
        await client.redrive_many(DeadLetterFilter())
        assert await client.operation("a/b", wait=40) == OPERATION
        assert [item async for item in client.operations()] == [OPERATION]
        assert await client.cancel_operation("op", reason="down") == OPERATION
        assert isinstance(await client.cancel_operation("op", reason="late"), Command)
    shown = '"filter":{"task":"t","given_up_from":"2030-01-01T00:00:00Z"}'
    assert [(request.url.raw_path.decode(), request.content.decode()) for request in seen] == [
        ("/v1/dead-letters/redrive", f'{{{shown},"dry_run":true}}'),
        ("/v1/dead-letters/redrive", f'{{{shown},"rate_per_s":5,"reason":"fixed"}}'),
        ("/v1/dead-letters/redrive", '{"filter":{}}'),
        ("/v1/operations/a%2Fb?wait=30", ""),
        ("/v1/operations?limit=1000", ""),
        ("/v1/operations/op/cancel", '{"reason":"down"}'),
        ("/v1/operations/op/cancel", '{"reason":"late"}'),
    ]
    keys = [request.headers.get("idempotency-key") for request in seen]
    assert (keys[0], keys[1]) == (None, "k")
    assert len({keys[2], keys[5], keys[6]} - {None}) == 3


async def test_calls_on_backfills_say_what_is_meant() -> None:
    seen: list[httpx.Request] = []
    async with client_of(operations(seen)) as client:
        assert await client.count_backfill("a/b", *WEEK) == FILLED
        assert await client.backfill("a", *WEEK, rate_per_s=5, reason="paused", key="k") == OPERATION
        await client.backfill("a", *WEEK)
    shown = f'"from":"{WEEK[0]}","until":"{WEEK[1]}"'
    assert [(request.url.raw_path.decode(), request.content.decode()) for request in seen] == [
        ("/v1/jobs/a%2Fb/backfill", f'{{{shown},"dry_run":true}}'),
        ("/v1/jobs/a/backfill", f'{{{shown},"rate_per_s":5,"reason":"paused"}}'),
        ("/v1/jobs/a/backfill", f"{{{shown}}}"),
    ]
    keys = [request.headers.get("idempotency-key") for request in seen]
    assert (keys[0], keys[1]) == (None, "k")
    assert keys[2]


def test_sync_calls_on_operations_do_the_same() -> None:
    with SyncClient(settings(), transport=httpx.MockTransport(operations([]))) as client:
        assert client.count_backfill("a", *WEEK) == FILLED
        assert client.backfill("a", *WEEK) == OPERATION
        assert client.count_dead_letters(DeadLetterFilter()).complete
        assert client.redrive_many(DeadLetterFilter()) == OPERATION
        assert client.operation("op", wait=1) == OPERATION
        assert list(client.operations()) == [OPERATION]
        assert client.cancel_operation("op") == OPERATION
