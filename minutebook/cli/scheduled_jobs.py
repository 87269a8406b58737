"""Jobs as their schedules go, from the API or from a file: as much of one as its plan follows from."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import typer

from minutebook.client import Calendar, DateRange, NotFoundError
from minutebook.domain.calendars import day_of
from minutebook.domain.known_calendars import dates_of
from minutebook.domain.state import Calendar as Ranges
from minutebook.domain.timing import Timing
from minutebook.errors import ScheduleError
from minutebook.ids import job_key
from minutebook.schedule import DayMatch, Fold, Gap, is_hashed, parse_cron
from minutebook.schedule.dates import Dates
from minutebook.schedule.every import is_every
from minutebook.schedule.plan import Plan
from minutebook.times import parse_instant


class CalendarNames(msgspec.Struct):
    """Of the calendars of a job."""

    exclude: list[str] = []
    include: list[str] = []


class Scheduled(msgspec.Struct, kw_only=True):
    """The fields of a job, or of a create body, that its instants follow from; others are passed over."""

    id: str = ""
    tenant: str = ""
    cron: str | None = None
    zone: str = "UTC"
    start_at: str | None = None
    end_at: str | None = None
    gap: Gap = "auto"
    fold: Fold = "auto"
    day_match: DayMatch = "or"
    calendars: CalendarNames = msgspec.field(default_factory=CalendarNames)


class Calendars:
    """The dates of calendars, each asked for once. `get` raises NotFoundError for one that is not there."""

    def __init__(self, get: Callable[[str], Calendar]) -> None:
        self._get = get
        self._known: dict[str, Ranges | None] = {}

    def dates(self, names: CalendarNames) -> Dates | None:
        """The dates that a job may use, None = any. What is not there is without effect."""
        return dates_of(Timing(exclude=names.exclude, include=names.include), self._ranges)

    def _ranges(self, name: str) -> Ranges | None:
        if name not in self._known:
            try:
                ends = [_ends(day) for day in self._get(name).dates]
                self._known[name] = Ranges(0, [first for first, _ in ends], [last for _, last in ends])
            except NotFoundError:
                self._known[name] = None
        return self._known[name]


def jobs_in(file: Path | None) -> list[Scheduled]:
    """Jobs in a file of JSON: a list, an object with `items` or `jobs`, one job, or one a line. `-` is stdin.

    Raises BadParameter.
    """
    if file is None:
        return []
    try:
        data = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        return msgspec.convert(_objects(data), type=list[Scheduled])
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot be read: {error}", param_hint="--jobs") from None
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise typer.BadParameter(f"holds no jobs: {error}", param_hint="--jobs") from None


def _objects(text: str) -> Any:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return [msgspec.json.decode(line) for line in text.splitlines() if line.strip()]
    if isinstance(found, dict):
        found = found.get("items") or found.get("jobs") or [found]
    return found


def plan_of(job: Scheduled, tenant: str, dates: Dates | None) -> Plan | None:
    """The plan of a job with a cron expression; None for one whose instants no zone has a say in.

    `tenant`: whose it is where the job does not say. Raises ScheduleError.
    """
    if not job.cron or is_every(job.cron):
        return None
    return Plan(
        parse_cron(job.cron, _job_key(job, job.cron, tenant), job.day_match),
        job.zone,
        job.gap,
        job.fold,
        start_at=_instant("start_at", job.start_at),
        end_at=_instant("end_at", job.end_at),
        dates=dates,
    )


def _job_key(job: Scheduled, cron: str, tenant: str) -> str | None:
    if not is_hashed(cron):
        return None
    owner = job.tenant or tenant
    if not owner or not job.id:
        raise ScheduleError("cron", "`H` takes its values from the job: give its id and --tenant")
    return job_key(owner, job.id)


def _instant(field: str, text: str | None) -> int | None:
    try:
        return None if text is None else parse_instant(text)
    except ValueError as error:
        raise ScheduleError(field, str(error)) from None


def _ends(day: str | DateRange) -> tuple[int, int]:
    first, last = (day, day) if isinstance(day, str) else (day.first, day.last)
    return day_of(date.fromisoformat(first)), day_of(date.fromisoformat(last))


def scheduled(job: object) -> Scheduled:
    """The same of a job as the API answers it."""
    return msgspec.convert(job, type=Scheduled, from_attributes=True)
