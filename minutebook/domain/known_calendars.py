"""The calendars that a partition knows, and what follows from them: asked for each instant of a job that names some."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final, Protocol

from minutebook.domain import keys
from minutebook.domain.state import Calendar
from minutebook.domain.timing import Timing
from minutebook.schedule.dates import Dates

if TYPE_CHECKING:
    from minutebook.domain.book import Family

REMEMBERED_MAX: Final = 20_000


class Ranges(Protocol):
    """Ranges of dates, days since the epoch, both ends included."""

    @property
    def first_days(self) -> list[int]:
        """The first date of each."""
        ...

    @property
    def last_days(self) -> list[int]:
        """The last date of each."""
        ...


def dates_of(timing: Timing, known: Callable[[str], Ranges | None]) -> Dates | None:
    """The dates that a job may use, None = any. `known` answers a calendar by name; None = it is without effect."""
    excluded = [found for name in timing.exclude if (found := known(name)) is not None]
    included = [found for name in timing.include if (found := known(name)) is not None]
    if not excluded and not included:
        return None
    return Dates(_pairs(excluded), _pairs(included) if included else None)


def _pairs(calendars: list[Ranges]) -> list[tuple[int, int]]:
    return [
        pair for calendar in calendars for pair in zip(calendar.first_days, calendar.last_days, strict=True)
    ]


class KnownCalendars:
    """Reads and writes the family of calendars. What follows from them is remembered until one changes."""

    def __init__(self, calendars: Family[Calendar]) -> None:
        self._calendars = calendars
        self._dates: dict[tuple[str, tuple[str, ...], tuple[str, ...]], Dates | None] = {}
        self._instants: dict[Hashable, int] = {}

    def get(self, tenant: str, name: str) -> Calendar | None:
        """A calendar; None for one that was never declared, or is deleted."""
        found = self._calendars.get(keys.calendar_row(tenant, name))
        return None if found is None or found.is_deleted else found

    def put(self, tenant: str, name: str, calendar: Calendar) -> bool:
        """Write `calendar`, unless a version as new is known. Whether it was written."""
        row = keys.calendar_row(tenant, name)
        known = self._calendars.get(row)
        if known is not None and known.version >= calendar.version:
            return False
        self._calendars.put(row, calendar)
        self._forget()
        return True

    def dates(self, tenant: str, timing: Timing) -> Dates | None:
        """The dates that a job of `tenant` may use, None = any."""
        key = tenant, tuple(timing.exclude), tuple(timing.include)
        if key not in self._dates:
            if len(self._dates) >= REMEMBERED_MAX:
                self._dates.clear()
            self._dates[key] = dates_of(timing, lambda name: self.get(tenant, name))
        return self._dates[key]

    def instant(self, key: Hashable, compute: Callable[[], int]) -> int:
        """What `compute` answers, computed once for all that have that key, until a calendar changes."""
        found = self._instants.get(key)
        if found is None:
            if len(self._instants) >= REMEMBERED_MAX:
                self._instants.clear()
            found = self._instants[key] = compute()
        return found

    def discard(self) -> None:
        """What was pending is forgotten: call it before the family forgets it."""
        if self._calendars.pending:
            self._forget()

    def _forget(self) -> None:
        self._dates.clear()
        self._instants.clear()
