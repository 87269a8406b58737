"""Versions of jobs: from the event that describes one to the row that executions refer to."""

from __future__ import annotations

from minutebook.domain.job_events import JobSubmitted
from minutebook.domain.state import Spec
from minutebook.domain.view_rows import JobRow


def version_of(event: JobSubmitted) -> Spec:
    """The version of a job that the event describes."""
    return Spec(
        event.task,
        event.queue,
        event.priority,
        event.payload,
        event.cron,
        event.zone,
        event.timeout_ms,
        event.traceparent,
        event.policy,
        event.limit,
        event.notify,
        event.every_ms,
        event.anchor_at,
        event.timing,
        event.tags,
    )


def when_of(job: JobRow) -> Spec:
    """As much of a version of a job, as the view has it, as its instants follow from."""
    return Spec(
        job.task,
        job.queue,
        job.priority,
        b"",
        job.cron,
        job.zone,
        job.timeout_ms,
        "",
        every_ms=job.every_ms,
        anchor_at=job.anchor_at,
        explicit_timing=job.timing,
    )
