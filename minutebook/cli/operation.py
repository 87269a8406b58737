"""`minutebook operation`: bulk operations on jobs started, all of them listed, watched and cancelled, through the API."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer
from msgspec import UNSET

from minutebook.cli.exits import ExitCode
from minutebook.cli.job import undecided
from minutebook.cli.options import Key, Reason, Yes, ask
from minutebook.cli.output import Format, Output, fault, note, write_many, write_one
from minutebook.cli.progress import progress
from minutebook.client import Command, DryRun, JobDryRun, JobFilter, NotFoundError, Operation, SyncClient

app = typer.Typer(help="Bulk operations: many executions or jobs at once.", no_args_is_help=True)

_COLUMNS = (
    "id",
    "kind",
    "state",
    "matched",
    "done",
    "refused",
    "left",
    "rate",
    "started",
    "ended",
    "by",
    "reason",
    "refused for",
)
_COUNTS = ("status", "task", "queue", "count")
_ENDED = ("completed", "cancelled")
OperationId = Annotated[str, typer.Argument(metavar="OPERATION", help="Id of the operation.")]
WATCH = Annotated[
    bool, typer.Option("--watch", help="Show how far it is until it ends; Ctrl-C only stops looking.")
]


@app.command("list")
def list_(output: Output = Format.TABLE) -> None:
    """List bulk operations, the latest first."""
    with SyncClient() as client:
        items = list(client.operations())
    write_many(items, output, _COLUMNS, (tuple(_fields(item).values()) for item in items))


class JobKind(StrEnum):
    """What is done to jobs."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"


class JobStatus(StrEnum):
    """Of a job that can be changed."""

    ACTIVE = "active"
    PAUSED = "paused"


@app.command()
def start(
    kind: Annotated[JobKind, typer.Argument(help="What to do to all jobs that fit.")],
    task: Annotated[str | None, typer.Option(help="Only those of this task.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only those of this queue.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only those with this tag.")] = None,
    status: Annotated[JobStatus | None, typer.Option(help="Only those with this status.")] = None,
    job_prefix: Annotated[str | None, typer.Option(help="Only those whose ids start so.")] = None,
    created_from: Annotated[
        str | None,
        typer.Option("--from", help="Only those created then or later, such as 2030-01-31T08:00:00Z."),
    ] = None,
    created_until: Annotated[str | None, typer.Option("--until", help="Only those created before.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All of them: needed where nothing above is given.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count them, change nothing.")] = False,
    rate: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="At most so many a second, over all partitions.")
    ] = None,
    reason: Reason = "",
    watch: WATCH = False,
    yes: Yes = False,
    key: Key = None,
    output: Output = Format.TABLE,
) -> None:
    """Pause, resume or cancel all jobs that fit and were created before now. It goes on by itself."""
    wanted = JobFilter(
        task=task or UNSET,
        queue=queue or UNSET,
        tag=tag or UNSET,
        status=UNSET if status is None else status.value,
        job_prefix=job_prefix or UNSET,
        created_from=created_from or UNSET,
        created_until=created_until or UNSET,
    )
    if wanted == JobFilter() and not everything:
        raise typer.BadParameter("say which: give a filter, or --all", param_hint="--all")
    with SyncClient() as client:
        if dry_run or not yes:
            counted = client.count_jobs(kind.value, wanted)
            if dry_run:
                _write_counts(counted, output)
                return
            ask(f"{kind.value.capitalize()} {about(counted)} jobs?", yes=yes)
        operation = client.change_jobs(kind.value, wanted, rate_per_s=rate, reason=reason, key=key)
        begun(client, operation, output, watch=watch)


def begun(client: SyncClient, operation: Operation, output: Format, *, watch: bool) -> None:
    """Write an operation that was started: as it is, with where to look again, or at its end."""
    if not watch:
        note(f"minutebook operation show {operation.id} --watch")
    write(watched(client, operation) if watch else operation, output)


def about(counted: DryRun | JobDryRun) -> str:
    """How many a dry run has found."""
    return str(counted.matched) if counted.complete else f"more than {counted.matched}"


def _write_counts(counted: JobDryRun, output: Format) -> None:
    if output is Format.TABLE:
        note(f"{about(counted)} jobs would change; nothing was changed.")
        rows = ((item.status, item.task, item.queue, item.count) for item in counted.jobs)
        write_many(counted.jobs, output, _COUNTS, rows)
    else:
        write_one(counted, output, {})


@app.command()
def show(operation: OperationId, watch: WATCH = False, output: Output = Format.TABLE) -> None:
    """Show a bulk operation and how far it is."""
    with SyncClient() as client:
        found = client.operation(operation)
        write(watched(client, found) if watch else found, output)


@app.command()
def cancel(
    operation: OperationId,
    reason: Reason = "",
    yes: Yes = False,
    key: Key = None,
    output: Output = Format.TABLE,
) -> None:
    """Cancel a bulk operation: no more of it, within a moment; what is done stays."""
    ask(f"Cancel {operation}?", yes=yes)
    with SyncClient() as client:
        answer = client.cancel_operation(operation, reason=reason, key=key)
    if isinstance(answer, Command):
        raise undecided(answer, output)
    write(answer, output)


def watched(client: SyncClient, operation: Operation) -> Operation:
    """The operation once it has ended; meanwhile, on a terminal, a bar on stderr. Interrupted: as it was last seen."""
    with progress(operation.state) as advance:
        try:
            while operation.state not in _ENDED:
                operation = _seen_again(client, operation)
                told = operation.progress
                advance(told.done + told.refused, told.matched, operation.state)
        except KeyboardInterrupt:
            note(f"It goes on. Look again: minutebook operation show {operation.id} --watch")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
    return operation


def _seen_again(client: SyncClient, operation: Operation) -> Operation:
    """How far it is a second later, or at its end. One that is not decided yet is not there yet."""
    try:
        return client.operation(operation.id, wait=1)
    except NotFoundError:
        if operation.state != "pending":
            raise
        command = client.command(operation.id)
        if command.outcome == "rejected":
            fault(f"{command.reason}: {command.detail}")
            raise typer.Exit(ExitCode.REFUSED) from None
        return operation


def write(operation: Operation, output: Format) -> None:
    """An operation as it stands."""
    write_one(operation, output, _fields(operation))


def _fields(operation: Operation) -> dict[str, Any]:
    told = operation.progress
    values = (
        operation.id,
        operation.kind,
        operation.state,
        told.matched,
        told.done,
        told.refused,
        told.left,
        operation.rate_per_s,
        operation.started_at,
        operation.ended_at,
        operation.actor,
        operation.reason,
        None if operation.refusal is None else operation.refusal.detail,
    )
    return dict(zip(_COLUMNS, values, strict=True))
