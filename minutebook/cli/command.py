"""`minutebook command`: what became of a command that was durable, but not decided in time."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from minutebook.cli.exits import ExitCode
from minutebook.cli.output import Format, Output, write_one
from minutebook.client import SyncClient

app = typer.Typer(help="Commands: what became of one that was not decided in time.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `show` a subcommand although it is the only one."""


@app.command()
def show(
    command: Annotated[str, typer.Argument(metavar="COMMAND", help="Id of the command, as it was told.")],
    output: Output = Format.TABLE,
) -> None:
    """Show what became of a command. Exit code 4 where it was refused, 6 where it is not decided yet."""
    with SyncClient() as client:
        found = client.command(command)
    write_one(found, output, msgspec.structs.asdict(found))
    if found.outcome is None:
        raise typer.Exit(ExitCode.PARTLY_DONE)
    if found.outcome == "rejected":
        raise typer.Exit(ExitCode.REFUSED)
