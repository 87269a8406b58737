"""`minutebook dead-letter`: what was given up, through the API. `minutebook execution redrive` runs one again."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from minutebook.cli.output import Format, Output, write_many
from minutebook.client import DeadLetter, SyncClient

app = typer.Typer(help="Dead letters: executions that were given up.", no_args_is_help=True)
_COLUMNS = ("execution", "task", "queue", "given up", "cause", "attempt", "error")


class CauseName(StrEnum):
    """Why an execution was given up."""

    PERMANENT = "permanent"
    ATTEMPTS = "attempts"
    LOSSES = "losses"
    DEADLINE = "deadline"


@app.callback()
def _group() -> None:
    """Keeps `list` a subcommand although it is the only one."""


@app.command("list")
def list_(
    task: Annotated[str | None, typer.Option(help="Only those of this task.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only those of this queue.")] = None,
    error_type: Annotated[str | None, typer.Option(help="Only those whose last error had this type.")] = None,
    cause: Annotated[CauseName | None, typer.Option(help="Only those given up for this cause.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """List executions that were given up and not redriven since, the earliest first."""
    with SyncClient() as client:
        items = client.dead_letters(
            task=task, queue=queue, error_type=error_type, cause=None if cause is None else cause.value
        )
        write_many(items, output, _COLUMNS, map(_row, items))


def _row(item: DeadLetter) -> tuple[object, ...]:
    error = f"{item.error.type}: {item.error.message}"
    return item.execution_id, item.task, item.queue, item.given_up_at, item.cause, item.attempt, error
