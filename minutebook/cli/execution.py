"""`minutebook execution`: look at one execution, cancel it, run it again, through the API."""

from __future__ import annotations

from typing import Annotated

import typer

from minutebook.cli.exits import ExitCode
from minutebook.cli.job import HISTORY, history_row, undecided
from minutebook.cli.options import Key, Reason, Yes, ask, read_payload
from minutebook.cli.output import Format, Output, note, write_many, write_one
from minutebook.client import Command, SyncClient, WholeExecution
from minutebook.client.times import parse_short_duration

app = typer.Typer(help="Executions: what became of one instant of a job.", no_args_is_help=True)

ExecutionId = Annotated[str, typer.Argument(metavar="EXECUTION", help="Id of the execution.")]


def _seconds(text: str) -> int:
    try:
        return -(-parse_short_duration(text) // 1_000)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


@app.command()
def show(
    execution: ExecutionId,
    wait: Annotated[
        int | None,
        typer.Option(help="Wait so long for its outcome, such as 30s or 10m.", parser=_seconds),
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Show an execution and its attempts. With --wait it ends with 0 only where the execution succeeded."""
    with SyncClient() as client:
        found = client.execution(execution, wait=wait or 0)
    _write(found, output)
    if wait is None or found.outcome == "succeeded":
        return
    if found.outcome is None:
        note(f"No outcome within {wait} s; it is {found.status}.")
        raise typer.Exit(ExitCode.UNREACHABLE)
    raise typer.Exit(ExitCode.NO)


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


def _write_decided(answer: WholeExecution | Command, output: Format) -> None:
    if isinstance(answer, Command):
        raise undecided(answer, output)
    _write(answer, output)


def _write(found: WholeExecution, output: Format) -> None:
    fields = {
        "id": found.execution_id,
        "job": found.job_id,
        "status": found.status,
        "outcome": found.outcome or "none yet",
        "scheduled": found.scheduled_at,
        "redriven": found.generation,
        "result": bytes(found.attempts[-1].result).decode(),
    }
    write_one(found, output, fields)
    if output is Format.TABLE:
        write_many(found.attempts, output, HISTORY, map(history_row, found.attempts))
