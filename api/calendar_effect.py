"""What a change of a calendar would do to coming instants, counted in the view while other requests are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from api.view import View
from minutebook.client.calendar_models import CalendarEffect, InstantCount
from minutebook.domain.keys import DAY_MS
from minutebook.domain.known_calendars import Ranges, dates_of
from minutebook.domain.plans import dated
from minutebook.domain.timing import DEFAULT
from minutebook.domain.versions import when_of
from minutebook.schedule.dates import Dates, DayRange
from minutebook.schedule.plan import Plan
from minutebook.times import format_instant

JOBS_MAX: Final = 1_000
"""Jobs that one answer looks at."""
SPANS_MAX: Final = 20_000
"""Stretches of dates that it counts in, a second's work or two."""
AHEAD_MS: Final = 366 * DAY_MS
_ZONE_DAYS: Final = 2
"""No zone is further from UTC, with a day's margin."""


class _Change(NamedTuple):
    """Of the instants of all jobs with that plan on these dates. `following`: the next one, None = none is left."""

    removed: int
    added: int
    following: int | None


class _Counting:
    """Counts the same change once. `spans`: how many stretches of dates were counted in."""

    def __init__(self, now: int) -> None:
        self._now = now
        self._until = now + AHEAD_MS
        self._first, self._end = now // DAY_MS - _ZONE_DAYS, self._until // DAY_MS + _ZONE_DAYS
        self._known: dict[tuple[Plan, Dates | None, Dates | None], _Change] = {}
        self.spans = 0

    def change(self, plan: Plan, before: Dates | None, after: Dates | None) -> _Change:
        """What becomes of `plan` on the dates of `after` instead of those of `before`."""
        key = plan, before, after
        if key not in self._known:
            kept, wanted = self._ranges(before), self._ranges(after)
            removed, added = (self._count(plan, *pair) for pair in ((wanted, kept), (kept, wanted)))
            self._known[key] = _Change(removed, added, plan.on(after).next(self._now))
        return self._known[key]

    def _count(self, plan: Plan, excluded: list[DayRange], included: list[DayRange]) -> int:
        self.spans += len(excluded) + len(included)
        return plan.on(Dates(excluded, included)).count(self._now, self._until)

    def _ranges(self, dates: Dates | None) -> list[DayRange]:
        """The allowed days that any zone may have meanwhile."""
        if dates is None:
            return [(self._first, self._end - 1)]
        return [(begin, stop - 1) for begin, stop in dates.between(self._first, self._end)]


async def effect_of(view: View, tenant: str, name: str, changed: Ranges | None, now: int) -> CalendarEffect:
    """What becomes of the instants from `now` (ms) on where the calendar has the dates of `changed`, None = it is deleted."""
    before, after = _calendars(view, tenant), _calendars(view, tenant, {name: changed})
    counting, found = _Counting(now), list[tuple[_Change, int]]()
    is_complete = True
    for job_id, job, progress in view.jobs_of_calendar(tenant, name):
        if progress.status not in ("active", "paused") or progress.next_at <= now:
            continue
        if len(found) == JOBS_MAX or counting.spans > SPANS_MAX:
            is_complete = False
            break
        timing = job.timing or DEFAULT
        plan = dated(tenant, job_id, when_of(job), None)
        found.append(
            (counting.change(plan, dates_of(timing, before), dates_of(timing, after)), progress.next_at)
        )
        await asyncio.sleep(0)
    return CalendarEffect(
        name=name,
        until=format_instant(now + AHEAD_MS),
        jobs=len(found),
        complete=is_complete,
        removed=_total([change.removed for change, _ in found]),
        added=_total([change.added for change, _ in found]),
        moved=sum(change.following not in (None, next_at) for change, next_at in found),
        ended=sum(change.following is None for change, _ in found),
    )


def _calendars(
    view: View, tenant: str, changed: dict[str, Ranges | None] | None = None
) -> Callable[[str], Ranges | None]:
    """The calendars of a tenant by name, those in `changed` as they would be."""
    known: dict[str, Ranges | None] = dict(changed or {})

    def find(name: str) -> Ranges | None:
        if name not in known:
            known[name] = view.calendar(tenant, name)
        return known[name]

    return find


def _total(instants: list[int]) -> InstantCount:
    return InstantCount(sum(instants), sum(count > 0 for count in instants))
