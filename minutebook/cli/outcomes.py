"""Executions as they are shown, and their outcomes as they are waited for."""

from __future__ import annotations

from typing import Final

import typer

from minutebook.cli.exits import ExitCode
from minutebook.cli.output import Format, note, write_many, write_one
from minutebook.client import Discarded, Execution, SyncClient, WholeExecution

HISTORY: Final = ("execution", "attempt", "status", "due", "started", "ended", "worker", "error")
"""Columns of a table of attempts."""


def await_outcome(client: SyncClient, execution: str, wait_s: int, output: Format) -> None:
    """Wait for the outcome of an execution, and show it. Exits with 1 where it did not succeed, with 5 where it has none yet."""
    found = client.execution(execution, wait=wait_s)
    write_execution(found, output)
    if found.outcome is None:
        note(f"No outcome within {wait_s} s; it is {found.status}.")
        raise typer.Exit(ExitCode.UNREACHABLE)
    if found.outcome != "succeeded":
        raise typer.Exit(ExitCode.NO)


def write_execution(found: WholeExecution, output: Format) -> None:
    """An execution and its attempts."""
    fields = {
        "id": found.execution_id,
        "job": found.job_id,
        "status": found.status,
        "outcome": found.outcome or "none yet",
        "scheduled": found.scheduled_at,
        "redriven": found.generation,
        "discarded": discard_text(found.discarded),
        "result": bytes(found.attempts[-1].result).decode(),
    }
    write_one(found, output, fields)
    if output is Format.TABLE:
        write_many(found.attempts, output, HISTORY, map(history_row, found.attempts))


def discard_text(discarded: Discarded | None) -> str | None:
    """When an execution was discarded, by whom and why; None where it was not."""
    if discarded is None:
        return None
    why = f": {discarded.reason}" if discarded.reason else ""
    return f"{discarded.at} by {discarded.actor}{why}"


def history_row(item: Execution) -> tuple[object, ...]:
    """One attempt, under the columns of `HISTORY`."""
    error = f"{item.error.type}: {item.error.message}" if item.error else None
    return (
        item.execution_id,
        item.attempt,
        status_text(item),
        item.due_at,
        item.started_at,
        item.ended_at,
        item.worker,
        error,
    )


def status_text(item: Execution) -> str:
    """Status, and what is behind it: reason and number of skipped instants, what is waited for, how far it is."""
    if item.reason:
        return f"skipped ({item.reason}, {item.count})" if item.count else f"skipped ({item.reason})"
    if item.waiting_for:
        return f"queued ({item.waiting_for})"
    if item.status == "running" and item.progress is not None:
        return f"running ({item.progress.fraction:.0%} {item.progress.text})"
    return item.status
