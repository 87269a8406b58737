"""`minutebook job`: create, look at, cancel and run jobs, through the API."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
import typer

from minutebook.cli import job_options as options
from minutebook.cli.exits import ExitCode
from minutebook.cli.options import Key, Reason, Yes, ask, read_payload
from minutebook.cli.output import Format, Output, note, write_many, write_one
from minutebook.client import (
    CalendarsRequest,
    Command,
    Execution,
    Job,
    JobRequest,
    MisfireRequest,
    RetryRequest,
    SyncClient,
)
from minutebook.client.models import MisfirePolicy

app = typer.Typer(help="Jobs: what to run, and when.", no_args_is_help=True)

JobId = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]
HISTORY: Final = ("execution", "attempt", "status", "due", "started", "ended", "worker", "error")
"""Columns of a table of attempts."""


@app.command()
def submit(
    ctx: typer.Context,
    task: Annotated[str, typer.Argument(help="Name of the task.")],
    payload: options.Payload = None,
    id: Annotated[str | None, typer.Option("--id", help="Id of the job; made if not given.")] = None,
    queue: options.Queue = None,
    run_at: options.RunAt = None,
    delay: options.Delay = None,
    cron: options.Cron = None,
    every: options.Every = None,
    zone: options.Zone = None,
    start_at: options.StartAt = None,
    end_at: options.EndAt = None,
    max_runs: options.MaxRuns = None,
    calendar_exclude: options.CalendarExclude = None,
    calendar_include: options.CalendarInclude = None,
    gap: options.Gap = None,
    fold: options.Fold = None,
    day_match: options.DayMatch = None,
    jitter: options.Jitter = None,
    misfire: options.Misfire = None,
    misfire_window: options.MisfireWindow = None,
    misfire_max: options.MisfireMax = None,
    overlap: options.Overlap = None,
    pause_on_failure: options.PauseOnFailure = None,
    late: options.Late = None,
    timeout: options.Timeout = None,
    retry_max_attempts: options.RetryMaxAttempts = None,
    retry_first: options.RetryFirst = None,
    retry_max: options.RetryMax = None,
    max_losses: options.MaxLosses = None,
    deadline: options.Deadline = None,
    start_deadline: options.StartDeadline = None,
    stuck_after: options.StuckAfter = None,
    on_stuck: options.OnStuck = None,
    priority: options.Priority = None,
    limit: options.Limit = None,
    notify: options.Notify = None,
    key: Key = None,
    output: Output = Format.TABLE,
) -> None:
    """Create a job. Without --run-at, --delay, --cron and --every it runs at once."""
    objects: dict[str, type[msgspec.Struct]] = {
        "retry": RetryRequest,
        "misfire": MisfireRequest,
        "calendars": CalendarsRequest,
    }
    given = options.members(ctx.params, JobRequest, objects)
    request = JobRequest(payload=read_payload(payload), **given)
    with SyncClient() as client:
        answer = client.submit(request, key=key)
    if isinstance(answer, Command):
        raise undecided(answer, output)
    write_job(answer, output)


@app.command()
def show(job: JobId, output: Output = Format.TABLE) -> None:
    """Show a job as it stands."""
    with SyncClient() as client:
        write_job(client.get(job), output)


@app.command()
def history(job: JobId, output: Output = Format.TABLE) -> None:
    """List the attempts of a job, oldest first."""
    with SyncClient() as client:
        items = client.executions(job)
        write_many(items, output, HISTORY, map(history_row, items))


@app.command()
def cancel(
    job: JobId,
    reason: Reason = "",
    yes: Yes = False,
    output: Output = Format.TABLE,
) -> None:
    """Cancel a job: no instant and no attempt after this."""
    ask(f"Cancel {job}?", yes=yes)
    with SyncClient() as client:
        answer = client.cancel(client.get(job), reason=reason)
        if answer is not None:
            raise undecided(answer, output)
        write_job(client.get(job), output)


@app.command("run-now")
def run_now(job: JobId, key: Key = None, output: Output = Format.TABLE) -> None:
    """Run a job once at once, beside its schedule."""
    with SyncClient() as client:
        answer = client.run_now(job, key=key)
    if isinstance(answer, Command):
        raise undecided(answer, output)
    write_one(answer, output, msgspec.structs.asdict(answer))


def undecided(command: Command, output: Format) -> typer.Exit:
    """Tell that a command is durable but not decided; the exit that says so."""
    write_one(command, output, msgspec.structs.asdict(command))
    note("The command is durable, but was not decided in time; it will be.")
    return typer.Exit(ExitCode.PARTLY_DONE)


def write_job(job: Job, output: Format) -> None:
    """Show a job as it stands."""
    counts = ", ".join(
        f"{count} {name}" for name, count in msgspec.structs.asdict(job.executions).items() if count
    )
    fields = {
        "id": job.id,
        "task": job.task,
        "status": job.status,
        "when": _when(job),
        "misfire": None if job.misfire == MisfirePolicy() else _misfire(job),
        "overlap": None if job.overlap == "allow" else job.overlap,
        "next": job.next_at,
        "queue": job.queue,
        "payload": bytes(job.payload).decode(),
        "timeout": job.timeout,
        "retries": f"{job.retry.max_attempts} attempts, after {job.retry.first} to {job.retry.max}",
        "deadline": job.deadline,
        "start deadline": job.start_deadline,
        "stuck after": f"{job.stuck_after}, then {job.on_stuck}" if job.stuck_after else None,
        "priority": job.priority,
        "limit": job.limit,
        "paused": f"{job.paused.at} ({job.paused.cause}) {job.paused.reason}" if job.paused else None,
        "version": job.version,
        "created": job.created_at,
        "executions": counts or "none yet",
    }
    write_one(job, output, {name: value for name, value in fields.items() if value is not None})


def _when(job: Job) -> str:
    """The rule of a job, and what differs from the defaults of it."""
    rule = f"{job.cron} ({job.zone})" if job.cron else f"every {job.every}" if job.every else job.run_at
    parts = [
        str(rule),
        f"from {job.start_at}" if job.start_at else "",
        f"until {job.end_at}" if job.end_at else "",
        f"{job.max_runs} runs at most" if job.max_runs else "",
        f"up to {job.jitter} later" if job.jitter != "PT0S" else "",
        f"not on {', '.join(job.calendars.exclude)}" if job.calendars.exclude else "",
        f"only on {', '.join(job.calendars.include)}" if job.calendars.include else "",
    ]
    return "; ".join(filter(None, parts))


def _misfire(job: Job) -> str:
    return f"{job.misfire.policy}, within {job.misfire.window}, {job.misfire.max} at most"


def history_row(item: Execution) -> tuple[object, ...]:
    """One attempt, under the columns of `HISTORY`."""
    error = f"{item.error.type}: {item.error.message}" if item.error else None
    return (
        item.execution_id,
        item.attempt,
        _status(item),
        item.due_at,
        item.started_at,
        item.ended_at,
        item.worker,
        error,
    )


def _status(item: Execution) -> str:
    """Status, and what is behind it: reason and number of skipped instants, what is waited for, how far it is."""
    if item.reason:
        return f"skipped ({item.reason}, {item.count})" if item.count else f"skipped ({item.reason})"
    if item.waiting_for:
        return f"queued ({item.waiting_for})"
    if item.status == "running" and item.progress is not None:
        return f"running ({item.progress.fraction:.0%} {item.progress.text})"
    return item.status
