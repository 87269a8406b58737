"""`minutebook job`: what changes a job. Each sends the version that it read, so that nobody else's change is overwritten."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
import typer
from msgspec import UNSET

from minutebook.cli import job_options as options
from minutebook.cli.job import JobId, undecided, write_job
from minutebook.cli.job import app as app
from minutebook.cli.options import Key, Reason, read_payload
from minutebook.cli.output import Format, Output, write_many
from minutebook.client import Command, Job, JobChange, JobVersion, RetryChange, SyncClient
from minutebook.client.change_models import CalendarsChange, MisfireChange

_VERSIONS: Final = ("version", "changed", "task", "when", "reason")


@app.command()
def edit(
    ctx: typer.Context,
    job: JobId,
    task: Annotated[str | None, typer.Option(help="Name of the task.")] = None,
    payload: options.Payload = None,
    queue: options.Queue = None,
    run_at: options.RunAt = None,
    delay: options.Delay = None,
    cron: options.Cron = None,
    every: options.Every = None,
    zone: options.Zone = None,
    start_at: options.StartAt = None,
    end_at: options.EndAt = None,
    max_runs: options.MaxRuns = None,
    calendar_exclude: options.CalendarExclude = None,
    calendar_include: options.CalendarInclude = None,
    gap: options.Gap = None,
    fold: options.Fold = None,
    day_match: options.DayMatch = None,
    jitter: options.Jitter = None,
    misfire: options.Misfire = None,
    misfire_window: options.MisfireWindow = None,
    misfire_max: options.MisfireMax = None,
    overlap: options.Overlap = None,
    pause_on_failure: options.PauseOnFailure = None,
    late: options.Late = None,
    timeout: options.Timeout = None,
    retry_max_attempts: options.RetryMaxAttempts = None,
    retry_first: options.RetryFirst = None,
    retry_max: options.RetryMax = None,
    max_losses: options.MaxLosses = None,
    deadline: options.Deadline = None,
    start_deadline: options.StartDeadline = None,
    stuck_after: options.StuckAfter = None,
    on_stuck: options.OnStuck = None,
    priority: options.Priority = None,
    limit: options.Limit = None,
    notify: options.Notify = None,
    default: Annotated[
        list[str] | None, typer.Option(help="Field that gets its default back; may be repeated.")
    ] = None,
    key: Key = None,
    output: Output = Format.TABLE,
) -> None:
    """Change a job from its next instant on; what is not given stays."""
    objects: dict[str, type[msgspec.Struct]] = {
        "retry": RetryChange,
        "misfire": MisfireChange,
        "calendars": CalendarsChange,
    }
    change = options.members(ctx.params, JobChange, objects)
    text = read_payload(payload)
    if text is not UNSET:
        change["payload"] = text
    change |= _defaults(default or [], change)
    if not change:
        raise typer.BadParameter("say what is to change, such as --cron or --payload")
    with SyncClient() as client:
        _written(client.edit(client.get(job), JobChange(**change), key=key), output)


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
def versions(job: JobId, output: Output = Format.TABLE) -> None:
    """List what a job is and was, the latest version first."""
    with SyncClient() as client:
        items = client.versions(job)
        write_many(items, output, _VERSIONS, map(_version_row, items))


def _version_row(item: JobVersion) -> tuple[object, ...]:
    body = item.body
    when = f"{body.cron} ({body.zone})" if body.cron is not UNSET else body.run_at
    return item.version, item.changed_at, body.task, when, item.reason


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
