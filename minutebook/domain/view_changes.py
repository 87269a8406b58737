"""Folds of the read model of what changes a job: pause, resume, edit; and its versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from minutebook.domain import events as facts
from minutebook.domain import view_calendars, view_expiry
from minutebook.domain import view_rows as keys
from minutebook.domain.state import ACTIVE, NONE_AT, PAUSED
from minutebook.domain.view_rows import JobRow, Pause, card_of
from minutebook.errors import BrokenFrameError

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView

FAMILY: Final = "versions"
replace = msgspec.structs.replace


def version_of(event: facts.JobSubmitted) -> JobRow:
    """The first version of a job."""
    return JobRow(
        1,
        event.task,
        event.payload,
        event.queue,
        event.cron,
        event.zone,
        event.late,
        event.timeout_ms,
        event.priority,
        event.next_at,
        event.accepted_at,
        event.actor,
        event.traceparent,
        event.policy,
        event.limit,
        event.notify,
        event.every_ms,
        event.anchor_at,
        event.timing,
        tags=event.tags,
    )


def _paused(view: PartitionView, event: facts.JobPaused) -> None:
    job = view.open_job(event.tenant, event.job_id)
    view.move_next(event.tenant, job, job.progress.next_at, PAUSED)
    job.progress.pause = Pause(event.accepted_at, event.cause, event.reason, event.actor)
    if event.command_id:
        _answer(view, event, "PauseJob", job.progress.version)


def _resumed(view: PartitionView, event: facts.JobResumed) -> None:
    job = view.open_job(event.tenant, event.job_id)
    job.progress.pause = None
    view.move_next(event.tenant, job, event.next_at, ACTIVE)
    view.settle(job)
    _answer(view, event, "ResumeJob", job.progress.version)


def _edited(view: PartitionView, event: facts.JobEdited) -> None:
    definition = event.job
    job = view.open_job(definition.tenant, definition.job_id)
    before = view.read("jobs", job.key, JobRow)
    if before is None:
        raise BrokenFrameError(f"job {definition.tenant}/{definition.job_id} has no version")
    older = keys.version_row(job.key, before.version)
    view.dirty[FAMILY][older] = before
    # After an outage what is due comes before the edit: it ran by the older version after the edit's stamp.
    view_expiry.superseded(view, older, max(view.now, definition.accepted_at))
    after = version_of(definition)
    # Of a job that fires once, the instant may be on record: then nothing comes any more, but its time stays.
    first_at = after.first_at if after.first_at != NONE_AT else before.first_at
    if job.card is None:
        job.card = card_of(before)
    if job.filed_card is None:
        job.filed_card = job.card
    edited = view.dirty["jobs"][job.key] = replace(
        after,
        version=event.version,
        first_at=first_at,
        created_at=before.created_at if before.created_at != NONE_AT else before.accepted_at,
        reason=event.reason,
    )
    job.card = card_of(edited)
    view_calendars.entered(view, definition.tenant, definition.job_id, definition.timing)
    job.progress.version = event.version
    view.move_next(definition.tenant, job, definition.next_at)
    view.answer(
        definition,
        "EditJob",
        job_id=definition.job_id,
        tenant=definition.tenant,
        version=event.version,
        why=event.reason,
    )


def _answer(view: PartitionView, event: Any, command: str, version: int) -> None:
    view.answer(event, command, job_id=event.job_id, tenant=event.tenant, version=version)


FOLDS: Final[dict[type, Callable[[PartitionView, Any], None]]] = {
    facts.JobPaused: _paused,
    facts.JobResumed: _resumed,
    facts.JobEdited: _edited,
}
