"""`python -m replay why`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape

from minutebook.history.bodies import why_body
from minutebook.history.steps import Wanted
from minutebook.history.why import Answer
from minutebook.ids import is_name
from minutebook.log.settings import KafkaSettings
from minutebook.times import format_duration, format_instant
from minutebook.wire import topics
from replay.frames import reader_of
from replay.reading import KafkaLog
from replay.story import home_of
from replay.verbs.common import (
    ExitCode,
    Files,
    Output,
    Tenant,
    Topic,
    UntilText,
    instant_of_text,
    opened,
    progress,
    tell_void,
    until_of,
)
from replay.why import why_in


def why(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")],
    at: Annotated[str, typer.Argument(metavar="AT", help="Instant, such as 2026-03-01T02:30:00Z.")],
    tenant: Tenant,
    topic: Topic = None,
    files: Files = None,
    until: UntilText = None,
    output: Output = "table",
) -> None:
    """Why a job ran at an instant, ran late, ran more than once, or did not run: the facts, each with its place in the log.

    Exit code 0: answered. 1: the instant is missing, which is a fault. 2: wrong usage. 3: the log knows no such job.
    5: Kafka cannot be reached.
    """
    if not is_name(job):
        raise typer.BadParameter("is no id of a job", param_hint="JOB")
    instant, end = instant_of_text(at, "AT"), until_of(until)
    with opened(topic, files, tenant=tenant) as log, progress(log, log.partitions()) as advance:
        at_hand = files is None and topic is None
        home = home_of(log, Wanted(tenant, job))
        reader = reader_of(log, home)
        answer = why_in(log, tenant, job, instant, end, advance, _reports if at_hand else None, reader)
    tell_void(home, reader)
    if output == "json":
        typer.echo(msgspec.json.format(msgspec.json.encode(why_body(answer)), indent=2))
    else:
        _write(answer)
    if answer.verdict == "unknown_job":
        raise typer.Exit(ExitCode.NOT_FOUND)
    if answer.verdict == "missing":
        raise typer.Exit(ExitCode.NO)


def _reports() -> KafkaLog:
    kafka = KafkaSettings()
    return KafkaLog(kafka, kafka.topic(topics.REPORTS))


def _write(answer: Answer) -> None:
    console = Console(highlight=False)
    late = f", {format_duration(answer.late_ms)} after it was due" if answer.late_ms else ""
    tries = f", {answer.attempts} attempts" if answer.attempts > 1 else ""
    console.print(
        f"[bold]{escape(answer.job_id)}[/bold] at {format_instant(answer.at)}: "
        f"[bold]{answer.verdict.replace('_', ' ')}[/bold]{late}{tries}"
    )
    for reason in answer.reasons:
        when = format_instant(reason.at) if reason.at is not None else "-"
        console.print(f"  {when}  {escape(reason.text)}  [dim]{reason.event_id or ''}[/dim]")
