"""Workers of this process against a real owner: what the log says is what the tasks did."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from prometheus_client.parser import text_string_to_metric_families

from minutebook import tracing
from minutebook.domain import events as facts
from minutebook.domain.commands import (
    CancelJob,
    DeclareQueue,
    PauseQueue,
    RedriveExecution,
    ResumeQueue,
    SubmitJob,
)
from minutebook.domain.policy import Policy
from minutebook.metrics import OWNERS, exported_by
from minutebook.mint import mint_id
from minutebook.worker import App, Cancel, Context, Drained, Fail, Retry, Snooze, Worker, WorkerSettings
from minutebook.worker.kafka import KafkaChannel
from tests.crash.joblog import JobLog
from tests.crash.ledger import Ledger
from tests.crash.stack import TENANT, Stack, job, now_ms
from tests.spans import collected, ids

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
GRANTS = (facts.ExecutionsDueGranted, facts.ExecutionsGranted)


@pytest.fixture(scope="module")
def stack(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One owner for all tests of this module."""
    made = Stack(broker.bootstrap_servers, tmp_path_factory.mktemp("owners"))
    owner = made.owner("o1")
    made.await_ready(owner)
    yield made
    assert Ledger(made.look()).complaints == []
    assert owner.is_running, made.story()
    made.close()


class Here:
    """A worker in this process."""

    def __init__(self, stack: Stack, app: App, **settings: Any) -> None:
        made = WorkerSettings(**({"name": "here", "grace_s": 10} | settings))
        self.worker = Worker(app, made, KafkaChannel(stack.kafka))
        self.task = asyncio.create_task(self.worker.run())

    async def leave(self) -> Drained:
        self.worker.drain()
        return await self.task


@asynccontextmanager
async def workers(stack: Stack, app: App, count: int = 1, **settings: Any) -> AsyncIterator[list[Here]]:
    async with AsyncExitStack() as exits:
        made = [Here(stack, app, **settings) for _ in range(count)]
        for one in made:
            exits.push_async_callback(one.leave)
        yield made


async def outcomes(stack: Stack, jobs: list[SubmitJob], within_s: float = 60) -> Counter[str]:
    """How the jobs' executions end, once all have."""
    names = [(TENANT, f"{one.job_id}:{one.run_at}") for one in jobs]

    def ends() -> Counter[str]:
        ledger = Ledger(stack.log)
        return Counter(ledger.outcome(name) if name in ledger.known() else "unknown" for name in names)

    done = {"succeeded", "dead", "cancelled", "skipped"}
    await asyncio.to_thread(stack.until, "all ended", lambda _: set(ends()) <= done, within_s)
    return ends()


def due(count: int, task: str, after_ms: int = 300, **fields: Any) -> list[SubmitJob]:
    at = now_ms() + after_ms
    return [job(task=task, run_at=at, **fields) for _ in range(count)]


async def test_each_job_runs_once_on_two_workers(stack: Stack) -> None:
    app, ran = App(), Counter[str]()

    @app.task("once")
    async def once(payload: object, ctx: Context) -> None:
        ran[ctx.execution_id] += 1

    async with workers(stack, app, 2, concurrency=50):
        jobs = due(1_000, "once")
        stack.submit(jobs)
        assert await outcomes(stack, jobs) == {"succeeded": 1_000}
    assert ran == {f"{one.job_id}:{one.run_at}": 1 for one in jobs}


async def test_long_tasks_are_shown_and_not_withdrawn(stack: Stack) -> None:
    app = App()

    @app.task("long")
    async def long(payload: object) -> None:
        await asyncio.sleep(4)

    async with workers(stack, app, concurrency=20):
        jobs = due(20, "long")
        stack.submit(jobs)
        assert await outcomes(stack, jobs) == {"succeeded": 20}
    mine = {f"{one.job_id}:{one.run_at}" for one in jobs}
    returned = [event for event in stack.log.events(facts.GrantsReturned) if event.reason == "withdrawn"]
    assert not [name for event in returned for name in event.executions if name in mine]


async def test_an_attempt_goes_on_where_the_last_one_stopped_and_its_result_is_kept(stack: Stack) -> None:
    app, starts = App(), list[int]()

    @app.task("copy")
    async def copy(rows: int, ctx: Context) -> dict[str, int]:
        first = ctx.last_progress or 0
        starts.append(first)
        for row in range(first, rows):
            ctx.progress(row / rows, f"row {row}", row)
            if row == 3 and ctx.attempt == 1:
                raise ConnectionError("the line is down")
        return {"rows": rows, "of": ctx.max_attempts}

    async with workers(stack, app):
        policy = Policy(max_attempts=3, first_ms=100, jitter=0.0, deadline_ms=60_000)
        jobs = due(1, "copy", payload=b"6", policy=policy)
        stack.submit(jobs)
        assert await outcomes(stack, jobs) == {"succeeded": 1}
    assert starts == [0, 3]
    results = [event.results for event in stack.log.events(facts.AttemptsSucceeded) if event.results]
    assert [b'{"rows":6,"of":3}'] in results


async def test_snoozed_cancelled_and_expired_executions_end_as_they_say(stack: Stack) -> None:
    app, snoozed = App(), list[int]()

    @app.task("patient")
    async def patient(payload: str, ctx: Context) -> Snooze | Cancel | None:
        if payload == "gone":
            return Cancel("no longer wanted")
        snoozed.append(ctx.attempt)
        return Snooze(after="200ms") if ctx.attempt < 3 else None

    async with workers(stack, app):
        later = due(1, "patient", payload=b'"busy"', policy=Policy(max_attempts=1))
        gone = due(1, "patient", payload=b'"gone"')
        unknown = due(1, "nobody-knows-it", policy=Policy(start_deadline_ms=1_000))
        stack.submit([*later, *gone, *unknown])
        assert await outcomes(stack, later) == {"succeeded": 1}
        assert await outcomes(stack, gone) == {"cancelled": 1}
        assert await outcomes(stack, unknown) == {"skipped": 1}
    assert snoozed == [1, 2, 3]


async def test_a_dead_execution_is_redriven_with_another_payload(stack: Stack) -> None:
    app, seen = App(), list[object]()

    @app.task("picky")
    async def picky(payload: str, ctx: Context) -> Fail | None:
        seen.append((payload, ctx.attempt))
        return None if payload == "right" else Fail("wrong")

    async with workers(stack, app):
        (one,) = jobs = due(1, "picky", payload=b'"left"')
        stack.submit(jobs)
        assert await outcomes(stack, jobs) == {"dead": 1}
        name = f"{one.job_id}:{one.run_at}"
        stack.send(
            RedriveExecution(
                tenant=TENANT,
                job_id=one.job_id,
                command_id=mint_id(),
                issued_at=now_ms(),
                execution=name,
                payload=b'"right"',
            )
        )
        await asyncio.to_thread(
            stack.until, "it succeeded", lambda log: Ledger(log).outcome((TENANT, name)) == "succeeded"
        )
    assert seen == [("left", 1), ("right", 2)]


async def test_nothing_of_a_paused_queue_runs_until_it_is_resumed(stack: Stack) -> None:
    app, name = App(), f"q-{mint_id()}"

    @app.task("quiet", queue=name)
    async def quiet(payload: object) -> None:
        return None

    def say(kind: Any) -> None:
        stack.send(kind(name=name, command_id=mint_id(), issued_at=now_ms()))

    def copies(log: JobLog, is_paused: bool) -> bool:
        facts_of_it = [event for event in log.events(facts.QueueCopied) if event.name == name]
        return sum(event.is_paused == is_paused for event in facts_of_it) >= stack.partitions

    say(DeclareQueue)
    await asyncio.to_thread(stack.until, "declared", lambda log: copies(log, False))
    say(PauseQueue)
    await asyncio.to_thread(stack.until, "paused", lambda log: copies(log, True))
    async with workers(stack, app):
        jobs = due(20, "quiet", queue=name)
        stack.submit(jobs)
        names = {f"{one.job_id}:{one.run_at}" for one in jobs}
        await asyncio.to_thread(
            stack.until,
            "all are queued",
            lambda log: (
                names <= {one for event in log.events(facts.ExecutionsQueued) for one in event.executions}
            ),
        )
        granted = [event for kind in GRANTS for event in stack.log.events(kind)]
        assert not names & {one for event in granted for one in event.executions}
        say(ResumeQueue)
        assert await outcomes(stack, jobs) == {"succeeded": 20}


async def test_outcomes_as_values_reach_the_log(stack: Stack) -> None:
    app = App()

    @app.task("moody")
    def moody(payload: str, ctx: Context) -> object:
        if payload == "fail":
            return Fail("never")
        return Retry(after="100ms", reason="once more") if ctx.attempt < 3 else None

    async with workers(stack, app):
        retried, refused = due(1, "moody", payload=b'"retry"'), due(1, "moody", payload=b'"fail"')
        stack.submit(retried + refused)
        assert await outcomes(stack, retried) == {"succeeded": 1}
        assert await outcomes(stack, refused) == {"dead": 1}
    failed = [
        e
        for e in stack.log.events(facts.AttemptFailed)
        if e.execution == f"{retried[0].job_id}:{retried[0].run_at}"
    ]
    assert [(e.attempt, e.error_type, e.message) for e in failed] == [
        (1, "Retry", "once more"),
        (2, "Retry", "once more"),
    ]


async def test_few_slots_serve_all_partitions(stack: Stack) -> None:
    app = App()

    @app.task("short")
    async def short(payload: object) -> None:
        await asyncio.sleep(0.02)

    async with workers(stack, app, 3, concurrency=2):
        jobs = due(300, "short")
        stack.submit(jobs)
        assert await outcomes(stack, jobs) == {"succeeded": 300}
    mine = {f"{one.job_id}:{one.run_at}" for one in jobs}
    back = [
        name for event in stack.log.events(facts.GrantsReturned) for name in event.executions if name in mine
    ]
    assert len(back) < 300


async def test_running_task_of_a_cancelled_job_stops(stack: Stack) -> None:
    app, entered, stopped = App(), asyncio.Event(), asyncio.Event()

    @app.task("endless")
    async def endless(payload: object) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with workers(stack, app):
        jobs = due(1, "endless")
        stack.submit(jobs)
        await entered.wait()
        stack.send(CancelJob(tenant=TENANT, job_id=jobs[0].job_id, command_id=mint_id(), issued_at=now_ms()))
        await stopped.wait()
        assert await outcomes(stack, jobs) == {"cancelled": 1}


async def test_leaving_worker_hands_its_tasks_to_another(stack: Stack) -> None:
    app, entered, release = App(), threading.Semaphore(0), asyncio.Event()

    @app.task("moved")
    async def moved(payload: object) -> None:
        entered.release()
        await release.wait()

    async with workers(stack, app, 1, concurrency=5, grace_s=0) as [first]:
        jobs = due(5, "moved")
        stack.submit(jobs)
        for _ in range(5):
            await asyncio.to_thread(entered.acquire)
        left = await first.leave()
        assert (left.drained, left.handed_back) == (0, 5)
        release.set()
        async with workers(stack, app, concurrency=5):
            assert await outcomes(stack, jobs) == {"succeeded": 5}


async def test_a_run_goes_on_in_the_trace_of_its_submission(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner's process has no provider: it hands the context on where the run is near."""
    app = App()

    @app.task("traced")
    async def traced(payload: None) -> None: ...

    with collected(monkeypatch) as spans:
        async with workers(stack, app):
            with trace.get_tracer("test").start_as_current_span("submit") as submitted:
                near = job(task="traced", run_at=now_ms() + 500, traceparent=tracing.current())
            stack.send(near)
            assert await outcomes(stack, [near]) == {"succeeded": 1}
        (run,) = spans.named("run traced")
    assert run.parent is not None
    assert ids(run.parent) == ids(submitted.get_span_context())


async def test_the_owner_exports_every_metric_and_counted_what_ran(stack: Stack) -> None:
    app = App()

    @app.task("counted")
    async def counted(payload: None) -> None: ...

    jobs = [job(task="counted", run_at=now_ms() + 500) for _ in range(10)]
    async with workers(stack, app):
        stack.submit(jobs)
        assert await outcomes(stack, jobs) == {"succeeded": 10}
    (owner,) = stack.processes
    text = httpx.get(f"http://127.0.0.1:{owner.health_port}/metrics", trust_env=False).text
    exported = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert exported == {row.name for row in exported_by(OWNERS)}
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    ended = ("queue", "default"), ("status", "succeeded"), ("task", "counted")
    assert found["minutebook_attempts_finished_total", *ended] == 10
    assert found["minutebook_due_lateness_seconds_count", ("queue", "default")] >= 10
    assert found["minutebook_partition_lag_records", ("partition", "0"), ("topic", "job-commands")] == 0
    assert found["minutebook_store_size_bytes", ("partition", "0")] > 0
    assert found["minutebook_rebalances_total",] >= 1
