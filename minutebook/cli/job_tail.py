"""`minutebook job tail`: what becomes of a job's executions, as lines, until it is interrupted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Final

import typer

from minutebook.cli.job import JobId
from minutebook.cli.job_lists import execution_row
from minutebook.cli.options import milliseconds
from minutebook.cli.output import Format, Output, write_item, write_line
from minutebook.client import SyncClient
from minutebook.client.list_models import ExecutionSummary

_LOOKED_AT: Final = 200
"""The latest executions, whose changes are seen."""


def tail(
    job: JobId,
    lines: Annotated[int, typer.Option(min=0, max=_LOOKED_AT, help="Executions shown at first.")] = 10,
    every: Annotated[
        int | None,
        typer.Option(help="How often to look; 1s if not given.", parser=milliseconds, metavar="DURATION"),
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Print a line for each change of a job's latest executions, until Ctrl-C. With JSON, an execution a line."""
    with SyncClient() as client:
        client.get(job)
        for item in changes(client, job, lines, (1_000 if every is None else every) / 1_000):
            if output is Format.TABLE:
                write_line(execution_row(item))
            else:
                write_item(item)


def changes(client: SyncClient, job: str, lines: int, every_s: float) -> Iterator[ExecutionSummary]:
    """The latest `lines` executions of a job, the earliest first, and then each that is new or has changed, for ever."""
    known = _latest(client, job)
    yield from list(known.values())[len(known) - lines if lines < len(known) else 0 :]
    while True:
        time.sleep(every_s)
        found = _latest(client, job)
        for name, item in found.items():
            if known.get(name) != item:
                yield item
        known |= found
        for name in list(known)[: -2 * _LOOKED_AT]:
            del known[name]


def _latest(client: SyncClient, job: str) -> dict[str, ExecutionSummary]:
    """The latest executions by id, the earliest first."""
    found = list(client.all_executions(job_id=job, order="-scheduled", limit=_LOOKED_AT))
    return {item.execution_id: item for item in reversed(found)}
