"""`minutebook calendar`: declare, list, show and delete calendars, through the API."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from minutebook.cli.job import undecided
from minutebook.cli.options import Reason, Yes, ask
from minutebook.cli.output import Format, Output, write_many, write_one
from minutebook.client import Calendar, CalendarEffect, Command, DateRange, SyncClient
from minutebook.client.calendars import Day

app = typer.Typer(
    help="Calendars: dates on which the jobs that name one do not run, or run alone.", no_args_is_help=True
)

_COLUMNS = ("name", "version", "first", "last", "dates")
_RANGE = ".."
Name = Annotated[str, typer.Argument(help="Name of the calendar, as jobs give it.", show_default=False)]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Say what it would do to coming instants of its jobs, change nothing."),
]


@app.command("set")
def set_(
    name: Name,
    dates: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATE...", help="2026-12-25, or a range: 2026-12-24..2027-01-01."),
    ] = None,
    dates_file: Annotated[
        Path | None,
        typer.Option(help="Dates and ranges, one a line; what follows # is left out. - reads from stdin."),
    ] = None,
    is_dry_run: DryRun = False,
    reason: Reason = "",
    output: Output = Format.TABLE,
) -> None:
    """Declare a calendar, or replace its dates. Ends once every partition knows it."""
    given = [*(dates or []), *_lines(dates_file)]
    if not given:
        raise typer.BadParameter("give dates, or --dates-file", param_hint="DATE")
    wanted = [_day(text) for text in given]
    with SyncClient() as client:
        if is_dry_run:
            _write_effect(client.calendars.would_set(name, wanted), output)
        else:
            _write(client.calendars.set(name, wanted, reason=reason), output)


@app.command("list")
def list_(output: Output = Format.TABLE) -> None:
    """List the calendars of your tenant by name."""
    with SyncClient() as client:
        items = list(client.calendars.all())
    rows = [(item.name, item.version, item.first, item.last, item.count) for item in items]
    write_many(items, output, _COLUMNS, rows)


@app.command()
def show(name: Name, output: Output = Format.TABLE) -> None:
    """Show a calendar with its dates."""
    with SyncClient() as client:
        _write(client.calendars.get(name), output)


@app.command()
def delete(
    name: Name,
    is_dry_run: DryRun = False,
    reason: Reason = "",
    yes: Yes = False,
    output: Output = Format.TABLE,
) -> None:
    """Free the jobs of a calendar from it. Ends once every partition knows it."""
    if not is_dry_run:
        ask(f"Delete the calendar {name}?", yes=yes)
    with SyncClient() as client:
        if is_dry_run:
            _write_effect(client.calendars.would_delete(name), output)
            return
        answer = client.calendars.delete(name, reason=reason)
    if answer is not None:
        raise undecided(answer, output)


def _lines(file: Path | None) -> list[str]:
    """The dates in a file. Raises BadParameter for one that cannot be read."""
    if file is None:
        return []
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot be read: {error}", param_hint="--dates-file") from None
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def _day(text: str) -> Day:
    """A date or a range as the API takes it; what is no date the API says."""
    first, separator, last = text.partition(_RANGE)
    return DateRange(first.strip(), last.strip()) if separator else text


def _write(answer: Calendar | Command, output: Format) -> None:
    if isinstance(answer, Command):
        raise undecided(answer, output)
    fields = {"name": answer.name, "version": answer.version, "dates": ", ".join(map(_text, answer.dates))}
    write_one(answer, output, fields)


def _text(day: str | DateRange) -> str:
    return day if isinstance(day, str) else f"{day.first}{_RANGE}{day.last}"


def _write_effect(effect: CalendarEffect, output: Format) -> None:
    fields: dict[str, Any] = {
        "name": effect.name,
        "until": effect.until,
        "jobs": f"{effect.jobs}" if effect.complete else f"the first {effect.jobs}, there are more",
        "instants removed": f"{effect.removed.instants} of {effect.removed.jobs} jobs",
        "instants added": f"{effect.added.instants} of {effect.added.jobs} jobs",
        "next instant moved": f"{effect.moved} jobs",
        "no instant left": f"{effect.ended} jobs, which would be completed",
    }
    write_one(effect, output, fields)
