"""`minutebook schedule tzdata-diff`: what another version of the zone data would change, and why.

Reads two tzdata packages as data, and jobs from the API or from a file. Nothing is changed.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from minutebook.cli.exits import ExitCode
from minutebook.cli.output import Format, Output, note, write_many, write_one
from minutebook.cli.scheduled_jobs import Calendars, Scheduled, jobs_in, plan_of, scheduled
from minutebook.client import SyncClient
from minutebook.clock import SystemClock
from minutebook.errors import ScheduleError
from minutebook.schedule.dates import Dates
from minutebook.schedule.plan import Plan
from minutebook.schedule.tzif import Timeline
from minutebook.schedule.zone_changes import Stretch, first_moved, stretches
from minutebook.schedule.zone_data import ZoneData
from minutebook.schedule.zones import installed
from minutebook.times import datetime_of, format_instant, parse_instant

_AHEAD_MS: Final = 731 * 86_400_000
_JOB_COLUMNS: Final = ("job", "zone", "now", "local", "then", "local then", "next", "why")
_ZONE_COLUMNS: Final = ("zone", "from", "until", "offset", "offset then")


class JobChange(msgspec.Struct):
    """The first instant of a job that would be another one. `at` and `new_at` null = there is none there."""

    id: str
    zone: str
    at: str | None
    local: str | None
    new_at: str | None
    new_local: str | None
    is_next: bool  # of its coming instants
    reason: str


class ZoneChange(msgspec.Struct):
    """The first stretch in which a zone has another offset; offsets null = that version lacks the zone."""

    zone: str
    start: str
    end: str
    offset: str | None  # from UTC
    new_offset: str | None


class TzdataDiff(msgspec.Struct):
    """What would change from one version of the zone data to another, until an instant."""

    old: str
    new: str
    until: str
    jobs: list[JobChange]
    zones: list[ZoneChange]


def _instant(text: str) -> int:
    try:
        return parse_instant(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def tzdata_diff(
    job_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[JOB]...", help="Ids of jobs that the API is asked for.")
    ] = None,
    old: Annotated[
        Path | None,
        typer.Option("--from", help="Folder or wheel of the tzdata package; the installed one if not given."),
    ] = None,
    new: Annotated[
        Path | None,
        typer.Option("--to", help="Folder or wheel of the tzdata package; the installed one if not given."),
    ] = None,
    jobs_file: Annotated[
        Path | None,
        typer.Option(
            "--jobs", help="Jobs as JSON: a list, or one a line. - reads from stdin. Works offline."
        ),
    ] = None,
    tenant: Annotated[str, typer.Option(help="Whose the jobs are: `H` takes its values from it.")] = "",
    after: Annotated[
        int | None,
        typer.Option(help="Instant with offset; now if not given.", parser=_instant, metavar="INSTANT"),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option(
            help="Instant with offset; two years later if not given.", parser=_instant, metavar="INSTANT"
        ),
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Say which instants of which jobs another version of the zone data moves, and which zones differ.

    Ends with 1 if an instant of these jobs would change; without any job, if a zone would.
    """
    before, then = _zone_data(old, "--from"), _zone_data(new, "--to")
    start_at = SystemClock().now() if after is None else after
    end_at = start_at + _AHEAD_MS if until is None else until
    if end_at <= start_at:
        raise typer.BadParameter("must be later than --after", param_hint="--until")
    plans = [*_plans_of_api(job_ids or [], tenant), *_plans_of_file(jobs_file, tenant)]
    try:
        changes = [
            found
            for job, plan in plans
            if plan is not None and (found := _job_change(job, plan, before, then, start_at, end_at))
        ]
        zones = list(_zone_changes(before, then, start_at, end_at))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--from, --to") from None
    _write(TzdataDiff(before.version, then.version, format_instant(end_at), changes, zones), output)
    if changes or (zones and not plans):
        raise typer.Exit(ExitCode.NO)


def _zone_data(path: Path | None, option: str) -> ZoneData:
    """The tzdata package in a folder or wheel. Raises BadParameter."""
    if path is None:
        return installed()
    try:
        if path.is_file():
            return ZoneData(zipfile.Path(path, "tzdata/"))
        return ZoneData(path if (path / "zones").is_file() else path / "tzdata")
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        detail = f"{path}: {error}; give the folder `tzdata` of the package, or its wheel"
        raise typer.BadParameter(detail, param_hint=option) from None


def _plans_of_api(job_ids: list[str], tenant: str) -> list[tuple[Scheduled, Plan | None]]:
    """Jobs of the caller's tenant with their plans, on the dates of their calendars."""
    if not job_ids:
        return []
    with SyncClient() as client:
        calendars = Calendars(client.calendars.get)
        jobs = [scheduled(client.get(job_id)) for job_id in job_ids]
        return [(job, _plan(job, tenant, calendars.dates(job.calendars))) for job in jobs]


def _plans_of_file(file: Path | None, tenant: str) -> list[tuple[Scheduled, Plan | None]]:
    jobs = jobs_in(file)
    if any(job.calendars.exclude or job.calendars.include for job in jobs):
        note("calendars are not in the file: instants on dates that they leave out are shown, too")
    return [(job, _plan(job, tenant, None)) for job in jobs]


def _plan(job: Scheduled, tenant: str, dates: Dates | None) -> Plan | None:
    try:
        return plan_of(job, tenant, dates)
    except ScheduleError as error:
        detail = f"{job.id or 'a job'}: {error.field}: {error.reason}"
        raise typer.BadParameter(detail, param_hint="JOB or --jobs") from None


def _job_change(
    job: Scheduled, plan: Plan, before: ZoneData, then: ZoneData, start_at: int, end_at: int
) -> JobChange | None:
    """What another version of its zone changes for a job; None where every instant stays."""
    lacking = [data.version for data in (before, then) if job.zone not in data.names]
    if lacking:
        reason = f"the zone {job.zone} is not in {' and '.join(lacking)}"
        return JobChange(job.id, job.zone, None, None, None, None, True, reason)
    was, will = before.timeline(job.zone), then.timeline(job.zone)
    moved = first_moved(plan, was, will, start_at, end_at)
    if moved is None:
        return None
    coming = plan.by(was).next(start_at - 1), plan.by(will).next(start_at - 1)
    return JobChange(
        job.id,
        job.zone,
        _utc(moved.before_at),
        _local(moved.before_at, was),
        _utc(moved.after_at),
        _local(moved.after_at, will),
        coming == (moved.before_at, moved.after_at),
        _reason(job.zone, moved.why, before.version, then.version),
    )


def _zone_changes(before: ZoneData, then: ZoneData, start_at: int, end_at: int) -> Iterator[ZoneChange]:
    """The zones that differ, by name, each with the first stretch in which it does."""
    start_s, end_s = start_at // 1000, -(-end_at // 1000)
    for name in sorted(before.names | then.names):
        if name not in before.names or name not in then.names:
            offsets = [
                _offset(data.timeline(name).offset_at(start_s)) if name in data.names else None
                for data in (before, then)
            ]
            yield ZoneChange(name, _second(start_s), _second(end_s), *offsets)
            continue
        first = next(stretches(before.timeline(name), then.timeline(name), start_s, end_s), None)
        if first is not None:
            ends = _second(first.start_s), _second(first.end_s)
            yield ZoneChange(name, *ends, _offset(first.before_s), _offset(first.after_s))


def _write(found: TzdataDiff, output: Format) -> None:
    if output is not Format.TABLE:
        write_one(found, output, {})
        return
    typer.echo(f"{found.old} to {found.new}, until {found.until}\n")
    typer.echo(f"{len(found.jobs)} jobs would change" + (":" if found.jobs else ""))
    if found.jobs:
        rows = [tuple(msgspec.structs.astuple(job)) for job in found.jobs]
        write_many(
            found.jobs, output, _JOB_COLUMNS, [(*row[:6], "yes" if row[6] else "", row[7]) for row in rows]
        )
    typer.echo(f"\n{len(found.zones)} zones differ" + (":" if found.zones else ""))
    if found.zones:
        write_many(found.zones, output, _ZONE_COLUMNS, map(msgspec.structs.astuple, found.zones))


def _reason(zone: str, why: Stretch, old: str, new: str) -> str:
    return (
        f"{zone} is at UTC{_offset(why.before_s)} from {_second(why.start_s)} to {_second(why.end_s)} in {old}, "
        f"at UTC{_offset(why.after_s)} in {new}"
    )


def _utc(at: int | None) -> str | None:
    return None if at is None else format_instant(at)


def _local(at: int | None, line: Timeline) -> str | None:
    """On the wall clock of the zone, with its offset."""
    if at is None:
        return None
    zone = timezone(timedelta(seconds=line.offset_at(at // 1000)))
    return datetime_of(at).astimezone(zone).isoformat(timespec="seconds")


def _second(utc_s: int) -> str:
    return format_instant(utc_s * 1000)


def _offset(offset_s: int) -> str:
    """Such as +02:00."""
    return str(datetime.min.replace(tzinfo=timezone(timedelta(seconds=offset_s))))[19:]
