"""Requests on calendars: their dates as text, and the answer once every partition knows them."""

from __future__ import annotations

import re
from datetime import date
from typing import Any, Final

from fastapi import Request, Response

from api.auth import Caller
from api.bodies import check_accept, check_value, read_body, read_object
from api.calendar_effect import effect_of
from api.decisions import caught_up, json_response
from api.fields import Fields
from api.parameters import flag_of, query_of
from api.problems import Refused
from api.services import Services, services_of
from api.shared_facts import about, check, decided
from api.wishes import read_reason, reason_of
from minutebook.client.calendar_models import Calendar, CalendarEntry, DateRange
from minutebook.domain.calendars import DAY_FIRST, DAY_LAST, date_of, day_of, fault, merged
from minutebook.domain.commands import CalendarCommand, DeclareCalendar, DeleteCalendar
from minutebook.domain.state import Calendar as Ranges
from minutebook.domain.view_rows import CalendarRow
from minutebook.ids import is_name

_FIELDS: Final = ("dates", "reason")
_RANGE: Final = ("first", "last")
_DATE_REMEDY: Final = "must be a date such as 2026-12-25, from 1970-01-01 to 2200-12-31"
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
"""Of ISO 8601 the one form that everybody reads alike."""


async def read_calendar(request: Request, caller: Caller, name: str) -> Response:
    """A calendar as it stands. Raises Refused."""
    services, _ = _asked(request, name)
    await caught_up(request, services)
    row = services.view.calendar(caller.tenant, name)
    if row is None:
        raise Refused("not-found")
    return json_response(calendar_shown(name, row))


async def set_calendar(request: Request, caller: Caller, name: str) -> Response:
    """Declare a calendar or replace its dates, or tell what that would do. Raises Refused."""
    services, is_dry_run = _asked(request, name, "dry_run")
    data = await read_body(request, services.settings.body_timeout_s)
    fields = Fields(read_object(data))
    fields.refuse_unknown(_FIELDS)
    ranges = _ranges(fields)
    reason = read_reason(fields) or reason_of(request)
    check(fields, data)
    first, last = [first for first, _ in ranges], [last for _, last in ranges]
    if is_dry_run:
        return await _effect(request, services, caller, name, Ranges(0, first, last))
    command = DeclareCalendar(
        **about(services, caller, name), reason=reason, first_days=first, last_days=last
    )
    is_new = services.view.calendar(caller.tenant, name) is None
    return await _decided(request, services, command, 201 if is_new else 200)


async def delete_calendar(request: Request, caller: Caller, name: str) -> Response:
    """Free the jobs of a calendar from it, or tell what that would do. Raises Refused."""
    services, is_dry_run = _asked(request, name, "dry_run")
    if not is_dry_run:
        return await _decided(
            request, services, DeleteCalendar(**about(services, caller, name), reason=reason_of(request))
        )
    if services.view.calendar(caller.tenant, name) is None:
        raise Refused("not-found")
    return await _effect(request, services, caller, name, None)


def calendar_shown(name: str, row: CalendarRow) -> Calendar:
    """A calendar as callers see it."""
    pairs = zip(row.first_days, row.last_days, strict=True)
    dates = [_text(first) if first == last else DateRange(_text(first), _text(last)) for first, last in pairs]
    return Calendar(name, row.version, dates)


def entry_shown(name: str, row: CalendarRow) -> CalendarEntry:
    """A calendar as a list shows it."""
    count = sum(last - first + 1 for first, last in zip(row.first_days, row.last_days, strict=True))
    return CalendarEntry(name, row.version, _text(row.first_days[0]), _text(row.last_days[-1]), count)


def _asked(request: Request, name: str, *query: str) -> tuple[Services, bool]:
    """What answers a request on that calendar, and whether nothing is to be changed. Raises Refused."""
    check_accept(request)
    query_of(request, *query)
    is_dry_run = flag_of(request, "dry_run")
    if not is_name(name):
        raise Refused("not-found")
    return services_of(request), is_dry_run


def _ranges(fields: Fields) -> list[tuple[int, int]]:
    """The dates of a body as ranges of days, sorted and merged; what is wrong with them is noted."""
    given = fields.value("dates")
    if not isinstance(given, list):
        if given is not None or "dates" not in fields.members:
            fields.fault(
                "dates",
                'is required: a list of dates, and of ranges such as {"first": "2026-12-24", "last": "2027-01-01"}',
            )
        return []
    fields.names += check_value(given, "/dates")
    before, found = len(fields.errors), []
    for number, item in enumerate(given):
        ends = _ends(fields, f"dates/{number}", item)
        if ends is not None:
            found.append(ends)
    if len(fields.errors) == before and (remedy := fault(found)):
        fields.fault("dates", remedy)
    return merged(found)


def _ends(fields: Fields, place: str, item: Any) -> tuple[int, int] | None:
    """First and last day of a date or a range; None, and noted, for what is neither."""
    if isinstance(item, dict):
        if set(item) != set(_RANGE):
            fields.fault(place, "a range has first and last, and nothing else")
            return None
        first, last = (_day(item[end]) for end in _RANGE)
        for end, day in zip(_RANGE, (first, last), strict=True):
            if day is None:
                fields.fault(f"{place}/{end}", _DATE_REMEDY)
        return None if first is None or last is None else (first, last)
    day = _day(item)
    if day is None:
        fields.fault(place, _DATE_REMEDY)
    return None if day is None else (day, day)


def _day(text: Any) -> int | None:
    """Days since the epoch; None for what is no date, or out of bounds."""
    if not isinstance(text, str) or _DATE.fullmatch(text) is None:
        return None
    try:
        day = day_of(date.fromisoformat(text))
    except ValueError:
        return None
    return day if DAY_FIRST <= day <= DAY_LAST else None


def _text(day: int) -> str:
    return date_of(day).isoformat()


async def _effect(
    request: Request, services: Services, caller: Caller, name: str, changed: Ranges | None
) -> Response:
    await caught_up(request, services)
    return json_response(await effect_of(services.view, caller.tenant, name, changed, services.clock.now()))


async def _decided(
    request: Request, services: Services, command: CalendarCommand, status: int = 200
) -> Response:
    """The calendar, once every partition knows it as the command left it. Raises Refused where its home refuses."""
    view, tenant, name = services.view, command.tenant, command.name

    def version_in(partition: int) -> int | None:
        copy = view.parts[partition].calendar(tenant, name)
        return None if copy is None else copy.version

    def shown() -> Calendar | None:
        row = view.calendar(tenant, name)
        return None if row is None else calendar_shown(name, row)

    deletes = isinstance(command, DeleteCalendar)
    return await decided(request, services, command, version_in, None if deletes else shown, status)
