"""`python -m replay at`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from minutebook.history.steps import Wanted
from replay.frames import void_note
from replay.reading import Log
from replay.state_at import StateThen, state_at
from replay.story import home_of
from replay.verbs.common import ExitCode, Files, Output, Topic, opened, progress, until_of


def at(
    when: Annotated[
        str,
        typer.Argument(
            metavar="TIME|OFFSET", help="A time such as 2026-03-01T12:00:00Z, or an offset with --partition."
        ),
    ],
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="Only this one's.", envvar="MINUTEBOOK_REPLAY_TENANT")
    ] = None,
    job: Annotated[str | None, typer.Option("--job", help="This job, too; needs --tenant.")] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Only this partition.")] = None,
    topic: Topic = None,
    files: Files = None,
    output: Output = "table",
) -> None:
    """The state as it was then: jobs and executions by status, what was due next, and one job if it is named.

    Exit code 0: done. 2: wrong usage. 3: no such job then, or no such topic. 5: Kafka cannot be reached.
    """
    until = until_of(when, "TIME|OFFSET")
    if job is not None and tenant is None:
        raise typer.BadParameter("is needed with --job", param_hint="--tenant")
    if until.offset is not None and partition is None:
        raise typer.BadParameter(
            "is needed with an offset: each partition counts for itself", param_hint="--partition"
        )
    with opened(topic, files, needs_whole=True) as log:
        partitions = _partitions(log, partition, tenant, job)
        with progress(log, partitions) as advance:
            found = state_at(log, partitions, until, tenant, job, advance)
    if output == "json":
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    else:
        _write(found)
    if job is not None and found.job is None:
        typer.echo(f"error: there was no job {job} of tenant {tenant} then", err=True)
        raise typer.Exit(ExitCode.NOT_FOUND)


def _partitions(log: Log, partition: int | None, tenant: str | None, job: str | None) -> list[int]:
    """That of the job where one is named: nothing else need be read."""
    there = log.partitions()
    if partition is not None and partition not in there:
        raise typer.BadParameter(f"there is no partition {partition}", param_hint="--partition")
    if partition is not None:
        return [partition]
    return there if job is None else [home_of(log, Wanted(tenant or "", job))]


def _write(found: StateThen) -> None:
    console = Console()
    counts = Table("what", "status", "count", title="As it was", title_justify="left")
    for what, numbers in (("jobs", found.jobs), ("open executions", found.open_executions)):
        for status, number in numbers.items():
            counts.add_row(what, status, str(number))
    console.print(counts)
    due = Table("due", "tenant", "job", "execution", title="Due next", title_justify="left")
    for item in found.due_next:
        due.add_row(item.at, item.tenant, escape(item.job_id), escape(item.execution_id or ""))
    console.print(due)
    if found.job is not None:
        console.print_json(msgspec.json.encode(found.job).decode())
    for part in found.partitions:
        if part.now is None:
            console.print(f"partition {part.partition}: no decision by then", highlight=False)
            continue
        console.print(
            f"partition {part.partition}: through offset {part.position}, {part.now}, {part.owner} (epoch {part.epoch})",
            markup=False,
            highlight=False,
        )
    for part in found.partitions:
        if note := void_note(part.partition, part.position, part.void_at_end):
            console.print(f"note: {note}", markup=False, highlight=False)
