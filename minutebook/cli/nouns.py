"""Which commands there are. The module of each is loaded when it is asked for: a start stays quick, and a missing extra
breaks its own commands alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from minutebook.cli.exits import ExitCode
from minutebook.cli.output import fault
from minutebook.cli.presentation import with_presentation


class Noun(NamedTuple):
    """Where the commands of a noun are, what `--help` says of it, and the extra that it needs beside `cli`."""

    module: str
    help: str
    attribute: str = "app"
    extra: str = ""


NOUNS: Final = {
    "alert": Noun("alert", "Alerts: what people must hear of."),
    "apply": Noun(
        "apply",
        "Create or replace the jobs that files declare. Nothing is written if any entry is bad; jobs that no file names stay.",
        "apply",
    ),
    "audit": Noun("audit", "The audit log: who wanted what, and what became of it."),
    "calendar": Noun(
        "calendar", "Calendars: dates on which the jobs that name one do not run, or run alone."
    ),
    "command": Noun("command", "Commands: what became of one that was not decided in time."),
    "config": Noun("config", "Settings: their values and sources, and what is wrong."),
    "dead-letter": Noun("dead_letter", "Dead letters: executions that were given up."),
    "dev": Noun(
        "dev",
        "Run Kafka, owners, API and workers, and restart what dies. Ctrl-C stops all.",
        "dev",
        "embedded",
    ),
    "doctor": Noun(
        "doctor",
        "Check brokers, topics, groups, schemas, clock, lag, disk, open files, Java and API; a remedy for each finding.",
        "doctor",
    ),
    "execution": Noun("history", "Executions: what became of one instant of a job.", "execution_app"),
    "job": Noun("history", "Jobs: what to run, and when."),
    "kafka": Noun("kafka", "The embedded Kafka, for development.", extra="embedded"),
    "key": Noun("key", "API keys: who may call the API, and as what."),
    "limit": Noun("limit", "Limits: how much of a tenant, or of the jobs that name one, runs."),
    "operation": Noun("operation", "Bulk operations: many executions or jobs at once."),
    "overview": Noun(
        "overview",
        "Show jobs and executions by status, what is due soon, how late attempts start, and the oldest that is overdue.",
        "overview",
    ),
    "partition": Noun("partition", "Partitions: parts of the jobs, each with its owner."),
    "queue": Noun("queue", "Queues: lines of work."),
    "schedule": Noun("schedule", "Schedules: what one means."),
    "task": Noun("task", "Tasks: what workers can run, and the payloads they take."),
    "tenant": Noun("tenant", "Tenants that you may see."),
    "topics": Noun("topics", "The topics of one installation.", extra="embedded"),
    "upcoming": Noun(
        "upcoming",
        "List the minutes, hours or days in which jobs are due, and how many; a job that recurs counts once, at its next "
        "instant.",
        "upcoming",
    ),
    "version": Noun("version", "Print the version.", "version"),
    "watch": Noun(
        "watch",
        "Print a line for each thing that changes, as it stands then, until Ctrl-C. With JSON, a change a line.",
        "watch",
    ),
    "worker": Noun("workers", "Workers: processes that run tasks.", extra="worker"),
}


PREFIX: Final = "MINUTEBOOK"
"""Of the environment name of every option: `MINUTEBOOK_JOB_SUBMIT_QUEUE` is `--queue` of `minutebook job submit`."""


_ANYTHING: Final = {"allow_extra_args": True, "ignore_unknown_options": True}


class Nouns(TyperGroup):
    """The nouns of the command, of which only the one that is asked for is loaded."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=noun.help) for name, noun in sorted(NOUNS.items())}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The noun's commands, whole; an error with the nearest name for one that does not exist."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, loaded(str(name)), rest


def loaded(name: str) -> Any:
    """The commands of a noun; one that explains what is missing where they cannot be loaded."""
    command = _made(name, NOUNS[name])
    command.name = name
    with_presentation(command)
    for words, one in _below((name,), command):
        _name_options(words, one)
    return command


def _made(name: str, noun: Noun) -> Any:
    try:
        found = getattr(importlib.import_module(f"minutebook.cli.{noun.module}"), noun.attribute)
    except ModuleNotFoundError as error:
        if not noun.extra:
            raise
        return _alone(name, _missing(name, noun.extra, error), _ANYTHING)
    return typer.main.get_group(found) if isinstance(found, typer.Typer) else _alone(name, found)


def _alone(name: str, function: Callable[..., None], context: dict[str, Any] | None = None) -> Any:
    """A noun without verbs."""
    app = typer.Typer(add_completion=False)
    app.command(name, context_settings=context)(function)
    return typer.main.get_command(app)


def _missing(name: str, extra: str, error: ModuleNotFoundError) -> Callable[[], None]:
    text = f"`minutebook {name}` needs {error.name!r}: install it with `pip install 'minutebook[{extra}]'`"

    def explain() -> None:
        fault(text)
        raise typer.Exit(ExitCode.USAGE)

    explain.__doc__ = f"Needs the extra `{extra}`."
    return explain


def _name_options(words: tuple[str, ...], command: Any) -> None:
    """Give each option its environment name: that of its flag, where none is given."""
    for option in command.params:
        if option.param_type_name == "option" and not option.envvar:
            flag = max(option.opts, key=len).lstrip("-")
            option.envvar = "_".join((PREFIX, *words, flag)).upper().replace("-", "_")


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command by its words, such as `("job", "show")`, sorted. Loads all of them."""
    for name in sorted(NOUNS):
        yield from _below((name,), loaded(name))


def option_names() -> set[str]:
    """Environment names of all options and arguments of all commands."""
    return {str(one.envvar) for _, command in commands() for one in command.params if one.envvar}


def options_of(app: typer.Typer) -> Iterator[Any]:
    """Options and arguments of all commands of another Typer app."""
    for _, command in _below((), typer.main.get_command(app)):
        yield from command.params


def _below(words: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield words, command
        return
    for name in sorted(below):
        yield from _below((*words, name), below[name])
