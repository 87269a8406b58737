"""What has come due: rows of the time index to executions, missed instants included.

A schedule that fell behind runs every missed instant of the last day, the latest 100 of them; older ones and those
beyond 100 are skipped on record, as ranges with their count. A job that fires once runs however late it is.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys, plans
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.giving_up import Held, expiry
from minutebook.domain.names import Names
from minutebook.domain.placing import job_version, spec_of
from minutebook.domain.policy import Policy
from minutebook.domain.retries import expired, expired_instant
from minutebook.domain.state import NONE_AT, UNCHANGED, Execution, Job, Spec

MISFIRE_WINDOW_MS: Final = keys.DAY_MS
MISFIRE_MAX: Final = 100
MISSED_STEP_MAX: Final = 10_000
"""Missed instants looked at in one decision; the rest comes in the next cycle."""

AHEAD_FOR_MS: Final = 600_000
"""So long after its time what was read ahead of an index row may be used; well within the misfire window."""


class Due(NamedTuple):
    """One execution that has come due. `next_at` UNCHANGED: it does not come from the job's schedule. `expires`: it has
    a deadline, so it must not wait off the record.
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
    expires: bool
    limit: str


def due_of(book: Book, key: bytes, now: int) -> tuple[list[Due], list[Event]]:
    """What one index row at or before `now` stands for: executions, and before them what is skipped or given up.

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
    tenant, job_id = keys.names(row)
    following = NONE_AT
    if spec.is_recurring:
        following = plans.next_at(tenant, job_id, spec, job.next_at)
    is_alone = following == NONE_AT or following > now
    if is_alone and (not spec.is_recurring or now - job.next_at <= MISFIRE_WINDOW_MS):
        reason = expired_instant(spec.policy, job.next_at, now)
        if reason:
            return [], [_skip(tenant, job_id, reason, [job.next_at], following)]
        return [_due(tenant, job_id, job, spec, job.next_at, following)], []
    return _missed(tenant, job_id, job, spec, now)


def is_still_so(due: Due, now: int) -> bool:
    """Whether what was read of an index row before its time holds at `now`, too: nothing is missed or skipped meanwhile."""
    return now - due.due_at < AHEAD_FOR_MS and not 0 <= due.next_at <= now and not due.expires


def _due(tenant: str, job_id: str, job: Job, spec: Spec, at: int, next_at: int) -> Due:
    execution = ids.execution_id(job_id, at)
    return Due(
        tenant,
        spec.queue,
        spec.task,
        execution,
        job.version,
        at,
        at,
        next_at,
        1,
        spec.priority,
        len(spec.payload),
        job.has_deadlines,
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


def _missed(tenant: str, job_id: str, job: Job, spec: Spec, now: int) -> tuple[list[Due], list[Event]]:
    missed = [job.next_at]
    while len(missed) < MISSED_STEP_MAX:
        following = plans.next_at(tenant, job_id, spec, missed[-1])
        if following == NONE_AT or following > now:
            break
        missed.append(following)
    else:
        # There are more: the latest of these may yet be among the ones that run.
        following = plans.next_at(tenant, job_id, spec, missed[-1])
        if following != NONE_AT and following <= now:
            return [], [_skip(tenant, job_id, "misfire", missed[:-MISFIRE_MAX], missed[-MISFIRE_MAX])]
    kept = [at for at in missed[-MISFIRE_MAX:] if now - at <= MISFIRE_WINDOW_MS]
    dropped = missed[: len(missed) - len(kept)]
    late = _expired_first(spec.policy, kept, now)
    live = kept[len(late) :]
    nexts = [*kept[1:], following]
    skipped: list[Event] = []
    if dropped:
        skipped.append(_skip(tenant, job_id, "misfire", dropped, kept[0] if kept else following))
    if late:
        reason = expired_instant(spec.policy, late[-1], now)
        skipped.append(_skip(tenant, job_id, reason, late, live[0] if live else following))
    rows = zip(live, nexts[len(late) :], strict=bool(kept))
    return [_due(tenant, job_id, job, spec, at, after) for at, after in rows], skipped


def _expired_first(policy: Policy, instants: list[int], now: int) -> list[int]:
    """The instants, earliest first, whose deadline is over."""
    return [at for at in instants if expired_instant(policy, at, now)]


def _skip(
    tenant: str, job_id: str, reason: str, instants: list[int], next_at: int
) -> facts.ExecutionsSkipped:
    return facts.ExecutionsSkipped(tenant, job_id, reason, instants[0], instants[-1], len(instants), next_at)


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
