"""Dropping a job from the read model, with all of its history: because it was purged, or its id was given out again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from minutebook.domain import events as facts
from minutebook.domain import view_audit, view_index
from minutebook.domain import view_rows as keys
from minutebook.domain.view_retention import RetentionRow, first_answers, first_audit
from minutebook.domain.view_rows import HotExecution, HotJob, JobRow

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView


def drop_job(view: PartitionView, tenant: str, job_id: str) -> HotJob:
    """Nothing of a job, its versions and its executions is to be stored any more. Its row, as it was filed last."""
    job = view.open_job(tenant, job_id)
    for hot in list(_executions(view, job)):
        drop_execution(view, hot)
    start, end = keys.executions_of(job.key)
    for key in view.skips_of(start, end):
        view.dirty["skips"][key] = None
    requested = keys.request_row(view.prefix, tenant, f"{job_id}:r")
    for key in view.keys_between("requests", requested, requested + b"\xff"):
        view.dirty["requests"][key] = None
    drop_definition(view, job)
    return job


def drop_definition(view: PartitionView, job: HotJob) -> None:
    """Nothing of a job of which no execution is left, and of its versions, is to be stored any more."""
    job_id = job.name.decode()
    view.card(job)  # the indexes are told what it was
    versions = [(job.key, "jobs", view.read("jobs", job.key, JobRow))]
    if job.progress.version > 1:
        start, end = keys.executions_of(job.key)
        versions += [
            (key, "versions", view.read("versions", key, JobRow))
            for key in view.keys_between("versions", start, end)
        ]
    for key, family, row in versions:
        for name in row.timing.calendars if row is not None and row.timing is not None else ():
            view.dirty["calendar_jobs"][keys.calendar_job_row(view.prefix, job.tenant, name, job_id)] = None
        view.dirty[family][key] = None
    job.is_dropped = True
    view.changed_jobs[job.key] = job
    del view.hot_jobs[job.tenant][job_id]


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
            drop_execution(view, hot)
    view.kept_from, view.has_turned = kept_from, True
    _keep_retention(view)
    for family, first in first_shelves(view).items():
        dirty, end = view.dirty[family], view_index.shelf_of(view.partition, first)
        for key in [key for key in dirty if key < end]:
            del dirty[key]


def first_shelves(view: PartitionView) -> dict[str, int]:
    """By family the first shelf that is kept: all before it go as one range."""
    return {
        "executions": view.kept_from,
        view_index.EXECUTION_INDEX: view.kept_from,
        view_index.EXECUTION_COUNTS: view.kept_from,
        "skips": view.kept_from,
        "commands": first_answers(view.retention, view.today),
        view_audit.FAMILY: first_audit(view.retention, view.today),
    }


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


def drop_execution(view: PartitionView, hot: HotExecution) -> None:
    """Nothing of an execution is to be stored any more."""
    tenant = hot.job.tenant
    name = f"{hot.job.name.decode()}:{keys.execution_suffix(hot.job.key, hot.key)}"
    if hot.row.outcome == "dead":
        view.dirty["dead"][keys.dead_row(view.prefix, tenant, hot.row.last.ended_at, name)] = None
    hots = view.hot_executions.get(tenant, {})
    if hots.get(name) is hot:  # a range of skipped instants goes by the name of its first one
        del hots[name]
    hot.is_dropped = True
    view.changed_executions[hot.key] = hot


def _purged(view: PartitionView, event: facts.JobPurged) -> None:
    drop_job(view, event.tenant, event.job_id)
    view.answer(event, "PurgeJob", job_id=event.job_id, tenant=event.tenant)


def _day_forgotten(view: PartitionView, event: facts.DayForgotten) -> None:
    view.forgotten_through = max(view.forgotten_through, event.day)
    _keep_retention(view)


def _keep_retention(view: PartitionView) -> None:
    row = RetentionRow(view.retention, view.kept_from, view.forgotten_through)
    view.dirty["retention"][view.prefix] = row


FOLDS: Final[dict[type, Callable[[PartitionView, Any], None]]] = {
    facts.JobPurged: _purged,
    facts.DayForgotten: _day_forgotten,
}
