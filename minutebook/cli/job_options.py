"""Options that say what a job is, for every command that takes them, and the members of a body that they become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
import typer

from minutebook.cli.options import duration

Payload = Annotated[str | None, typer.Option(help="JSON, @FILE, or - for stdin.")]
Queue = Annotated[str | None, typer.Option(help="Queue; `default` if not given.")]
RunAt = Annotated[str | None, typer.Option(help="Instant with offset, such as 2030-01-31T08:00:00Z.")]
Delay = Annotated[str | None, typer.Option(help="From now, such as 30s, 2m or PT2M.", parser=duration)]
Cron = Annotated[str | None, typer.Option(help="When, as in `minutebook schedule preview`.")]
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
PauseOnFailure = Annotated[bool | None, typer.Option(help="Pause the job when an execution is given up.")]
Late = Annotated[str | None, typer.Option(help="refuse or run, for a run-at more than a day past.")]
Timeout = Annotated[str | None, typer.Option(help="Of one attempt, such as 30s.", parser=duration)]
RetryMaxAttempts = Annotated[
    int | None, typer.Option(help="Failures after which it is given up; 5 if not given.")
]
RetryFirst = Annotated[
    str | None, typer.Option(help="Wait before the second attempt, such as 1s.", parser=duration)
]
RetryMax = Annotated[
    str | None, typer.Option(help="Longest wait between attempts, such as 1h.", parser=duration)
]
MaxLosses = Annotated[
    int | None, typer.Option(help="Lost attempts after which it is given up; 10 if not given.")
]
Deadline = Annotated[
    str | None, typer.Option(help="For all attempts, from the due instant.", parser=duration)
]
StartDeadline = Annotated[
    str | None, typer.Option(help="For the first start, from the due instant.", parser=duration)
]
StuckAfter = Annotated[
    str | None,
    typer.Option(help="Without progress for so long an attempt is reported.", parser=duration),
]
OnStuck = Annotated[str | None, typer.Option(help="report or stop; needs --stuck-after.")]
Priority = Annotated[int | None, typer.Option(help="0 to 9, 9 goes first; 5 if not given.")]
Limit = Annotated[
    str | None, typer.Option(help="Limit that holds beside the tenant's, where one is declared.")
]
Notify = Annotated[
    str | None, typer.Option(help="https URL that its alerts go to; the tenant's target if not given.")
]

_GROUPS: Final = {
    "retry": {"retry_max_attempts": "max_attempts", "retry_first": "first", "retry_max": "max"},
    "misfire": {"misfire": "policy", "misfire_window": "window", "misfire_max": "max"},
    "calendars": {"calendar_exclude": "exclude", "calendar_include": "include"},
}
"""Member of a body that is an object -> option -> member of that."""


def members(
    options: Mapping[str, Any], body: type[msgspec.Struct], objects: Mapping[str, type[msgspec.Struct]]
) -> dict[str, Any]:
    """Members of a `body` that the options of a command give; what is not given is left out. `objects`: types of those
    that are objects themselves.
    """
    grouped = {option for names in _GROUPS.values() for option in names}
    given = {name: value for name, value in options.items() if value is not None and value != ()}
    known = set(body.__struct_fields__) - grouped - {"payload"}
    found = {name: value for name, value in given.items() if name in known}
    for name, parts in _GROUPS.items():
        inner = {part: given[option] for option, part in parts.items() if option in given}
        if inner:
            found[name] = objects[name](**inner)
    return found
