"""Commands on calendars, decided at the calendar's home; its copy there is an event of its own, like everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Final

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.commands import REASON_CHARS_MAX, CalendarCommand, DeclareCalendar
from minutebook.domain.events import Event
from minutebook.domain.refusal import Refusal, answered
from minutebook.domain.state import Calendar

RANGES_MAX: Final = 1_000
_EPOCH: Final = date(1970, 1, 1).toordinal()
DAY_FIRST: Final = 0
DAY_LAST: Final = date(2200, 12, 31).toordinal() - _EPOCH
"""2200-12-31, with `DAY_FIRST` the bounds of all dates."""


def decide_calendar(book: Book, command: CalendarCommand, stamp: int) -> list[Event]:
    """Events of a command on a calendar. Raises Refusal."""
    known = book.calendars.get(keys.calendar_row(command.tenant, command.name))
    changed = _changed(known, command)
    if changed == known:
        return [answered(command, "exists")]
    fact = (
        command.tenant,
        command.name,
        1 if known is None else known.version + 1,
        changed.first_days,
        changed.last_days,
        changed.is_deleted,
    )
    reason = command.reason[:REASON_CHARS_MAX]
    return [
        facts.CalendarDeclared(*fact, command.command_id, command.actor, reason, stamp),
        facts.CalendarCopied(*fact),
    ]


def fault(ranges: Iterable[tuple[int, int]]) -> str:
    """What is wrong with these ranges of days since the epoch, with the remedy; empty if nothing is."""
    pairs = list(ranges)
    if not pairs:
        return "at least one date; to free its jobs from a calendar, delete it"
    for first, last in pairs:
        if not (DAY_FIRST <= first <= DAY_LAST and DAY_FIRST <= last <= DAY_LAST):
            return "dates from 1970-01-01 to 2200-12-31"
        if last < first:
            return f"a range ends on or after its first date, {date_of(first)}; swap first and last"
    if len(merged(pairs)) > RANGES_MAX:
        return f"at most {RANGES_MAX} ranges, dates in a row being one; make several calendars of it"
    return ""


def merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same days as ranges in order, with at least one day between any two."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return found


def day_of(day: date) -> int:
    """A date as days since the epoch."""
    return day.toordinal() - _EPOCH


def date_of(day: int) -> date:
    """Days since the epoch as a date."""
    return date.fromordinal(_EPOCH + day)


def _changed(known: Calendar | None, command: CalendarCommand) -> Calendar:
    """The calendar as the command wants it, its version left as it is."""
    version = 0 if known is None else known.version
    if isinstance(command, DeclareCalendar):
        ranges = merged(_ranges(command))
        return Calendar(version, [first for first, _ in ranges], [last for _, last in ranges])
    if known is None:
        raise Refusal("not_found", "name", "no such calendar; declare it first: minutebook calendar set")
    return Calendar(version, is_deleted=True)


def _ranges(command: DeclareCalendar) -> list[tuple[int, int]]:
    if len(command.first_days) != len(command.last_days):
        raise Refusal("invalid", "last_days", "one last date for each first date")
    ranges = list(zip(command.first_days, command.last_days, strict=True))
    if remedy := fault(ranges):
        raise Refusal("invalid", "dates", remedy)
    return ranges
