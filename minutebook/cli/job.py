"""`minutebook job`: create, look at, cancel and run jobs, through the API."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec import UNSET, Raw

from minutebook.cli.exits import ExitCode
from minutebook.cli.output import Format, Output, note, shown, write_many, write_one
from minutebook.client import Command, Execution, Job, JobRequest, SyncClient
from minutebook.client.times import format_duration, parse_short_duration

app = typer.Typer(help="Jobs: what to run, and when.", no_args_is_help=True)

JobId = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]
Key = Annotated[
    str | None,
    typer.Option(help="Idempotency key: a repeat with the same key changes nothing; made if not given."),
]


def _duration(text: str) -> str:
    """ISO 8601 from `2m` or ISO 8601."""
    try:
        return format_duration(parse_short_duration(text))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _payload(text: str | None) -> Raw | msgspec.UnsetType:
    """JSON as given: text, `@FILE`, or `-` for stdin."""
    if text is None:
        return UNSET
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text()
        msgspec.json.decode(text)
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot be read: {error}", param_hint="--payload") from None
    except msgspec.DecodeError as error:
        raise typer.BadParameter(f"is no JSON: {error}", param_hint="--payload") from None
    return Raw(text.strip().encode())


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
        str | None, typer.Option(help="From now, such as 30s, 2m or PT2M.", parser=_duration)
    ] = None,
    cron: Annotated[str | None, typer.Option(help="Five fields.")] = None,
    zone: Annotated[str | None, typer.Option(help="IANA zone of the cron.")] = None,
    late: Annotated[
        str | None, typer.Option(help="refuse or run, for a run-at more than a day past.")
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(help="Of one attempt, such as 30s.", parser=_duration)
    ] = None,
    key: Key = None,
    output: Output = Format.TABLE,
) -> None:
    """Create a job. Without --run-at, --delay and --cron it runs at once."""
    given = {
        "id": id,
        "queue": queue,
        "run_at": run_at,
        "delay": delay,
        "cron": cron,
        "zone": zone,
        "late": late,
        "timeout": timeout,
    }
    fields: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    request = JobRequest(task=task, payload=_payload(payload), **fields)
    with SyncClient() as client:
        answer = client.submit(request, key=key)
    if isinstance(answer, Command):
        raise undecided(answer, output)
    _write_job(answer, output)


@app.command()
def show(job: JobId, output: Output = Format.TABLE) -> None:
    """Show a job as it stands."""
    with SyncClient() as client:
        _write_job(client.get(job), output)


@app.command()
def history(job: JobId, output: Output = Format.TABLE) -> None:
    """List the attempts of a job, oldest first."""
    columns = ("execution", "attempt", "status", "due", "started", "ended", "worker", "error")
    with SyncClient() as client:
        items = client.executions(job)
        write_many(items, output, columns, (_history_row(item) for item in items))


@app.command()
def cancel(
    job: JobId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Cancel a job: no instant and no attempt after this."""
    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter("is needed where nobody can be asked", param_hint="--yes")
        typer.confirm(f"Cancel {shown(job)}?", abort=True, err=True)
    with SyncClient() as client:
        answer = client.cancel(job)
        if answer is not None:
            raise undecided(answer, output)
        _write_job(client.get(job), output)


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


def _write_job(job: Job, output: Format) -> None:
    counts = ", ".join(
        f"{count} {name}" for name, count in msgspec.structs.asdict(job.executions).items() if count
    )
    when = f"{job.cron} ({job.zone})" if job.cron else job.run_at
    fields = {
        "id": job.id,
        "task": job.task,
        "status": job.status,
        "when": when,
        "next": job.next_at,
        "queue": job.queue,
        "payload": bytes(job.payload).decode(),
        "timeout": job.timeout,
        "created": job.created_at,
        "executions": counts or "none yet",
    }
    write_one(job, output, fields)


def _history_row(item: Execution) -> tuple[object, ...]:
    error = f"{item.error.type}: {item.error.message}" if item.error else None
    status = f"{item.status} ({item.reason}, {item.count})" if item.reason else item.status
    return (
        item.execution_id,
        item.attempt,
        status,
        item.due_at,
        item.started_at,
        item.ended_at,
        item.worker,
        error,
    )
