"""A scheduler in memory for tests of an app: real decisions and folds, a clock that moves when told, real task calls."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import count
from types import TracebackType
from typing import Any, Final

import msgspec
from msgspec import UNSET

from minutebook import tracing
from minutebook.client.models import CalendarsRequest, MisfireRequest, Overlap, RetryRequest
from minutebook.clock import ManualClock
from minutebook.domain import events as facts
from minutebook.domain.calendars import day_of
from minutebook.domain.commands import (
    CancelExecution,
    CancelJob,
    Command,
    DeclareCalendar,
    DeclareQueue,
    DeleteCalendar,
    DiscardExecution,
    EditJob,
    PauseJob,
    RedriveExecution,
    ResumeJob,
    RunJobNow,
    SubmitJob,
)
from minutebook.domain.policy import DEFAULT, PRIORITY, Policy
from minutebook.domain.records import Inbox, Report
from minutebook.domain.timing import Timing
from minutebook.errors import MinutebookError
from minutebook.ids import job_of
from minutebook.schedule import DayMatch, Fold, Gap
from minutebook.testing.editing import About, submission_of
from minutebook.testing.partition import SESSION, Partition
from minutebook.times import datetime_of, instant_of
from minutebook.worker.app import App, Task
from minutebook.worker.duration import Duration, duration_ms
from minutebook.worker.ends import (
    cancelled_of,
    failed_of,
    handed_back_of,
    progress_of,
    snoozed_of,
    succeeded_of,
)
from minutebook.worker.outcomes import Cancelling, Failure, Result, Snoozing, Verdict
from minutebook.worker.progress import Noted
from minutebook.worker.run import Ended, runs_of
from minutebook.worker.runner import Runner

_START: Final = datetime(2030, 1, 1, tzinfo=UTC)
_SLOTS: Final = 32
_CLOSE_S: Final = 1.0


class RefusedError(MinutebookError):
    """What a real scheduler would refuse too: `reason` is the code, `field` what is wrong, the text what to do."""

    def __init__(self, reason: str, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}" if field else detail or reason)
        self.reason = reason
        self.field = field


class Attempt(msgspec.Struct, frozen=True):
    """One try of an execution, as a history shows it. Instants are UTC; None = not yet."""

    execution_id: str
    number: int
    status: str
    due_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    error_type: str
    message: str


class InMemoryScheduler:
    """Runs the jobs of one tenant on the tasks of `app`, in this process. Use as an async context manager.

    Decisions, retries, schedules and histories are those of the real one; so is how tasks are called, their payloads,
    contexts and outcomes. Time stands still but in `advance`. Queues that tasks name are declared.
    """

    def __init__(self, app: App, *, now: datetime = _START, tenant: str = "test") -> None:
        self._app = app
        self._tenant = tenant
        self._clock = ManualClock(instant_of(now))
        self.partition = Partition(self._clock, app.tasks.keys())
        """Its log, state and view; for `assert_replays`."""
        self._ids = count(1)
        self._ended: list[Ended] = []
        self._noted: dict[int, Noted] = {}
        self._crashes = 0
        self._runner: Runner | None = None
        for queue in set(app.queues) - {"default"}:
            self._decide(DeclareQueue(name=queue, command_id=self._command_id(), issued_at=self._clock.now()))

    async def __aenter__(self) -> InMemoryScheduler:
        self._more = asyncio.Event()
        self._runner = Runner(self._app.tasks, _SLOTS, self._clock, self._take_ends, self._take_progress)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.abort(_CLOSE_S)
        self._runner.close()
        self._runner = None

    @property
    def now(self) -> datetime:
        """What time it is here, UTC."""
        return datetime_of(self._clock.now())

    # -- commands

    def submit(
        self,
        task: str | Task[Any, Any],
        payload: Any = None,
        *,
        id: str | None = None,
        queue: str | None = None,
        run_at: datetime | None = None,
        delay: Duration | None = None,
        cron: str | None = None,
        every: Duration | None = None,
        zone: str = "UTC",
        start_at: datetime | None = None,
        end_at: datetime | None = None,
        max_runs: int | None = None,
        calendars: CalendarsRequest | None = None,
        gap: Gap = "auto",
        fold: Fold = "auto",
        day_match: DayMatch = "or",
        jitter: Duration = 0,
        misfire: MisfireRequest | None = None,
        overlap: Overlap = "allow",
        pause_on_failure: bool = False,
        timeout: Duration = "5m",
        retry: RetryRequest | None = None,
        max_losses: int = DEFAULT.max_losses,
        deadline: Duration | None = None,
        start_deadline: Duration | None = None,
        priority: int = PRIORITY,
        limit: str = "",
        tags: Sequence[str] = (),
    ) -> str:
        """Create a job and answer its id. `payload` is anything that JSON can say; without an instant it is due now.

        The other fields are those of the create body. Raises RefusedError where the real scheduler refuses.
        """
        known = task if isinstance(task, Task) else self._app.tasks.get(task)
        command_id = self._command_id()
        job_id = id or command_id
        timing = Timing(
            start_at=None if start_at is None else instant_of(start_at),
            end_at=None if end_at is None else instant_of(end_at),
            max_runs=max_runs,
            gap=gap,
            fold=fold,
            day_match=day_match,
            jitter_ms=duration_ms(jitter),
            overlap=overlap,
            is_paused_on_failure=pause_on_failure,
        )
        self._decide(
            SubmitJob(
                tenant=self._tenant,
                job_id=job_id,
                command_id=command_id,
                issued_at=self._clock.now(),
                task=task.name if isinstance(task, Task) else task,
                payload=_json(payload),
                queue=queue or (known.queue if known is not None else None) or "default",
                run_at=None if run_at is None else instant_of(run_at),
                delay_ms=None if delay is None else duration_ms(delay),
                cron=cron,
                every_ms=None if every is None else duration_ms(every),
                zone=zone,
                timeout_ms=duration_ms(timeout),
                traceparent=tracing.current(),
                priority=priority,
                limit=limit,
                tags=list(tags),
                policy=_policy(retry, max_losses, deadline, start_deadline),
                timing=_with(timing, misfire or MisfireRequest(), calendars or CalendarsRequest()),
            )
        )
        return job_id

    def set_calendar(self, name: str, dates: Iterable[date | tuple[date, date]]) -> None:
        """Declare a calendar, or replace its dates; a pair is a range, both ends included. Raises RefusedError.

        Jobs that name it move at once.
        """
        ranges = [day if isinstance(day, tuple) else (day, day) for day in dates]
        self._decide(
            DeclareCalendar(
                tenant=self._tenant,
                name=name,
                command_id=self._command_id(),
                issued_at=self._clock.now(),
                first_days=[day_of(first) for first, _ in ranges],
                last_days=[day_of(last) for _, last in ranges],
            )
        )

    def delete_calendar(self, name: str) -> None:
        """Free the jobs of a calendar from it. Raises RefusedError for one that was never declared."""
        command_id = self._command_id()
        self._decide(
            DeleteCalendar(tenant=self._tenant, name=name, command_id=command_id, issued_at=self._clock.now())
        )

    def cancel(self, job_id: str) -> None:
        """Cancel a job. Raises RefusedError for one that is not there or closed."""
        self._decide(CancelJob(**self._about(job_id)))

    def pause(self, job_id: str) -> None:
        """No instant of a job comes due until it is resumed. Raises RefusedError for one that is not there or closed."""
        self._decide(PauseJob(**self._about(job_id)))

    def resume(self, job_id: str, *, catch_up: bool = False) -> None:
        """Instants of a job come due again; those of its pause are skipped, or made up for. Raises RefusedError."""
        self._decide(ResumeJob(**self._about(job_id), is_caught_up=catch_up))

    def edit(
        self,
        job_id: str,
        *,
        payload: Any = UNSET,
        run_at: datetime | None = None,
        delay: Duration | None = None,
        cron: str | None = None,
        every: Duration | None = None,
        zone: str | None = None,
        timeout: Duration | None = None,
        priority: int | None = None,
    ) -> None:
        """Change what is given, from the next instant on; the rest stays. Raises RefusedError, KeyError for no job.

        One of run_at, delay, cron and every takes the place of the one that was there.
        """
        found = self.partition.view.job(self._tenant, job_id)
        if found is None:
            raise KeyError(job_id)
        about = self._about(job_id)
        moments = {
            "run_at": None if run_at is None else instant_of(run_at),
            "delay_ms": None if delay is None else duration_ms(delay),
            "cron": cron,
            "every_ms": None if every is None else duration_ms(every),
        }
        changes: dict[str, Any] = {
            "payload": None if payload is UNSET else _json(payload),
            "zone": zone,
            "timeout_ms": None if timeout is None else duration_ms(timeout),
            "priority": priority,
        }
        given = {name: value for name, value in changes.items() if value is not None}
        if any(value is not None for value in moments.values()):
            given |= moments
        job = msgspec.structs.replace(submission_of(about, found[0]), **given)
        self._decide(EditJob(**about, job=job))

    def run_now(self, job_id: str) -> None:
        """One execution at once, beside the schedule. Raises RefusedError for a job that is not there or closed."""
        self._decide(RunJobNow(**self._about(job_id)))

    def cancel_execution(self, execution_id: str) -> None:
        """Cancel one execution; its job goes on. Raises RefusedError for one that is not open."""
        self._decide(CancelExecution(**self._about(job_of(execution_id)), execution=execution_id))

    def redrive(self, execution_id: str, payload: Any = UNSET) -> None:
        """Run a dead execution again, with another payload where one is given. Raises RefusedError for others."""
        edited = None if payload is UNSET else _json(payload)
        command = RedriveExecution(
            **self._about(job_of(execution_id)), execution=execution_id, payload=edited
        )
        self._decide(command)

    def discard(self, execution_id: str) -> None:
        """A dead execution needs no attention any more, which is final. Raises RefusedError for others."""
        self._decide(DiscardExecution(**self._about(job_of(execution_id)), execution=execution_id))

    # -- time

    async def advance(self, by: Duration = 0, **parts: float) -> int:
        """Let time pass: a duration (`"90s"`, seconds, a timedelta) or parts (`hours=3`). Answers how many attempts ran.

        Everything that comes due runs at its instant, one instant after the other, retries too.
        """
        until = self._clock.now() + duration_ms(by) + duration_ms(timedelta(**parts))
        ran = await self._run_due()
        while (at := self.partition.next_at()) is not None and at <= until:
            self._clock.advance(max(0, at - self._clock.now()))
            ran += await self._run_due()
        self._clock.advance(until - self._clock.now())
        return ran

    def crash_after_next(self, attempts: int = 1) -> None:
        """The worker of the next `attempts` attempts dies after the task and before the report.

        They are lost and tried again at once: what a task did must bear to be done twice.
        """
        self._crashes += attempts

    # -- answers

    def status(self, job_id: str) -> str:
        """Status of a job: active, paused, completed, dead or cancelled. Raises KeyError for one that is not there."""
        found = self.partition.view.job(self._tenant, job_id)
        if found is None:
            raise KeyError(job_id)
        return found[1].status

    def history(self, job_id: str) -> list[Attempt]:
        """Attempts of a job by instant and number; executions that are not due yet have none."""
        return [
            Attempt(
                execution,
                one.number,
                one.status,
                datetime_of(one.due_at),
                None if one.started_at < 0 else datetime_of(one.started_at),
                None if one.ended_at < 0 else datetime_of(one.ended_at),
                one.error_type,
                one.message,
            )
            for _, execution, row in self.partition.view.executions(self._tenant, job_id)
            if row.skip is None
            for one in (*row.earlier, row.last)
        ]

    # -- inside

    def _command_id(self) -> str:
        return f"test-{next(self._ids)}"

    def _about(self, job_id: str) -> About:
        now, command_id = self._clock.now(), self._command_id()
        return {"tenant": self._tenant, "job_id": job_id, "command_id": command_id, "issued_at": now}

    def _decide(self, command: Command) -> None:
        for event in self.partition.command(command):
            if isinstance(event, facts.CommandRejected):
                raise RefusedError(event.reason, event.field, event.detail)

    async def _run_due(self) -> int:
        ran = 0
        while records := self.partition.grant():
            ran += await self._run(records)
        return ran

    async def _run(self, records: Sequence[Inbox]) -> int:
        runs = [
            run
            for record in records
            if record.granted is not None
            for run in runs_of(record, record.granted, 0, math.inf)
        ]
        if self._runner is None:
            raise RuntimeError("open the scheduler first: `async with InMemoryScheduler(app) as scheduler:`")
        self._ended = []
        self._runner.start(runs)
        while sum(end.frees_slot for end in self._ended) < len(runs):
            self._more.clear()
            await self._more.wait()
        self._settle(self._ended)
        return len(runs)

    def _take_ends(self, ends: list[Ended]) -> None:
        self._ended += ends
        self._more.set()

    def _take_progress(self, item: Noted) -> None:
        """From any thread; the latest of each attempt counts."""
        self._noted[item.run.token] = item

    def _settle(self, ends: list[Ended]) -> None:
        """Report what ended, of each attempt the first end; what is not reported belongs to a worker that died."""
        first: dict[int, Ended] = {}
        for end in ends:
            first.setdefault(end.run.token, end)
        told = list(first.values())[self._crashes :]
        is_dead = self._crashes > 0
        self._crashes = max(0, self._crashes - len(first))
        noted = [item for item in self._noted.values() if item.run.token in first]
        self._noted = {}
        self.partition.report(_report(told, noted))
        if is_dead:
            self.partition.lose()


def _report(ends: Sequence[Ended], noted: Sequence[Noted]) -> Report:
    succeeded = [end for end in ends if end.outcome is Verdict.SUCCEEDED or isinstance(end.outcome, Result)]
    handed_back = [end.run for end in ends if end.outcome is Verdict.HANDED_BACK]
    return Report(
        SESSION,
        1,
        succeeded=succeeded_of(succeeded) if succeeded else None,
        failed=[failed_of(end) for end in ends if isinstance(end.outcome, Failure)],
        handed_back=handed_back_of(handed_back) if handed_back else None,
        snoozed=[snoozed_of(end) for end in ends if isinstance(end.outcome, Snoozing)],
        cancelled=[cancelled_of(end) for end in ends if isinstance(end.outcome, Cancelling)],
        progress=[progress_of(item) for item in noted],
    )


def _policy(
    retry: RetryRequest | None, max_losses: int, deadline: Duration | None, start_deadline: Duration | None
) -> Policy:
    retry = retry or RetryRequest()
    return Policy(
        max_attempts=retry.max_attempts,
        first_ms=duration_ms(retry.first),
        max_ms=duration_ms(retry.max),
        factor=retry.factor,
        jitter=retry.jitter,
        non_retryable=retry.non_retryable,
        max_losses=max_losses,
        deadline_ms=None if deadline is None else duration_ms(deadline),
        start_deadline_ms=None if start_deadline is None else duration_ms(start_deadline),
    )


def _with(timing: Timing, misfire: MisfireRequest, calendars: CalendarsRequest) -> Timing:
    return msgspec.structs.replace(
        timing,
        misfire=misfire.policy,
        misfire_window_ms=duration_ms(misfire.window),
        misfire_max=misfire.max,
        exclude=calendars.exclude,
        include=calendars.include,
    )


def _json(payload: Any) -> bytes:
    if hasattr(payload, "model_dump_json"):
        return bytes(payload.model_dump_json().encode())
    return msgspec.json.encode(payload)
