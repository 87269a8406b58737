"""`minutebook watch`: the live stream of what changes, filtered, as lines, until it is interrupted."""

from __future__ import annotations

from typing import Annotated

import typer

from minutebook.cli.filters import Words, read_words
from minutebook.cli.output import Format, Output, note, write_item, write_line
from minutebook.client import SyncClient
from minutebook.client.live_models import Reset

NAMES = ("job_id", "task", "queue", "status")


def watch(
    words: Words = None,
    job: Annotated[str | None, typer.Option(help="Only this job and its executions.")] = None,
    task: Annotated[str | None, typer.Option(help="Only of jobs with this task.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only of jobs in this queue, and the queue.")] = None,
    status: Annotated[str | None, typer.Option(help="Only what has this status, or outcome, now.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Print a line for each thing that changes, as it stands then, until Ctrl-C. With JSON, a change a line.

    Each thing is told at most four times a second, with its last change. A broken connection is made again, and what was
    missed is told.
    """
    asked = read_words(NAMES, words, job_id=job, task=task, queue=queue, status=status)
    with SyncClient() as client:
        for told in client.changes(**asked):
            if isinstance(told, Reset):
                note(f"Changes are missing here: {told.reason}. Read anew what you know.")
            elif output is Format.TABLE:
                write_line((told.at, told.kind, told.id, told.status, told.outcome or None))
            else:
                write_item(told)
