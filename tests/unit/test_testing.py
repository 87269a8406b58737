"""What users test their tasks with: it decides as the servers do, and says what they would refuse."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec
import pytest

from minutebook import App, Cancel, Context, Fail, Retry, Snooze
from minutebook.client import RetryRequest
from minutebook.client.models import CalendarsRequest
from minutebook.domain.commands import SubmitJob
from minutebook.domain.timing import Timing
from minutebook.testing import InMemoryScheduler, RefusedError, TaskEnv, assert_replays
from minutebook.times import instant_of

START = datetime(2030, 3, 30, 12, tzinfo=UTC)


class Order(msgspec.Struct):
    """A payload with a type."""

    number: int


@pytest.fixture
def app() -> App:
    return App()


async def test_a_job_runs_at_its_instant_and_not_before(app: App) -> None:
    seen: list[tuple[str, datetime]] = []

    @app.task("once")
    async def once(payload: str, ctx: Context) -> None:
        seen.append((payload, scheduler.now))

    async with InMemoryScheduler(app, now=START) as scheduler:
        job = scheduler.submit(once, "hello", run_at=START + timedelta(hours=2))
        assert await scheduler.advance(hours=1, minutes=59) == 0
        assert (scheduler.status(job), scheduler.history(job)) == ("active", [])
        assert await scheduler.advance(minutes=1) == 1
        assert seen == [("hello", START + timedelta(hours=2))]
        assert scheduler.status(job) == "completed"
        assert scheduler.now == START + timedelta(hours=2)


async def test_a_schedule_follows_the_clocks_of_its_zone(app: App) -> None:
    @app.task("tick")
    async def tick(payload: object) -> None:
        return None

    async with InMemoryScheduler(app, now=START) as scheduler:
        job = scheduler.submit(tick, cron="0 7 * * *", zone="Europe/Berlin")
        await scheduler.advance(days=3)
        due = [one.due_at.hour for one in scheduler.history(job)]
    assert due == [5, 5, 5], "summer time began that night"


async def test_an_interval_runs_within_its_bounds(app: App) -> None:
    @app.task("tick")
    async def tick(payload: object) -> None:
        return None

    async with InMemoryScheduler(app, now=START) as scheduler:
        first_at = START + timedelta(hours=1)
        job = scheduler.submit(
            tick, every="90s", start_at=first_at, end_at=first_at + timedelta(minutes=6), overlap="skip"
        )
        await scheduler.advance(days=1)
        due = [one.due_at - first_at for one in scheduler.history(job)]
        assert due == [timedelta(seconds=seconds) for seconds in (0, 90, 180, 270)]
        assert scheduler.status(job) == "completed"


async def test_instants_beside_a_retry_go_by_the_overlap_policy(app: App) -> None:
    @app.task("moody")
    async def moody(payload: object, ctx: Context) -> Retry | None:
        return Retry(after="150s") if ctx.attempt == 1 and ctx.scheduled_at == START else None

    async with InMemoryScheduler(app, now=START - timedelta(seconds=1)) as scheduler:
        command = SubmitJob(
            tenant="test",
            job_id="a",
            command_id="c",
            issued_at=instant_of(scheduler.now),
            task="moody",
            payload=b"null",
            cron="* * * * *",
            timing=Timing(overlap="queue_one"),
        )
        scheduler.partition.command(command)
        assert await scheduler.advance("150s") == 1
        assert await scheduler.advance("2s") == 2, "the retry, and what it held"
        assert [(one.due_at.minute, one.number, one.status) for one in scheduler.history("a")] == [
            (0, 1, "failed"),
            (2, 2, "succeeded"),
            (1, 1, "succeeded"),
        ]


async def test_a_failing_task_is_tried_five_times_and_then_dead(app: App) -> None:
    @app.task("bad")
    async def bad(payload: object) -> None:
        raise LookupError("gone")

    async with InMemoryScheduler(app) as scheduler:
        job = scheduler.submit("bad")
        assert await scheduler.advance("1h") == 5
        history = scheduler.history(job)
        assert [one.number for one in history] == [1, 2, 3, 4, 5]
        assert {(one.status, one.error_type, one.message) for one in history} == {
            ("failed", "LookupError", "gone")
        }
        assert scheduler.status(job) == "dead"


async def test_values_decide_about_the_next_attempt(app: App) -> None:
    @app.task("moody")
    def moody(payload: int, ctx: Context) -> Retry | Fail | None:
        if payload == 0:
            return Fail("never")
        return Retry(after="10m") if ctx.attempt == 1 else None

    async with InMemoryScheduler(app) as scheduler:
        never, later = scheduler.submit(moody, 0), scheduler.submit(moody, 1)
        assert await scheduler.advance(minutes=9) == 2
        assert scheduler.status(never) == "dead"
        assert await scheduler.advance(minutes=1) == 1
        assert [one.status for one in scheduler.history(later)] == ["failed", "succeeded"]


async def test_a_crash_between_effect_and_report_repeats_the_attempt(app: App) -> None:
    effects: list[int] = []

    @app.task("charge")
    async def charge(payload: object, ctx: Context) -> None:
        effects.append(ctx.attempt)

    async with InMemoryScheduler(app) as scheduler:
        job = scheduler.submit(charge)
        scheduler.crash_after_next(2)
        assert await scheduler.advance() == 3
        assert effects == [1, 2, 3]
        assert [one.status for one in scheduler.history(job)] == ["lost", "lost", "succeeded"]


async def test_of_several_attempts_only_the_asked_number_crashes(app: App) -> None:
    @app.task("t")
    async def task(payload: object) -> None:
        return None

    async with InMemoryScheduler(app) as scheduler:
        jobs = [scheduler.submit(task) for _ in range(3)]
        scheduler.crash_after_next()
        assert await scheduler.advance() == 4
        attempts = sorted(len(scheduler.history(job)) for job in jobs)
        assert attempts == [1, 1, 2]


async def test_a_payload_that_does_not_fit_is_dead_at_once(app: App) -> None:
    @app.task("order")
    async def order(payload: Order) -> None:
        raise AssertionError("called")

    async with InMemoryScheduler(app) as scheduler:
        job = scheduler.submit(order, {"number": "seven"})
        assert await scheduler.advance() == 1
        assert [one.error_type for one in scheduler.history(job)] == ["InvalidPayload"]
        assert scheduler.status(job) == "dead"


async def test_a_function_that_overruns_its_timeout_has_failed_once(app: App) -> None:
    release = threading.Event()

    @app.task("slow", timeout="50ms")
    def slow(payload: object, ctx: Context) -> None:
        release.wait(0.2)

    async with InMemoryScheduler(app) as scheduler:
        job = scheduler.submit(slow)
        assert await scheduler.advance() == 1
        assert [(one.status, one.error_type) for one in scheduler.history(job)] == [
            ("failed", "Timeout"),
            ("scheduled", ""),
        ]


async def test_cancel_and_run_now(app: App) -> None:
    @app.task("t")
    async def task(payload: object) -> None:
        return None

    async with InMemoryScheduler(app) as scheduler:
        job = scheduler.submit(task, delay="1h")
        scheduler.run_now(job)
        assert await scheduler.advance() == 1
        scheduler.cancel(job)
        assert await scheduler.advance(days=1) == 0
        assert scheduler.status(job) == "cancelled"
        with pytest.raises(RefusedError) as refused:
            scheduler.run_now(job)
        assert refused.value.reason == "job_closed"


async def test_a_job_has_its_own_retries(app: App) -> None:
    @app.task("bad")
    async def bad(payload: str) -> None:
        raise LookupError(payload) if payload == "gone" else TimeoutError(payload)

    async with InMemoryScheduler(app) as scheduler:
        rules = RetryRequest(max_attempts=3, first="PT10S", factor=3, jitter=0, non_retryable=["LookupError"])
        slow, gone = (scheduler.submit(bad, text, retry=rules) for text in ("slow", "gone"))
        await scheduler.advance("1h")
        due = [one.due_at - datetime(2030, 1, 1, tzinfo=UTC) for one in scheduler.history(slow)]
        assert due == [timedelta(0), timedelta(seconds=10), timedelta(seconds=40)]
        assert len(scheduler.history(gone)) == 1
        assert scheduler.status(slow) == scheduler.status(gone) == "dead"


async def test_losses_and_deadlines_have_the_bounds_of_the_job(app: App) -> None:
    @app.task("t")
    async def task(payload: str) -> None:
        return None

    async with InMemoryScheduler(app) as scheduler:
        lost = scheduler.submit(task, "lost", max_losses=1)
        scheduler.crash_after_next()
        await scheduler.advance()
        assert scheduler.status(lost) == "dead"
        late = scheduler.submit("unknown", start_deadline="10m")
        await scheduler.advance("11m")
        assert [one.status for one in scheduler.history(late)] == ["skipped"]
        with pytest.raises(RefusedError) as refused:
            scheduler.submit(task, "x", priority=10)
        assert refused.value.field == "priority"


async def test_a_dead_execution_is_redriven_with_an_edited_payload(app: App) -> None:
    seen: list[Any] = []

    @app.task("order")
    async def order(payload: Any) -> Fail | None:
        seen.append(payload)
        return Fail("no such order") if payload == {"number": 7} else None

    async with InMemoryScheduler(app) as scheduler:
        job = scheduler.submit(order, {"number": 7})
        await scheduler.advance()
        (given_up,) = scheduler.history(job)
        scheduler.redrive(given_up.execution_id)
        await scheduler.advance()
        assert scheduler.status(job) == "dead"
        scheduler.redrive(given_up.execution_id, {"number": 8})
        await scheduler.advance()
        assert seen == [{"number": 7}, {"number": 7}, {"number": 8}]
        assert [one.status for one in scheduler.history(job)] == ["failed", "failed", "succeeded"]
        assert scheduler.status(job) == "completed"
        with pytest.raises(RefusedError) as refused:
            scheduler.redrive(given_up.execution_id)
        assert refused.value.reason == "not_dead"


async def test_one_execution_is_cancelled_and_its_job_goes_on(app: App) -> None:
    @app.task("bad")
    async def bad(payload: object) -> None:
        raise LookupError("gone")

    async with InMemoryScheduler(app) as scheduler:
        job = scheduler.submit(bad, cron="0 0 * * *")
        await scheduler.advance(days=1)
        waiting = scheduler.history(job)[-1]
        assert waiting.status == "scheduled"
        scheduler.cancel_execution(waiting.execution_id)
        assert scheduler.history(job)[-1].status == "cancelled"
        assert scheduler.status(job) == "active"
        assert_replays(scheduler)
        with pytest.raises(RefusedError) as refused:
            scheduler.cancel_execution(waiting.execution_id)
        assert refused.value.reason == "not_open"


async def test_a_task_that_nobody_knows_stays_queued(app: App) -> None:
    async with InMemoryScheduler(app) as scheduler:
        job = scheduler.submit("unknown")
        assert await scheduler.advance(days=1) == 0
        assert [one.status for one in scheduler.history(job)] == ["queued"]


async def test_queues_of_tasks_are_declared_and_others_refused(app: App) -> None:
    @app.task("resize", queue="images")
    async def resize(payload: object) -> None:
        return None

    async with InMemoryScheduler(app) as scheduler:
        scheduler.submit(resize)
        assert await scheduler.advance() == 1
        with pytest.raises(RefusedError) as refused:
            scheduler.submit(resize, queue="nowhere")
        assert (refused.value.reason, refused.value.field) == ("unknown_queue", "queue")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"cron": "61 * * * *"}, "cron"),
        ({"zone": "Mars/Base", "cron": "* * * * *"}, "zone"),
        ({"limit": "a b"}, "limit"),
    ],
)
async def test_what_the_servers_refuse_is_refused_here(app: App, fields: dict[str, str], field: str) -> None:
    async with InMemoryScheduler(app) as scheduler:
        with pytest.raises(RefusedError) as refused:
            scheduler.submit("t", **fields)  # type: ignore[arg-type]  # fields of the create body
        assert refused.value.field == field
        with pytest.raises(KeyError):
            scheduler.status("test-1")


def test_an_instant_without_a_zone_is_refused(app: App) -> None:
    with pytest.raises(ValueError, match="with its zone"):
        InMemoryScheduler(app).submit("t", run_at=datetime(2030, 1, 1))


async def test_it_says_that_it_must_be_opened(app: App) -> None:
    @app.task("t")
    async def task(payload: object) -> None:
        return None

    scheduler = InMemoryScheduler(app)
    scheduler.submit(task)
    with pytest.raises(RuntimeError, match="async with"):
        await scheduler.advance()


def test_a_context_for_one_function() -> None:
    env = TaskEnv(attempt=3, job_id="j", due_at=START, timeout=timedelta(minutes=1))
    ctx = env.context
    assert (ctx.attempt, ctx.job_id, ctx.due_at) == (3, "j", START)
    assert ctx.deadline == START + timedelta(minutes=1)
    assert (ctx.cancel_requested, ctx.draining) == (False, False)
    env.cancel()
    env.drain()
    assert (ctx.cancel_requested, ctx.draining) == (True, True)


async def test_an_attempt_resumes_where_the_last_one_stopped(app: App) -> None:
    started: list[int] = []

    @app.task("copy")
    async def copy(payload: int, ctx: Context) -> int:
        first = ctx.last_progress or 0
        started.append(first)
        for row in range(first, payload):
            ctx.progress(row / payload, f"row {row}", row)
            if row == 3 and ctx.attempt == 1:
                raise ConnectionError
        return payload

    async with InMemoryScheduler(app) as scheduler:
        job = scheduler.submit(copy, 6)
        await scheduler.advance("1h")
        assert scheduler.status(job) == "completed"
    assert started == [0, 3]


async def test_a_snooze_and_a_cancel_are_no_failures(app: App) -> None:
    @app.task("patient")
    async def patient(payload: str, ctx: Context) -> Snooze | Cancel | None:
        if payload == "gone":
            return Cancel("no longer wanted")
        return Snooze(after="1h") if ctx.attempt == 1 else None

    async with InMemoryScheduler(app) as scheduler:
        later, gone = scheduler.submit(patient, "busy"), scheduler.submit(patient, "gone")
        assert await scheduler.advance("59m") == 2
        assert await scheduler.advance("1m") == 1
        assert [(one.status, one.error_type) for one in scheduler.history(later)] == [
            ("cancelled", "Snoozed"),
            ("succeeded", ""),
        ]
        assert scheduler.status(later) == "completed"
        assert [(one.status, one.message) for one in scheduler.history(gone)] == [
            ("cancelled", "no longer wanted")
        ]


def test_a_task_env_hears_of_progress() -> None:
    env = TaskEnv(last_progress={"row": 7})
    assert env.context.last_progress == {"row": 7}
    env.context.progress(0.5, "half")
    assert env.progress == [(0.5, "half")]


async def test_a_job_is_edited_paused_and_resumed(app: App) -> None:
    seen: list[tuple[int, datetime]] = []

    @app.task("tick")
    async def tick(payload: int) -> None:
        seen.append((payload, scheduler.now))

    async with InMemoryScheduler(app, now=START) as scheduler:
        job = scheduler.submit(tick, 1, cron="0 * * * *")
        await scheduler.advance(hours=2)
        scheduler.edit(job, payload=2, cron="30 * * * *")
        await scheduler.advance(hours=1)
        scheduler.pause(job)
        assert (scheduler.status(job), await scheduler.advance(days=3)) == ("paused", 0)
        scheduler.resume(job)
        scheduler.edit(job, every="20m", priority=9)
        assert await scheduler.advance(hours=1) == 3
        scheduler.edit(job, run_at=scheduler.now + timedelta(minutes=5))
        assert await scheduler.advance(hours=1) == 1
        assert scheduler.status(job) == "completed"
        with pytest.raises(RefusedError, match="completed"):
            scheduler.pause(job)
        with pytest.raises(KeyError):
            scheduler.edit("none", payload=1)
        assert_replays(scheduler)
    assert [(payload, at - START) for payload, at in seen[:3]] == [
        (1, timedelta(hours=1)),
        (1, timedelta(hours=2)),
        (2, timedelta(hours=2, minutes=30)),
    ]


async def test_a_job_leaves_out_the_dates_of_a_calendar(app: App) -> None:
    @app.task("tick")
    async def tick(payload: None) -> None: ...

    async with InMemoryScheduler(app, now=datetime(2030, 1, 1, tzinfo=UTC)) as scheduler:
        with pytest.raises(RefusedError) as refused:
            scheduler.submit(tick, cron="0 12 * * *", calendars=CalendarsRequest(exclude=["holidays"]))
        assert refused.value.reason == "unknown_calendar"
        scheduler.set_calendar("holidays", [date(2030, 1, 1), (date(2030, 1, 3), date(2030, 1, 4))])
        job = scheduler.submit(tick, cron="0 12 * * *", calendars=CalendarsRequest(exclude=["holidays"]))
        assert await scheduler.advance(days=5) == 2  # on the 2nd and the 5th
        scheduler.set_calendar("holidays", [(date(2030, 1, 6), date(2030, 1, 31))])
        assert await scheduler.advance(days=20) == 0
        scheduler.delete_calendar("holidays")
        assert await scheduler.advance(days=2) == 2
        assert scheduler.status(job) == "active"
