"""`python -m replay story`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from minutebook.history.bodies import event_body
from minutebook.history.steps import Step
from minutebook.history.story import sentence
from minutebook.ids import is_execution_id, is_name
from minutebook.times import format_instant
from replay.frames import reader_of
from replay.story import home_of, steps_in, wanted_of
from replay.verbs.common import (
    ExitCode,
    Files,
    Output,
    Tenant,
    Topic,
    UntilText,
    opened,
    progress,
    tell_void,
    until_of,
)


def story(
    subject: Annotated[str, typer.Argument(metavar="JOB|EXECUTION", help="Id of a job or of an execution.")],
    tenant: Tenant,
    topic: Topic = None,
    files: Files = None,
    until: UntilText = None,
    output: Output = "table",
) -> None:
    """Everything that happened to a job or an execution, in order, in plain words.

    Exit code 0: there is a story. 2: wrong usage. 3: the log knows no such job, or there is no such topic.
    5: Kafka cannot be reached.
    """
    if not (is_name(subject) or is_execution_id(subject)):
        raise typer.BadParameter("is neither the id of a job nor of an execution", param_hint="JOB|EXECUTION")
    wanted, end = wanted_of(tenant, subject), until_of(until)
    with opened(topic, files, tenant=tenant) as log:
        home = home_of(log, wanted)
        reader = reader_of(log, home)
        with progress(log, [home]) as advance:
            steps = list(steps_in(log, wanted, end, advance, reader))
        if start := log.bounds(home)[0]:
            typer.echo(
                f"note: partition {home} begins at offset {start} here: what was before is not told", err=True
            )
    tell_void(home, reader)
    if not steps:
        typer.echo(f"error: the log says nothing of {subject} of tenant {tenant}", err=True)
        raise typer.Exit(ExitCode.NOT_FOUND)
    if output == "json":
        typer.echo(msgspec.json.format(msgspec.json.encode([event_body(step) for step in steps]), indent=2))
    else:
        _write(steps, subject)


def _write(steps: list[Step], subject: str) -> None:
    table = Table(title=f"The story of {subject}", title_justify="left")
    for column in ("at", "log position", "decided by", "what happened"):
        table.add_column(column, overflow="fold")
    for step in steps:
        table.add_row(
            format_instant(step.at),
            f"{step.place.partition}:{step.place.offset}",
            escape(f"{step.owner} (epoch {step.epoch})"),
            escape(sentence(step)),
        )
    Console().print(table)
