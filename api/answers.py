"""From rows of the view to what callers see."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Raw

from minutebook.client.models import AttemptError, Counts, Execution, Job
from minutebook.client.times import format_duration, format_instant
from minutebook.domain.view_rows import Attempt, ExecutionRow, JobRow, Progress
from minutebook.ids import execution_id


def job_body(job_id: str, row: JobRow, progress: Progress) -> Job:
    """A job as it stands."""
    return Job(
        id=job_id,
        task=row.task,
        payload=Raw(row.payload),
        queue=row.queue,
        run_at=None if row.cron else format_instant(row.first_at),
        cron=row.cron or None,
        zone=row.zone,
        late=row.late,  # type: ignore[arg-type]  # one of the two by the create body
        timeout=format_duration(row.timeout_ms),
        status=progress.status,  # type: ignore[arg-type]  # one of the statuses by the fold
        version=row.version,
        next_at=_instant(progress.next_at),
        created_at=format_instant(row.accepted_at),
        executions=Counts(
            progress.open, progress.succeeded, progress.dead, progress.cancelled, progress.skipped
        ),
    )


def execution_bodies(name: str, row: ExecutionRow, worker_of: Callable[[str], str]) -> Iterator[Execution]:
    """The attempts of an execution, oldest first."""
    for attempt in (*row.earlier, row.last):
        body = _attempt_body(name, row.scheduled_at, attempt, worker_of)
        if row.skip is not None:
            body.reason, body.count = row.skip.reason, row.skip.count
            body.last_at = format_instant(row.skip.last_at)
        yield body


def upcoming_body(job_id: str, next_at: int) -> Execution:
    """The first attempt at the job's next instant: it has no row before it is due."""
    return _attempt_body(
        execution_id(job_id, next_at), next_at, Attempt(1, "scheduled", next_at), lambda session: session
    )


def _attempt_body(
    name: str, scheduled_at: int, attempt: Attempt, worker_of: Callable[[str], str]
) -> Execution:
    has_error = bool(attempt.error_type or attempt.message)
    return Execution(
        execution_id=name,
        attempt=attempt.number,
        status=attempt.status,  # type: ignore[arg-type]  # one of the statuses by the fold
        scheduled_at=format_instant(scheduled_at),
        due_at=format_instant(attempt.due_at),
        queued_at=_instant(attempt.queued_at),
        started_at=_instant(attempt.started_at),
        ended_at=_instant(attempt.ended_at),
        worker=(worker_of(attempt.session) or None) if attempt.session else None,
        error=AttemptError(attempt.error_type, attempt.message) if has_error else None,
    )


def _instant(at: int) -> str | None:
    return None if at < 0 else format_instant(at)
