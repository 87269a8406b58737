"""Events: facts decided by an owner, past tense, as they stand in a frame.

What is decided together for many executions is one event with columns of equal length; `tenants`, `queues`, `tasks`
and `sessions` are dictionaries of an event, and `tenant`, `queue`, `task`, `session` columns index into them.
Instants are milliseconds since the epoch, UTC; -1 stands for none. `schemas/frame.v6.avsc` is the wire form.
"""

from __future__ import annotations

import msgspec

from minutebook.domain.alert_events import AlertRaised as AlertRaised
from minutebook.domain.calendar_events import CalendarCopied as CalendarCopied
from minutebook.domain.calendar_events import CalendarDeclared as CalendarDeclared
from minutebook.domain.fleet_events import TaskDeclared as TaskDeclared
from minutebook.domain.fleet_events import WorkerAsked as WorkerAsked
from minutebook.domain.job_events import ExecutionDiscarded as ExecutionDiscarded
from minutebook.domain.job_events import ExecutionsPlaced as ExecutionsPlaced
from minutebook.domain.job_events import JobEdited as JobEdited
from minutebook.domain.job_events import JobPaused as JobPaused
from minutebook.domain.job_events import JobPurged as JobPurged
from minutebook.domain.job_events import JobResumed as JobResumed
from minutebook.domain.job_events import JobsRescheduled as JobsRescheduled
from minutebook.domain.job_events import JobSubmitted as JobSubmitted
from minutebook.domain.job_events import ReschedulingStarted as ReschedulingStarted
from minutebook.domain.key_events import KeyDeclared as KeyDeclared
from minutebook.domain.key_events import KeyRevoked as KeyRevoked
from minutebook.domain.limit_events import LimitCopied as LimitCopied
from minutebook.domain.limit_events import LimitDeclared as LimitDeclared
from minutebook.domain.limit_events import PermitsAsked as PermitsAsked
from minutebook.domain.limit_events import PermitsDemanded as PermitsDemanded
from minutebook.domain.limit_events import PermitsGranted as PermitsGranted
from minutebook.domain.limit_events import PermitsReceived as PermitsReceived
from minutebook.domain.limit_events import PermitsReleased as PermitsReleased
from minutebook.domain.limit_events import PermitsReturned as PermitsReturned
from minutebook.domain.operation_events import OperationAdvanced as OperationAdvanced
from minutebook.domain.operation_events import OperationCancelled as OperationCancelled
from minutebook.domain.operation_events import OperationCopied as OperationCopied
from minutebook.domain.operation_events import OperationCounted as OperationCounted
from minutebook.domain.operation_events import OperationEnded as OperationEnded
from minutebook.domain.operation_events import OperationStarted as OperationStarted
from minutebook.domain.queue_events import QueueCopied as QueueCopied
from minutebook.domain.queue_events import QueueDeclared as QueueDeclared


class ExecutionsDueGranted(msgspec.Struct, frozen=True, gc=False):
    """Came due and granted in one frame. The token of a row follows from its place."""

    tenants: list[str]
    queues: list[str]
    tasks: list[str]
    tenant: list[int]
    queue: list[int]
    task: list[int]
    executions: list[str]
    versions: list[int]
    scheduled_at: list[int]
    due_at: list[int]
    next_at: list[int]  # next instant of the schedule, -1 = none
    attempts: list[int]
    priorities: list[int]
    sessions: list[str]
    session: list[int]
    permits: list[int]  # empty or one per row


class AttemptsSucceeded(msgspec.Struct, frozen=True, gc=False):
    """Results."""

    tenants: list[str]
    tenant: list[int]
    executions: list[str]
    tokens: list[int]
    start_delay_ms: list[int]  # as reported
    run_ms: list[int]  # as reported
    results: list[bytes] = []  # JSON text; empty or one per row


class ExecutionsGranted(msgspec.Struct, frozen=True, gc=False):
    """queued -> running."""

    tenants: list[str]
    tenant: list[int]
    executions: list[str]
    attempts: list[int]
    sessions: list[str]
    session: list[int]
    permits: list[int]
    limits: list[str] = []  # dictionary of permit_limit
    permit_row: list[int] = []  # one per permit: the row above that runs under it
    permit_limit: list[int] = []
    permit_ids: list[int] = []  # as the limit's home granted them


class ExecutionsQueued(msgspec.Struct, frozen=True, gc=False):
    """Came due: scheduled -> queued."""

    tenants: list[str]
    queues: list[str]
    tasks: list[str]
    tenant: list[int]
    queue: list[int]
    task: list[int]
    executions: list[str]
    versions: list[int]
    scheduled_at: list[int]
    due_at: list[int]
    next_at: list[int]  # next instant of the schedule, -1 = none
    attempts: list[int]
    priorities: list[int]
    limits: list[str] = []  # dictionary of limit
    limit: list[int] = []  # empty or one per row


class AttemptFailed(msgspec.Struct, frozen=True, gc=False):
    """failed; retry_at = -1: given up or cancelled, see the event that follows."""

    tenant: str
    execution: str
    attempt: int
    token: int
    session: str
    error_type: str
    message: str
    is_permanent: bool
    retry_at: int
    start_delay_ms: int
    run_ms: int


class GrantsReturned(msgspec.Struct, frozen=True, gc=False):
    """running -> queued (or waiting until wait_until), same attempt."""

    tenants: list[str]
    reason: str
    tenant: list[int]
    executions: list[str]
    tokens: list[int]
    sessions: list[str]
    session: list[int]
    wait_until: list[int]  # -1 = queued at once


class AttemptsLost(msgspec.Struct, frozen=True, gc=False):
    """running -> lost; a further attempt is queued at once unless given up."""

    tenants: list[str]
    cause: str
    tenant: list[int]
    executions: list[str]
    tokens: list[int]
    sessions: list[str]
    session: list[int]
    has_retry: list[bool]


class ExecutionDead(msgspec.Struct, frozen=True, gc=False):
    """Given up: a dead letter follows."""

    tenant: str
    execution: str
    version: int
    generation: int
    attempt: int
    scheduled_at: int
    due_at: int
    given_up_at: int
    cause: str
    error_type: str
    message: str


class ExecutionsSkipped(msgspec.Struct, frozen=True, gc=False):
    """Instants that do not become runs; a range with its count."""

    tenant: str
    job_id: str
    reason: str
    first_at: int
    last_at: int
    count: int
    next_at: int


class ExecutionRequested(msgspec.Struct, frozen=True, gc=False):
    """Run now: a further execution, due at once."""

    tenant: str
    job_id: str
    command_id: str
    actor: str
    reason: str
    accepted_at: int
    execution: str


class JobCancelled(msgspec.Struct, frozen=True, gc=False):
    """No instant after this; executions: cancelled with it; stopping: running ones asked to stop."""

    tenant: str
    job_id: str
    command_id: str
    actor: str
    reason: str
    accepted_at: int
    executions: list[str]
    stopping: list[str]
    tokens: list[int]  # of stopping


class AttemptCancelled(msgspec.Struct, frozen=True, gc=False):
    """A running attempt of a cancelled job ended without success."""

    tenant: str
    execution: str
    attempt: int
    token: int
    cause: str


class CommandAnswered(msgspec.Struct, frozen=True, gc=False):
    """A command that changes nothing gets the first answer again."""

    tenant: str
    job_id: str
    command_id: str
    reason: str
    command: str = ""
    actor: str = ""
    why: str = ""  # the sender's reason


class CommandRejected(msgspec.Struct, frozen=True, gc=False):
    """A command refused."""

    tenant: str
    job_id: str
    command_id: str
    command: str
    reason: str  # code of the problem
    field: str
    detail: str
    actor: str = ""
    why: str = ""  # the sender's reason


class SessionStarted(msgspec.Struct, frozen=True, gc=False):
    """First grant to a session."""

    session: str
    worker: str
    tasks: list[str]
    lease_ms: int
    pulse_ms: int


class SessionEnded(msgspec.Struct, frozen=True, gc=False):
    """Final."""

    session: str
    cause: str


class ReportRefused(msgspec.Struct, frozen=True, gc=False):
    """A result or hand-back that changes nothing."""

    session: str
    kind: str
    tenant: str
    execution: str
    token: int
    reason: str


class RecordRejected(msgspec.Struct, frozen=True, gc=False):
    """A record that cannot be taken."""

    topic: str
    partition: int
    offset: int
    reason: str


class InputRefused(msgspec.Struct, frozen=True, gc=False):
    """decide itself failed on this input."""

    topic: str
    offset: int
    index: int
    reason: str


class OutputRefused(msgspec.Struct, frozen=True, gc=False):
    """An output that the broker refuses for good."""

    frame: int
    topic: str
    reason: str


class CommandForwarded(msgspec.Struct, frozen=True, gc=False):
    """A misplaced command, mailed to its partition."""

    partition: int
    tenant: str
    job_id: str
    command_id: str
    accepted_at: int
    source_offset: int
    command: bytes


class MailTaken(msgspec.Struct, frozen=True, gc=False):
    """High-water mark of mail from a sender."""

    sender: int
    frame: int
    row: int


class OwnershipTaken(msgspec.Struct, frozen=True, gc=False):
    """A new owner from here on."""

    owner: str
    epoch: int
    reports_from: int  # leases rebuilt from this offset of worker-reports
    reports_to: int


class LogOpened(msgspec.Struct, frozen=True, gc=False):
    """Genesis."""

    log_id: str
    partitions: int
    partition: int
    clock_bound_ms: int
    format_version: int


class DayForgotten(msgspec.Struct, frozen=True, gc=False):
    """Closed jobs, command ids and ended sessions of that day are dropped."""

    day: int  # days since the epoch


class AttemptSnoozed(msgspec.Struct, frozen=True, gc=False):
    """running -> scheduled: a further attempt, not counted as a failure."""

    tenant: str
    execution: str
    attempt: int
    token: int
    session: str
    reason: str
    retry_at: int
    start_delay_ms: int
    run_ms: int


class AttemptProgressed(msgspec.Struct, frozen=True, gc=False):
    """How far a running attempt is."""

    tenant: str
    execution: str
    attempt: int
    token: int
    fraction: float
    text: str
    details: bytes


class AttemptStuck(msgspec.Struct, frozen=True, gc=False):
    """No progress for as long as its job allows."""

    tenant: str
    execution: str
    attempt: int
    token: int
    session: str
    since_at: int


class ExecutionExpired(msgspec.Struct, frozen=True, gc=False):
    """A waiting execution passed a deadline without a start: skipped."""

    tenant: str
    execution: str
    attempt: int
    reason: str


class ExecutionCancelled(msgspec.Struct, frozen=True, gc=False):
    """One execution cancelled; token: of the running attempt that is asked to stop, -1 = it waited."""

    tenant: str
    job_id: str
    command_id: str
    actor: str
    reason: str
    accepted_at: int
    execution: str
    token: int


class ExecutionRedriven(msgspec.Struct, frozen=True, gc=False):
    """A dead execution runs again under a new generation, with an attempt of the next number."""

    tenant: str
    job_id: str
    command_id: str
    actor: str
    reason: str
    accepted_at: int
    execution: str
    attempt: int
    generation: int
    version: int  # of the job, with the payload below if it is edited
    is_edited: bool
    payload: bytes
    payload_sha256: bytes
    operation: str = ""  # that it was a part of; empty = redriven alone


Event = (
    ExecutionsDueGranted
    | AttemptsSucceeded
    | ExecutionsGranted
    | ExecutionsQueued
    | JobSubmitted
    | AttemptFailed
    | GrantsReturned
    | AttemptsLost
    | ExecutionDead
    | ExecutionsSkipped
    | ExecutionRequested
    | JobCancelled
    | AttemptCancelled
    | CommandAnswered
    | CommandRejected
    | SessionStarted
    | SessionEnded
    | ReportRefused
    | RecordRejected
    | InputRefused
    | OutputRefused
    | CommandForwarded
    | QueueDeclared
    | QueueCopied
    | MailTaken
    | OwnershipTaken
    | LogOpened
    | DayForgotten
    | AttemptSnoozed
    | AttemptProgressed
    | AttemptStuck
    | ExecutionExpired
    | ExecutionCancelled
    | ExecutionRedriven
    | LimitDeclared
    | LimitCopied
    | PermitsAsked
    | PermitsDemanded
    | PermitsGranted
    | PermitsReceived
    | PermitsReleased
    | PermitsReturned
    | AlertRaised
    | OperationStarted
    | OperationCancelled
    | OperationCopied
    | OperationAdvanced
    | OperationCounted
    | OperationEnded
    | TaskDeclared
    | WorkerAsked
    | JobEdited
    | JobPaused
    | JobResumed
    | ExecutionsPlaced
    | JobsRescheduled
    | ReschedulingStarted
    | CalendarDeclared
    | CalendarCopied
    | KeyDeclared
    | KeyRevoked
    | JobPurged
    | ExecutionDiscarded
)
