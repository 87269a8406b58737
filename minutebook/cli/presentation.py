"""How results are shown, asked for by options that every command has: `--quiet` and `--time-format`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final

import typer


class TimeFormat(StrEnum):
    """How tables show instants: as the API tells them, on the clock of this machine, from now, or in ms since 1970."""

    UTC = "utc"
    LOCAL = "local"
    RELATIVE = "relative"
    EPOCH = "epoch"


@dataclass
class Presentation:
    """What the command that runs was asked for."""

    is_quiet: bool = False
    time_format: TimeFormat = TimeFormat.UTC


ASKED: Final = Presentation()
"""Set while a command line is read; one process runs one command."""


def _quieten(is_quiet: bool) -> bool:
    ASKED.is_quiet = is_quiet
    return is_quiet


def _show_times(time_format: TimeFormat) -> TimeFormat:
    ASKED.time_format = time_format
    return time_format


def _options(
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            envvar="MINUTEBOOK_QUIET",
            help="No hints and no progress; results and faults alone.",
            callback=_quieten,
            expose_value=False,
        ),
    ] = False,
    time_format: Annotated[
        TimeFormat,
        typer.Option(
            envvar="MINUTEBOOK_TIME_FORMAT",
            help="How tables show instants; JSON has them in UTC.",
            callback=_show_times,
            expose_value=False,
        ),
    ] = TimeFormat.UTC,
) -> None:
    """Carries the options; never run."""


def _made() -> list[Any]:
    carrier = typer.Typer(add_completion=False)
    carrier.command()(_options)
    return [option for option in typer.main.get_command(carrier).params if option.name != "help"]


OPTIONS: Final = _made()
"""As every command gets them."""


def with_presentation(command: Any) -> Any:
    """The same command, each of its leaves with the options of this module."""
    below = getattr(command, "commands", None)
    if below is None:
        command.params += OPTIONS
    else:
        for one in below.values():
            with_presentation(one)
    return command
