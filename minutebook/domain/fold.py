"""Fold: facts change state. No clock, no chance, no I/O, no rule of time.

An owner, a fresh owner after a crash and an auditor years later run this same code over the same frames.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from minutebook.domain import (
    alerts,
    calendar_folds,
    change_folds,
    discard,
    due_folds,
    end_folds,
    job_folds,
    operation_folds,
    permit_folds,
    purge,
    record_folds,
)
from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.events import Event


def fold(book: Book, event: Event, token: int, now: int) -> None:
    """Apply one event; `token` is that of its first row, `now` its frame's.

    Raises BrokenFrameError for an event that does not fit the state: that halts the partition.
    """
    _FOLDS[type(event)](book, event, token, now)


_FOLDS: Final[dict[type, Callable[[Book, Any, int, int], None]]] = {
    facts.ExecutionsDueGranted: due_folds.due_granted,
    facts.AttemptsSucceeded: end_folds.succeeded,
    facts.ExecutionsGranted: due_folds.granted,
    facts.ExecutionsQueued: due_folds.queued,
    facts.JobSubmitted: job_folds.submitted,
    facts.AttemptFailed: end_folds.failed,
    facts.GrantsReturned: end_folds.returned,
    facts.AttemptsLost: end_folds.lost,
    facts.ExecutionDead: end_folds.dead,
    facts.ExecutionsSkipped: job_folds.skipped,
    facts.ExecutionsPlaced: job_folds.placed,
    facts.ExecutionRequested: job_folds.requested,
    facts.JobCancelled: job_folds.cancelled,
    facts.JobPaused: change_folds.paused,
    facts.JobResumed: change_folds.resumed,
    facts.JobEdited: change_folds.edited,
    facts.JobPurged: purge.purged,
    facts.ExecutionDiscarded: discard.discarded,
    facts.AttemptCancelled: end_folds.stopped,
    facts.CommandAnswered: record_folds.answered,
    facts.CommandRejected: record_folds.rejected,
    facts.SessionStarted: record_folds.session_started,
    facts.SessionEnded: record_folds.session_ended,
    facts.ReportRefused: record_folds.nothing,
    facts.RecordRejected: record_folds.nothing,
    facts.InputRefused: record_folds.nothing,
    facts.OutputRefused: record_folds.nothing,
    facts.CommandForwarded: record_folds.nothing,
    facts.QueueDeclared: record_folds.queue_declared,
    facts.QueueCopied: record_folds.queue_copied,
    facts.MailTaken: record_folds.mail_taken,
    facts.OwnershipTaken: record_folds.ownership_taken,
    facts.LogOpened: record_folds.log_opened,
    facts.DayForgotten: record_folds.day_forgotten,
    facts.AttemptSnoozed: end_folds.snoozed,
    facts.AttemptProgressed: end_folds.progressed,
    facts.AttemptStuck: alerts.stuck,
    facts.ExecutionExpired: end_folds.expired,
    facts.ExecutionCancelled: job_folds.execution_cancelled,
    facts.ExecutionRedriven: job_folds.redriven,
    facts.LimitDeclared: record_folds.limit_declared,
    facts.LimitCopied: record_folds.limit_copied,
    facts.PermitsAsked: permit_folds.asked,
    facts.PermitsDemanded: permit_folds.demanded,
    facts.PermitsGranted: permit_folds.granted,
    facts.PermitsReceived: permit_folds.received,
    facts.PermitsReleased: permit_folds.released,
    facts.PermitsReturned: permit_folds.returned,
    facts.AlertRaised: alerts.raised,
    facts.OperationStarted: operation_folds.started,
    facts.OperationCancelled: operation_folds.cancelled,
    facts.OperationCopied: operation_folds.copied,
    facts.OperationAdvanced: operation_folds.advanced,
    facts.OperationCounted: operation_folds.counted,
    facts.OperationEnded: operation_folds.ended,
    facts.TaskDeclared: record_folds.task_declared,
    facts.WorkerAsked: record_folds.worker_asked,
    facts.KeyDeclared: record_folds.key_declared,
    facts.KeyRevoked: record_folds.key_revoked,
    facts.CalendarDeclared: calendar_folds.declared,
    facts.CalendarCopied: calendar_folds.copied,
    facts.ReschedulingStarted: calendar_folds.started,
    facts.JobsRescheduled: calendar_folds.rescheduled,
}
