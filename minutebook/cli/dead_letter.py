"""`minutebook dead-letter`: what was given up, through the API; many of them run again or are discarded, as an operation.

`minutebook execution redrive` and `discard` are about a single one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from msgspec import UNSET

from minutebook.cli.operation import WATCH, about, begun
from minutebook.cli.options import Key, Reason, Yes, ask
from minutebook.cli.output import Format, Output, note, write_many, write_one
from minutebook.client import DeadLetter, DeadLetterFilter, DryRun, SyncClient

app = typer.Typer(help="Dead letters: executions that were given up.", no_args_is_help=True)
_COLUMNS = ("execution", "task", "queue", "given up", "cause", "attempt", "error")


class CauseName(StrEnum):
    """Why an execution was given up."""

    PERMANENT = "permanent"
    ATTEMPTS = "attempts"
    LOSSES = "losses"
    DEADLINE = "deadline"


Task = Annotated[str | None, typer.Option(help="Only those of this task.")]
QueueName = Annotated[str | None, typer.Option("--queue", help="Only those of this queue.")]
ErrorType = Annotated[str | None, typer.Option(help="Only those whose last error had this type.")]
CauseOption = Annotated[CauseName | None, typer.Option("--cause", help="Only those given up for this cause.")]
_REASONS = ("cause", "error", "count")


@app.command("list")
def list_(
    task: Task = None,
    queue: QueueName = None,
    error_type: ErrorType = None,
    cause: CauseOption = None,
    output: Output = Format.TABLE,
) -> None:
    """List executions that were given up, and neither redriven nor discarded since, the earliest first."""
    with SyncClient() as client:
        items = client.dead_letters(
            task=task, queue=queue, error_type=error_type, cause=None if cause is None else cause.value
        )
        write_many(items, output, _COLUMNS, map(_row, items))


JobPrefix = Annotated[str | None, typer.Option(help="Only those of jobs whose ids start so.")]
GivenUpFrom = Annotated[
    str | None,
    typer.Option("--from", help="Only those given up then or later, such as 2030-01-31T08:00:00Z."),
]
GivenUpUntil = Annotated[str | None, typer.Option("--until", help="Only those given up before.")]
Everything = Annotated[bool, typer.Option("--all", help="All of them: needed where nothing above is given.")]
TryOut = Annotated[bool, typer.Option("--dry-run", help="Count them by reason, change nothing.")]
Rate = Annotated[
    int | None, typer.Option(min=1, max=10_000, help="At most so many a second, over all partitions.")
]


@app.command()
def redrive(
    task: Task = None,
    queue: QueueName = None,
    error_type: ErrorType = None,
    cause: CauseOption = None,
    job_prefix: JobPrefix = None,
    given_up_from: GivenUpFrom = None,
    given_up_until: GivenUpUntil = None,
    everything: Everything = False,
    dry_run: TryOut = False,
    rate: Rate = None,
    reason: Reason = "",
    watch: WATCH = False,
    yes: Yes = False,
    key: Key = None,
    output: Output = Format.TABLE,
) -> None:
    """Run all dead executions again that fit and were given up before now. It goes on by itself, behind live work."""
    wanted = _wanted(task, queue, error_type, cause, job_prefix, given_up_from, given_up_until)
    _check_said(wanted, everything=everything)
    with SyncClient() as client:
        if _is_counted(client, wanted, "Run {} dead executions again?", output, dry_run=dry_run, yes=yes):
            return
        operation = client.redrive_many(wanted, rate_per_s=rate, reason=reason, key=key)
        begun(client, operation, output, watch=watch)


@app.command()
def discard(
    task: Task = None,
    queue: QueueName = None,
    error_type: ErrorType = None,
    cause: CauseOption = None,
    job_prefix: JobPrefix = None,
    given_up_from: GivenUpFrom = None,
    given_up_until: GivenUpUntil = None,
    everything: Everything = False,
    dry_run: TryOut = False,
    rate: Rate = None,
    reason: Reason = "",
    watch: WATCH = False,
    yes: Yes = False,
    key: Key = None,
    output: Output = Format.TABLE,
) -> None:
    """Discard all dead executions that fit and were given up before now: they need no attention any more. This is final."""
    wanted = _wanted(task, queue, error_type, cause, job_prefix, given_up_from, given_up_until)
    _check_said(wanted, everything=everything)
    with SyncClient() as client:
        if _is_counted(client, wanted, "Discard {} dead executions?", output, dry_run=dry_run, yes=yes):
            return
        operation = client.discard_many(wanted, rate_per_s=rate, reason=reason, key=key)
        begun(client, operation, output, watch=watch)


def _wanted(
    task: str | None,
    queue: str | None,
    error_type: str | None,
    cause: CauseName | None,
    job_prefix: str | None,
    given_up_from: str | None,
    given_up_until: str | None,
) -> DeadLetterFilter:
    return DeadLetterFilter(
        task=task or UNSET,
        queue=queue or UNSET,
        error_type=error_type or UNSET,
        cause=UNSET if cause is None else cause.value,
        job_prefix=job_prefix or UNSET,
        given_up_from=given_up_from or UNSET,
        given_up_until=given_up_until or UNSET,
    )


def _check_said(wanted: DeadLetterFilter, *, everything: bool) -> None:
    if wanted == DeadLetterFilter() and not everything:
        raise typer.BadParameter("say which: give a filter, or --all", param_hint="--all")


def _is_counted(
    client: SyncClient, wanted: DeadLetterFilter, question: str, output: Format, *, dry_run: bool, yes: bool
) -> bool:
    """Whether that they are counted is all that was asked for; if not, and not agreed to yet, people are asked."""
    if dry_run or not yes:
        counted = client.count_dead_letters(wanted)
        if dry_run:
            _write_counts(counted, output)
            return True
        ask(question.format(about(counted)), yes=yes)
    return False


def _write_counts(counted: DryRun, output: Format) -> None:
    rows = [(item.cause, item.error_type, item.count) for item in counted.reasons]
    if output is Format.TABLE:
        note(f"{about(counted)} dead executions fit; nothing was changed.")
        write_many(counted.reasons, output, _REASONS, rows)
    else:
        write_one(counted, output, {})


def _row(item: DeadLetter) -> tuple[object, ...]:
    error = f"{item.error.type}: {item.error.message}"
    return item.execution_id, item.task, item.queue, item.given_up_at, item.cause, item.attempt, error
