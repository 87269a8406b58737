"""Folds of what comes due and what is granted: where folds spend their time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import msgspec

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.permit_folds import bind
from minutebook.domain.placing import (
    count_all,
    open_execution,
    open_job,
    place_deadlines,
    reindexed,
    spec_of,
)
from minutebook.domain.state import NONE_AT, UNCHANGED, Execution
from minutebook.domain.transitions import require
from minutebook.errors import BrokenFrameError

replace = msgspec.structs.replace


def due_granted(book: Book, event: facts.ExecutionsDueGranted, token: int, now: int) -> None:
    """Came due and runs."""
    running = book.running.pending
    sessions = map(event.sessions.__getitem__, event.session)
    come = _come(book, event, now, "due_granted", "running")
    for number, ((key, waited, version, scheduled_at, due_at), session) in enumerate(
        zip(come, sessions, strict=True), token
    ):
        if waited is not None:
            running[key] = _run(waited, number, session, now)
        else:
            running[key] = Execution(
                version,
                1,
                "running",
                scheduled_at,
                due_at,
                due_at,
                token=number,
                session=session,
                started_at=now,
            )


def queued(book: Book, event: facts.ExecutionsQueued, token: int, now: int) -> None:
    """Came due and waits for a grant."""
    executions, queued = book.executions.pending, book.queued.pending
    counts: Counter[bytes] = Counter()
    tenants, queues, tasks = event.tenants, event.queues, event.tasks
    limits = map(event.limits.__getitem__, event.limit) if event.limit else repeat("", len(event.executions))
    lanes = zip(
        event.tenant, event.queue, event.task, event.priorities, event.executions, limits, strict=True
    )
    come = _come(book, event, now, "queued", "queued")
    for (key, waited, version, scheduled_at, due_at), lane in zip(come, lanes, strict=True):
        tenant, queue, task, priority, name, limit = lane
        execution = waited or Execution(version, 1, "queued", scheduled_at, due_at, due_at)
        prefix = keys.lane_prefix(queues[queue], tasks[task], priority, tenants[tenant], limit)
        queued[keys.queued_row(prefix, execution.ready_at, name)] = b""
        executions[key] = execution
        counts[prefix] += 1
    count_all(book, counts, 1)


_Come = tuple[bytes, Execution | None, int, int, int]
"""Key; the execution as queued if it is not its first attempt; version, nominal instant and due instant."""


def _come(book: Book, event: Any, now: int, name: str, status: str) -> Iterator[_Come]:
    """Each row that came due; job, index and execution follow."""
    tenants = [tenant.encode() + b"\0" for tenant in event.tenants]
    index, jobs = book.index.pending, book.jobs.get
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
            yield key, _wait_over(book, key, name, status), version, scheduled_at, due_at
            continue
        row = key[: key.rindex(b":")]
        job = jobs(row) or open_job(book, row)
        if job.next_at != scheduled_at:
            raise BrokenFrameError(f"{row!r}: instant {scheduled_at} is not the next one")
        if job.is_once:
            index[keys.index_row(job.indexed_at, keys.JOB, row)] = None
        else:
            book.jobs.pending[row] = reindexed(book, row, job, next_at, now, 1, scheduled_at)
        if job.has_deadlines:
            place_deadlines(book, key, Execution(version, 1, "queued", scheduled_at, due_at, due_at), now)
        yield key, None, version, scheduled_at, due_at


def _wait_over(book: Book, key: bytes, name: str, status: str) -> Execution:
    """A retry, a run-now or a withdrawal's wait that is over."""
    execution = open_execution(book, key)
    require(execution.status, name, status, key)
    if execution.is_held:
        raise BrokenFrameError(f"{key!r} is held, it cannot come due")
    book.index.delete(keys.index_row(execution.indexed_at, keys.EXECUTION, key))
    book.executions.delete(key)
    return replace(execution, status="queued", indexed_at=NONE_AT)


def _run(execution: Execution, token: int, session: str, now: int) -> Execution:
    """`execution` as running under `token` since `now`."""
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
        now,
        execution.details,
        [],
        execution.is_catch_up,
    )


def granted(book: Book, event: facts.ExecutionsGranted, token: int, now: int) -> None:
    """Waited and runs."""
    counts: Counter[bytes] = Counter()
    executions, running, queued = book.executions, book.running.pending, book.queued.pending
    tenants = [tenant.encode() + b"\0" for tenant in event.tenants]
    rows = zip(event.tenant, event.executions, event.session, strict=True)
    for number, (tenant, execution_id, session_number) in enumerate(rows, token):
        key = tenants[tenant] + execution_id.encode()
        execution = executions.get(key)
        if execution is None or execution.status != "queued":
            raise BrokenFrameError(f"{key!r} is not queued, it cannot be granted")
        spec = spec_of(book, key, execution.version)
        priority = execution.priority_of(spec)
        prefix = keys.lane_prefix(spec.queue, spec.task, priority, event.tenants[tenant], spec.limit)
        queued[keys.queued_row(prefix, execution.ready_at, execution_id)] = None
        counts[prefix] += 1
        running[key] = _run(execution, number, event.sessions[session_number], now)
        executions.pending[key] = None
    count_all(book, counts, -1)
    if event.permit_row:
        bind(book, event)
