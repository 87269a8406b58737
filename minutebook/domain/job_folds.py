"""Folds of what commands change, and of instants that do not become runs."""

from __future__ import annotations

import msgspec

from minutebook import ids
from minutebook.domain import calendar_jobs, jitter, keys
from minutebook.domain import events as facts
from minutebook.domain.backfill_folds import note_filled, note_skipped
from minutebook.domain.book import Book
from minutebook.domain.job_events import BACKFILL, OVERLAP
from minutebook.domain.placing import (
    drop_waiting,
    end,
    is_to_come,
    leave_version,
    open_execution,
    open_job,
    place_deadlines,
    put_job,
    reindexed,
    take_running,
)
from minutebook.domain.record_folds import answer
from minutebook.domain.state import NONE_AT, UNCHANGED, Answer, Execution, Job
from minutebook.domain.transitions import require
from minutebook.domain.versions import version_of
from minutebook.errors import BrokenFrameError

replace = msgspec.structs.replace


def submitted(book: Book, event: facts.JobSubmitted, token: int, now: int) -> None:
    """A job and its first version, with its row of the time index."""
    row = keys.job_row(event.tenant, event.job_id)
    jitter_ms = 0 if event.timing is None else event.timing.jitter_ms
    at = max(jitter.due_at(event.tenant, event.job_id, event.next_at, jitter_ms), now)
    is_once = not event.cron and event.every_ms == NONE_AT
    open_count = 1 if is_once else 0
    job = Job(
        1,
        "active",
        event.next_at,
        at,
        open_count,
        "",
        event.fingerprint,
        event.command_id,
        event.accepted_at,
        is_once,
        event.policy is not None and event.policy.has_deadlines,
        jitter_ms=jitter_ms,
    )
    spec = version_of(event)
    book.specs.put(keys.spec_row(row, 1), spec)
    book.jobs.put(row, job)
    calendar_jobs.enter(book, row, spec)
    book.index.put(keys.index_row(at, keys.JOB, row), b"")


def cancelled(book: Book, event: facts.JobCancelled, token: int, now: int) -> None:
    """No instant and no attempt of the job after this."""
    row = keys.job_row(event.tenant, event.job_id)
    job = open_job(book, row)
    left = job.open - len(event.executions)
    if job.is_once and is_to_come(book, row, job):
        left -= 1
    if job.indexed_at != NONE_AT:
        book.index.delete(keys.index_row(job.indexed_at, keys.JOB, row))
    for name in event.executions:
        key = keys.execution_row(event.tenant, name)
        execution = open_execution(book, key)
        require(execution.status, "cancelled", "cancelled", key)
        drop_waiting(book, key, execution)
        job = leave_version(book, key, execution, job)
    for name, ended in zip(event.stopping, event.tokens, strict=True):
        key = keys.execution_row(event.tenant, name)
        book.running.put(
            key, replace(take_running(book, key, ended, "cancelled", "running"), is_stopping=True)
        )
    changed = replace(
        job,
        status="cancelled",
        next_at=NONE_AT,
        indexed_at=NONE_AT,
        open=left,
        last_outcome="cancelled",
        held=[],
    )
    answer(book, row, event.command_id, Answer(True, ""), now)
    put_job(book, row, changed, changed.open, changed.last_outcome, now)


def requested(book: Book, event: facts.ExecutionRequested, token: int, now: int) -> None:
    """A further execution, due at once."""
    row = keys.job_row(event.tenant, event.job_id)
    key = keys.execution_row(event.tenant, event.execution)
    job = open_job(book, row)
    require("", "requested", "scheduled", key)
    at = max(event.accepted_at, now)
    execution = Execution(
        job.version, 1, "scheduled", event.accepted_at, event.accepted_at, at, indexed_at=at
    )
    book.executions.put(key, execution)
    book.index.put(keys.index_row(at, keys.EXECUTION, key), b"")
    book.jobs.put(row, replace(job, open=job.open + 1))
    if job.has_deadlines:
        place_deadlines(book, key, execution, now)
    answer(book, row, event.command_id, Answer(True, ""), now)


def placed(book: Book, event: facts.ExecutionsPlaced, token: int, now: int) -> None:
    """Instants that become executions at a time that is not theirs; those without one are held."""
    row = keys.job_row(event.tenant, event.job_id)
    job = open_job(book, row)
    held: list[str] = []
    for scheduled_at, due_at, place_at in zip(event.scheduled_at, event.due_at, event.place_at, strict=True):
        name = ids.execution_id(event.job_id, scheduled_at)
        key = keys.execution_row(event.tenant, name)
        known = book.execution(key)
        require("" if known is None else known.status, "placed", "scheduled", key)
        at = NONE_AT if place_at == NONE_AT else max(place_at, now)
        if at == NONE_AT:
            held.append(name)
        else:
            book.index.put(keys.index_row(at, keys.EXECUTION, key), b"")
        execution = Execution(
            event.version,
            1,
            "scheduled",
            scheduled_at,
            due_at,
            max(at, due_at),
            at,
            is_catch_up=event.cause != OVERLAP,
        )
        book.executions.put(key, execution)
        if job.has_deadlines:
            place_deadlines(book, key, execution, now)
    count = len(event.scheduled_at)
    if event.cause == BACKFILL:
        note_filled(book, row, event.scheduled_at)
    runs = 0 if event.cause == BACKFILL else count
    moved = job if event.cause == BACKFILL else _recorded(job, event.scheduled_at[-1])
    if event.next_at != UNCHANGED:
        moved = reindexed(book, row, moved, event.next_at, now)
    book.jobs.put(row, replace(moved, open=job.open + count, runs=job.runs + runs, held=[*job.held, *held]))


def skipped(book: Book, event: facts.ExecutionsSkipped, token: int, now: int) -> None:
    """Instants that do not become executions."""
    row = keys.job_row(event.tenant, event.job_id)
    job = open_job(book, row)
    if not job.is_once:
        note_skipped(book, row, event, now)
    moved = _recorded(job, event.last_at)
    if event.next_at != UNCHANGED:
        moved = reindexed(book, row, moved, event.next_at, now)
    put_job(book, row, moved, moved.open - job.is_once, moved.last_outcome, now)


def _recorded(job: Job, at: int) -> Job:
    """`job` with its instant `at` on record, which may come behind the next one."""
    return replace(job, last_at=max(job.last_at, at))


def execution_cancelled(book: Book, event: facts.ExecutionCancelled, token: int, now: int) -> None:
    """One execution waits no more, or its attempt is asked to stop."""
    key = keys.execution_row(event.tenant, event.execution)
    row = keys.job_row(event.tenant, event.job_id)
    if event.command_id:
        answer(book, row, event.command_id, Answer(True, ""), now)
    if event.token >= 0:
        execution = take_running(book, key, event.token, "cancelled", "running")
        book.running.put(key, replace(execution, is_stopping=True))
        return
    execution = open_execution(book, key)
    require(execution.status, "cancelled", "cancelled", key)
    drop_waiting(book, key, execution)
    end(book, key, execution, "cancelled", now)


def redriven(book: Book, event: facts.ExecutionRedriven, token: int, now: int) -> None:
    """A dead execution is open again, and so is its job."""
    key = keys.execution_row(event.tenant, event.execution)
    row = keys.job_row(event.tenant, event.job_id)
    dead = book.recall(book.dead, key)
    if dead is None:
        raise BrokenFrameError(f"{key!r} is not dead, it cannot be redriven")
    require(dead.status, "redriven", "scheduled", key)
    spec = book.remembered(book.shelf, keys.spec_row(row, dead.version))
    if spec is None:
        raise BrokenFrameError(f"version {dead.version} of {row!r} is not there")
    job = book.recall(book.closed, row)
    if job is not None and job.status != "cancelled":
        job = replace(job, status="active")
    job = job or open_job(book, row)
    if event.is_edited:
        spec = replace(spec, payload=event.payload)
    book.specs.put(keys.spec_row(row, event.version), spec)
    older = dict(job.older)
    if event.version != job.version:
        older[event.version] = older.get(event.version, 0) + 1
    last_version = max(job.last_version, event.version)
    book.jobs.put(
        row, replace(job, open=job.open + 1, last_version=last_version, older=sorted(older.items()))
    )
    at = max(event.accepted_at, now)
    execution = Execution(
        event.version,
        event.attempt,
        "scheduled",
        dead.scheduled_at,
        dead.due_at,
        event.accepted_at,
        at,
        generation=event.generation,
        details=dead.details,
    )
    book.executions.put(key, execution)
    book.index.put(keys.index_row(at, keys.EXECUTION, key), b"")
    answer(book, row, event.command_id, Answer(True, ""), now)
