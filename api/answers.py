"""From rows of the view to what callers see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from api.actors import parts_of
from minutebook.client.change_models import JobVersion
from minutebook.client.dead_letter_models import DeadLetter
from minutebook.client.models import (
    AttemptError,
    Calendars,
    Counts,
    Discarded,
    Execution,
    Job,
    JobRequest,
    Limit,
    MisfirePolicy,
    Queue,
    RetryPolicy,
    WholeExecution,
)
from minutebook.client.models import Pause as PauseBody
from minutebook.client.models import Progress as ProgressBody
from minutebook.domain.jitter import due_at
from minutebook.domain.policy import Policy
from minutebook.domain.state import NONE_AT, PAUSED
from minutebook.domain.timing import Timing
from minutebook.domain.view_rows import (
    Attempt,
    DeadRow,
    Discard,
    ExecutionRow,
    JobRow,
    LimitRow,
    PermitsUsedRow,
    Progress,
    QueueRow,
)
from minutebook.ids import execution_id, job_of
from minutebook.times import format_duration, format_instant

_DEFAULT_RETRY: Final = RetryPolicy()
_NO_RESULT: Final = Raw(b"null")


class Around(NamedTuple):
    """What an attempt's row says only by reference: names of workers by session, and what a queued one waits for."""

    worker_of: Callable[[str], str]
    waiting_for: Literal["worker", "permit", "paused_queue"]


def job_body(job_id: str, row: JobRow, progress: Progress) -> Job:
    """A job as it stands."""
    body = Job(
        id=job_id,
        task=row.task,
        payload=Raw(row.payload),
        queue=row.queue,
        run_at=None if row.is_recurring else format_instant(row.first_at),
        cron=row.cron or None,
        every=_duration(_bound(row.every_ms)),
        zone=row.zone,
        late=row.late,  # type: ignore[arg-type]  # one of the two by the create body
        timeout=format_duration(row.timeout_ms),
        retry=_DEFAULT_RETRY,
        priority=row.priority,
        limit=row.limit or None,
        notify=row.notify,
        tags=row.tags,
        status=progress.status,  # type: ignore[arg-type]  # one of the statuses by the fold
        version=row.version,
        paused=_pause(progress),
        next_at=shown_instant(progress.coming_at),
        created_at=format_instant(row.accepted_at if row.created_at < 0 else row.created_at),
        executions=Counts(
            progress.open, progress.succeeded, progress.dead, progress.cancelled, progress.skipped
        ),
    )
    if row.policy is not None:
        _show_policy(body, row.policy)
    if row.timing is not None:
        _show_timing(body, row.timing)
    return body


def _pause(progress: Progress) -> PauseBody | None:
    pause = progress.pause
    if pause is None or progress.status != PAUSED:
        return None
    return PauseBody(format_instant(pause.at), pause.cause, pause.reason)  # type: ignore[arg-type]  # one of both


def version_body(job_id: str, row: JobRow) -> JobVersion:
    """One version of a job."""
    shown = job_body(job_id, row, Progress("", NONE_AT))
    body = msgspec.json.decode(msgspec.json.encode(create_body(shown)), type=JobRequest)
    parts = parts_of(row.actor)
    return JobVersion(
        version=row.version,
        changed_at=format_instant(row.accepted_at),
        reason=row.reason,
        body=body,
        actor=row.actor,
        key_id=parts.key,
        via=parts.via,  # type: ignore[arg-type]  # one of them, or it is no actor of ours
        address=parts.address,
        operation_id=parts.operation,
    )


def create_body(job: Job) -> dict[str, Raw]:
    """Members of the create body that says the same as `job`, but for its id."""
    names = [name for name in Job.__struct_fields__ if name in JobRequest.__struct_fields__ and name != "id"]
    given = {name: getattr(job, name) for name in names}
    return {name: Raw(msgspec.json.encode(value)) for name, value in given.items() if value is not None}


def _show_policy(body: Job, policy: Policy) -> None:
    """What differs from the defaults that a body has."""
    body.retry = RetryPolicy(
        max_attempts=policy.max_attempts,
        first=format_duration(policy.first_ms),
        max=format_duration(policy.max_ms),
        factor=policy.factor,
        jitter=policy.jitter,
        non_retryable=policy.non_retryable,
    )
    body.max_losses = policy.max_losses
    body.deadline = _duration(policy.deadline_ms)
    body.start_deadline = _duration(policy.start_deadline_ms)
    body.stuck_after = _duration(policy.stuck_after_ms)
    body.on_stuck = "stop" if policy.is_stuck_stopped else "report"


def _show_timing(body: Job, timing: Timing) -> None:
    """What differs from the defaults that a body has."""
    body.start_at = None if timing.start_at is None else format_instant(timing.start_at)
    body.end_at = None if timing.end_at is None else format_instant(timing.end_at)
    body.max_runs = timing.max_runs
    body.calendars = Calendars(exclude=timing.exclude, include=timing.include)
    body.jitter = format_duration(timing.jitter_ms)
    body.pause_on_failure = timing.is_paused_on_failure
    window = format_duration(timing.misfire_window_ms)
    # Choices are those of the create body: the owner takes no others.
    body.misfire = MisfirePolicy(policy=timing.misfire, window=window, max=timing.misfire_max)  # type: ignore[arg-type]
    body.overlap = timing.overlap  # type: ignore[assignment]
    body.gap = timing.gap  # type: ignore[assignment]
    body.fold = timing.fold  # type: ignore[assignment]
    body.day_match = timing.day_match  # type: ignore[assignment]


def whole_body(name: str, row: ExecutionRow, around: Around) -> WholeExecution:
    """An execution with its attempts."""
    return WholeExecution(
        execution_id=name,
        job_id=job_of(name),
        status=row.last.status,  # type: ignore[arg-type]  # one of the statuses by the fold
        outcome=row.outcome or None,  # type: ignore[arg-type]  # one of the outcomes by the fold
        version=row.version,
        generation=row.generation,
        scheduled_at=format_instant(row.scheduled_at),
        attempts=list(execution_bodies(name, row, around)),
        discarded=None if row.discard is None else _discarded(row.discard),
    )


def _discarded(row: Discard) -> Discarded:
    return Discarded(format_instant(row.at), row.actor, row.reason, row.operation or None)


def execution_bodies(name: str, row: ExecutionRow, around: Around) -> Iterator[Execution]:
    """The attempts of an execution, oldest first."""
    for attempt in (*row.earlier, row.last):
        body = _attempt_body(name, row.scheduled_at, attempt, around)
        if row.skip is not None:
            body.reason, body.count = row.skip.reason, row.skip.count
            body.last_at = format_instant(row.skip.last_at)
        yield body


def upcoming_row(tenant: str, job_id: str, row: JobRow, next_at: int) -> ExecutionRow:
    """The execution at a job's next instant: it has no row of its own before it is due."""
    jitter_ms = 0 if row.timing is None else row.timing.jitter_ms
    attempt = Attempt(1, "scheduled", due_at(tenant, job_id, next_at, jitter_ms))
    return ExecutionRow(row.version, next_at, "", attempt)


def upcoming_body(tenant: str, job_id: str, row: JobRow, next_at: int) -> Execution:
    """The first attempt at the job's next instant."""
    upcoming = upcoming_row(tenant, job_id, row, next_at)
    return _attempt_body(execution_id(job_id, next_at), next_at, upcoming.last, Around(str, "worker"))


def dead_letter_body(name: str, given_up_at: int, dead: DeadRow, job: JobRow) -> DeadLetter:
    """An execution that was given up."""
    return DeadLetter(
        execution_id=name,
        job_id=job_of(name),
        task=job.task,
        queue=job.queue,
        given_up_at=format_instant(given_up_at),
        cause=dead.cause,  # type: ignore[arg-type]  # one of the causes by the owner
        error=AttemptError(dead.error_type, dead.message),
        attempt=dead.attempt,
        generation=dead.generation,
    )


def queue_body(name: str, row: QueueRow) -> Queue:
    """A queue as declared."""
    return Queue(name, row.version, row.tenants, row.is_open, row.is_paused, row.is_draining)


def limit_body(name: str, row: LimitRow, used: PermitsUsedRow, now: int) -> Limit:
    """A limit as its home has it. `now`: ms since the epoch; a pause that is over shows no more."""
    demands = used.demands if used.version == row.version else ()
    return Limit(
        name=name or None,
        version=row.version,
        concurrency=_bound(row.concurrency),
        rate_count=_bound(row.rate_count),
        rate_period=_duration(_bound(row.rate_period_ms)),
        paused_until=shown_instant(row.paused_until if row.paused_until > now else NONE_AT),
        in_use=used.in_use,
        waiting=sum(count for _, count in demands),
    )


def _bound(number: int) -> int | None:
    return None if number < 0 else number


def _attempt_body(name: str, scheduled_at: int, attempt: Attempt, around: Around) -> Execution:
    is_skipped = attempt.status == "skipped"
    return Execution(
        execution_id=name,
        attempt=attempt.number,
        status=attempt.status,  # type: ignore[arg-type]  # one of the statuses by the fold
        scheduled_at=format_instant(scheduled_at),
        due_at=format_instant(attempt.due_at),
        queued_at=shown_instant(attempt.queued_at),
        started_at=shown_instant(attempt.started_at),
        ended_at=shown_instant(attempt.ended_at),
        waiting_for=_waiting_for(attempt, around),
        worker=(around.worker_of(attempt.session) or None) if attempt.session else None,
        progress=_progress(attempt),
        result=_result(attempt.result),
        error=attempt_error(attempt),
        reason=(attempt.error_type or UNSET) if is_skipped else UNSET,
    )


def attempt_error(attempt: Attempt) -> AttemptError | None:
    """Why an attempt failed, was lost or stopped."""
    if attempt.status == "skipped" or not (attempt.error_type or attempt.message):
        return None
    return AttemptError(attempt.error_type, attempt.message)


def _waiting_for(
    attempt: Attempt, around: Around
) -> Literal["worker", "permit", "paused_queue", "overlap"] | None:
    if attempt.status == "queued":
        return around.waiting_for
    return "overlap" if attempt.status == "scheduled" and attempt.is_held else None


def _progress(attempt: Attempt) -> ProgressBody | None:
    headway = attempt.headway
    if headway is None:
        return None
    return ProgressBody(headway.fraction, headway.text, format_instant(headway.at))


def _result(data: bytes) -> Raw:
    """A result as the worker sent it; as a text where that was no JSON, for no owner has looked into it."""
    if not data:
        return _NO_RESULT
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return Raw(msgspec.json.encode(data.decode(errors="replace")))
    return Raw(data)


def shown_instant(at: int) -> str | None:
    """`at` as text, None for no instant."""
    return None if at < 0 else format_instant(at)


def _duration(ms: int | None) -> str | None:
    return None if ms is None else format_duration(ms)
