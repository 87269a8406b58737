"""The `minutebook` command. Which nouns there are says `nouns`."""

from __future__ import annotations

import sys

import typer

from minutebook.cli.exits import ExitCode
from minutebook.cli.nouns import Nouns
from minutebook.cli.output import fault
from minutebook.cli.surroundings import entered
from minutebook.errors import MinutebookError

app = typer.Typer(
    cls=Nouns,
    help="minutebook, a job scheduler on a Kafka log.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def minutebook() -> None:
    """minutebook, a job scheduler on a Kafka log."""


def run() -> None:
    """Entry point of the console script: errors become a line on stderr and an exit code."""
    try:
        with entered():
            app(prog_name="minutebook")
    except MinutebookError as error:
        from minutebook.cli.error_codes import exit_code_of

        fault(str(error))
        sys.exit(exit_code_of(error))
    except ValueError as error:
        from minutebook.cli.refused_settings import refused_settings

        refused = refused_settings(error)
        if not refused:
            raise
        fault(refused)
        sys.exit(ExitCode.USAGE)
