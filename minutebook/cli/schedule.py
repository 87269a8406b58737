"""`minutebook schedule`: look at a schedule. Works offline, by the zone data of this installation."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from msgspec import UNSET, UnsetType

from minutebook.cli.output import Format, Output, write_many
from minutebook.cli.tzdata_diff import tzdata_diff
from minutebook.client.preview_models import PREVIEW_MAX, PreviewInstant
from minutebook.clock import SystemClock
from minutebook.domain.jitter import due_at
from minutebook.domain.timing import Timing, faults, interval_fault
from minutebook.schedule import DayMatch, Every, Fold, Gap, parse_schedule
from minutebook.schedule import preview as coming
from minutebook.schedule.description import describe
from minutebook.schedule.plan import Plan
from minutebook.times import format_instant, parse_instant, parse_short_duration

app = typer.Typer(help="Schedules: what one means.", no_args_is_help=True)

_COLUMNS: Final = ("utc", "local", "note", "due")


@app.callback()
def schedule() -> None:
    """Schedules: what one means."""


def _instant(text: str) -> int:
    try:
        return parse_instant(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


app.command("tzdata-diff")(tzdata_diff)


def _duration_ms(text: str) -> int:
    try:
        return parse_short_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _interval_ms(text: str) -> int:
    interval_ms = _duration_ms(text)
    if remedy := interval_fault(interval_ms):
        raise typer.BadParameter(remedy)
    return interval_ms


def _check(timing: Timing) -> None:
    """Raises BadParameter naming the first option at fault."""
    for field, remedy in faults(timing):
        raise typer.BadParameter(remedy, param_hint=f"--{field.replace('_', '-')}")


@app.command()
def preview(
    expression: Annotated[
        str | None, typer.Argument(metavar="EXPRESSION", help="Cron expression, such as '30 2 * * MON-FRI'.")
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(help="Interval in its place, such as 90s.", parser=_interval_ms, metavar="DURATION"),
    ] = None,
    zone: Annotated[str, typer.Option(help="IANA name.")] = "UTC",
    start_at: Annotated[
        int | None, typer.Option(help="No instant before.", parser=_instant, metavar="INSTANT")
    ] = None,
    end_at: Annotated[
        int | None, typer.Option(help="No instant from then on.", parser=_instant, metavar="INSTANT")
    ] = None,
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
    jitter: Annotated[
        int | None,
        typer.Option(help="Each is due up to so much later.", parser=_duration_ms, metavar="DURATION"),
    ] = None,
    job_key: Annotated[
        str | None, typer.Option(help="<tenant>/<job id>, which H and jitter take their values from.")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Say what a schedule means, and list its next instants."""
    if (expression is None) == (every is None):
        raise typer.BadParameter("give either a cron expression or --every", param_hint="EXPRESSION")
    jitter_ms = jitter or 0
    _check(Timing(start_at=start_at, end_at=end_at, jitter_ms=jitter_ms))
    rule = parse_schedule(expression, job_key, day_match) if expression is not None else Every(every or 0)
    begin = SystemClock().now() if after is None else after
    plan = Plan(rule, zone, gap, fold, begin if start_at is None else start_at, start_at, end_at)
    items = [
        PreviewInstant(*shown, due_at=_due_at(job_key, at, jitter_ms))
        for at, shown in coming.preview(plan, begin, count).items()
    ]
    if output is Format.TABLE:
        typer.echo(f"{describe(rule, jitter_ms)} ({zone})\n")
    columns = _COLUMNS if jitter_ms and job_key else _COLUMNS[:-1]
    rows = [(item.utc, item.local, item.note, item.due_at or None)[: len(columns)] for item in items]
    write_many(items, output, columns, rows)


def _due_at(job_key: str | None, at: int, jitter_ms: int) -> str | UnsetType:
    tenant, _, job_id = (job_key or "").partition("/")
    return format_instant(due_at(tenant, job_id, at, jitter_ms)) if job_id and jitter_ms else UNSET
