"""Folds of the read model for calendars: what each partition knows of one, and which jobs depend on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import view_rows as keys
from minutebook.domain.timing import Timing
from minutebook.domain.view_rows import CalendarRow

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView


def entered(view: PartitionView, tenant: str, job_id: str, timing: Timing | None) -> None:
    """A version of a job depends on these calendars; of a later one that does not, the job itself tells."""
    for name in timing.calendars if timing is not None else ():
        view.dirty["calendar_jobs"][keys.calendar_job_row(view.prefix, tenant, name, job_id)] = ""


def _declared(view: PartitionView, event: facts.CalendarDeclared) -> None:
    subject = ids.calendar_subject(event.name)
    command = "DeleteCalendar" if event.is_deleted else "DeclareCalendar"
    view.answer(event, command, job_id=subject, tenant=event.tenant, version=event.version)


def _copied(view: PartitionView, event: facts.CalendarCopied) -> None:
    """This partition knows the calendar; an older version changes nothing."""
    known = view.calendar(event.tenant, event.name)
    if known is None or known.version < event.version:
        row = CalendarRow(event.version, event.first_days, event.last_days, event.is_deleted)
        view.dirty["calendars"][keys.calendar_row(view.prefix, event.tenant, event.name)] = row


def _rescheduled(view: PartitionView, event: facts.JobsRescheduled) -> None:
    for tenant, job_id, next_at in zip(event.tenant, event.job_ids, event.next_at, strict=True):
        job = view.open_job(event.tenants[tenant], job_id)
        view.move_next(event.tenants[tenant], job, next_at)
        view.settle(job)


FOLDS: Final[dict[type, Callable[[PartitionView, Any], None]]] = {
    facts.CalendarDeclared: _declared,
    facts.CalendarCopied: _copied,
    facts.JobsRescheduled: _rescheduled,
}
