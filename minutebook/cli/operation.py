"""`minutebook operation`: bulk operations listed, watched and cancelled, through the API."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from minutebook.cli.exits import ExitCode
from minutebook.cli.job import undecided
from minutebook.cli.options import Key, Reason, Yes, ask
from minutebook.cli.output import Format, Output, fault, has_progress, note, write_many, write_one
from minutebook.client import Command, NotFoundError, Operation, SyncClient

app = typer.Typer(help="Bulk operations: many executions at once.", no_args_is_help=True)

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
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not has_progress(),
    )
    with bar:
        task = bar.add_task(operation.state, total=None)
        try:
            while operation.state not in _ENDED:
                operation = _seen_again(client, operation)
                told = operation.progress
                bar.update(
                    task, description=operation.state, total=told.matched, completed=told.done + told.refused
                )
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
