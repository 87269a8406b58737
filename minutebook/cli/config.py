"""`minutebook config`: the settings of this environment, where each comes from, and what is wrong with them."""

from __future__ import annotations

import importlib
import os
from typing import Annotated, Final

import msgspec
import typer

from minutebook.cli.config_faults import faults
from minutebook.cli.config_values import settings
from minutebook.cli.exits import ExitCode
from minutebook.cli.nouns import option_names, options_of
from minutebook.cli.output import Format, Output, note, write_many

app = typer.Typer(help="Settings: their values and sources, and what is wrong.", no_args_is_help=True)

_COLUMNS: Final = ("name", "value", "source")


@app.command()
def show(
    changed: Annotated[
        bool, typer.Option("--changed", help="Only those that are not at their defaults.")
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """List all settings with value and source: environment, file or default. Secrets are masked."""
    items = [one for one in settings(os.environ) if not (changed and one.source == "default")]
    write_many(items, output, _COLUMNS, ((one.name, one.value, one.source) for one in items))
    for one in items:
        if one.refused:
            note(f"{one.name} is refused: {one.refused}")


@app.command()
def check(output: Output = Format.TABLE) -> None:
    """Find names that nothing reads, values that are refused, and pairs that cannot be. Exit code 1 if there are any."""
    found = list(faults(os.environ, option_names() | _names_of_replay()))
    write_many(found, output, ("name", "fault", "remedy"), map(msgspec.structs.astuple, found))
    if found:
        raise typer.Exit(ExitCode.NO)
    note("All settings are as they should be.")


def _names_of_replay() -> set[str]:
    """Environment names of the options of `python -m replay`, where it is installed."""
    try:
        replay = importlib.import_module("replay.__main__")
    except ModuleNotFoundError:
        return set()
    return {str(option.envvar) for option in options_of(replay.app) if option.envvar}
