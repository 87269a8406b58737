"""Bulk operations on jobs: all that fit are paused, resumed or cancelled, as a command to each would be decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.commands import CancelJob, JobCommand, PauseJob, ResumeJob
from minutebook.domain.decide import decide
from minutebook.domain.events import Event
from minutebook.domain.operation import OperationFact
from minutebook.domain.operation_kind import Found, Kind
from minutebook.domain.state import ACTIVE, PAUSED, Job

STATUSES: Final = {"pause": (ACTIVE,), "resume": (PAUSED,), "cancel": (ACTIVE, PAUSED)}
"""Statuses of the jobs to which a kind of operation does something."""
_COMMANDS: Final[dict[str, Callable[..., JobCommand]]] = {
    "pause": PauseJob,
    "resume": ResumeJob,
    "cancel": CancelJob,
}
_DONE: Final = (facts.JobPaused, facts.JobResumed, facts.JobCancelled, facts.CommandAnswered)


def _rows(book: Book, fact: OperationFact, through: bytes) -> Iterator[Found]:
    """Jobs of the tenant in order of ids; of those that are not meant only the place."""
    prefix = keys.job_row(fact.tenant, fact.filter.job_prefix)
    for row, job in book.jobs.walk(max(prefix, through + b"\0"), keys.after(prefix)):
        yield Found(row, row if _is_meant(book, fact, row, job) else None)


def _is_meant(book: Book, fact: OperationFact, row: bytes, job: Job) -> bool:
    wanted = fact.filter
    if job.status not in STATUSES[fact.kind] or wanted.status not in ("", job.status):
        return False
    if job.accepted_at >= fact.accepted_at or not wanted.fits_time(job.accepted_at):
        return False
    if not (wanted.asks_for_work() or wanted.tag):
        return True
    spec = book.specs.get(keys.spec_row(row, job.version))
    return spec is not None and wanted.fits_work(spec.task, spec.queue) and wanted.fits_tags(spec.tags)


def _no_lane(book: Book, place: bytes) -> None:
    """Nothing of it waits for a worker."""


def _change(book: Book, fact: OperationFact, rows: Sequence[bytes], now: int) -> Iterator[Event]:
    """What a command to each job would be answered; the command's id makes a repeat harmless."""
    for row in rows:
        tenant, job_id = keys.names(row)
        command = _COMMANDS[fact.kind](
            tenant=tenant,
            job_id=job_id,
            command_id=ids.operation_command_id(tenant, job_id, fact.operation),
            issued_at=now,
            actor=ids.operation_actor(fact.actor, fact.operation),
            reason=fact.reason,
        )
        yield from decide(book, command, now)


def _done(event: Event) -> int:
    """What is skipped beside a resume is no job of its own."""
    return int(isinstance(event, _DONE))


KIND: Final = Kind(_rows, _no_lane, _change, done=_done)
KINDS: Final = dict.fromkeys(STATUSES, KIND)
