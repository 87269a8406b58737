"""Rows that folds write together: a job with its place in the time index, an execution with where it waits.

Nothing here decides; every function raises BrokenFrameError for rows that are not as an event says.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from minutebook.domain import calendar_jobs, keys
from minutebook.domain.book import Book
from minutebook.domain.jitter import due_at
from minutebook.domain.permit_folds import spend
from minutebook.domain.record_folds import remember
from minutebook.domain.state import NONE_AT, PAUSED, Execution, Job, Spec
from minutebook.domain.transitions import closed_status, require
from minutebook.errors import BrokenFrameError

replace = msgspec.structs.replace


def open_job(book: Book, row: bytes) -> Job:
    """The open job of that row. Raises BrokenFrameError."""
    job = book.jobs.get(row)
    if job is None:
        raise BrokenFrameError(f"job {row!r} is not there")
    return job


def open_execution(book: Book, row: bytes) -> Execution:
    """The open execution of that row. Raises BrokenFrameError."""
    execution = book.execution(row)
    if execution is None:
        raise BrokenFrameError(f"execution {row!r} is not open")
    return execution


def spec_of(book: Book, key: bytes, version: int) -> Spec:
    """The version of its job that the execution with that key was queued with."""
    return job_version(book, key[: key.rindex(b":")], version)


def job_version(book: Book, row: bytes, version: int) -> Spec:
    """A version of the job of that row."""
    spec = book.specs.get(keys.spec_row(row, version))
    if spec is None:
        raise BrokenFrameError(f"version {version} of {row!r} is not there")
    return spec


def put_job(book: Book, row: bytes, job: Job, open_count: int, outcome: str, now: int) -> None:
    """Write `job` with its open executions and last outcome, or move it to the closed ones if it has come to its end:
    those are remembered for some days, so that a repeat of a submission is known."""
    next_at = NONE_AT if job.is_once else job.next_at
    status = closed_status(job.status, next_at, open_count, outcome)
    if status is None:
        book.jobs.pending[row] = _changed(
            job, job.next_at, job.indexed_at, open_count, outcome, job.runs, job.last_at
        )
        return
    book.jobs.pending[row] = None
    if not job.is_once or job.last_version > 1:
        book.drop_filled(row)
    if not job.is_once and (spec := book.specs.get(keys.spec_row(row, job.version))) is not None:
        calendar_jobs.leave(book, row, spec)
    book.specs.pending[keys.spec_row(row, job.version)] = None
    book.closed.pending[keys.remembered_row(remember(book, now), row)] = Job(
        job.version,
        status,
        NONE_AT,
        NONE_AT,
        open_count,
        outcome,
        job.fingerprint,
        job.command_id,
        job.accepted_at,
        job.is_once,
        job.has_deadlines,
        job.last_version,
        job.runs,
        job.held,
        job.jitter_ms,
        job.older,
        job.last_at,
        job.edited,
        job.since_at,
    )


def _changed(
    job: Job, next_at: int, indexed_at: int, open_count: int, last_outcome: str, runs: int, last_at: int
) -> Job:
    """`job` with what comes due and ends changes; by position, for this is where folds spend their time."""
    return Job(
        job.version,
        job.status,
        next_at,
        indexed_at,
        open_count,
        last_outcome,
        job.fingerprint,
        job.command_id,
        job.accepted_at,
        job.is_once,
        job.has_deadlines,
        job.last_version,
        runs,
        job.held,
        job.jitter_ms,
        job.older,
        last_at,
        job.edited,
        job.since_at,
    )


def job_due_at(row: bytes, job: Job, at: int) -> int:
    """When the instant `at` of the job in `row` is due."""
    return due_at(*keys.names(row), at, job.jitter_ms) if job.jitter_ms else at


def reindexed(
    book: Book,
    row: bytes,
    job: Job,
    next_at: int,
    now: int,
    runs: int = 0,
    last_at: int = NONE_AT,
) -> Job:
    """`job` with its index row moved to when `next_at` is due, and `runs` of its instants as open executions more; what is
    already past is placed at `now`, an instant of a paused job nowhere. `last_at`: the instant that is on record with
    this.
    """
    if job.indexed_at != NONE_AT:
        book.index.pending[keys.index_row(job.indexed_at, keys.JOB, row)] = None
    at = NONE_AT
    if next_at != NONE_AT and job.status != PAUSED:
        at = max(job_due_at(row, job, next_at), now)
        book.index.pending[keys.index_row(at, keys.JOB, row)] = b""
    return _changed(
        job,
        next_at,
        at,
        job.open + runs,
        job.last_outcome,
        job.runs + runs,
        last_at if last_at > job.last_at else job.last_at,
    )


def is_to_come(book: Book, row: bytes, job: Job) -> bool:
    """Whether the instant of a job that fires once has not become an execution yet."""
    if job.next_at == NONE_AT:
        return False
    return (
        job.indexed_at == NONE_AT or book.index.get(keys.index_row(job.indexed_at, keys.JOB, row)) is not None
    )


def lane_of(book: Book, key: bytes, execution: Execution) -> keys.Lane:
    """The lane of the queued set that the execution with that key belongs to."""
    return execution.lane(spec_of(book, key, execution.version), keys.names(key)[0])


def count_all(book: Book, changes: Counter[bytes], sign: int) -> None:
    """Count rows of lanes, `sign` 1 or -1."""
    for prefix, change in changes.items():
        count(book, prefix, sign * change)


def count(book: Book, key: bytes, change: int) -> None:
    """How many rows the lane with that prefix holds."""
    left = (book.counts.get(key) or 0) + change
    if left:
        book.counts.put(key, left)
    else:
        book.counts.delete(key)


def unplace(book: Book, key: bytes, execution: Execution) -> None:
    """Take an execution out of the index or the queued set, where it waits."""
    if execution.status == "scheduled" and not execution.is_held:
        book.index.delete(keys.index_row(execution.indexed_at, keys.EXECUTION, key))
    elif execution.status == "queued":
        lane = lane_of(book, key, execution)
        book.queued.delete(keys.queued_row(lane.prefix(), execution.ready_at, keys.names(key)[1]))
        count(book, lane.prefix(), -1)


def requeue(book: Book, key: bytes, execution: Execution) -> None:
    """Back to the queued set, at its time there."""
    lane = lane_of(book, key, execution)
    book.queued.put(keys.queued_row(lane.prefix(), execution.ready_at, keys.names(key)[1]), b"")
    count(book, lane.prefix(), 1)
    book.executions.put(
        key, replace(execution, status="queued", token=-1, session="", indexed_at=NONE_AT, started_at=NONE_AT)
    )


def further(book: Book, key: bytes, ended: Execution, retry_at: int, at: int) -> None:
    """A further attempt, due at `retry_at`, with its row of the time index at `at`."""
    book.index.put(keys.index_row(at, keys.EXECUTION, key), b"")
    more = replace(
        ended,
        status="scheduled",
        attempt=ended.attempt + 1,
        ready_at=retry_at,
        indexed_at=at,
        started_at=NONE_AT,
    )
    book.executions.put(key, more)


def take_running(book: Book, key: bytes, token: int, name: str, becomes: str) -> Execution:
    """The execution whose running attempt has that token; it runs no more, and its permits are spent."""
    execution = take_back(book, key, token, name, becomes)
    if execution.permits:
        spend(book, [(key, execution)])
        return replace(execution, permits=[])
    return execution


def take_back(book: Book, key: bytes, token: int, name: str, becomes: str) -> Execution:
    """As `take_running`, but what becomes of its permits is left to the caller."""
    execution = open_execution(book, key)
    require(execution.status, name, becomes, key)
    if execution.token != token:
        raise BrokenFrameError(f"{key!r} runs under token {execution.token}, not {token}")
    book.running.delete(key)
    return execution


def end(book: Book, key: bytes, execution: Execution, outcome: str, now: int) -> None:
    """An execution has reached its outcome. If nothing else is open, the first one that is held goes its way."""
    row = key[: key.rindex(b":")]
    job = open_job(book, row)
    if job.has_deadlines or execution.version != job.version:
        job = leave_version(book, key, execution, job)
    if job.held:
        job = _released(book, row, key, job, now)
    put_job(book, row, job, job.open - 1, outcome, now)


def _released(book: Book, row: bytes, key: bytes, job: Job, now: int) -> Job:
    """`job` as the execution of `key` ends: that one is held no more, nor is the first of those held that nothing is before.

    A part of every end, so that no decision can forget it. The one instant of a job that fires once, where it is to come, is
    nothing to wait for: it may be skipped without an end.
    """
    tenant, name = keys.names(key)
    held = [other for other in job.held if other != name]
    others = job.open - 1 - len(held) - (job.is_once and is_to_come(book, row, job))
    if held and not others:
        freed = keys.execution_row(tenant, held.pop(0))
        execution = open_execution(book, freed)
        book.executions.put(freed, replace(execution, ready_at=now, indexed_at=now))
        book.index.put(keys.index_row(now, keys.EXECUTION, freed), b"")
    return replace(job, held=held)


def leave_version(book: Book, key: bytes, execution: Execution, job: Job) -> Job:
    """An execution has ended: its deadlines go, and so does an older version that no other one has. The job after it."""
    if job.has_deadlines:
        for row in _deadline_rows(book, key, execution):
            book.index.delete(row)
    version = execution.version
    if version == job.version:
        return job
    older = dict(job.older)
    if older.get(version, 0) > 1:
        older[version] -= 1
    else:
        older.pop(version, None)
        book.specs.delete(keys.spec_row(keys.job_of_execution(key), version))
    return replace(job, older=sorted(older.items()))


def _deadline_rows(book: Book, key: bytes, execution: Execution) -> list[bytes]:
    """Rows of the time index at which an execution expires."""
    policy = spec_of(book, key, execution.version).policy
    ends = ((policy.deadline_ms, keys.DEADLINE), (policy.start_deadline_ms, keys.START_DEADLINE))
    return [
        keys.index_row(execution.due_at + after_ms, kind, key)
        for after_ms, kind in ends
        if after_ms is not None
    ]


def place_deadlines(book: Book, key: bytes, execution: Execution, now: int) -> None:
    """Rows of the time index for what is still to come."""
    bound = keys.index_bound(now + 1)
    for row in _deadline_rows(book, key, execution):
        if row >= bound:
            book.index.put(row, b"")


def drop_waiting(book: Book, key: bytes, execution: Execution) -> None:
    """An execution that waits is no more."""
    unplace(book, key, execution)
    book.executions.delete(key)
