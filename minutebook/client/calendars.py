"""Calendars of a tenant, over the API.

Every change is answered once every partition knows it; a Command comes back where that takes long.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import date
from typing import Any, Final, Protocol
from urllib.parse import quote

import httpx
import msgspec

from minutebook.client.answers import decided, decoded
from minutebook.client.calendar_models import (
    Calendar,
    CalendarEffect,
    CalendarEntry,
    CalendarPage,
    CalendarRequest,
    DateRange,
)
from minutebook.client.models import Command
from minutebook.client.reasons import reason_headers
from minutebook.client.stepping import each

Day = str | date | DateRange | tuple[str | date, str | date]
"""A date, or a range of dates, both ends included. Text is ISO 8601."""
_DRY_RUN: Final = {"dry_run": "true"}


class _Send(Protocol):
    """Sends a request. Raises as `Client` says."""

    async def __call__(
        self,
        method: str,
        path: str,
        *,
        body: msgspec.Struct | None = None,
        headers: dict[str, str] | None = None,
        query: dict[str, str] | None = None,
    ) -> httpx.Response: ...


class _Items(Protocol):
    """Items of a list, page after page."""

    def __call__(self, path: str, kind: type[Any]) -> AsyncIterator[Any]: ...


class Calendars:
    """Part of `Client`, and raises what its methods raise."""

    def __init__(self, send: _Send, items: _Items) -> None:
        self._send = send
        self._items = items

    async def set(self, name: str, dates: Iterable[Day], *, reason: str = "") -> Calendar | Command:
        """Declare a calendar, or replace its dates."""
        return decided(await self._send("PUT", _path(name), body=_request(dates, reason)), Calendar)

    async def would_set(self, name: str, dates: Iterable[Day]) -> CalendarEffect:
        """What `set` would do to the coming instants of the jobs that name it; nothing is changed."""
        answer = await self._send("PUT", _path(name), body=_request(dates, ""), query=_DRY_RUN)
        return decoded(answer, CalendarEffect)

    async def get(self, name: str) -> Calendar:
        """A calendar as it stands."""
        return decoded(await self._send("GET", _path(name)), Calendar)

    async def all(self) -> AsyncIterator[CalendarEntry]:
        """All calendars of the tenant by name."""
        async for item in self._items("/v1/calendars", CalendarPage):
            yield item

    async def delete(self, name: str, *, reason: str = "") -> Command | None:
        """Free the jobs of a calendar from it. None = done; a Command where it takes long."""
        answer = await self._send("DELETE", _path(name), headers=reason_headers(reason))
        return decoded(answer, Command) if answer.status_code == 202 else None

    async def would_delete(self, name: str) -> CalendarEffect:
        """What `delete` would do to the coming instants of the jobs that name it; nothing is changed."""
        return decoded(await self._send("DELETE", _path(name), query=_DRY_RUN), CalendarEffect)


class SyncCalendars:
    """`Calendars` for code without an event loop. Part of `SyncClient`."""

    def __init__(self, calendars: Calendars, runner: asyncio.Runner) -> None:
        self._calendars = calendars
        self._runner = runner

    def set(self, name: str, dates: Iterable[Day], *, reason: str = "") -> Calendar | Command:
        """See `Calendars.set`."""
        return self._runner.run(self._calendars.set(name, dates, reason=reason))

    def would_set(self, name: str, dates: Iterable[Day]) -> CalendarEffect:
        """See `Calendars.would_set`."""
        return self._runner.run(self._calendars.would_set(name, dates))

    def get(self, name: str) -> Calendar:
        """See `Calendars.get`."""
        return self._runner.run(self._calendars.get(name))

    def all(self) -> Iterator[CalendarEntry]:
        """See `Calendars.all`."""
        return each(self._runner, self._calendars.all())

    def delete(self, name: str, *, reason: str = "") -> Command | None:
        """See `Calendars.delete`."""
        return self._runner.run(self._calendars.delete(name, reason=reason))

    def would_delete(self, name: str) -> CalendarEffect:
        """See `Calendars.would_delete`."""
        return self._runner.run(self._calendars.would_delete(name))


def _path(name: str) -> str:
    return f"/v1/calendars/{quote(name, safe='')}"


def _request(dates: Iterable[Day], reason: str) -> CalendarRequest:
    return CalendarRequest([_day(day) for day in dates], reason)


def _day(day: Day) -> str | DateRange:
    if isinstance(day, tuple):
        return DateRange(*(str(end) for end in day))
    return day.isoformat() if isinstance(day, date) else day
