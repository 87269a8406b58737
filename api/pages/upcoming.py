"""What is due: by minute, by hour, and where a schedule would come into a crowd."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import msgspec
from fastapi import Depends, Request, Response

from api.auth import Caller, Scope
from api.crowding import CROWDED_MIN, crowds
from api.guard import trace_id_of
from api.pages.access import Seen, page_router, ready
from api.pages.live import show_live
from api.problems import Refused, problem_of
from api.routes.schedules import preview_of
from api.services import Services
from api.upcoming import Range, range_of, upcoming
from minutebook.client.live_models import DueBucket
from minutebook.client.models import Problem
from minutebook.client.preview_models import Preview
from minutebook.domain.view_rows import HOUR_MS
from minutebook.times import datetime_of, format_instant, parse_instant

router = page_router()
Reading = Annotated[Caller, Depends(Seen(Scope.JOBS_READ))]
_BUSIEST: Final = 5
_HEATS: Final = 5
_KINDS: Final = "job execution"
_COUNT: Final = 8


class Busy(NamedTuple):
    """A minute in which many are due, and a better one."""

    at: str
    due: int
    hint: str


class Hour(NamedTuple):
    """A cell of the map of a week. `heat` 0 = nothing is due, up to 5. `due` None: it lies outside."""

    at: str
    due: int | None
    heat: int


class Day(NamedTuple):
    """A line of it: a day in UTC."""

    title: str
    hours: list[Hour]


class Trial(NamedTuple):
    """A schedule that somebody thinks of: what it would do, or why it cannot be."""

    cron: str
    zone: str
    preview: Preview | None
    problem: Problem | None


@router.get("/upcoming")
async def show_upcoming(request: Request, caller: Reading) -> Response:
    """The next three hours by minute, the next seven days by hour, and what a schedule would meet."""
    services = await ready(request)
    now = services.clock.now()
    minutes = await upcoming(services.view, caller.tenant, range_of({"by": "minute"}, now))
    first = now - now % HOUR_MS
    hours = await upcoming(services.view, caller.tenant, Range("hour", first, first + 168 * HOUR_MS))
    return show_live(
        request,
        "upcoming",
        _KINDS,
        minutes=minutes,
        hours=hours,
        within={name: _within(minutes.buckets, length) for name, length in _WITHIN.items()},
        busy=await _busy(services, caller, minutes.buckets),
        week=week_of(hours.buckets),
        trial=await _trial(request, services, caller),
    )


_WITHIN: Final = {"in 1 min": 1, "in 5 min": 5, "in 1 h": 60, "in 3 h": 180}


def _within(buckets: list[DueBucket], minutes: int) -> int:
    """Due in this minute and those after it, so many in all."""
    return sum(bucket.due for bucket in buckets[: minutes + (minutes < len(buckets))])


async def _busy(services: Services, caller: Caller, buckets: list[DueBucket]) -> list[Busy]:
    crowded = sorted((bucket for bucket in buckets if bucket.due >= CROWDED_MIN), key=lambda it: -it.due)[
        :_BUSIEST
    ]
    found = await crowds(services.view, caller.tenant, (parse_instant(bucket.at) for bucket in crowded))
    return [Busy(bucket.at, bucket.due, crowd.hint) for bucket, crowd in zip(crowded, found, strict=True)]


def week_of(buckets: list[DueBucket]) -> list[Day]:
    """Days of 24 hours in UTC out of the hours of a week, the first and the last one in part."""
    most = max(bucket.due for bucket in buckets)
    known = {parse_instant(bucket.at): bucket.due for bucket in buckets}
    first, last = min(known), max(known)
    days = []
    for start in range(first - first % (24 * HOUR_MS), last + 1, 24 * HOUR_MS):
        hours = [
            Hour(format_instant(at), due, heat_of(due or 0, most))
            for at in range(start, start + 24 * HOUR_MS, HOUR_MS)
            for due in (known.get(at),)
        ]
        days.append(Day(f"{datetime_of(start):%a %d %b}", hours))
    return days


def heat_of(due: int, most: int) -> int:
    """0 for nothing, else 1 to 5 by share of the most."""
    return 0 if not due else 1 + (_HEATS * due - 1) // most if due < most else _HEATS


async def _trial(request: Request, services: Services, caller: Caller) -> Trial:
    cron, zone = request.query_params.get("cron", "").strip(), request.query_params.get("zone", "").strip()
    if not cron:
        return Trial(cron, zone or "UTC", None, None)
    body = msgspec.json.encode({"cron": cron, "zone": zone or "UTC", "count": _COUNT})
    try:
        return Trial(cron, zone, await preview_of(services, caller, body), None)
    except Refused as refused:
        return Trial(cron, zone, None, problem_of(refused, trace_id_of(request)))
