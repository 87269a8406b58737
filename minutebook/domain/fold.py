"""Fold: facts change state. No clock, no chance, no I/O, no rule of time.

An owner, a fresh owner after a crash and an auditor years later run this same code over the same frames.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from minutebook.domain import events as facts
from minutebook.domain import keys, record_folds
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.record_folds import answer, remember
from minutebook.domain.state import NONE_AT, UNCHANGED, Answer, Execution, Job, Spec
from minutebook.domain.transitions import closed_status, require
from minutebook.errors import BrokenFrameError

replace = msgspec.structs.replace


def fold(book: Book, event: Event, token: int, now: int) -> None:
    """Apply one event; `token` is that of its first row, `now` its frame's.

    Raises BrokenFrameError for an event that does not fit the state: that halts the partition.
    """
    _FOLDS[type(event)](book, event, token, now)


# -- jobs


def _job(book: Book, row: bytes) -> Job:
    job = book.jobs.get(row)
    if job is None:
        raise BrokenFrameError(f"job {row!r} is not there")
    return job


def _execution(book: Book, row: bytes) -> Execution:
    execution = book.execution(row)
    if execution is None:
        raise BrokenFrameError(f"execution {row!r} is not open")
    return execution


def _put_job(book: Book, row: bytes, job: Job, open_count: int, outcome: str, now: int) -> None:
    """Write `job` with its open executions and last outcome, or move it to the closed ones if it has come to its end:
    those are remembered for some days, so that a repeat of a submission is known."""
    next_at = NONE_AT if job.is_once else job.next_at
    status = closed_status(job.status, next_at, open_count, outcome)
    if status is None:
        book.jobs.pending[row] = _changed(job, job.next_at, job.indexed_at, open_count, outcome)
        return
    book.jobs.pending[row] = None
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
    )


def _changed(job: Job, next_at: int, indexed_at: int, open_count: int, last_outcome: str) -> Job:
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
    )


def _submitted(book: Book, event: facts.JobSubmitted, token: int, now: int) -> None:
    row = keys.job_row(event.tenant, event.job_id)
    at = max(event.next_at, now)
    is_once = not event.cron
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
    )
    spec = Spec(
        event.task,
        event.queue,
        event.priority,
        event.payload,
        event.cron,
        event.zone,
        event.timeout_ms,
        event.traceparent,
    )
    book.specs.put(keys.spec_row(row, 1), spec)
    book.jobs.put(row, job)
    book.index.put(keys.index_row(at, keys.JOB, row), b"")


def _cancelled(book: Book, event: facts.JobCancelled, token: int, now: int) -> None:
    row = keys.job_row(event.tenant, event.job_id)
    job = _job(book, row)
    left = job.open - len(event.executions)
    index_row = keys.index_row(job.indexed_at, keys.JOB, row) if job.indexed_at != NONE_AT else b""
    if index_row and book.index.get(index_row) is not None:
        book.index.delete(index_row)
        left -= job.is_once
    for name in event.executions:
        key = keys.execution_row(event.tenant, name)
        execution = _execution(book, key)
        require(execution.status, "cancelled", "cancelled", key)
        _unplace(book, key, execution)
        book.executions.delete(key)
    for name, ended in zip(event.stopping, event.tokens, strict=True):
        key = keys.execution_row(event.tenant, name)
        book.running.put(key, replace(_running(book, key, ended, "cancelled", "running"), is_stopping=True))
    changed = replace(
        job, status="cancelled", next_at=NONE_AT, indexed_at=NONE_AT, open=left, last_outcome="cancelled"
    )
    answer(book, row, event.command_id, Answer(True, ""), now)
    _put_job(book, row, changed, changed.open, changed.last_outcome, now)


def _unplace(book: Book, key: bytes, execution: Execution) -> None:
    """Take an execution out of the index or the queued set, where it waits."""
    if execution.status == "scheduled":
        book.index.delete(keys.index_row(execution.indexed_at, keys.EXECUTION, key))
    elif execution.status == "queued":
        lane = _lane(book, key, execution.version)
        book.queued.delete(keys.queued_row(lane.prefix(), execution.ready_at, keys.names(key)[1]))
        _count(book, lane.prefix(), -1)


def _spec(book: Book, key: bytes, version: int) -> Spec:
    """The version of its job that the execution with that key was queued with."""
    spec = book.specs.get(keys.spec_row(key[: key.rindex(b":")], version))
    if spec is None:
        raise BrokenFrameError(f"version {version} of {key!r} is not there")
    return spec


def _lane(book: Book, key: bytes, version: int) -> keys.Lane:
    spec = _spec(book, key, version)
    return keys.Lane(spec.queue, spec.task, spec.priority, keys.names(key)[0])


def _count_all(book: Book, changes: Counter[bytes], sign: int) -> None:
    for prefix, change in changes.items():
        _count(book, prefix, sign * change)


def _count(book: Book, key: bytes, change: int) -> None:
    """How many rows the lane with that prefix holds."""
    left = (book.counts.get(key) or 0) + change
    if left:
        book.counts.put(key, left)
    else:
        book.counts.delete(key)


def _requested(book: Book, event: facts.ExecutionRequested, token: int, now: int) -> None:
    row = keys.job_row(event.tenant, event.job_id)
    key = keys.execution_row(event.tenant, event.execution)
    job = _job(book, row)
    require("", "requested", "scheduled", key)
    at = max(event.accepted_at, now)
    execution = Execution(
        job.version, 1, "scheduled", event.accepted_at, event.accepted_at, at, indexed_at=at
    )
    book.executions.put(key, execution)
    book.index.put(keys.index_row(at, keys.EXECUTION, key), b"")
    book.jobs.put(row, replace(job, open=job.open + 1))
    answer(book, row, event.command_id, Answer(True, ""), now)


def _skipped(book: Book, event: facts.ExecutionsSkipped, token: int, now: int) -> None:
    row = keys.job_row(event.tenant, event.job_id)
    job = _job(book, row)
    moved = _reindexed(book, row, job, event.next_at, now)
    _put_job(book, row, moved, moved.open, moved.last_outcome, now)


def _reindexed(book: Book, row: bytes, job: Job, next_at: int, now: int, more_open: int = 0) -> Job:
    """`job` with its index row moved to `next_at`; an instant already past is placed at `now`."""
    if job.indexed_at != NONE_AT:
        book.index.pending[keys.index_row(job.indexed_at, keys.JOB, row)] = None
    at = NONE_AT
    if next_at != NONE_AT:
        at = max(next_at, now)
        book.index.pending[keys.index_row(at, keys.JOB, row)] = b""
    return _changed(job, next_at, at, job.open + more_open, job.last_outcome)


# -- executions come due


def _due_granted(book: Book, event: facts.ExecutionsDueGranted, token: int, now: int) -> None:
    running = book.running.pending
    sessions = map(event.sessions.__getitem__, event.session)
    come = _come(book, event, now, "due_granted", "running")
    for number, ((key, execution), session) in enumerate(zip(come, sessions, strict=True), token):
        running[key] = _run(execution, number, session)


def _queued(book: Book, event: facts.ExecutionsQueued, token: int, now: int) -> None:
    executions, queued = book.executions.pending, book.queued.pending
    counts: Counter[bytes] = Counter()
    tenants, queues, tasks = event.tenants, event.queues, event.tasks
    lanes = zip(event.tenant, event.queue, event.task, event.priorities, event.executions, strict=True)
    come = _come(book, event, now, "queued", "queued")
    for (key, execution), (tenant, queue, task, priority, name) in zip(come, lanes, strict=True):
        prefix = keys.lane_prefix(queues[queue], tasks[task], priority, tenants[tenant])
        queued[keys.queued_row(prefix, execution.ready_at, name)] = b""
        executions[key] = execution
        counts[prefix] += 1
    _count_all(book, counts, 1)


def _come(book: Book, event: Any, now: int, name: str, status: str) -> Iterator[tuple[bytes, Execution]]:
    """(key, execution) of each row that came due, as queued; job, index and execution follow."""
    tenants = [tenant.encode() + b"\0" for tenant in event.tenants]
    index = book.index.pending
    columns = zip(
        event.tenant,
        event.executions,
        event.next_at,
        event.scheduled_at,
        event.due_at,
        event.versions,
        strict=True,
    )
    for tenant, execution_id, next_at, scheduled_at, due_at, version in columns:
        key = tenants[tenant] + execution_id.encode()
        if next_at == UNCHANGED:
            yield key, _wait_over(book, key, name, status)
            continue
        row = key[: key.rindex(b":")]
        job = _job(book, row)
        if job.next_at != scheduled_at:
            raise BrokenFrameError(f"{row!r}: instant {scheduled_at} is not the next one")
        if job.is_once:
            index[keys.index_row(job.indexed_at, keys.JOB, row)] = None
            yield key, Execution(version, 1, "queued", scheduled_at, due_at, due_at)
            continue
        book.jobs.pending[row] = _reindexed(book, row, job, next_at, now, 1)
        yield key, Execution(version, 1, "queued", scheduled_at, due_at, due_at)


def _wait_over(book: Book, key: bytes, name: str, status: str) -> Execution:
    """A retry, a run-now or a withdrawal's wait that is over."""
    execution = _execution(book, key)
    require(execution.status, name, status, key)
    book.index.delete(keys.index_row(execution.indexed_at, keys.EXECUTION, key))
    book.executions.delete(key)
    return replace(execution, status="queued", indexed_at=NONE_AT)


def _run(execution: Execution, token: int, session: str) -> Execution:
    """`execution` as running under `token`."""
    return Execution(
        execution.version,
        execution.attempt,
        "running",
        execution.scheduled_at,
        execution.due_at,
        execution.ready_at,
        NONE_AT,
        token,
        session,
        execution.failures,
        execution.losses,
        execution.withdrawals,
        execution.generation,
        execution.is_stopping,
    )


def _granted(book: Book, event: facts.ExecutionsGranted, token: int, now: int) -> None:
    counts: Counter[bytes] = Counter()
    executions, running, queued = book.executions, book.running.pending, book.queued.pending
    tenants = [tenant.encode() + b"\0" for tenant in event.tenants]
    rows = zip(event.tenant, event.executions, event.session, strict=True)
    for number, (tenant, execution_id, session_number) in enumerate(rows, token):
        key = tenants[tenant] + execution_id.encode()
        execution = executions.get(key)
        if execution is None or execution.status != "queued":
            raise BrokenFrameError(f"{key!r} is not queued, it cannot be granted")
        spec = _spec(book, key, execution.version)
        prefix = keys.lane_prefix(spec.queue, spec.task, spec.priority, event.tenants[tenant])
        queued[keys.queued_row(prefix, execution.ready_at, execution_id)] = None
        counts[prefix] += 1
        running[key] = _run(execution, number, event.sessions[session_number])
        executions.pending[key] = None
    _count_all(book, counts, -1)


# -- attempts end


def _running(book: Book, key: bytes, token: int, name: str, becomes: str) -> Execution:
    """The execution whose running attempt has that token; it runs no more."""
    execution = _execution(book, key)
    require(execution.status, name, becomes, key)
    if execution.token != token:
        raise BrokenFrameError(f"{key!r} runs under token {execution.token}, not {token}")
    book.running.delete(key)
    return execution


def _end(book: Book, key: bytes, outcome: str, now: int) -> None:
    """An execution has reached its outcome."""
    row = key[: key.rindex(b":")]
    job = _job(book, row)
    _put_job(book, row, job, job.open - 1, outcome, now)


def _succeeded(book: Book, event: facts.AttemptsSucceeded, token: int, now: int) -> None:
    running = book.running.pending
    get = book.running.get
    tenants = [tenant.encode() + b"\0" for tenant in event.tenants]
    for tenant, execution_id, ended in zip(event.tenant, event.executions, event.tokens, strict=True):
        key = tenants[tenant] + execution_id.encode()
        execution = get(key)
        if execution is None or execution.token != ended:
            raise BrokenFrameError(f"{key!r} does not run under token {ended}, it cannot succeed")
        running[key] = None
        _end(book, key, "succeeded", now)


def _failed(book: Book, event: facts.AttemptFailed, token: int, now: int) -> None:
    key = keys.execution_row(event.tenant, event.execution)
    has_retry = event.retry_at >= 0
    execution = _running(book, key, event.token, "failed", "scheduled" if has_retry else "failed")
    failed = replace(execution, status="failed", failures=execution.failures + 1, token=-1, session="")
    if not has_retry:
        book.executions.put(key, failed)
        return
    at = max(event.retry_at, now)
    book.index.put(keys.index_row(at, keys.EXECUTION, key), b"")
    book.executions.put(
        key,
        replace(
            failed, status="scheduled", attempt=execution.attempt + 1, ready_at=event.retry_at, indexed_at=at
        ),
    )


def _requeue(book: Book, key: bytes, execution: Execution) -> None:
    lane = _lane(book, key, execution.version)
    book.queued.put(keys.queued_row(lane.prefix(), execution.ready_at, keys.names(key)[1]), b"")
    _count(book, lane.prefix(), 1)
    book.executions.put(key, replace(execution, status="queued", token=-1, session="", indexed_at=NONE_AT))


def _lost(book: Book, event: facts.AttemptsLost, token: int, now: int) -> None:
    for number, execution_id in enumerate(event.executions):
        key = keys.execution_row(event.tenants[event.tenant[number]], execution_id)
        if event.cause == "session_died":
            _worker_died(book, key, event.has_retry[number])
            continue
        has_retry = event.has_retry[number]
        execution = _running(book, key, event.tokens[number], "lost", "queued" if has_retry else "lost")
        lost = replace(execution, losses=execution.losses + 1)
        if has_retry:
            _requeue(book, key, replace(lost, attempt=lost.attempt + 1))
        else:
            book.executions.put(key, replace(lost, status="lost", token=-1, session=""))


def _worker_died(book: Book, key: bytes, has_retry: bool) -> None:
    """A waiting execution was withdrawn from a session that then died: counted as a loss."""
    execution = _execution(book, key)
    lost = replace(execution, losses=execution.losses + 1)
    if not has_retry:
        require(execution.status, "worker_died", "lost", key)
        _unplace(book, key, execution)
        lost = replace(lost, status="lost", indexed_at=NONE_AT)
    book.executions.put(key, lost)


def _returned(book: Book, event: facts.GrantsReturned, token: int, now: int) -> None:
    more = 1 if event.reason == "withdrawn" else 0
    for number, execution_id in enumerate(event.executions):
        key = keys.execution_row(event.tenants[event.tenant[number]], execution_id)
        wait_until = event.wait_until[number]
        waits = wait_until >= 0
        execution = _running(book, key, event.tokens[number], "returned", "scheduled" if waits else "queued")
        execution = replace(execution, withdrawals=execution.withdrawals + more)
        if not waits:
            _requeue(book, key, execution)
            continue
        at = max(wait_until, now)
        book.index.put(keys.index_row(at, keys.EXECUTION, key), b"")
        book.executions.put(key, replace(execution, status="scheduled", token=-1, session="", indexed_at=at))


def _dead(book: Book, event: facts.ExecutionDead, token: int, now: int) -> None:
    key = keys.execution_row(event.tenant, event.execution)
    execution = _execution(book, key)
    if execution.status not in ("failed", "lost"):
        raise BrokenFrameError(f"{key!r} is {execution.status}, it cannot be given up")
    spec = _spec(book, key, event.version)
    version = keys.spec_row(keys.job_of_execution(key), event.version)
    book.shelf.put(keys.remembered_row(remember(book, now), version), spec)
    book.executions.delete(key)
    _end(book, key, "dead", now)


def _stopped(book: Book, event: facts.AttemptCancelled, token: int, now: int) -> None:
    key = keys.execution_row(event.tenant, event.execution)
    _running(book, key, event.token, "stopped", "cancelled")
    _end(book, key, "cancelled", now)


_FOLDS: dict[type, Callable[[Book, Any, int, int], None]] = {
    facts.ExecutionsDueGranted: _due_granted,
    facts.AttemptsSucceeded: _succeeded,
    facts.ExecutionsGranted: _granted,
    facts.ExecutionsQueued: _queued,
    facts.JobSubmitted: _submitted,
    facts.AttemptFailed: _failed,
    facts.GrantsReturned: _returned,
    facts.AttemptsLost: _lost,
    facts.ExecutionDead: _dead,
    facts.ExecutionsSkipped: _skipped,
    facts.ExecutionRequested: _requested,
    facts.JobCancelled: _cancelled,
    facts.AttemptCancelled: _stopped,
    facts.CommandAnswered: record_folds.answered,
    facts.CommandRejected: record_folds.rejected,
    facts.SessionStarted: record_folds.session_started,
    facts.SessionEnded: record_folds.session_ended,
    facts.ReportRefused: record_folds.nothing,
    facts.RecordRejected: record_folds.nothing,
    facts.InputRefused: record_folds.nothing,
    facts.OutputRefused: record_folds.nothing,
    facts.CommandForwarded: record_folds.nothing,
    facts.QueueDeclared: record_folds.queue_declared,
    facts.QueueCopied: record_folds.queue_copied,
    facts.MailTaken: record_folds.mail_taken,
    facts.OwnershipTaken: record_folds.ownership_taken,
    facts.LogOpened: record_folds.log_opened,
    facts.DayForgotten: record_folds.day_forgotten,
}
