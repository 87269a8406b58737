"""What the verbs share: which log, how far, progress on stderr, faults as messages and exit codes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
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
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from minutebook.cli.exits import ExitCode as ExitCode  # the same codes as of `minutebook`
from minutebook.errors import LogError, SettingsError
from minutebook.log.settings import KafkaSettings
from replay.files import FileLog
from replay.frames import AuditReader, void_note
from replay.inputs import FileInputs, Inputs, KafkaInputs
from replay.parallel import ProcessDiedError
from replay.reading import TO_THE_END, Advance, KafkaLog, Log, Until
from replay.tenant_files import TenantLog, holds_tenant

Tenant = Annotated[
    str, typer.Option("--tenant", help="Whose.", envvar="MINUTEBOOK_REPLAY_TENANT", show_default=False)
]
Topic = Annotated[
    str | None,
    typer.Option(
        "--topic",
        help="Another topic than job-events: a copy of it with the original stamps and offsets.",
        envvar="MINUTEBOOK_REPLAY_TOPIC",
    ),
]
Files = Annotated[
    Path | None,
    typer.Option(
        "--files",
        help="Read this folder, made by `export`, instead of Kafka.",
        envvar="MINUTEBOOK_REPLAY_FILES",
        exists=True,
        file_okay=False,
    ),
]
Partitions = Annotated[
    list[int] | None,
    typer.Option(
        "--partition",
        min=0,
        help="Only this one; may be given again.",
        envvar="MINUTEBOOK_REPLAY_PARTITION",
    ),
]
UntilText = Annotated[
    str | None,
    typer.Option(
        "--until",
        help="End with this offset, or with this time, such as 2026-03-01T12:00:00Z.",
        envvar="MINUTEBOOK_REPLAY_UNTIL",
    ),
]
Output = Annotated[
    Literal["table", "json"],
    typer.Option("--output", "-o", help="Form of the result.", envvar="MINUTEBOOK_REPLAY_OUTPUT"),
]


def chosen(there: list[int], wanted: list[int] | None) -> list[int]:
    """The partitions of a log that are `wanted`, all of them if that is not said. Raises BadParameter."""
    strange = sorted(set(wanted or ()) - set(there))
    if strange:
        raise typer.BadParameter(f"there is no partition {strange[0]}", param_hint="--partition")
    return sorted(set(wanted)) if wanted else there


def until_of(text: str | None, option: str = "--until") -> Until:
    """Where to end, as `option` says. Raises BadParameter."""
    if text is None:
        return TO_THE_END
    if text.isdecimal() and text.isascii():
        return Until(offset=int(text))
    return Until(at=instant_of_text(text, option, what="neither an offset nor a time"))


def instant_of_text(text: str, option: str, what: str = "no time") -> int:
    """An instant in ms that somebody typed. Raises BadParameter."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        message = f"{text!r} is {what} such as 2026-03-01T12:00:00Z"
        raise typer.BadParameter(message, param_hint=option) from error
    if found.tzinfo is None:
        raise typer.BadParameter(f"the time {text} needs a zone, such as Z", param_hint=option)
    return int(found.timestamp() * 1_000)


@contextmanager
def opened(
    topic: str | None, files: Path | None = None, *, tenant: str | None = None, needs_whole: bool = False
) -> Iterator[Log]:
    """The log to read, Kafka's or an exported one; faults of it end the command with a message and its exit code.

    One tenant's files are taken unless the verb `needs_whole` records, and for no other `tenant` than theirs.
    """
    if topic is not None and files is not None:
        raise typer.BadParameter("goes with a topic of Kafka, not with files", param_hint="--topic")
    with told():
        log = KafkaLog(KafkaSettings(), topic) if files is None else _exported(files, tenant, needs_whole)
        with closing(log):
            yield log


def inputs_of(files: Path | None) -> Inputs:
    """What owners consumed: Kafka's topics, or what lies beside exported files."""
    return KafkaInputs(KafkaSettings()) if files is None else FileInputs(files)


def _exported(folder: Path, tenant: str | None, needs_whole: bool) -> FileLog | TenantLog:
    if not holds_tenant(folder):
        return FileLog(folder)
    log = TenantLog(folder)
    if needs_whole:
        raise SettingsError(
            f"{folder} holds what is of the tenant {log.tenant} alone: this needs the whole log"
        )
    if tenant not in (None, log.tenant):
        raise SettingsError(
            f"{folder} holds what is of the tenant {log.tenant} alone, and nothing of {tenant}"
        )
    return log


@contextmanager
def told() -> Iterator[None]:
    """Turn faults into a message on stderr and the exit code for it."""
    try:
        yield
    except SettingsError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(ExitCode.NOT_FOUND) from error
    except ProcessDiedError as error:
        typer.echo(f"error: {error}. Was there too little memory? See --processes.", err=True)
        raise typer.Exit(ExitCode.PARTLY_DONE) from error
    except LogError as error:
        typer.echo(f"error: the log cannot be read on: {error}. See `python -m replay verify`.", err=True)
        raise typer.Exit(ExitCode.NO) from error
    except KafkaError as error:
        typer.echo(
            f"error: no answer from Kafka at {KafkaSettings().bootstrap_servers} ({type(error).__name__}). "
            "Is it running, and is MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS right?",
            err=True,
        )
        raise typer.Exit(ExitCode.UNREACHABLE) from error
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        typer.echo(f"error: {where}{error.strerror or error}", err=True)
        raise typer.Exit(ExitCode.NOT_FOUND) from error


def tell_void(partition: int, reader: AuditReader) -> None:
    """Say on stderr where the last records that were read are void."""
    if note := void_note(partition, reader.position, reader.void_at_end):
        typer.echo(f"note: {note}", err=True)


class _RateColumn(ProgressColumn):
    """Records a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


@contextmanager
def progress(log: Log, partitions: list[int], times: int = 1) -> Iterator[Advance]:
    """A bar on stderr with rate and rest of a log that is read so many `times`; nothing off a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        _RateColumn(),
        TimeRemainingColumn(),
    )
    total = times * sum(end - start for start, end in map(log.bounds, partitions))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("records", total=total)

        def advance(partition: int, records: int) -> None:
            bar.update(task, advance=records, description=f"partition {partition}")

        yield advance


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C, SIGTERM or SIGHUP has come since: the first one asks to end in order, the second one ends at once."""
    came: list[int] = []

    def note(number: int, _frame: object) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
