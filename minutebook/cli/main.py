"""The `minutebook` command. Nouns that need another extra are loaded when asked for, so that none breaks the others."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperGroup

from minutebook import __version__
from minutebook.cli import (
    alert,
    audit,
    backfill,
    calendar,
    dead_letter,
    execution,
    job_changes,
    key,
    limit,
    operation,
    queue,
    schedule,
    task,
)
from minutebook.cli.exits import ExitCode, exit_code_of
from minutebook.cli.output import note
from minutebook.cli.surroundings import entered
from minutebook.errors import MinutebookError


class _Noun(NamedTuple):
    """Where a noun's commands are, and the extra that they need."""

    module: str
    attribute: str
    extra: str


_LATER: Final = {
    "dev": _Noun("minutebook.cli.dev", "dev", "embedded"),
    "topics": _Noun("minutebook.cli.topics", "app", "embedded"),
    "worker": _Noun("minutebook.cli.workers", "app", "worker"),
}


class _Nouns(TyperGroup):
    """The nouns of the command, some of them loaded later."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names, sorted."""
        return sorted({*super().list_commands(ctx), *_LATER})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The noun's commands; one that explains what is missing where they cannot be loaded."""
        noun = _LATER.get(cmd_name)
        return super().get_command(ctx, cmd_name) if noun is None else _loaded(cmd_name, noun)


def _loaded(name: str, noun: _Noun) -> Any:
    try:
        found = getattr(importlib.import_module(noun.module), noun.attribute)
    except ModuleNotFoundError as error:
        found = _missing(name, noun.extra, error)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer()
        alone.command(name)(found)
        found = alone
    command = typer.main.get_command(found)
    command.name = name
    return command


def _missing(name: str, extra: str, error: ModuleNotFoundError) -> typer.Typer:
    text = f"`minutebook {name}` needs {error.name!r}: install it with `pip install 'minutebook[{extra}]'`"
    app = typer.Typer(help=f"Needs the extra `{extra}`.")

    @app.command(name, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
    def explain() -> None:
        note(text)
        raise typer.Exit(ExitCode.USAGE)

    return app


app = typer.Typer(
    cls=_Nouns,
    help="minutebook, a job scheduler on a Kafka log.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
job_changes.app.command()(backfill.backfill)
app.add_typer(job_changes.app, name="job")
app.add_typer(execution.app, name="execution")
app.add_typer(queue.app, name="queue")
app.add_typer(limit.app, name="limit")
app.add_typer(calendar.app, name="calendar")
app.add_typer(dead_letter.app, name="dead-letter")
app.add_typer(alert.app, name="alert")
app.add_typer(operation.app, name="operation")
app.add_typer(schedule.app, name="schedule")
app.add_typer(task.app, name="task")
app.add_typer(key.app, name="key")
app.add_typer(audit.app, name="audit")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def run() -> None:
    """Entry point of the console script: errors become a line on stderr and an exit code."""
    try:
        with entered():
            app(prog_name="minutebook")
    except MinutebookError as error:
        note(f"error: {error}")
        sys.exit(exit_code_of(error))
