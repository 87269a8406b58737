"""Dropping a job from the read model, with all of its history: because it was purged, or its id was given out again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from minutebook.domain import events as facts
from minutebook.domain import view_index
from minutebook.domain import view_rows as keys
from minutebook.domain.view_rows import HotExecution, HotJob, JobRow, RetentionRow

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView


def drop_job(view: PartitionView, tenant: str, job_id: str) -> HotJob:
    """Nothing of a job, its versions and its executions is to be stored any more. Its row, as it was filed last."""
    job = view.open_job(tenant, job_id)
    view.card(job)  # the indexes are told what it was
    for hot in list(_executions(view, job)):
        _drop_execution(view, tenant, hot)
    start, end = keys.executions_of(job.key)
    for key in view.keys_between("skips", start, end):
        view.dirty["skips"][key] = None
    requested = view.prefix + f"{tenant}\0{job_id}:r".encode()
    for key in view.keys_between("requests", requested, requested + b"\xff"):
        view.dirty["requests"][key] = None
    current = view.read("jobs", job.key, JobRow)
    older = [(key, view.read("versions", key, JobRow)) for key in view.keys_between("versions", start, end)]
    for row in (current, *(row for _, row in older)):
        for name in row.timing.calendars if row is not None and row.timing is not None else ():
            view.dirty["calendar_jobs"][keys.calendar_job_row(view.prefix, tenant, name, job_id)] = None
    for key, _ in older:
        view.dirty["versions"][key] = None
    view.dirty["jobs"][job.key] = None
    job.is_dropped = True
    view.changed_jobs[job.key] = job
    del view.hot_jobs[tenant][job_id]
    return job


def taken_over(view: PartitionView, tenant: str, job_id: str, key: bytes) -> HotJob | None:
    """The job that was known under `key` before, dropped; None where there was none.

    Ids are given out again once their closed jobs are forgotten by the owner.
    """
    known = view.changed_jobs.get(key)
    if known is not None and known.is_dropped:
        return known
    if known is None and view.rows.get("progress", key) is None:
        return None
    return drop_job(view, tenant, job_id)


def drop_days(view: PartitionView, kept_from: int) -> None:
    """History is kept from another day on: what ended on earlier ones goes, what is open or was given up stays."""
    for hot in list(view.changed_executions.values()):
        row = hot.row
        if view_index.is_history(row) and view.kept_from <= row.scheduled_at // keys.DAY_MS < kept_from:
            _drop_execution(view, hot.job.tenant, hot)
    view.kept_from, view.has_turned = kept_from, True
    view.dirty["retention"][view.prefix] = RetentionRow(view.retention_days, kept_from)


def _executions(view: PartitionView, job: HotJob) -> Iterator[HotExecution]:
    """All executions of a job, those not stored yet included."""
    start, end = keys.execution_row(job.key, 0), keys.execution_row(job.key, keys.AT_MAX)
    changed = {key: hot for key, hot in view.changed_executions.items() if start <= key < end}
    for key, value in view.history(job.key, start, end):
        if key not in changed:
            yield view.stored_execution(key, value, job)
    for hot in changed.values():
        if not hot.is_dropped:
            yield hot


def _drop_execution(view: PartitionView, tenant: str, hot: HotExecution) -> None:
    name = f"{hot.job.name.decode()}:{keys.execution_suffix(hot.job.key, hot.key)}"
    if hot.row.outcome == "dead":
        view.dirty["dead"][keys.dead_row(view.prefix, tenant, hot.row.last.ended_at, name)] = None
    view.hot_executions.get(tenant, {}).pop(name, None)
    hot.is_dropped = True
    view.changed_executions[hot.key] = hot


def _purged(view: PartitionView, event: facts.JobPurged) -> None:
    drop_job(view, event.tenant, event.job_id)
    view.answer(event, "PurgeJob", job_id=event.job_id, tenant=event.tenant)


FOLDS: Final[dict[type, Callable[[PartitionView, Any], None]]] = {facts.JobPurged: _purged}
