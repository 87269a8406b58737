"""Folds of the read model: what each event changes in the rows of `PartitionView`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from minutebook.domain import events as facts
from minutebook.domain import (
    view_calendars,
    view_drops,
    view_expiry,
    view_index,
    view_keys,
    view_limits,
    view_owners,
)
from minutebook.domain import view_rows as keys
from minutebook.domain.alerts import record_of
from minutebook.domain.state import ACTIVE, NONE_AT, UNCHANGED
from minutebook.domain.view_changes import FOLDS as CHANGE_FOLDS
from minutebook.domain.view_changes import version_of
from minutebook.domain.view_operations import FOLDS as OPERATION_FOLDS
from minutebook.domain.view_rows import (
    AlertRow,
    Attempt,
    DeadRow,
    Discard,
    ExecutionRow,
    Headway,
    HotExecution,
    HotJob,
    Progress,
    QueueRow,
    Skip,
    TaskRow,
    card_of,
)
from minutebook.ids import execution_id

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView


# -- jobs


def _submitted(view: PartitionView, event: facts.JobSubmitted) -> None:
    key = keys.job_row(view.prefix, event.tenant, event.job_id)
    before = view_drops.taken_over(view, event.tenant, event.job_id, key)
    row = view.dirty["jobs"][key] = version_of(event)
    view_calendars.entered(view, event.tenant, event.job_id, event.timing)
    progress = Progress(ACTIVE, event.next_at)
    job = HotJob(key, progress, event.tenant, event.job_id.encode(), card_of(row))
    if before is not None:
        job.filed_status, job.filed_card = before.filed_status, before.filed_card or before.card
        job.filed_at = before.filed_at
    view.changed_jobs[key] = view.hot_jobs.setdefault(event.tenant, {})[event.job_id] = job
    view.due_moves.append((event.tenant, NONE_AT, event.next_at))
    view.answer(event, "SubmitJob", job_id=event.job_id, tenant=event.tenant, version=1)


def _cancelled(view: PartitionView, event: facts.JobCancelled) -> None:
    job = view.open_job(event.tenant, event.job_id)
    view.move_next(event.tenant, job, NONE_AT, "cancelled")
    for name in event.executions:
        hot = view.open_execution(event.tenant, name)
        attempt = view.touch(hot)
        attempt.status, attempt.ended_at = "cancelled", view.now
        view.end(hot, "cancelled")
    view.settle(job)
    view.answer(event, "CancelJob", job_id=event.job_id, tenant=event.tenant, version=job.progress.version)


def _requested(view: PartitionView, event: facts.ExecutionRequested) -> None:
    job = view.open_job(event.tenant, event.job_id)
    at = event.accepted_at
    key = keys.execution_row(job.key, at, event.execution.rpartition(":")[2].encode())
    row = ExecutionRow(job.progress.version, at, "", Attempt(1, "scheduled", at))
    request = keys.request_row(view.prefix, event.tenant, event.execution)
    view.dirty["requests"][request] = at
    view_expiry.requested(view, request, at)
    view.hot_executions.setdefault(event.tenant, {})[event.execution] = view.entered(key, row, job)
    job.progress.open += 1
    view.settle(job)
    view.answer(event, "RunJobNow", job_id=event.job_id, tenant=event.tenant, version=job.progress.version)


def _placed(view: PartitionView, event: facts.ExecutionsPlaced) -> None:
    job = view.open_job(event.tenant, event.job_id)
    hots = view.hot_executions.setdefault(event.tenant, {})
    for scheduled_at, due_at, place_at in zip(event.scheduled_at, event.due_at, event.place_at, strict=True):
        key = keys.execution_row(job.key, scheduled_at)
        attempt = Attempt(1, "scheduled", due_at, is_held=place_at == NONE_AT)
        row = ExecutionRow(event.version, scheduled_at, "", attempt)
        hots[execution_id(event.job_id, scheduled_at)] = view.entered(key, row, job)
    if event.next_at != UNCHANGED:
        view.move_next(event.tenant, job, event.next_at)
    job.progress.open += len(event.scheduled_at)
    view.settle(job)


def _skipped(view: PartitionView, event: facts.ExecutionsSkipped) -> None:
    job = view.open_job(event.tenant, event.job_id)
    key = keys.execution_row(job.key, event.first_at, b"s")
    skip = Skip(event.reason, event.last_at, event.count)
    attempt = Attempt(1, "skipped", event.first_at, ended_at=view.now)
    row = ExecutionRow(job.progress.version, event.first_at, "skipped", attempt, skip=skip)
    hot = view.entered(key, row, job)
    if event.first_at < view.kept_at:
        view_expiry.ended_late(view, hot)
    shelf = view_index.shelf_of(view.partition, max(event.last_at, view.now) // keys.DAY_MS)
    view.dirty["skips"][view_index.on_shelf(shelf, keys.execution_row(job.key, event.last_at))] = (
        event.first_at
    )
    if event.next_at != UNCHANGED:
        view.move_next(event.tenant, job, event.next_at)
    job.progress.skipped += event.count
    view.settle(job)


# -- executions come due


def _come(view: PartitionView, event: Any, status: str) -> None:
    now, changed, changed_jobs = view.now, view.changed_executions, view.changed_jobs
    pack = view_index.INSTANT.pack
    sessions, session = _sessions(event)
    tasks, queues = event.tasks, event.queues
    jobs = [view.hot_jobs.setdefault(tenant, {}) for tenant in event.tenants]
    hots = [view.hot_executions.setdefault(tenant, {}) for tenant in event.tenants]
    started_at = now if status == "running" else NONE_AT
    left_at: list[int] = []
    if status == "running":
        view.starts.append((now, event.tenants, event.tenant, event.due_at))
    for tenant, execution, task, queue, version, scheduled_at, due_at, next_at, holder in zip(
        event.tenant,
        event.executions,
        event.task,
        event.queue,
        event.versions,
        event.scheduled_at,
        event.due_at,
        event.next_at,
        session,
        strict=True,
    ):
        if next_at == UNCHANGED:
            left_at.append(NONE_AT)
            _come_again(view, event.tenants[tenant], execution, status, sessions[holder])
            continue
        job_id = execution.rpartition(":")[0]
        job = jobs[tenant].get(job_id) or view.open_job(event.tenants[tenant], job_id)
        progress = job.progress
        progress.open += 1
        left_at.append(progress.next_at)
        progress.next_at = next_at
        changed_jobs[job.key] = job
        key = b"%b\0%b" % (job.key, pack(scheduled_at))  # as `keys.execution_row` has it
        attempt = Attempt(1, status, due_at, now, started_at, NONE_AT, sessions[holder])
        row = ExecutionRow(version, scheduled_at, "", attempt)
        hot = HotExecution(key, row, job, tasks[task], queues[queue])
        if key in changed:
            hot.filed = changed[key].filed
        changed[key] = hots[tenant][execution] = hot
    names = map(event.tenants.__getitem__, event.tenant)
    view.due_moves.extend(zip(names, left_at, event.next_at, strict=True))


def _come_again(view: PartitionView, tenant: str, execution: str, status: str, session: str) -> None:
    """A retry, a run-now or a wait that is over: its attempt is there already."""
    attempt = view.touch(view.open_execution(tenant, execution))
    attempt.status, attempt.queued_at, attempt.session = status, view.now, session
    attempt.started_at = view.now if status == "running" else NONE_AT


def _due_granted(view: PartitionView, event: facts.ExecutionsDueGranted) -> None:
    _come(view, event, "running")


def _queued(view: PartitionView, event: facts.ExecutionsQueued) -> None:
    _come(view, event, "queued")


def _granted(view: PartitionView, event: facts.ExecutionsGranted) -> None:
    now, changed, sessions = view.now, view.changed_executions, event.sessions
    due_ats: list[int] = []
    hots = [view.hot_executions.setdefault(tenant, {}) for tenant in event.tenants]
    for tenant, execution, holder in zip(event.tenant, event.executions, event.session, strict=True):
        hot = hots[tenant].get(execution) or view.open_execution(event.tenants[tenant], execution)
        attempt = hot.row.last
        attempt.status, attempt.started_at, attempt.session = "running", now, sessions[holder]
        due_ats.append(attempt.due_at)
        changed[hot.key] = hot
    view.starts.append((now, event.tenants, event.tenant, due_ats))


# -- attempts end


def _succeeded(view: PartitionView, event: facts.AttemptsSucceeded) -> None:
    now, changed, changed_jobs, kept_at = view.now, view.changed_executions, view.changed_jobs, view.kept_at
    hots = [view.hot_executions.setdefault(tenant, {}) for tenant in event.tenants]
    results = event.results or repeat(b"", len(event.executions))
    for tenant, execution, result in zip(event.tenant, event.executions, results, strict=True):
        hot = hots[tenant].get(execution) or view.open_execution(event.tenants[tenant], execution)
        row, job = hot.row, hot.job
        row.outcome = "succeeded"
        attempt = row.last
        attempt.status, attempt.ended_at, attempt.result = "succeeded", now, result
        changed[hot.key] = hot
        if row.scheduled_at < kept_at:
            view_expiry.ended_late(view, hot)
        progress = job.progress
        progress.open -= 1
        progress.succeeded += 1
        progress.last_outcome = "succeeded"
        changed_jobs[job.key] = job
        if not progress.open and progress.next_at < 0:
            view.settle(job)


def _failed(view: PartitionView, event: facts.AttemptFailed) -> None:
    hot = view.open_execution(event.tenant, event.execution)
    attempt = view.touch(hot)
    attempt.status, attempt.ended_at = "failed", view.now
    attempt.error_type, attempt.message = event.error_type, event.message
    if event.retry_at >= 0:
        view.further(hot, "scheduled", event.retry_at, NONE_AT)


def _lost(view: PartitionView, event: facts.AttemptsLost) -> None:
    for tenant, execution, has_retry in zip(event.tenant, event.executions, event.has_retry, strict=True):
        if event.cause == "session_died" and has_retry:
            # A withdrawal that is counted as a loss afterwards: the attempt waits already, and stays so.
            continue
        hot = view.open_execution(event.tenants[tenant], execution)
        attempt = view.touch(hot)
        attempt.status, attempt.ended_at, attempt.error_type = "lost", view.now, event.cause
        if has_retry:
            view.further(hot, "queued", attempt.due_at, view.now)


def _returned(view: PartitionView, event: facts.GrantsReturned) -> None:
    for tenant, execution, wait_until in zip(event.tenant, event.executions, event.wait_until, strict=True):
        attempt = view.touch(view.open_execution(event.tenants[tenant], execution))
        attempt.status = "scheduled" if wait_until >= 0 else "queued"
        attempt.started_at, attempt.session = NONE_AT, ""


def _snoozed(view: PartitionView, event: facts.AttemptSnoozed) -> None:
    hot = view.open_execution(event.tenant, event.execution)
    attempt = view.touch(hot)
    attempt.status, attempt.ended_at = "cancelled", view.now
    attempt.error_type, attempt.message = "Snoozed", event.reason
    view.further(hot, "scheduled", event.retry_at, NONE_AT)


def _progressed(view: PartitionView, event: facts.AttemptProgressed) -> None:
    hot = view.open_execution(event.tenant, event.execution)
    view.touch(hot).headway = Headway(view.now, event.fraction, event.text)


def _dead(view: PartitionView, event: facts.ExecutionDead) -> None:
    hot = view.open_execution(event.tenant, event.execution)
    attempt = view.touch(hot)
    if attempt.ended_at < 0:
        attempt.status, attempt.ended_at, attempt.error_type = "failed", view.now, event.error_type
        attempt.message = event.message
    dead = DeadRow(event.cause, event.error_type, event.message, event.attempt, event.generation)
    key = keys.dead_row(view.prefix, event.tenant, attempt.ended_at, event.execution)
    view.dirty["dead"][key] = dead
    view.end(hot, "dead")


def _expired(view: PartitionView, event: facts.ExecutionExpired) -> None:
    hot = view.open_execution(event.tenant, event.execution)
    attempt = view.touch(hot)
    attempt.status, attempt.ended_at, attempt.error_type = "skipped", view.now, event.reason
    view.end(hot, "skipped")


def _stopped(view: PartitionView, event: facts.AttemptCancelled) -> None:
    hot = view.open_execution(event.tenant, event.execution)
    attempt = view.touch(hot)
    attempt.status, attempt.ended_at, attempt.message = "cancelled", view.now, event.cause
    view.end(hot, "cancelled")


def _execution_cancelled(view: PartitionView, event: facts.ExecutionCancelled) -> None:
    if event.token < 0:
        hot = view.open_execution(event.tenant, event.execution)
        attempt = view.touch(hot)
        attempt.status, attempt.ended_at, attempt.message = "cancelled", view.now, event.reason
        view.end(hot, "cancelled")
    if event.command_id:
        version = view.open_job(event.tenant, event.job_id).progress.version
        view.answer(event, "CancelExecution", job_id=event.job_id, tenant=event.tenant, version=version)


def _redriven(view: PartitionView, event: facts.ExecutionRedriven) -> None:
    hot = view.open_execution(event.tenant, event.execution)
    row, progress = hot.row, hot.job.progress
    ended_at = view.touch(hot).ended_at
    view.dirty["dead"][keys.dead_row(view.prefix, event.tenant, ended_at, event.execution)] = None
    row.outcome, row.version, row.generation = "", event.version, event.generation
    if event.is_edited:
        row.lane = (hot.task, hot.queue)
    view.further(hot, "scheduled", event.accepted_at, NONE_AT)
    progress.open += 1
    progress.dead -= 1
    if progress.status in ("completed", "dead"):
        progress.status = ACTIVE
    view.settle(hot.job)
    if not event.operation:
        view.answer(
            event, "RedriveExecution", job_id=event.job_id, tenant=event.tenant, version=progress.version
        )


def _discarded(view: PartitionView, event: facts.ExecutionDiscarded) -> None:
    hot = view.open_execution(event.tenant, event.execution)
    ended_at = view.touch(hot).ended_at
    view.dirty["dead"][keys.dead_row(view.prefix, event.tenant, ended_at, event.execution)] = None
    hot.row.discard = Discard(event.accepted_at, event.actor, event.reason, event.operation)
    if hot.row.scheduled_at < view.kept_at:
        view_expiry.ended_late(view, hot)
    if not event.operation:
        version = hot.job.progress.version
        view.answer(event, "DiscardExecution", job_id=event.job_id, tenant=event.tenant, version=version)


# -- answers, sessions, shared facts


def _answered(view: PartitionView, event: facts.CommandAnswered) -> None:
    """A repeat: the first answer to this very command id stands."""
    if view.command(event.tenant, event.command_id, event.job_id) is not None:
        view.answered.append(keys.command_row(view.prefix, event.tenant, event.command_id, event.job_id))
        return
    view.answer(
        event,
        event.command,
        job_id=event.job_id,
        tenant=event.tenant,
        reason=event.reason,
        why=event.why,
    )


def _rejected(view: PartitionView, event: facts.CommandRejected) -> None:
    view.answer(
        event,
        event.command,
        job_id=event.job_id,
        tenant=event.tenant,
        is_accepted=False,
        reason=event.reason,
        why=event.why,
    )


def _session_started(view: PartitionView, event: facts.SessionStarted) -> None:
    view.dirty["sessions"][view.prefix + event.session.encode()] = event.worker


def _session_ended(view: PartitionView, event: facts.SessionEnded) -> None:
    view_expiry.session_ended(view, view.prefix + event.session.encode())


def _queue_declared(view: PartitionView, event: facts.QueueDeclared) -> None:
    known = view.queue(event.name) or QueueRow(0, False, [])
    view.answer(event, _queue_command(known, event), job_id=event.name, tenant="", version=event.version)


def _queue_command(known: QueueRow, event: facts.QueueDeclared) -> str:
    """Which command has changed a queue from what this partition, its home, knows."""
    if event.is_paused and not known.is_paused:
        return "PauseQueue"
    if event.is_draining and not known.is_draining:
        return "DrainQueue"
    is_ended = (known.is_paused, known.is_draining) != (event.is_paused, event.is_draining)
    return "ResumeQueue" if is_ended else "DeclareQueue"


def _queue_copied(view: PartitionView, event: facts.QueueCopied) -> None:
    key = view.prefix + event.name.encode()
    view.dirty["queues"][key] = QueueRow(
        event.version, event.is_open, event.tenants, event.is_paused, event.is_draining
    )


def _alert_raised(view: PartitionView, event: facts.AlertRaised) -> None:
    counted = keys.alert_rows(view.prefix, event.tenant)
    number = view.read("alert_counts", counted, int) or 0
    record = record_of(event, view.partition)
    row = AlertRow(*(getattr(record, name) for name in AlertRow.__struct_fields__))
    view.dirty["alerts"][keys.alert_row(view.prefix, event.tenant, number)] = row
    view.dirty["alert_counts"][counted] = number + 1


def _task_declared(view: PartitionView, event: facts.TaskDeclared) -> None:
    row = TaskRow(event.version, event.payload_schema, event.actor, event.accepted_at)
    view.dirty["tasks"][view.prefix + event.name.encode()] = row
    view.answer(event, "DeclareTask", job_id=event.name, tenant="", version=event.version)


def _worker_asked(view: PartitionView, event: facts.WorkerAsked) -> None:
    view.answer(event, "AskWorker", job_id=event.worker, tenant="")


def _sessions(event: Any) -> tuple[list[str], list[int]]:
    """Sessions of an event and its column of them; where it has none, one without a name."""
    if isinstance(event, facts.ExecutionsDueGranted):
        return event.sessions, event.session
    return [""], [0] * len(event.executions)


FOLDS: Final[dict[type, Callable[[PartitionView, Any], None]]] = {
    facts.ExecutionsDueGranted: _due_granted,
    facts.AttemptsSucceeded: _succeeded,
    facts.ExecutionsGranted: _granted,
    facts.ExecutionsQueued: _queued,
    facts.JobSubmitted: _submitted,
    facts.AttemptFailed: _failed,
    facts.GrantsReturned: _returned,
    facts.AttemptsLost: _lost,
    facts.ExecutionDead: _dead,
    facts.ExecutionsSkipped: _skipped,
    facts.ExecutionsPlaced: _placed,
    facts.ExecutionRequested: _requested,
    facts.JobCancelled: _cancelled,
    facts.AttemptCancelled: _stopped,
    facts.CommandAnswered: _answered,
    facts.CommandRejected: _rejected,
    facts.SessionStarted: _session_started,
    facts.SessionEnded: _session_ended,
    facts.QueueDeclared: _queue_declared,
    facts.QueueCopied: _queue_copied,
    facts.AttemptSnoozed: _snoozed,
    facts.AttemptProgressed: _progressed,
    facts.ExecutionExpired: _expired,
    facts.ExecutionCancelled: _execution_cancelled,
    facts.ExecutionRedriven: _redriven,
    facts.ExecutionDiscarded: _discarded,
    facts.LimitDeclared: view_limits.declared,
    facts.LimitCopied: view_limits.copied,
    facts.PermitsAsked: view_limits.asked,
    facts.PermitsDemanded: view_limits.demanded,
    facts.PermitsGranted: view_limits.granted,
    facts.PermitsReceived: view_limits.received,
    facts.PermitsReturned: view_limits.returned,
    facts.AlertRaised: _alert_raised,
    **CHANGE_FOLDS,
    **OPERATION_FOLDS,
    **view_calendars.FOLDS,
    **view_keys.FOLDS,
    **view_owners.FOLDS,
    **view_drops.FOLDS,
    facts.TaskDeclared: _task_declared,
    facts.WorkerAsked: _worker_asked,
}
