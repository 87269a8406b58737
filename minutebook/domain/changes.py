"""What changes a job: pause, resume, edit; and the pause that follows from an execution that is given up.

A change holds from its stamp on. What is on record stays: open executions keep the version that they came due with.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys, plans
from minutebook.domain.book import Book
from minutebook.domain.commands import REASON_CHARS_MAX, EditJob, PauseJob, ResumeJob, SubmitJob
from minutebook.domain.due import due_of, queued_event
from minutebook.domain.events import Event
from minutebook.domain.placing import is_to_come, job_due_at
from minutebook.domain.refusal import Refusal, answered
from minutebook.domain.state import ACTIVE, NONE_AT, PAUSED, UNCHANGED, Job, Spec
from minutebook.domain.submit import check_body, described, fingerprint, first_instant
from minutebook.domain.timing import DEFAULT
from minutebook.domain.versions import version_of

OPEN: Final = (ACTIVE, PAUSED)
"""Statuses of a job that can be changed."""
_SCHEDULE: Final = ("start_at", "end_at", "max_runs", "gap", "fold", "day_match", "exclude", "include")
"""What of `Timing` says which instants there are."""

replace = msgspec.structs.replace


def check_version(job: Job, expected: int | None) -> None:
    """Raises Refusal where the job has another version than the sender knows."""
    if expected is not None and expected != job.version:
        raise Refusal(
            "stale_version", "expected_version", f"the job is at version {job.version}; read it again"
        )


def pause(job: Job, command: PauseJob, stamp: int) -> Event:
    """The event of a pause. Raises Refusal."""
    _check(job, command)
    if job.status == PAUSED:
        return answered(command, PAUSED)
    reason = command.reason[:REASON_CHARS_MAX]
    return facts.JobPaused(
        command.tenant, command.job_id, command.command_id, command.actor, reason, stamp, "command"
    )


def pause_after(book: Book, cause: Event, now: int) -> facts.JobPaused | None:
    """The pause that follows from an event already folded: an execution was given up, and its job says so."""
    if not isinstance(cause, facts.ExecutionDead):
        return None
    job_id = ids.job_of(cause.execution)
    row = keys.job_row(cause.tenant, job_id)
    job = book.jobs.get(row)
    spec = None if job is None else book.specs.get(keys.spec_row(row, job.version))
    if job is None or spec is None or job.status != ACTIVE or not spec.timing.is_paused_on_failure:
        return None
    reason = f"{cause.execution} was given up: {cause.error_type}"
    return facts.JobPaused(cause.tenant, job_id, "", "", reason[:REASON_CHARS_MAX], now, "failure")


def resume(book: Book, row: bytes, job: Job, command: ResumeJob, stamp: int) -> list[Event]:
    """The events of a resume: the instants of the pause are skipped, or left to the misfire policy. Raises Refusal."""
    _check(job, command)
    if job.status == ACTIVE:
        return [answered(command, ACTIVE)]
    next_at = NONE_AT if job.is_once and not is_to_come(book, row, job) else job.next_at
    resumed = facts.JobResumed(
        command.tenant,
        command.job_id,
        command.command_id,
        command.actor,
        command.reason[:REASON_CHARS_MAX],
        stamp,
        command.is_caught_up,
        next_at,
    )
    spec = book.specs.get(keys.spec_row(row, job.version))
    if spec is None or not spec.is_recurring or command.is_caught_up or not 0 <= next_at <= stamp:
        return [resumed]
    following = plans.next_at(book, command.tenant, command.job_id, spec, stamp)
    skipped = _paused_through(book, row, spec, next_at, stamp, following)
    return [replace(resumed, next_at=following)] if skipped is None else [resumed, skipped]


def edit(book: Book, row: bytes, job: Job, command: EditJob, stamp: int) -> list[Event]:
    """The events of an edit: what the version so far still owes, then the new one. Raises Refusal."""
    check_version(job, command.expected_version)
    wanted, print_ = command.job, fingerprint(command.job)
    if print_ == (job.edited or job.fingerprint):
        return [answered(command, "unchanged")]
    _check(job, command)
    before = book.specs.get(keys.spec_row(row, job.version))
    if before is None or (job.is_once and job.next_at == NONE_AT):
        raise Refusal("job_closed", "id", "the job was closed, only a redriven execution of it is open")
    check_body(book, wanted, before)
    definition = _anchored(described(wanted, print_, stamp), before)
    after = version_of(definition)
    is_same_schedule = _is_same_schedule(job, wanted, before, after)
    if is_same_schedule and replace(after, traceparent=before.traceparent) == before:
        return [answered(command, "unchanged")]
    if not is_same_schedule:
        _check_may_move(book, row, job, stamp)
    owed = _owed(book, row, job, before, stamp)
    if is_same_schedule:
        is_over = job.is_once and not is_to_come(book, row, job)
        next_at = NONE_AT if is_over else owed.next_at
    else:
        next_at = _moved(book, job, wanted, definition, owed, stamp)
    if next_at == NONE_AT and job.open + owed.runs == 0:
        raise Refusal("job_closed", "id", "its schedule has ended")
    version, reason = job.last_version + 1, command.reason[:REASON_CHARS_MAX]
    return [*owed.events, facts.JobEdited(version, reason, replace(definition, next_at=next_at))]


def _check(job: Job, command: PauseJob | ResumeJob | EditJob) -> None:
    if job.status not in OPEN:
        raise Refusal("job_closed", "id", f"the job is {job.status}; submit a new one")
    check_version(job, command.expected_version)


def _paused_through(
    book: Book, row: bytes, spec: Spec, first_at: int, stamp: int, next_at: int
) -> facts.ExecutionsSkipped | None:
    """The instants from `first_at` up to `stamp`, which a pause left out; None if there are none."""
    tenant, job_id = keys.names(row)
    plan = plans.plan_of(book, tenant, job_id, spec)
    # A calendar may have changed meanwhile: the first that it leaves is not the next one that the job knew.
    first, last, count = plan.next(first_at - 1), plan.previous(stamp + 1), plan.count(first_at - 1, stamp)
    if not count or first is None or last is None:
        return None
    return facts.ExecutionsSkipped(tenant, job_id, PAUSED, first, last, count, next_at)


# -- edits


class _Owed(NamedTuple):
    """What a version still has to do at an edit: events, the next instant after them, and how many executions it adds."""

    events: list[Event]
    next_at: int
    runs: int


def _owed(book: Book, row: bytes, job: Job, spec: Spec, stamp: int) -> _Owed:
    """What is due at `stamp` and not on record: by the misfire policy of its version, or left out by a pause."""
    is_up = job.next_at != NONE_AT and job.next_at <= stamp
    if not spec.is_recurring or not is_up:
        return _Owed([], job.next_at, 0)
    if job.status == PAUSED:
        following = plans.next_at(book, *keys.names(row), spec, stamp)
        skipped = _paused_through(book, row, spec, job.next_at, stamp, UNCHANGED)
        return _Owed([] if skipped is None else [skipped], following, 0)
    if job_due_at(row, job, job.next_at) > stamp:
        return _Owed([], job.next_at, 0)
    rows, events = due_of(book, keys.index_row(job.indexed_at, keys.JOB, row), stamp)
    if rows:
        events.append(queued_event(rows))
    following = next(at for at in map(_next_at, reversed(events)) if at is not None)
    last = events[-1]
    # The edit comes next, in the same frame: the job must not come to its end between the two.
    if isinstance(last, facts.ExecutionsSkipped) and following == NONE_AT:
        events[-1] = replace(last, next_at=UNCHANGED)
    if isinstance(last, facts.JobsRescheduled) and following == NONE_AT:
        events.pop()
    return _Owed(events, following, sum(map(_runs, events)))


def _next_at(event: Event) -> int | None:
    """The next instant of the job after an event that handles instants; None for any other."""
    match event:
        case facts.ExecutionsQueued():
            return event.next_at[-1]
        case facts.JobsRescheduled():
            return event.next_at[-1]
        case facts.ExecutionsSkipped() | facts.ExecutionsPlaced() if event.next_at != UNCHANGED:
            return event.next_at
        case _:
            return None


def _runs(event: Event) -> int:
    """How many executions an event adds to the job."""
    match event:
        case facts.ExecutionsQueued():
            return len(event.executions)
        case facts.ExecutionsPlaced():
            return len(event.scheduled_at)
        case _:
            return 0


def _anchored(definition: facts.JobSubmitted, before: Spec) -> facts.JobSubmitted:
    """`definition` with the anchor that it had, where its interval and its start stay."""
    timing = definition.timing or DEFAULT
    same = (definition.cron, definition.every_ms, timing.start_at)
    is_kept = before.anchor_at != NONE_AT and same == (before.cron, before.every_ms, before.timing.start_at)
    return replace(definition, anchor_at=before.anchor_at) if is_kept else definition


def _is_same_schedule(job: Job, wanted: SubmitJob, before: Spec, after: Spec) -> bool:
    """Whether the instants are those of the version so far."""
    if not after.is_recurring:
        return job.is_once and wanted.delay_ms is None and wanted.run_at == job.next_at
    return _schedule(before) == _schedule(after)


def _schedule(spec: Spec) -> tuple[object, ...]:
    parts = (getattr(spec.timing, name) for name in _SCHEDULE)
    return spec.cron, spec.zone, spec.every_ms, spec.anchor_at, *parts


def _check_may_move(book: Book, row: bytes, job: Job, stamp: int) -> None:
    """Raises Refusal for a job that fires once and whose instant has come."""
    is_due = job.status == ACTIVE and job_due_at(row, job, job.next_at) <= stamp
    if job.is_once and (is_due or not is_to_come(book, row, job)):
        raise Refusal(
            "already_due", "run_at", "its execution is due already: cancel that, or submit a new job"
        )


def _moved(
    book: Book, job: Job, wanted: SubmitJob, definition: facts.JobSubmitted, owed: _Owed, stamp: int
) -> int:
    """The first instant of a new schedule; later than every one on record, as they give executions their ids."""
    max_runs = None if wanted.timing is None else wanted.timing.max_runs
    runs = job.runs + owed.runs
    if max_runs is not None and max_runs <= runs:
        raise Refusal("invalid", "max_runs", f"{runs} have run already; give more, or leave it out")
    recorded_at = max(job.last_at, stamp if owed.events else NONE_AT)
    first_at = first_instant(book, wanted, definition, stamp, max(stamp, recorded_at))
    return first_at if version_of(definition).is_recurring else max(first_at, recorded_at + 1)
