"""`python -m replay`: audits of the log. It reads topics and files; it writes no topic and calls no URL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer
from kafka.errors import KafkaError
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from minutebook.errors import SettingsError
from minutebook.log.settings import KafkaSettings
from replay.reading import KafkaLog
from replay.report import Report, write_json, write_table
from replay.verify import TO_THE_END, Advance, Copies, Until, copies_in, verify

_DIFFERENT = 1
_NOT_FOUND = 3
_UNREACHABLE = 5
_INTERRUPTED = 130

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def main() -> None:
    """Audits of the log."""


@app.command("verify")
def verify_log(
    checkpoints: Annotated[
        Path | None,
        typer.Option(
            help="Folder with copies of the owners' states and of the view, as `POST /checkpoint` makes them.",
            envvar="MINUTEBOOK_REPLAY_CHECKPOINTS",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(
            help="Another topic than job-events: a copy of it with the original stamps and offsets.",
            envvar="MINUTEBOOK_REPLAY_TOPIC",
        ),
    ] = None,
    partition: Annotated[
        list[int] | None,
        typer.Option(min=0, help="Only this one; may be given again.", envvar="MINUTEBOOK_REPLAY_PARTITION"),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            help="End with this offset, or with this time, such as 2026-03-01T12:00:00Z.",
            envvar="MINUTEBOOK_REPLAY_UNTIL",
        ),
    ] = None,
    output: Annotated[
        Literal["table", "json"], typer.Option(help="Form of the result.", envvar="MINUTEBOOK_REPLAY_OUTPUT")
    ] = "table",
) -> None:
    """Check every record of the log, fold it again, and compare with the copies.

    Exit code 0: all agree. 1: a difference, named with partition and offset. 2: wrong usage. 3: no such topic.
    5: Kafka cannot be reached.
    """
    end = _until(until)
    with _told(), closing(KafkaLog(KafkaSettings(), topic)) as log:
        partitions = _chosen(log.partitions(), partition)
        copies = None if checkpoints is None else _copies(checkpoints)
        with _progress(log, partitions) as advance:
            report = verify(log, partitions, copies, end, advance)
    _write(report, output)
    if not report.ok:
        raise typer.Exit(_DIFFERENT)


def _until(text: str | None) -> Until:
    if text is None:
        return TO_THE_END
    if text.isdecimal() and text.isascii():
        return Until(offset=int(text))
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter("neither an offset nor a time", param_hint="--until") from error
    if found.tzinfo is None:
        raise typer.BadParameter("the time needs a zone, such as Z", param_hint="--until")
    return Until(at=int(found.timestamp() * 1_000))


def _copies(folder: Path) -> Copies:
    try:
        return copies_in(folder)
    except SettingsError as error:
        raise typer.BadParameter(str(error), param_hint="--checkpoints") from error


def _chosen(there: list[int], wanted: list[int] | None) -> list[int]:
    strange = sorted(set(wanted or ()) - set(there))
    if strange:
        raise typer.BadParameter(f"there is no partition {strange[0]}", param_hint="--partition")
    return sorted(set(wanted)) if wanted else there


@contextmanager
def _told() -> Iterator[None]:
    """Turn faults into a message on stderr and the exit code for it."""
    try:
        yield
    except SettingsError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(_NOT_FOUND) from error
    except KafkaError as error:
        typer.echo(
            f"error: no answer from Kafka at {KafkaSettings().bootstrap_servers} ({type(error).__name__}). "
            "Is it running, and is MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS right?",
            err=True,
        )
        raise typer.Exit(_UNREACHABLE) from error


class _RateColumn(ProgressColumn):
    """Records a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


@contextmanager
def _progress(log: KafkaLog, partitions: list[int]) -> Iterator[Advance]:
    """A bar on stderr with rate and rest; nothing off a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _RateColumn(),
        TimeRemainingColumn(),
    )
    total = sum(end - start for start, end in map(log.bounds, partitions))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("records", total=total)

        def advance(partition: int, records: int) -> None:
            bar.update(task, advance=records, description=f"partition {partition}")

        yield advance


def _write(report: Report, output: str) -> None:
    if output == "json":
        typer.echo(write_json(report))
    else:
        write_table(report, Console())


if __name__ == "__main__":
    try:
        app(prog_name="python -m replay")
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
