"""`minutebook execution`: look at one execution, cancel it, run it again or discard it, through the API."""

from __future__ import annotations

from typing import Annotated

import typer

from minutebook.cli.job import undecided
from minutebook.cli.job_lists import list_executions
from minutebook.cli.options import Key, Reason, Wait, Yes, ask, read_payload
from minutebook.cli.outcomes import await_outcome, write_execution
from minutebook.cli.output import Format, Output
from minutebook.client import Command, SyncClient, WholeExecution

app = typer.Typer(help="Executions: what became of one instant of a job.", no_args_is_help=True)

ExecutionId = Annotated[str, typer.Argument(metavar="EXECUTION", help="Id of the execution.")]


app.command("list")(list_executions)


@app.command()
def show(execution: ExecutionId, wait: Wait = None, output: Output = Format.TABLE) -> None:
    """Show an execution and its attempts. With --wait it ends with 0 only where the execution succeeded."""
    with SyncClient() as client:
        if wait is not None:
            await_outcome(client, execution, wait, output)
        else:
            write_execution(client.execution(execution), output)


@app.command()
def cancel(
    execution: ExecutionId,
    reason: Reason = "",
    yes: Yes = False,
    key: Key = None,
    output: Output = Format.TABLE,
) -> None:
    """Cancel an execution: no attempt after this; what runs is asked to stop. Its job goes on."""
    ask(f"Cancel {execution}?", yes=yes)
    with SyncClient() as client:
        _write_decided(client.cancel_execution(execution, reason=reason, key=key), output)


@app.command()
def redrive(
    execution: ExecutionId,
    payload: Annotated[
        str | None, typer.Option(help="JSON, @FILE, or - for stdin; its own again if not given.")
    ] = None,
    reason: Reason = "",
    yes: Yes = False,
    key: Key = None,
    output: Output = Format.TABLE,
) -> None:
    """Run a dead execution again, under the same id."""
    edited = read_payload(payload)
    ask(f"Run {execution} again?", yes=yes)
    with SyncClient() as client:
        _write_decided(client.redrive(execution, payload=edited, reason=reason, key=key), output)


@app.command()
def discard(
    execution: ExecutionId,
    reason: Reason = "",
    yes: Yes = False,
    key: Key = None,
    output: Output = Format.TABLE,
) -> None:
    """Say that a dead execution needs no attention any more. This is final: it can be redriven no more."""
    ask(f"Discard {execution}?", yes=yes)
    with SyncClient() as client:
        _write_decided(client.discard(execution, reason=reason, key=key), output)


def _write_decided(answer: WholeExecution | Command, output: Format) -> None:
    if isinstance(answer, Command):
        raise undecided(answer, output)
    write_execution(answer, output)
