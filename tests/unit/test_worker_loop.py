"""The whole SDK without a broker: grants in, reports out, on a memory channel."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
import pytest
import structlog

from minutebook.domain.commands import DeclareTask
from minutebook.domain.records import Inbox
from minutebook.worker import App, Cancel, Context, Drained, Fail, Retry, Snooze, Worker, WorkerSettings
from tests.unit.worker_owner import OwnerDouble, Queued, columns


class Running:
    """A worker under test with its owner."""

    def __init__(self, app: App, owner: OwnerDouble, settings: WorkerSettings) -> None:
        self.owner = owner
        self.worker = Worker(app, settings, owner.channel)
        self.task = asyncio.create_task(self.worker.run())

    async def leave(self) -> Drained:
        self.worker.drain()
        return await self.task


@asynccontextmanager
async def working(
    app: App, partitions: int = 2, *, is_forbidden: bool = False, **settings: object
) -> AsyncIterator[Running]:
    """A worker that has pulsed to all partitions; made to leave at once at the end."""
    owner = OwnerDouble(partitions)
    owner.channel.is_forbidden = is_forbidden
    running = Running(
        app, owner, WorkerSettings.model_construct(**({"name": "w", "grace_s": 5.0} | settings))
    )
    await owner.ready()
    try:
        yield running
    finally:
        running.worker.drain()
        running.worker.drain()
        await asyncio.wait([running.task])


@dataclass
class Letter:
    to: str


def app_of(**functions: object) -> App:
    app = App()
    for name, function in functions.items():
        app.task(name)(function)
    return app


# -- what is declared


async def test_tasks_are_declared_with_their_types() -> None:
    async def send(payload: Letter) -> None:
        """Typed."""

    async def note(payload: object) -> None:
        """Takes anything."""

    async with working(app_of(send=send, note=note)) as running:
        await running.owner.until(lambda: len(running.owner.channel.commands) == 2)
    (first_key, first), (second_key, second) = running.owner.channel.commands
    assert isinstance(first, DeclareTask)
    assert isinstance(second, DeclareTask)
    assert (first_key, second_key) == ("task::send", "task::note")
    assert (first.name, first.actor) == ("send", "worker:w")
    assert msgspec.json.decode(first.payload_schema)["$defs"]["Letter"]["required"] == ["to"]
    assert second.payload_schema == ""
    assert first.command_id != second.command_id


async def test_worker_that_may_not_declare_runs_all_the_same() -> None:
    async def send(payload: Letter) -> None:
        """Typed."""

    with structlog.testing.capture_logs() as logs:
        async with working(app_of(send=send), is_forbidden=True) as running:
            running.owner.queue("j:1", "send", b'{"to":"ada"}')
            await running.owner.until(lambda: "j:1" in running.owner.succeeded)
    assert running.owner.channel.commands == []
    assert [entry["remedy"] for entry in logs if entry["event"] == "tasks_not_declared"] == [
        "allow this worker to write job-commands"
    ]


# -- outcomes


async def test_success_is_reported_with_its_token() -> None:
    seen = []

    async def send(payload: Letter, ctx: Context) -> str:
        seen.append((payload.to, ctx.execution_id, ctx.job_id, ctx.tenant, ctx.attempt, ctx.queue, ctx.task))
        return "done"

    async with working(app_of(send=send)) as running:
        running.owner.queue("j:1", "send", b'{"to":"ada"}')
        await running.owner.until(lambda: "j:1" in running.owner.succeeded)
        assert running.owner.succeeded["j:1"] == running.owner.granted["j:1"]
    assert seen == [("ada", "j:1", "j", "acme", 1, "default", "send")]


async def test_context_has_aware_instants_and_a_deadline() -> None:
    seen: list[Context] = []

    async def note(payload: object, ctx: Context) -> None:
        seen.append(ctx)

    async with working(app_of(note=note)) as running:
        running.owner.queue("j:1", "note", timeout_ms=60_000)
        await running.owner.until(lambda: "j:1" in running.owner.succeeded)
    ctx = seen[0]
    assert ctx.scheduled_at == ctx.due_at
    assert ctx.due_at.tzinfo is UTC
    assert 0 < (ctx.deadline - datetime.now(UTC)).total_seconds() <= 60
    assert (ctx.cancel_requested, ctx.token) == (False, running.owner.granted["j:1"])


async def test_exception_is_a_retryable_failure_with_escaped_text() -> None:
    async def explode(payload: object) -> None:
        await asyncio.sleep(0)
        raise LookupError("red \x1b[31m alert\n")

    async with working(app_of(explode=explode)) as running:
        running.owner.queue("j:1", "explode")
        await running.owner.until(lambda: "j:1" in running.owner.failed)
    failed = running.owner.failed["j:1"]
    assert (failed.error_type, failed.message) == ("LookupError", "red \\x1b[31m alert\\n")
    assert (failed.is_permanent, failed.retry_after_ms) == (False, None)


@pytest.mark.parametrize("executor", ["async", "thread"])
async def test_retry_and_fail_are_values(executor: str) -> None:
    app = App()
    app.task("later", executor=executor)(lambda payload: Retry(after="30s", reason="429"))
    app.task("never", executor=executor)(lambda payload: Fail("gone"))
    async with working(app) as running:
        running.owner.queue("j:1", "later")
        running.owner.queue("j:2", "never")
        await running.owner.until(lambda: len(running.owner.failed) == 2)
    later, never = running.owner.failed["j:1"], running.owner.failed["j:2"]
    assert (later.error_type, later.message, later.is_permanent, later.retry_after_ms) == (
        "Retry",
        "429",
        False,
        30_000,
    )
    assert (never.error_type, never.message, never.is_permanent) == ("Fail", "gone", True)


@pytest.mark.parametrize("executor", ["async", "thread"])
async def test_snooze_cancel_and_results_are_values(executor: str) -> None:
    app = App()
    app.task("later", executor=executor)(lambda payload: Snooze(after="30s", reason="429"))
    app.task("never", executor=executor)(lambda payload: Cancel("gone"))
    app.task("told", executor=executor)(lambda payload: {"sent": 3})
    async with working(app) as running:
        for number, task in enumerate(("later", "never", "told"), 1):
            running.owner.queue(f"j:{number}", task)
        await running.owner.until(
            lambda: bool(running.owner.snoozed and running.owner.cancelled and running.owner.succeeded)
        )
    snoozed = running.owner.snoozed["j:1"]
    assert (snoozed.after_ms, snoozed.until_at, snoozed.reason) == (30_000, None, "429")
    assert running.owner.cancelled["j:2"].reason == "gone"
    assert running.owner.results["j:3"] == b'{"sent":3}'
    assert running.owner.failed == {}


@pytest.mark.parametrize("on_thread", [False, True])
async def test_progress_goes_out_while_the_task_runs(on_thread: bool) -> None:
    is_heard = threading.Event()

    def crunch(payload: object, ctx: Context) -> None:
        for step in range(1_000):
            ctx.progress(step / 2_000, f"step {step}", {"step": step})
        is_heard.wait()

    async def crunch_async(payload: object, ctx: Context) -> None:
        ctx.progress(0.4995, "step 999", {"step": 999})
        while not is_heard.is_set():
            await asyncio.sleep(0.01)

    async with working(app_of(crunch=crunch if on_thread else crunch_async)) as running:
        running.owner.queue("j:1", "crunch")
        await running.owner.until(lambda: bool(running.owner.progress["j:1"]))
        is_heard.set()
        await running.owner.until(lambda: "j:1" in running.owner.succeeded)
    heard = running.owner.progress["j:1"]
    assert len(heard) < 5, "the latest goes out, not each"
    last = heard[-1]
    assert last.details == msgspec.json.encode({"step": round(last.fraction * 2_000)})
    assert last.token == running.owner.granted["j:1"]


async def test_what_an_attempt_noted_last_goes_out_before_its_failure() -> None:
    async def stumble(payload: object, ctx: Context) -> None:
        ctx.progress(0.1, "", {"row": 1})
        await asyncio.sleep(0)
        ctx.progress(0.2, "", {"row": 2})
        raise LookupError

    async with working(app_of(stumble=stumble)) as running:
        running.owner.queue("j:1", "stumble")
        await running.owner.until(lambda: "j:1" in running.owner.failed)
    assert running.owner.progress["j:1"][-1].details == b'{"row":2}'


async def test_a_context_brings_what_the_last_attempt_noted() -> None:
    seen: list[object] = []

    async def resume(payload: object, ctx: Context) -> None:
        seen.append(ctx.last_progress)

    async with working(app_of(resume=resume)) as running:
        running.owner.queue("j:1", "resume", details=b'{"row":7}')
        running.owner.queue("j:2", "resume")
        await running.owner.until(lambda: len(running.owner.succeeded) == 2)
    assert sorted(seen, key=str) == [None, {"row": 7}]


@pytest.mark.parametrize("fields", [{"fraction": 1.1}, {"fraction": -0.1}, {"details": "x" * 16_400}])
async def test_senseless_progress_is_an_error_where_it_is_said(fields: dict[str, object]) -> None:
    async def boast(payload: object, ctx: Context) -> None:
        ctx.progress(**({"fraction": 0.5} | fields))  # type: ignore[arg-type]  # what is refused

    async with working(app_of(boast=boast)) as running:
        running.owner.queue("j:1", "boast")
        await running.owner.until(lambda: "j:1" in running.owner.failed)
    assert running.owner.failed["j:1"].error_type == "ValueError"


async def test_nothing_runs_beyond_the_deadline_of_its_execution() -> None:
    async def sleepy(payload: object, ctx: Context) -> None:
        await asyncio.sleep(600)

    async with working(app_of(sleepy=sleepy)) as running:
        running.owner.queue("j:1", "sleepy", deadline_at=running.owner.clock.now() + 300)
        await running.owner.until(lambda: "j:1" in running.owner.failed)
    assert running.owner.failed["j:1"].error_type == "Timeout"


async def test_what_is_past_its_deadline_is_handed_back_unstarted() -> None:
    async def never(payload: object) -> None:
        raise AssertionError("must not run")

    async with working(app_of(never=never)) as running:
        running.owner.is_granting_again = False
        running.owner.queue("j:1", "never", deadline_at=running.owner.clock.now() - 1)
        await running.owner.until(lambda: running.owner.handed_back == ["j:1"])


@pytest.mark.parametrize("payload", [b'{"to":5}', b"{}", b"{", b"\xff", b"[" * 100_000])
async def test_bad_payload_fails_without_retry(payload: bytes) -> None:
    async def send(payload: Letter) -> None:
        raise AssertionError("must not run")

    async with working(app_of(send=send)) as running:
        running.owner.queue("j:1", "send", payload)
        await running.owner.until(lambda: "j:1" in running.owner.failed)
    assert (running.owner.failed["j:1"].error_type, running.owner.failed["j:1"].is_permanent) == (
        "InvalidPayload",
        True,
    )


async def test_bad_payload_of_a_task_that_waits_fails_without_retry() -> None:
    async def send(payload: Letter) -> None:
        await asyncio.sleep(0)

    async with working(app_of(send=send)) as running:
        running.owner.queue("j:1", "send", b"[]")
        await running.owner.until(lambda: "j:1" in running.owner.failed)
    assert running.owner.failed["j:1"].is_permanent


async def test_exit_of_a_task_is_its_failure() -> None:
    async def leave(payload: object) -> None:
        raise SystemExit(3)

    async def wait_and_leave(payload: object) -> None:
        await asyncio.sleep(0)
        raise SystemExit(3)

    async with working(app_of(leave=leave, wait_and_leave=wait_and_leave)) as running:
        running.owner.queue("j:1", "leave")
        running.owner.queue("j:2", "wait_and_leave")
        await running.owner.until(lambda: len(running.owner.failed) == 2)
    assert {failed.error_type for failed in running.owner.failed.values()} == {"SystemExit"}


async def test_function_that_returns_a_coroutine_fails() -> None:
    async def inner() -> None: ...

    async with working(app_of(outer=lambda payload: inner())) as running:
        running.owner.queue("j:1", "outer")
        await running.owner.until(lambda: "j:1" in running.owner.failed)
    assert running.owner.failed["j:1"].error_type == "TypeError"


async def test_cancelled_error_of_the_task_itself_is_a_failure() -> None:
    async def fall(payload: object) -> None:
        await asyncio.sleep(0)
        raise asyncio.CancelledError

    async with working(app_of(fall=fall)) as running:
        running.owner.queue("j:1", "fall")
        await running.owner.until(lambda: "j:1" in running.owner.failed)
    assert running.owner.failed["j:1"].error_type == "CancelledError"


# -- where tasks run


async def test_each_run_has_a_context_of_its_own() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    variable.set("outer")
    seen = []

    async def instant(payload: object) -> None:
        seen.append(variable.get())
        variable.set("spoiled")

    async def waiting(payload: object) -> None:
        seen.append(variable.get())
        variable.set("spoiled")
        await asyncio.sleep(0)

    def threaded(payload: object) -> None:
        seen.append(variable.get())
        variable.set("spoiled")

    async with working(app_of(instant=instant, waiting=waiting, threaded=threaded)) as running:
        for number, task in enumerate(["instant", "waiting", "threaded"] * 2):
            running.owner.queue(f"j:{number}", task)
        await running.owner.until(lambda: len(running.owner.succeeded) == 6)
    assert seen == ["outer"] * 6


async def test_functions_run_on_threads_and_coroutines_on_the_loop() -> None:
    threads = {}

    def threaded(payload: str) -> None:
        threads["threaded"] = threading.current_thread()

    async def waiting(payload: str) -> None:
        async with asyncio.timeout(10):
            await asyncio.sleep(0)
        threads["waiting"] = threading.current_thread()

    async with working(app_of(threaded=threaded, waiting=waiting)) as running:
        running.owner.queue("j:1", "threaded")
        running.owner.queue("j:2", "waiting")
        await running.owner.until(lambda: len(running.owner.succeeded) == 2)
    assert threads["waiting"] is threading.main_thread()
    assert threads["threaded"] is not threading.main_thread()


async def test_many_short_runs_all_succeed_once() -> None:
    ran = []

    async def note(payload: int) -> None:
        ran.append(payload)

    async with working(app_of(note=note), partitions=4, concurrency=50) as running:
        for number in range(2_000):
            running.owner.queue(f"j:{number}", "note", b"%d" % number, partition=number % 4)
        await running.owner.until(lambda: len(running.owner.succeeded) == 2_000)
    assert sorted(ran) == list(range(2_000))


# -- timeouts


async def test_coroutine_is_cancelled_at_its_timeout() -> None:
    async def hang(payload: object) -> None:
        await asyncio.Event().wait()

    async with working(app_of(hang=hang)) as running:
        running.owner.queue("j:1", "hang", timeout_ms=20)
        await running.owner.until(lambda: "j:1" in running.owner.failed)
    failed = running.owner.failed["j:1"]
    assert (failed.error_type, failed.is_permanent) == ("Timeout", False)


async def test_shorter_timeout_of_the_task_counts() -> None:
    app = App()

    @app.task("hang", timeout="20ms")
    async def hang(payload: object) -> None:
        await asyncio.Event().wait()

    async with working(app) as running:
        running.owner.queue("j:1", "hang", timeout_ms=3_600_000)
        await running.owner.until(lambda: "j:1" in running.owner.failed)
    assert running.owner.failed["j:1"].message == "still running after 20 ms"


async def test_coroutine_that_swallows_its_timeout_still_timed_out() -> None:
    async def stubborn(payload: object) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    async with working(app_of(stubborn=stubborn)) as running:
        running.owner.queue("j:1", "stubborn", timeout_ms=20)
        await running.owner.until(lambda: "j:1" in running.owner.failed)
    assert running.owner.failed["j:1"].error_type == "Timeout"


async def test_thread_past_its_timeout_is_reported_at_once_and_keeps_its_slot() -> None:
    release, entered = threading.Event(), []

    def block(payload: object, ctx: Context) -> None:
        entered.append(ctx)
        release.wait()

    async with working(app_of(block=block, quick=lambda payload: None), concurrency=1) as running:
        running.owner.queue("j:1", "block", timeout_ms=20)
        await running.owner.until(lambda: "j:1" in running.owner.failed)
        assert entered[0].cancel_requested
        running.owner.queue("j:2", "quick")
        await running.owner.until(
            lambda: "j:2" in running.owner.handed_back or "j:2" not in running.owner.granted
        )
        assert "j:2" not in running.owner.succeeded
        release.set()
        await running.owner.until(lambda: "j:2" in running.owner.succeeded)
    assert running.owner.failed["j:1"].error_type == "Timeout"
    assert "j:1" not in running.owner.succeeded


async def test_instant_task_past_its_timeout_timed_out() -> None:
    async def slow(payload: object) -> None:
        time.sleep(0.05)

    async with working(app_of(slow=slow)) as running:
        running.owner.queue("j:1", "slow", timeout_ms=10)
        await running.owner.until(lambda: "j:1" in running.owner.failed)
    assert running.owner.failed["j:1"].error_type == "Timeout"


# -- grants


async def test_what_finds_no_slot_is_handed_back_and_runs_later() -> None:
    gate = asyncio.Event()

    async def hold(payload: object) -> None:
        await gate.wait()

    async with working(app_of(hold=hold), concurrency=1) as running:
        running.owner.queue("j:1", "hold", partition=0)
        running.owner.queue("j:2", "hold", partition=1)
        await running.owner.until(lambda: bool(running.owner.handed_back))
        gate.set()
        await running.owner.until(lambda: len(running.owner.succeeded) == 2)


async def test_grant_past_its_start_by_is_handed_back() -> None:
    async with working(app_of(quick=lambda payload: None)) as running:
        running.owner.start_within_ms = -60_000
        running.owner.is_granting_again = False
        running.owner.queue("j:1", "quick")
        await running.owner.until(lambda: running.owner.handed_back == ["j:1"])


async def test_unknown_task_is_handed_back() -> None:
    async with working(app_of(quick=lambda payload: None)) as running:
        running.owner.is_granting_again = False
        running.owner.queue("j:1", "strange")
        await running.owner.until(lambda: running.owner.handed_back == ["j:1"])


async def test_token_seen_before_is_started_no_second_time() -> None:
    ran = []

    async def note(payload: str) -> None:
        ran.append(payload)

    async with working(app_of(note=note)) as running:
        owner = running.owner
        owner.queue("j:1", "note", b'"first"')
        await owner.until(lambda: "j:1" in owner.succeeded)
        again = columns([Queued("j:1", "note", b'"again"', 1_000)], owner.clock.now())
        owner.channel.deliver(Inbox(owner.sessions[0], 0, 1, owner.clock.now() + 1_500, [], again))
        owner.channel.deliver(Inbox("another.0", 0, 9, owner.clock.now() + 1_500, [], again))
        owner.queue("j:2", "note", b'"second"')
        await owner.until(lambda: "j:2" in owner.succeeded)
    assert ran == ["first", "second"]


async def test_long_runs_are_shown_in_a_full_pulse() -> None:
    gate = asyncio.Event()

    async def hold(payload: object) -> None:
        await gate.wait()

    async with working(app_of(hold=hold), pulse_ms=600_000) as running:
        running.owner.queue("j:1", "hold")
        await running.owner.until(lambda: "j:1" in running.owner.granted and bool(running.owner.held()))
        assert running.owner.held() == [running.owner.granted["j:1"]]
        gate.set()
        await running.owner.until(lambda: "j:1" in running.owner.succeeded)


async def test_damaged_inbox_records_are_passed_over() -> None:
    with structlog.testing.capture_logs() as logs:
        async with working(app_of(quick=lambda payload: None)) as running:
            owner = running.owner
            broken = columns([Queued("j:0", "quick", b"1", 1_000)], 0)
            broken.payloads.append(b"2")
            owner.channel.deliver(Inbox(owner.sessions[0], 0, 7, owner.clock.now() + 1_500, [], broken))
            owner.channel.deliver_bytes(b"nonsense")
            owner.queue("j:1", "quick")
            await owner.until(lambda: "j:1" in owner.succeeded)
    assert [entry["event"] for entry in logs] == [
        "inbox_record_broken",
        "inbox_record_unreadable",
    ]


# -- stops


async def test_cancelled_coroutine_stops_and_says_so() -> None:
    entered = asyncio.Event()

    async def hang(payload: object) -> None:
        entered.set()
        await asyncio.Event().wait()

    async with working(app_of(hang=hang)) as running:
        running.owner.queue("j:1", "hang")
        await entered.wait()
        running.owner.cancel("j:1")
        await running.owner.until(lambda: "j:1" in running.owner.failed)
    assert running.owner.failed["j:1"].error_type == "Cancelled"


async def test_cancelled_thread_sees_the_request_and_its_success_counts() -> None:
    entered = threading.Event()

    def poll(payload: object, ctx: Context) -> None:
        entered.set()
        while not ctx.cancel_requested:
            time.sleep(0.001)

    async with working(app_of(poll=poll)) as running:
        running.owner.queue("j:1", "poll")
        await asyncio.to_thread(entered.wait)
        running.owner.cancel("j:1")
        await running.owner.until(lambda: "j:1" in running.owner.succeeded)


async def test_ended_session_stops_its_tasks_and_begins_the_next() -> None:
    stopped, entered = asyncio.Event(), {"0": asyncio.Event(), "1": asyncio.Event()}

    async def hang(payload: str) -> None:
        entered[payload].set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with working(app_of(hang=hang)) as running:
        owner, worker = running.owner, running.worker.id
        owner.queue("j:1", "hang", b'"0"', partition=0)
        owner.queue("j:2", "hang", b'"1"', partition=1)
        await asyncio.gather(*(event.wait() for event in entered.values()))
        stopped.clear()
        owner.end_session(0)
        await stopped.wait()
        await owner.until(lambda: owner.sessions[0] == f"{worker}.1")
        assert owner.sessions[1] == f"{worker}.0"
        assert next(r.sequence for p, r in owner.reports if p == 0 and r.session == f"{worker}.1") == 1
        assert owner.held(0) == []
        assert not {"j:1"} & {*owner.succeeded, *owner.failed, *owner.handed_back}


async def test_lease_that_cannot_be_renewed_stops_its_tasks() -> None:
    stopped, entered = asyncio.Event(), asyncio.Event()

    async def hang(payload: object) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    with structlog.testing.capture_logs() as logs:
        async with working(app_of(hang=hang), lease_ms=3_000, pulse_ms=500) as running:
            running.owner.queue("j:1", "hang")
            await entered.wait()
            await running.owner.until(lambda: bool(running.owner.held()))
            running.owner.channel.hold()
            await stopped.wait()
            running.owner.channel.release()
            await running.owner.until(lambda: running.owner.held() == [])
            assert "j:1" not in running.owner.failed
    events = [entry["event"] for entry in logs]
    assert events.count("reports_not_acknowledged") == 1


# -- leaving


async def test_drain_finishes_what_runs_and_counts_it() -> None:
    gate, entered, draining = asyncio.Event(), asyncio.Event(), []

    async def hold(payload: object, ctx: Context) -> None:
        draining.append(ctx.draining)
        entered.set()
        await gate.wait()
        draining.append(ctx.draining)

    async with working(app_of(hold=hold)) as running:
        running.owner.queue("j:1", "hold")
        await entered.wait()
        running.worker.drain()
        await running.owner.until(
            lambda: any(r.pulse and r.pulse.is_leaving for _, r in running.owner.reports)
        )
        gate.set()
        left = await running.task
    assert str(left) == "drained 1, handed back 0"
    assert running.owner.succeeded.keys() == {"j:1"}
    assert draining == [False, True]
    assert {r.pulse.offer for _, r in running.owner.reports if r.pulse and r.pulse.is_leaving} == {0}


async def test_grants_that_come_while_leaving_are_handed_back() -> None:
    gate, entered = asyncio.Event(), asyncio.Event()

    async def hold(payload: object) -> None:
        entered.set()
        await gate.wait()

    async with working(app_of(hold=hold)) as running:
        owner = running.owner
        owner.is_granting_again = False
        owner.queue("j:1", "hold")
        await entered.wait()
        running.worker.drain()
        await owner.until(lambda: any(r.pulse and r.pulse.is_leaving for p, r in owner.reports if p == 1))
        late = columns([Queued("j:2", "hold", b"1", 1_000)], owner.clock.now())
        owner.channel.deliver(Inbox(owner.sessions[1], 1, 5, owner.clock.now() + 1_500, [], late))
        await owner.until(lambda: any(r.handed_back for _, r in owner.reports))
        gate.set()
        left = await running.task
    assert left == Drained(1, 1)


async def test_grace_over_stops_and_hands_back() -> None:
    entered = asyncio.Event()

    async def hang(payload: object) -> None:
        entered.set()
        await asyncio.Event().wait()

    async with working(app_of(hang=hang), grace_s=0.05) as running:
        running.owner.is_granting_again = False
        running.owner.queue("j:1", "hang")
        await entered.wait()
        left = await running.leave()
    assert left == Drained(0, 1)
    assert running.owner.handed_back == ["j:1"]


async def test_second_signal_forces() -> None:
    entered = asyncio.Event()

    async def hang(payload: object) -> None:
        entered.set()
        await asyncio.Event().wait()

    async with working(app_of(hang=hang), grace_s=3_600) as running:
        running.owner.queue("j:1", "hang")
        await entered.wait()
        running.worker.drain()
        left = await running.leave()
    assert left == Drained(0, 1, is_forced=True)


async def test_thread_that_does_not_end_is_left_behind() -> None:
    entered, release = threading.Event(), threading.Event()

    def block(payload: object) -> None:
        entered.set()
        release.wait()

    async with working(app_of(block=block), grace_s=3_600) as running:
        running.owner.queue("j:1", "block")
        await asyncio.to_thread(entered.wait)
        running.worker.drain()
        left = await running.leave()
        release.set()
    assert left == Drained(0, 1, is_forced=True, is_stuck=True)
    assert running.owner.handed_back == ["j:1"]


async def test_cancelled_worker_hands_back() -> None:
    entered = asyncio.Event()

    async def hang(payload: object) -> None:
        entered.set()
        await asyncio.Event().wait()

    async with working(app_of(hang=hang)) as running:
        running.owner.queue("j:1", "hang")
        await entered.wait()
        running.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running.task
    assert running.owner.handed_back == ["j:1"]


async def test_idle_worker_leaves_at_once() -> None:
    async with working(App()) as running:
        assert await running.leave() == Drained(0, 0)


async def test_worker_without_a_broker_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opening = threading.Event()

    async def open_for_ever(worker_id: str) -> int:
        opening.set()
        await asyncio.Event().wait()
        raise AssertionError

    owner = OwnerDouble()
    monkeypatch.setattr(owner.channel, "open", open_for_ever)
    running = Running(App(), owner, WorkerSettings(grace_s=3_600))
    await asyncio.to_thread(opening.wait)
    assert await running.leave() == Drained(0, 0)


async def test_broken_link_stops_the_tasks_and_ends_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, stopped = asyncio.Event(), asyncio.Event()

    async def hang(payload: object) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def broken() -> list[bytes]:
        raise RuntimeError("broken")

    async with working(app_of(hang=hang)) as running:
        running.owner.queue("j:1", "hang")
        await entered.wait()
        monkeypatch.setattr(running.owner.channel, "poll", broken)
        running.owner.channel.deliver_bytes(b"")
        with pytest.raises(ExceptionGroup):
            await running.task
        assert stopped.is_set()


# -- a blocked loop


async def test_blocked_loop_keeps_pulsing_and_is_reported_with_its_stack() -> None:
    async def block_the_loop(payload: object) -> None:
        time.sleep(1.8)

    with structlog.testing.capture_logs() as logs:
        async with working(app_of(block=block_the_loop), pulse_ms=100, lease_ms=1_000) as running:
            before = len(running.owner.reports)
            running.owner.queue("j:1", "block")
            await running.owner.until(lambda: "j:1" in running.owner.succeeded)
            assert len(running.owner.reports) > before + 10
    blocked = [entry for entry in logs if entry["event"] == "event_loop_blocked"]
    assert len(blocked) == 1
    assert "block_the_loop" in blocked[0]["stack"]
