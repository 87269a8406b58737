"""`minutebook job events`, `job why` and `execution why`: the past, read from the log through the API."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from minutebook.cli.execution import ExecutionId
from minutebook.cli.execution import app as execution_app
from minutebook.cli.job import JobId
from minutebook.cli.job_changes import app as app
from minutebook.cli.output import Format, Output, write_many, write_one
from minutebook.client import SyncClient, WhyAnswer

_EVENTS: Final = ("at", "log position", "decided by", "what happened")
_REASONS: Final = ("at", "log position", "because")


@app.command()
def events(job: JobId, output: Output = Format.TABLE) -> None:
    """List everything that the log says of a job, in the order in which it was decided."""
    with SyncClient() as client:
        items = list(client.events(job))
    rows = ((item.at, f"{item.partition}:{item.offset}", item.owner, item.text) for item in items)
    write_many(items, output, _EVENTS, rows)


@app.command()
def why(
    job: JobId,
    at: Annotated[str, typer.Argument(metavar="AT", help="Instant, such as 2030-01-31T02:30:00Z.")],
    output: Output = Format.TABLE,
) -> None:
    """Explain why a job ran at an instant, ran late, or did not run: facts from the log."""
    with SyncClient() as client:
        _write(client.why(job, at), output)


@execution_app.command("why")
def why_execution(execution: ExecutionId, output: Output = Format.TABLE) -> None:
    """Explain why an execution ran, ran late, waits, or did not run: facts from the log."""
    with SyncClient() as client:
        _write(client.why_execution(execution), output)


def _write(answer: WhyAnswer, output: Format) -> None:
    if output is not Format.TABLE:
        write_one(answer, output, {})
        return
    late = None if answer.late_ms is None else f"{answer.late_ms} ms"
    told = {
        "execution": answer.execution_id,
        "verdict": answer.verdict.replace("_", " "),
        "started after due": late,
        "attempts": answer.attempts or None,
    }
    write_one(answer, output, {name: value for name, value in told.items() if value is not None})
    rows = (
        (
            reason.at,
            None if reason.event_id is None else ":".join(reason.event_id.split(".")[:2]),
            reason.text,
        )
        for reason in answer.reasons
    )
    write_many(answer.reasons, output, _REASONS, rows)
