"""`minutebook schedule`: look at a cron expression. Works offline, by the zone data of this installation."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from minutebook.cli.output import Format, Output, write_many
from minutebook.cli.tzdata_diff import tzdata_diff
from minutebook.client.models import PREVIEW_MAX, PreviewInstant
from minutebook.client.times import parse_instant
from minutebook.clock import SystemClock
from minutebook.ids import Instant
from minutebook.schedule import Cron, DayMatch, Fold, Gap
from minutebook.schedule import preview as coming
from minutebook.schedule.description import describe

app = typer.Typer(help="Schedules: what an expression means.", no_args_is_help=True)

_COLUMNS: Final = ("utc", "local", "note")


@app.callback()
def schedule() -> None:
    """Schedules: what an expression means."""


def _instant(text: str) -> int:
    try:
        return parse_instant(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


app.command("tzdata-diff")(tzdata_diff)


@app.command()
def preview(
    expression: Annotated[
        str, typer.Argument(metavar="EXPRESSION", help="Cron expression, such as '30 2 * * MON-FRI'.")
    ],
    zone: Annotated[str, typer.Option(help="IANA name.")] = "UTC",
    after: Annotated[
        int | None,
        typer.Option(help="Instant with offset; now if not given.", parser=_instant, metavar="INSTANT"),
    ] = None,
    count: Annotated[int, typer.Option(help="How many instants.", min=1, max=PREVIEW_MAX)] = 10,
    gap: Annotated[Gap, typer.Option(help="Local times that a clock change leaves out.")] = "auto",
    fold: Annotated[Fold, typer.Option(help="Local times that come twice.")] = "auto",
    day_match: Annotated[
        DayMatch, typer.Option(help="Of two restricted day fields either matches, or both must.")
    ] = "or",
    job_key: Annotated[
        str | None, typer.Option(help="<tenant>/<job id>, which H takes its values from.")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Say what an expression means, and list its next instants."""
    cron = Cron(expression, zone, gap, fold, day_match, job_key)
    start = SystemClock().now() if after is None else Instant(after)
    rows = coming.preview(cron, start, count)
    if output is Format.TABLE:
        typer.echo(f"{describe(cron.rule)} ({zone})\n")
    write_many([PreviewInstant(*row) for row in rows], output, _COLUMNS, rows)
