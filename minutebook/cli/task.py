"""`minutebook task`: the tasks that workers have declared, through the API."""

from __future__ import annotations

from typing import Annotated

import typer

from minutebook.cli.output import Format, Output, write_many, write_one
from minutebook.client import SyncClient
from minutebook.client.fleet import DeclaredTask

app = typer.Typer(help="Tasks: what workers can run, and the payloads they take.", no_args_is_help=True)
_COLUMNS = ("task", "version", "typed", "declared at", "declared by")


@app.command("list")
def list_(output: Output = Format.TABLE) -> None:
    """List the tasks that workers have declared, by name."""
    with SyncClient() as client:
        items = client.tasks()
        write_many(items, output, _COLUMNS, map(_row, items))


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="TASK", help="Name of the task.")],
    output: Output = Format.TABLE,
) -> None:
    """Show a task and the JSON Schema of its payload."""
    with SyncClient() as client:
        found = client.task(name)
    fields = dict(zip(_COLUMNS, _row(found), strict=True))
    write_one(found, output, {**fields, "payload": bytes(found.payload_schema).decode()})


def _row(item: DeclaredTask) -> tuple[object, ...]:
    typed = "yes" if item.typed else "no"
    return item.name, item.version, typed, item.declared_at, item.declared_by
