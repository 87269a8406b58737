"""Options that say when a job is due and what else may run: those of `job submit` and `job edit`."""

from __future__ import annotations

from typing import Annotated

import typer

from minutebook.cli.options import duration

Every = Annotated[str | None, typer.Option(help="Fixed interval, such as 90s, 2h or PT2H.", parser=duration)]
Zone = Annotated[str | None, typer.Option(help="IANA zone of the cron and of calendars.")]
StartAt = Annotated[str | None, typer.Option(help="No instant before; with offset.")]
EndAt = Annotated[str | None, typer.Option(help="No instant from then on; with offset.")]
MaxRuns = Annotated[int | None, typer.Option(help="Instants that become executions, at most.")]
CalendarExclude = Annotated[
    list[str] | None, typer.Option(help="Calendar whose dates have no instants; may be repeated.")
]
CalendarInclude = Annotated[
    list[str] | None,
    typer.Option(help="Calendar of which only the dates have instants; may be repeated."),
]
Gap = Annotated[
    str | None, typer.Option(help="auto, run or skip: local times that a clock change leaves out.")
]
Fold = Annotated[str | None, typer.Option(help="auto, first, last or both: local times that come twice.")]
DayMatch = Annotated[str | None, typer.Option(help="or, and: of two restricted day fields either, or both.")]
Jitter = Annotated[str | None, typer.Option(help="Each instant is due up to so much later.", parser=duration)]
Misfire = Annotated[str | None, typer.Option(help="all, latest or none: which of the missed instants run.")]
MisfireWindow = Annotated[
    str | None, typer.Option(help="What was missed longer ago does not run.", parser=duration)
]
MisfireMax = Annotated[int | None, typer.Option(help="Of what was missed the latest so many run.")]
Overlap = Annotated[
    str | None,
    typer.Option(
        help="allow, skip, queue_one, queue_all or cancel_running: while executions of the job are open."
    ),
]
PauseOnFailure = Annotated[
    bool | None,
    typer.Option(
        "--pause-on-failure/--no-pause-on-failure", help="Pause the job when an execution is given up."
    ),
]
