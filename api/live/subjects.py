"""What each event is about: the things of which those who listen are told that they changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from minutebook.client.live_models import SubjectKind
from minutebook.domain import events as facts
from minutebook.domain.alerts import record_of
from minutebook.domain.events import Event
from minutebook.ids import execution_id, worker_of


class Subject(NamedTuple):
    """Something that has an id and a status. `tenant` empty = it is of no single tenant."""

    kind: SubjectKind
    tenant: str
    id: str


def subjects_of(event: Event, partition: int) -> Iterator[Subject]:
    """What `event`, in the log of `partition`, changes; nothing for what only owners need to know."""
    found = _SUBJECTS.get(type(event))
    return iter(()) if found is None else found(event, partition)


def _executions(event: Any, _: int) -> Iterator[Subject]:
    for tenant, name in zip(event.tenant, event.executions, strict=True):
        yield Subject("execution", event.tenants[tenant], name)


def _execution(event: Any, _: int) -> Iterator[Subject]:
    yield Subject("execution", event.tenant, event.execution)


def _job(event: Any, _: int) -> Iterator[Subject]:
    yield Subject("job", event.tenant, event.job_id)


def _edited(event: facts.JobEdited, _: int) -> Iterator[Subject]:
    yield Subject("job", event.job.tenant, event.job.job_id)


def _cancelled(event: facts.JobCancelled, _: int) -> Iterator[Subject]:
    yield Subject("job", event.tenant, event.job_id)
    for name in event.executions:
        yield Subject("execution", event.tenant, name)


def _placed(event: facts.ExecutionsPlaced, _: int) -> Iterator[Subject]:
    yield Subject("job", event.tenant, event.job_id)
    for at in event.scheduled_at:
        yield Subject("execution", event.tenant, execution_id(event.job_id, at))


def _rescheduled(event: facts.JobsRescheduled, _: int) -> Iterator[Subject]:
    for tenant, name in zip(event.tenant, event.job_ids, strict=True):
        yield Subject("job", event.tenants[tenant], name)


def _operation_fact(event: Any, _: int) -> Iterator[Subject]:
    yield Subject("operation", event.fact.tenant, event.fact.operation)


def _operation(event: Any, _: int) -> Iterator[Subject]:
    yield Subject("operation", event.tenant, event.operation)


def _queue(event: facts.QueueCopied, _: int) -> Iterator[Subject]:
    yield Subject("queue", "", event.name)


def _limit(event: facts.LimitCopied, _: int) -> Iterator[Subject]:
    yield Subject("limit", event.tenant, event.name)


def _calendar(event: facts.CalendarCopied, _: int) -> Iterator[Subject]:
    yield Subject("calendar", event.tenant, event.name)


def _task(event: facts.TaskDeclared, _: int) -> Iterator[Subject]:
    yield Subject("task", "", event.name)


def _session(event: Any, _: int) -> Iterator[Subject]:
    yield Subject("worker", "", worker_of(event.session))


def _asked(event: facts.WorkerAsked, _: int) -> Iterator[Subject]:
    yield Subject("worker", "", event.worker)


def _alert(event: facts.AlertRaised, partition: int) -> Iterator[Subject]:
    yield Subject("alert", event.tenant, record_of(event, partition).id)


def _partition(_: facts.OwnershipTaken, partition: int) -> Iterator[Subject]:
    yield Subject("partition", "", str(partition))


_SUBJECTS: Final[dict[type, Callable[[Any, int], Iterator[Subject]]]] = {
    facts.ExecutionsDueGranted: _executions,
    facts.AttemptsSucceeded: _executions,
    facts.ExecutionsGranted: _executions,
    facts.ExecutionsQueued: _executions,
    facts.GrantsReturned: _executions,
    facts.AttemptsLost: _executions,
    facts.AttemptFailed: _execution,
    facts.AttemptCancelled: _execution,
    facts.AttemptSnoozed: _execution,
    facts.AttemptProgressed: _execution,
    facts.ExecutionDead: _execution,
    facts.ExecutionExpired: _execution,
    facts.ExecutionCancelled: _execution,
    facts.ExecutionRedriven: _execution,
    facts.ExecutionDiscarded: _execution,
    facts.ExecutionRequested: _execution,
    facts.ExecutionsPlaced: _placed,
    facts.ExecutionsSkipped: _job,
    facts.JobSubmitted: _job,
    facts.JobEdited: _edited,
    facts.JobPaused: _job,
    facts.JobResumed: _job,
    facts.JobCancelled: _cancelled,
    facts.JobPurged: _job,
    facts.JobsRescheduled: _rescheduled,
    facts.OperationStarted: _operation_fact,
    facts.OperationCancelled: _operation_fact,
    facts.OperationCounted: _operation,
    facts.OperationEnded: _operation,
    facts.QueueCopied: _queue,
    facts.LimitCopied: _limit,
    facts.CalendarCopied: _calendar,
    facts.TaskDeclared: _task,
    facts.SessionStarted: _session,
    facts.SessionEnded: _session,
    facts.WorkerAsked: _asked,
    facts.AlertRaised: _alert,
    facts.OwnershipTaken: _partition,
}
