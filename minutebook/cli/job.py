"""`minutebook job`: create, look at, cancel and run jobs, through the API."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from minutebook.cli.exits import ExitCode
from minutebook.cli.options import Key, Reason, Wait, Yes, ask, duration, given_options, read_payload
from minutebook.cli.outcomes import HISTORY, await_outcome, history_row
from minutebook.cli.output import Format, Output, note, shown, write_many, write_one
from minutebook.cli.rules import rule_of
from minutebook.cli.timing_options import (
    CalendarExclude,
    CalendarInclude,
    DayMatch,
    EndAt,
    Every,
    Fold,
    Gap,
    Jitter,
    MaxRuns,
    Misfire,
    MisfireMax,
    MisfireWindow,
    Overlap,
    PauseOnFailure,
    StartAt,
    Zone,
)
from minutebook.client import (
    CalendarsRequest,
    Command,
    Job,
    JobRequest,
    MisfireRequest,
    RetryRequest,
    SyncClient,
)
from minutebook.client.models import MisfirePolicy
from minutebook.ids import execution_id
from minutebook.times import parse_instant

app = typer.Typer(help="Jobs: what to run, and when.", no_args_is_help=True)

JobId = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]


@app.command()
def submit(
    task: Annotated[str, typer.Argument(help="Name of the task.")],
    payload: Annotated[str | None, typer.Option(help="JSON, @FILE, or - for stdin.")] = None,
    id: Annotated[str | None, typer.Option("--id", help="Id of the job; made if not given.")] = None,
    queue: Annotated[str | None, typer.Option(help="Queue; `default` if not given.")] = None,
    run_at: Annotated[
        str | None, typer.Option(help="Instant with offset, such as 2030-01-31T08:00:00Z.")
    ] = None,
    delay: Annotated[
        str | None, typer.Option(help="From now, such as 30s, 2m or PT2M.", parser=duration)
    ] = None,
    cron: Annotated[str | None, typer.Option(help="When, as in `minutebook schedule preview`.")] = None,
    every: Every = None,
    zone: Zone = None,
    start_at: StartAt = None,
    end_at: EndAt = None,
    max_runs: MaxRuns = None,
    calendar_exclude: CalendarExclude = None,
    calendar_include: CalendarInclude = None,
    gap: Gap = None,
    fold: Fold = None,
    day_match: DayMatch = None,
    jitter: Jitter = None,
    misfire: Misfire = None,
    misfire_window: MisfireWindow = None,
    misfire_max: MisfireMax = None,
    overlap: Overlap = None,
    pause_on_failure: PauseOnFailure = None,
    late: Annotated[
        str | None, typer.Option(help="refuse or run, for a run-at more than a day past.")
    ] = None,
    timeout: Annotated[str | None, typer.Option(help="Of one attempt, such as 30s.", parser=duration)] = None,
    retry_max_attempts: Annotated[
        int | None, typer.Option(help="Failures after which it is given up; 5 if not given.")
    ] = None,
    retry_first: Annotated[
        str | None, typer.Option(help="Wait before the second attempt, such as 1s.", parser=duration)
    ] = None,
    retry_max: Annotated[
        str | None, typer.Option(help="Longest wait between attempts, such as 1h.", parser=duration)
    ] = None,
    max_losses: Annotated[
        int | None, typer.Option(help="Lost attempts after which it is given up; 10 if not given.")
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(help="For all attempts, from the due instant.", parser=duration)
    ] = None,
    start_deadline: Annotated[
        str | None, typer.Option(help="For the first start, from the due instant.", parser=duration)
    ] = None,
    stuck_after: Annotated[
        str | None,
        typer.Option(help="Without progress for so long an attempt is reported.", parser=duration),
    ] = None,
    on_stuck: Annotated[str | None, typer.Option(help="report or stop; needs --stuck-after.")] = None,
    priority: Annotated[int | None, typer.Option(help="0 to 9, 9 goes first; 5 if not given.")] = None,
    limit: Annotated[
        str | None, typer.Option(help="Limit that holds beside the tenant's, where one is declared.")
    ] = None,
    notify: Annotated[
        str | None, typer.Option(help="https URL that its alerts go to; the tenant's target if not given.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Tag of the job; may be given up to 16 times.")
    ] = None,
    key: Key = None,
    wait: Wait = None,
    output: Output = Format.TABLE,
) -> None:
    """Create a job. Without --run-at, --delay, --cron and --every it runs at once. --wait waits for its first execution."""
    retry = given_options({"max_attempts": retry_max_attempts, "first": retry_first, "max": retry_max})
    misfires = given_options({"policy": misfire, "window": misfire_window, "max": misfire_max})
    calendars = given_options({"exclude": calendar_exclude, "include": calendar_include})
    given = {
        "id": id,
        "queue": queue,
        "run_at": run_at,
        "delay": delay,
        "cron": cron,
        "every": every,
        "zone": zone,
        "start_at": start_at,
        "end_at": end_at,
        "max_runs": max_runs,
        "calendars": CalendarsRequest(**calendars) if calendars else None,
        "gap": gap,
        "fold": fold,
        "day_match": day_match,
        "jitter": jitter,
        "misfire": MisfireRequest(**misfires) if misfires else None,
        "overlap": overlap,
        "pause_on_failure": pause_on_failure,
        "late": late,
        "timeout": timeout,
        "retry": RetryRequest(**retry) if retry else None,
        "max_losses": max_losses,
        "deadline": deadline,
        "start_deadline": start_deadline,
        "stuck_after": stuck_after,
        "on_stuck": on_stuck,
        "priority": priority,
        "limit": limit,
        "notify": notify,
        "tags": tag or None,
    }
    request = JobRequest(task=task, payload=read_payload(payload), **given_options(given))
    with SyncClient() as client:
        answer = client.submit(request, key=key)
        if isinstance(answer, Command):
            raise undecided(answer, output)
        if wait is not None:
            await_outcome(client, _first_execution(answer), wait, output)
        else:
            write_job(answer, output)


def _first_execution(job: Job) -> str:
    """Id of the execution at a new job's first instant."""
    at = job.next_at or job.run_at
    if at is None:
        raise typer.BadParameter(f"{job.id} has no instant to wait for", param_hint="--wait")
    return execution_id(job.id, parse_instant(at))


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
def run_now(
    job: JobId, reason: Reason = "", key: Key = None, wait: Wait = None, output: Output = Format.TABLE
) -> None:
    """Run a job once at once, beside its schedule."""
    with SyncClient() as client:
        answer = client.run_now(job, reason=reason, key=key)
        if isinstance(answer, Command):
            raise undecided(answer, output)
        if wait is not None:
            await_outcome(client, answer.execution_id, wait, output)
            return
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
        "tags": ", ".join(job.tags) or None,
        "paused": f"{shown(job.paused.at)} ({job.paused.cause}) {job.paused.reason}" if job.paused else None,
        "version": job.version,
        "created": job.created_at,
        "executions": counts or "none yet",
    }
    write_one(job, output, {name: value for name, value in fields.items() if value is not None})


def _when(job: Job) -> str:
    """The rule of a job, and what differs from the defaults of it."""
    parts = [
        rule_of(job),
        f"from {shown(job.start_at)}" if job.start_at else "",
        f"until {shown(job.end_at)}" if job.end_at else "",
        f"{job.max_runs} runs at most" if job.max_runs else "",
        f"up to {job.jitter} later" if job.jitter != "PT0S" else "",
        f"not on {', '.join(job.calendars.exclude)}" if job.calendars.exclude else "",
        f"only on {', '.join(job.calendars.include)}" if job.calendars.include else "",
    ]
    return "; ".join(filter(None, parts))


def _misfire(job: Job) -> str:
    return f"{job.misfire.policy}, within {job.misfire.window}, {job.misfire.max} at most"
