"""What has come due: rows of the time index to executions, and to what is on record of those that do not run."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.coming import coming
from minutebook.domain.events import Event
from minutebook.domain.giving_up import Held, expiry
from minutebook.domain.jitter import due_at
from minutebook.domain.job_events import MISFIRE
from minutebook.domain.missed import GRACE_MS, is_dropped_once
from minutebook.domain.names import Names
from minutebook.domain.placing import job_due_at, job_version, spec_of
from minutebook.domain.policy import Policy
from minutebook.domain.rescheduling import off_calendar
from minutebook.domain.retries import expired, expired_instant
from minutebook.domain.state import NONE_AT, UNCHANGED, Execution, Job, Spec


class Due(NamedTuple):
    """One execution that has come due. `next_at` UNCHANGED: it does not come from the job's schedule.
    `is_recorded_at_once`: it has a deadline, or calendars, or other instants of its job depend on it, so it must not wait
    off the record.
    """

    tenant: str
    queue: str
    task: str
    execution: str
    version: int
    scheduled_at: int
    due_at: int
    next_at: int
    attempt: int
    priority: int
    payload_bytes: int
    is_recorded_at_once: bool
    limit: str


def due_of(book: Book, key: bytes, now: int) -> tuple[list[Due], list[Event]]:
    """What one index row at or before `now` stands for: executions, and before them what else follows on record.

    Nothing for a row that a decision of this very cycle has taken back.
    """
    at, kind, row = keys.index_parts(key)
    if kind == keys.EXECUTION:
        return _execution_due(book, row, at, now)
    if kind in (keys.DEADLINE, keys.START_DEADLINE):
        return [], _deadline_passed(book, row, now)
    job = book.jobs.get(row)
    if job is None or job.indexed_at != at:
        return [], []
    spec = job_version(book, row, job.version)
    if not spec.is_recurring:
        return _once_due(row, job, spec, now)
    moved = off_calendar(book, *keys.names(row), job, spec)
    if moved is None:
        return _up(book, row, job, spec, now)
    job = replace(job, next_at=moved.next_at[0])
    if job.next_at == NONE_AT or job_due_at(row, job, job.next_at) > now:
        return [], [moved]
    rows, events = _up(book, row, job, spec, now)
    return rows, [moved, *events]


def _up(book: Book, row: bytes, job: Job, spec: Spec, now: int) -> tuple[list[Due], list[Event]]:
    """The instants of a schedule that are up."""
    runs, events = coming(book, row, job, spec, now)
    return [_due(row, job, spec, at, next_at) for at, next_at in runs], events


def is_still_so(due: Due, now: int) -> bool:
    """Whether what was read of an index row before its time holds at `now`, too: nothing is missed or skipped meanwhile."""
    return now - due.due_at <= GRACE_MS and not 0 <= due.next_at <= now and not due.is_recorded_at_once


def _once_due(row: bytes, job: Job, spec: Spec, now: int) -> tuple[list[Due], list[Event]]:
    """The one instant of a job."""
    due = _due(row, job, spec, job.next_at, NONE_AT)
    if spec.says_nothing_of_instants:
        return [due], []
    reason = expired_instant(spec.policy, due.due_at, now)
    if not reason and is_dropped_once(spec.timing, now - job.jitter_ms - job.next_at):
        reason = MISFIRE
    if not reason:
        return [due], []
    at = job.next_at
    return [], [facts.ExecutionsSkipped(due.tenant, keys.names(row)[1], reason, at, at, 1, NONE_AT)]


def _due(row: bytes, job: Job, spec: Spec, at: int, next_at: int) -> Due:
    """The execution of the instant `at` of the job in `row`."""
    tenant, job_id = keys.names(row)
    return Due(
        tenant,
        spec.queue,
        spec.task,
        ids.execution_id(job_id, at),
        job.version,
        at,
        due_at(tenant, job_id, at, job.jitter_ms) if job.jitter_ms else at,
        next_at,
        1,
        spec.priority,
        len(spec.payload),
        job.has_deadlines or spec.timing.overlap != "allow" or bool(spec.timing.calendars),
        spec.limit,
    )


def _execution_due(book: Book, row: bytes, at: int, now: int) -> tuple[list[Due], list[Event]]:
    """A retry, a run-now, or a wait that is over."""
    execution = book.executions.get(row)
    if execution is None or execution.indexed_at != at:
        return [], []
    spec = spec_of(book, row, execution.version)
    if over := _expiry(row, execution, spec.policy, now):
        return [], over
    tenant, name = keys.names(row)
    due = Due(
        tenant,
        spec.queue,
        spec.task,
        name,
        execution.version,
        execution.scheduled_at,
        execution.ready_at,
        UNCHANGED,
        execution.attempt,
        execution.priority_of(spec),
        len(spec.payload),
        spec.policy.has_deadlines,
        spec.limit,
    )
    return [due], []


def _deadline_passed(book: Book, row: bytes, now: int) -> list[Event]:
    """A waiting execution has expired; one that runs is the business of its attempt's end."""
    execution = book.executions.get(row)
    if execution is None:
        return []
    return _expiry(row, execution, spec_of(book, row, execution.version).policy, now)


def _expiry(row: bytes, execution: Execution, policy: Policy, now: int) -> list[Event]:
    """The end of a waiting execution that must not start any more; empty if it may."""
    reason = expired(policy, execution, now)
    return [expiry(Held(row, -1, execution), reason, now)] if reason else []


def queued_event(rows: list[Due]) -> facts.ExecutionsQueued:
    """`rows`, at least one, as columns."""
    columns = list(zip(*rows, strict=True))
    tenants, queues, tasks, limits = Names(), Names(), Names(), Names()
    limit = limits.column(columns[12])
    has_limits = any(limits.texts)
    return facts.ExecutionsQueued(
        tenant=tenants.column(columns[0]),
        queue=queues.column(columns[1]),
        task=tasks.column(columns[2]),
        executions=list(columns[3]),
        versions=list(columns[4]),
        scheduled_at=list(columns[5]),
        due_at=list(columns[6]),
        next_at=list(columns[7]),
        attempts=list(columns[8]),
        priorities=list(columns[9]),
        limits=limits.texts if has_limits else [],
        limit=limit if has_limits else [],
        tenants=tenants.texts,
        queues=queues.texts,
        tasks=tasks.texts,
    )


def due_granted_event(rows: list[Due], sessions_of_rows: list[str]) -> facts.ExecutionsDueGranted:
    """`rows`, each granted to the session beside it, as columns."""
    queued = queued_event(rows)
    sessions = Names()
    return facts.ExecutionsDueGranted(
        **{
            name: getattr(queued, name)
            for name in queued.__struct_fields__
            if name not in ("limits", "limit")
        },
        session=sessions.column(sessions_of_rows),
        sessions=sessions.texts,
        permits=[],
    )
