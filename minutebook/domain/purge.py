"""Purging: a closed job and its history are shown no more, and the owner forgets what it still has of it.

Its id stays taken for as long as closed jobs are remembered. The log stays as it is.
"""

from __future__ import annotations

from typing import Any, Final

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book, Family
from minutebook.domain.commands import REASON_CHARS_MAX, JobCommand, PurgeJob, SubmitJob
from minutebook.domain.events import Event
from minutebook.domain.record_folds import answer
from minutebook.domain.refusal import Refusal, answered
from minutebook.domain.state import NONE_AT, Answer, Job
from minutebook.errors import BrokenFrameError

PURGED: Final = "purged"
"""Status of a closed job of which only the id is known."""


def purge(book: Book, row: bytes, command: PurgeJob, stamp: int) -> Event:
    """The event of a purge. Raises Refusal unless the job is closed."""
    job = book.jobs.get(row)
    if job is not None:
        raise Refusal("not_closed", "id", f"the job is {job.status}; cancel it first")
    return facts.JobPurged(
        command.tenant,
        command.job_id,
        command.command_id,
        command.actor,
        command.reason[:REASON_CHARS_MAX],
        stamp,
    )


def about_purged(command: JobCommand) -> Event:
    """What a command about a purged job is answered. Raises Refusal: there is no such job, but its id is taken."""
    if isinstance(command, SubmitJob):
        raise Refusal("id_exists", "id", "a job with this id was purged; take another id")
    if isinstance(command, PurgeJob):
        return answered(command, PURGED)
    raise Refusal("not_found", "id", "no such job")


def purged(book: Book, event: facts.JobPurged, token: int, now: int) -> None:
    """Of a closed job only the id stays, under the day at which it was closed."""
    row = keys.job_row(event.tenant, event.job_id)
    for day in book.cursor.days:
        key = keys.remembered_row(day, row)
        closed = book.closed.get(key)
        if closed is not None:
            _forget(book, row)
            nothing = Job(0, PURGED, NONE_AT, NONE_AT, 0, "", b"", closed.command_id, closed.accepted_at)
            book.closed.put(key, nothing)
            answer(book, row, event.command_id, Answer(True, ""), now)
            return
    raise BrokenFrameError(f"{row!r} is not closed, it cannot be purged")


def _forget(book: Book, row: bytes) -> None:
    """Delete what is kept of a closed job: what could be redriven, with which version, and instants that were skipped."""
    for day in book.cursor.days:
        start = keys.remembered_row(day, row)
        _delete(book.dead, start + b":")
        _delete(book.shelf, start + b"\0")
        _delete(book.skips, start + b":")


def _delete(family: Family[Any], start: bytes) -> None:
    for key, _ in list(family.scan(start)):
        family.delete(key)
