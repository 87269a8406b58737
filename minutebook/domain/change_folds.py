"""Folds of what changes a job: pause, resume, edit."""

from __future__ import annotations

import msgspec

from minutebook.domain import calendar_jobs, keys
from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.placing import is_to_come, job_version, open_job, put_job, reindexed
from minutebook.domain.record_folds import answer
from minutebook.domain.state import ACTIVE, NONE_AT, PAUSED, Answer, Job
from minutebook.domain.versions import version_of
from minutebook.errors import BrokenFrameError

replace = msgspec.structs.replace


def paused(book: Book, event: facts.JobPaused, token: int, now: int) -> None:
    """No instant of the job comes due; what is open goes on."""
    row = keys.job_row(event.tenant, event.job_id)
    job = _open_job(book, row, ACTIVE)
    indexed_at = job.indexed_at
    if indexed_at != NONE_AT and (not job.is_once or is_to_come(book, row, job)):
        book.index.delete(keys.index_row(indexed_at, keys.JOB, row))
        indexed_at = NONE_AT
    book.jobs.put(row, replace(job, status=PAUSED, indexed_at=indexed_at))
    if event.command_id:
        answer(book, row, event.command_id, Answer(True, ""), now)


def resumed(book: Book, event: facts.JobResumed, token: int, now: int) -> None:
    """Instants come due again, from the next one on. A schedule that has ended meanwhile, of which nothing is open, is over."""
    row = keys.job_row(event.tenant, event.job_id)
    job = replace(_open_job(book, row, PAUSED), status=ACTIVE)
    if not event.is_caught_up:
        job = replace(job, since_at=event.accepted_at)
    # The one instant of a job may be on record: its time stays, but nothing comes any more.
    if not job.is_once or event.next_at != NONE_AT:
        job = reindexed(book, row, job, event.next_at, now)
    answer(book, row, event.command_id, Answer(True, ""), now)
    put_job(book, row, job, job.open, job.last_outcome, now)


def edited(book: Book, event: facts.JobEdited, token: int, now: int) -> None:
    """Another version; what is open keeps the one that it has."""
    definition = event.job
    row = keys.job_row(definition.tenant, definition.job_id)
    job, version = open_job(book, row), version_of(definition)
    was_to_come = job.is_once and is_to_come(book, row, job)
    is_once = not version.is_recurring
    calendar_jobs.leave(book, row, job_version(book, row, job.version))
    calendar_jobs.enter(book, row, version)
    older = _older(book, row, job, job.open - was_to_come)
    book.specs.put(keys.spec_row(row, event.version), version)
    changed = replace(
        job,
        version=event.version,
        last_version=event.version,
        is_once=is_once,
        has_deadlines=version.policy.has_deadlines or (job.has_deadlines and bool(older)),
        jitter_ms=version.timing.jitter_ms,
        older=older,
        edited=definition.fingerprint,
        since_at=definition.accepted_at,
        open=job.open - was_to_come + (is_once and definition.next_at != NONE_AT),
    )
    # The one instant of a job may be on record: its time stays, but nothing comes any more.
    if not is_once or definition.next_at != NONE_AT:
        changed = reindexed(book, row, changed, definition.next_at, now)
    book.jobs.put(row, changed)
    answer(book, row, definition.command_id, Answer(True, ""), now)


def _older(book: Book, row: bytes, job: Job, open_count: int) -> list[tuple[int, int]]:
    """(version, open executions) of all versions so far; the last one goes at once if it has none."""
    own = open_count - sum(count for _, count in job.older)
    if not own:
        book.specs.delete(keys.spec_row(row, job.version))
        return job.older
    return sorted([*job.older, (job.version, own)])


def _open_job(book: Book, row: bytes, status: str) -> Job:
    job = open_job(book, row)
    if job.status != status:
        raise BrokenFrameError(f"{row!r} is {job.status}, not {status}")
    return job
