"""Folds of calendars, of the jobs that depend on them, and of next instants that are computed anew."""

from __future__ import annotations

import msgspec

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.placing import open_job, put_job, reindexed
from minutebook.domain.record_folds import answer
from minutebook.domain.state import Answer, Calendar, Rescheduling
from minutebook.errors import BrokenFrameError

replace = msgspec.structs.replace


def declared(book: Book, event: facts.CalendarDeclared, token: int, now: int) -> None:
    """The home of a calendar has answered; the fact itself is in `CalendarCopied`, like everywhere."""
    row = keys.job_row(event.tenant, ids.calendar_subject(event.name))
    answer(book, row, event.command_id, Answer(True, ""), now)


def copied(book: Book, event: facts.CalendarCopied, token: int, now: int) -> None:
    """This partition knows the calendar; the next instants of its jobs are to be computed anew."""
    calendar = Calendar(event.version, event.first_days, event.last_days, event.is_deleted)
    if book.known_calendars.put(event.tenant, event.name, calendar):
        _start(book, ids.calendar_key(event.tenant, event.name), f"calendar {event.name}", now)


def started(book: Book, event: facts.ReschedulingStarted, token: int, now: int) -> None:
    """Next instants are to be computed anew, from the first job on."""
    _start(book, event.work, event.cause, now)


def _start(book: Book, work: str, cause: str, now: int) -> None:
    """A work begins with the first job, also where it was under way: then from when it began first."""
    row = work.encode()
    known = book.reschedulings.get(row)
    book.reschedulings.put(row, Rescheduling(cause, now if known is None else known.since_at))


def rescheduled(book: Book, event: facts.JobsRescheduled, token: int, now: int) -> None:
    """Next instants that were computed anew, and how far that has come."""
    for tenant, job_id, next_at in zip(event.tenant, event.job_ids, event.next_at, strict=True):
        row = keys.job_row(event.tenants[tenant], job_id)
        job = open_job(book, row)
        moved = reindexed(book, row, job, next_at, now)
        put_job(book, row, moved, moved.open, moved.last_outcome, now)
    if event.work:
        _advance(book, event)


def _advance(book: Book, event: facts.JobsRescheduled) -> None:
    row = event.work.encode()
    work = book.reschedulings.get(row)
    if work is None:
        raise BrokenFrameError(f"{event.work} is not under way, it cannot advance")
    if event.is_finished:
        book.reschedulings.delete(row)
    else:
        book.reschedulings.put(row, replace(work, through=event.through))
