"""`minutebook job`: what changes a job. Each sends the version that it read, so that nobody else's change is overwritten."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from msgspec import UNSET

from minutebook.cli.backfill import backfill
from minutebook.cli.job import JobId, undecided, write_job
from minutebook.cli.job import app as app
from minutebook.cli.job_lists import list_jobs
from minutebook.cli.job_tail import tail
from minutebook.cli.options import Key, Reason, Yes, ask, duration, given_options, read_payload
from minutebook.cli.output import Format, Output, note, write_many
from minutebook.cli.rules import rule_of
from minutebook.cli.timing_options import (
    CalendarExclude,
    CalendarInclude,
    DayMatch,
    EndAt,
    Every,
    Fold,
    Gap,
    Jitter,
    MaxRuns,
    Misfire,
    MisfireMax,
    MisfireWindow,
    Overlap,
    PauseOnFailure,
    StartAt,
    Zone,
)
from minutebook.client import (
    CalendarsChange,
    Command,
    Job,
    JobChange,
    JobVersion,
    MisfireChange,
    RetryChange,
    SyncClient,
)

app.command()(backfill)
app.command("list")(list_jobs)
app.command()(tail)
_VERSIONS: Final = ("version", "changed", "by", "from", "task", "when", "reason")


@app.command()
def edit(
    job: JobId,
    payload: Annotated[str | None, typer.Option(help="JSON, @FILE, or - for stdin.")] = None,
    task: Annotated[str | None, typer.Option(help="Name of the task.")] = None,
    queue: Annotated[str | None, typer.Option(help="Queue.")] = None,
    run_at: Annotated[str | None, typer.Option(help="Once, at an instant with offset.")] = None,
    delay: Annotated[str | None, typer.Option(help="Once, from now, such as 30s.", parser=duration)] = None,
    cron: Annotated[str | None, typer.Option(help="When, as in `minutebook schedule preview`.")] = None,
    every: Every = None,
    zone: Zone = None,
    start_at: StartAt = None,
    end_at: EndAt = None,
    max_runs: MaxRuns = None,
    calendar_exclude: CalendarExclude = None,
    calendar_include: CalendarInclude = None,
    gap: Gap = None,
    fold: Fold = None,
    day_match: DayMatch = None,
    jitter: Jitter = None,
    misfire: Misfire = None,
    misfire_window: MisfireWindow = None,
    misfire_max: MisfireMax = None,
    overlap: Overlap = None,
    pause_on_failure: PauseOnFailure = None,
    timeout: Annotated[str | None, typer.Option(help="Of one attempt, such as 30s.", parser=duration)] = None,
    retry_max_attempts: Annotated[
        int | None, typer.Option(help="Failures after which it is given up.")
    ] = None,
    retry_first: Annotated[
        str | None, typer.Option(help="Wait before the second attempt.", parser=duration)
    ] = None,
    retry_max: Annotated[
        str | None, typer.Option(help="Longest wait between attempts.", parser=duration)
    ] = None,
    max_losses: Annotated[int | None, typer.Option(help="Lost attempts after which it is given up.")] = None,
    deadline: Annotated[
        str | None, typer.Option(help="For all attempts, from the due instant.", parser=duration)
    ] = None,
    start_deadline: Annotated[
        str | None, typer.Option(help="For the first start, from the due instant.", parser=duration)
    ] = None,
    stuck_after: Annotated[
        str | None,
        typer.Option(help="Without progress for so long an attempt is reported.", parser=duration),
    ] = None,
    on_stuck: Annotated[str | None, typer.Option(help="report or stop; needs --stuck-after.")] = None,
    priority: Annotated[int | None, typer.Option(help="0 to 9, 9 goes first.")] = None,
    limit: Annotated[str | None, typer.Option(help="Limit that holds beside the tenant's.")] = None,
    notify: Annotated[str | None, typer.Option(help="https URL that its alerts go to.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Tag; those given take the place of all that it has.")
    ] = None,
    default: Annotated[
        list[str] | None, typer.Option(help="Field that gets its default back; may be repeated.")
    ] = None,
    reason: Reason = "",
    key: Key = None,
    output: Output = Format.TABLE,
) -> None:
    """Change a job from its next instant on; what is not given stays."""
    misfires = given_options({"policy": misfire, "window": misfire_window, "max": misfire_max})
    calendars = given_options({"exclude": calendar_exclude, "include": calendar_include})
    retry = given_options({"max_attempts": retry_max_attempts, "first": retry_first, "max": retry_max})
    given = {
        "task": task,
        "queue": queue,
        "run_at": run_at,
        "delay": delay,
        "cron": cron,
        "every": every,
        "zone": zone,
        "start_at": start_at,
        "end_at": end_at,
        "max_runs": max_runs,
        "calendars": CalendarsChange(**calendars) if calendars else None,
        "gap": gap,
        "fold": fold,
        "day_match": day_match,
        "jitter": jitter,
        "misfire": MisfireChange(**misfires) if misfires else None,
        "overlap": overlap,
        "pause_on_failure": pause_on_failure,
        "timeout": timeout,
        "retry": RetryChange(**retry) if retry else None,
        "max_losses": max_losses,
        "deadline": deadline,
        "start_deadline": start_deadline,
        "stuck_after": stuck_after,
        "on_stuck": on_stuck,
        "priority": priority,
        "limit": limit,
        "notify": notify,
        "tags": tag or None,
    }
    text = read_payload(payload)
    change = given_options(given) | _defaults(default or [], given_options(given))
    if text is not UNSET:
        change["payload"] = text
    if not change:
        raise typer.BadParameter("say what is to change, such as --cron or --payload")
    with SyncClient() as client:
        _written(client.edit(client.get(job), JobChange(**change), reason=reason, key=key), output)


@app.command()
def pause(job: JobId, reason: Reason = "", key: Key = None, output: Output = Format.TABLE) -> None:
    """Let no instant of a job come due until it is resumed; what is open goes on."""
    with SyncClient() as client:
        _written(client.pause(client.get(job), reason=reason, key=key), output)


@app.command()
def resume(
    job: JobId,
    catch_up: Annotated[
        bool,
        typer.Option("--catch-up", help="Make up for the instants of the pause, as its misfire policy says."),
    ] = False,
    reason: Reason = "",
    key: Key = None,
    output: Output = Format.TABLE,
) -> None:
    """Let instants of a paused job come due again; those of the pause are skipped, on record."""
    with SyncClient() as client:
        _written(client.resume(client.get(job), catch_up=catch_up, reason=reason, key=key), output)


@app.command()
def purge(
    job: JobId, reason: Reason = "", yes: Yes = False, key: Key = None, output: Output = Format.TABLE
) -> None:
    """Show a closed job and its history no more. The log stays, and its id stays taken for 8 days."""
    ask(f"Purge {job} and its history?", yes=yes)
    with SyncClient() as client:
        answer = client.purge(job, reason=reason, key=key)
    if answer is not None:
        raise undecided(answer, output)
    note(f"{job} is purged.")


@app.command()
def versions(job: JobId, output: Output = Format.TABLE) -> None:
    """List what a job is and was, the latest version first."""
    with SyncClient() as client:
        items = client.versions(job)
        write_many(items, output, _VERSIONS, map(_version_row, items))


def _version_row(item: JobVersion) -> tuple[object, ...]:
    body = item.body
    who = f"operation {item.operation_id}" if item.operation_id else item.key_id or item.actor or None
    origin = " ".join(part for part in (item.via, item.address) if part)
    return item.version, item.changed_at, who, origin or None, body.task, rule_of(body), item.reason


def _defaults(names: list[str], given: dict[str, Any]) -> dict[str, None]:
    """Fields that get their defaults back. Raises BadParameter for what is no field, or is given, too."""
    for name in names:
        if name not in JobChange.__struct_fields__ or name in given:
            known = ", ".join(JobChange.__struct_fields__)
            raise typer.BadParameter(f"one of {known}, and not given besides", param_hint="--default")
    return dict.fromkeys(names)


def _written(answer: Job | Command, output: Format) -> None:
    if isinstance(answer, Command):
        raise undecided(answer, output)
    write_job(answer, output)
