"""Commands: what a caller wants, imperative. Defaults are those of the create body.

Instants are milliseconds since the epoch, UTC. `schemas/` holds the wire form; `tests/unit` proves the two agree.
"""

from __future__ import annotations

from typing import Final

import msgspec

from minutebook.domain.operation import OperationFilter
from minutebook.domain.policy import Policy
from minutebook.domain.timing import Timing

REASON_CHARS_MAX: Final = 1_000
"""A longer reason is cut."""


class SubmitJob(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: register a job. At most one of run_at, delay_ms, cron, every_ms; none = now. Key <tenant>/<job_id>."""

    tenant: str
    job_id: str
    command_id: str  # 1-64 of [A-Za-z0-9._-]; deduplicated per (tenant, job id)
    issued_at: int  # ms since the epoch, UTC, by the sender's clock
    actor: str = ""  # as claimed by the sender
    task: str
    payload: bytes  # JSON text, kept byte for byte
    queue: str = "default"
    run_at: int | None = None  # ms since the epoch, UTC
    delay_ms: int | None = None  # from the broker's stamp of this record
    cron: str | None = None  # an expression of minutebook.schedule
    zone: str = "UTC"  # IANA name
    late: str = "refuse"  # for a run_at more than a day past
    timeout_ms: int = 300000  # of one attempt
    is_keyed: bool = False  # the job id was derived from an Idempotency-Key
    traceparent: str = ""  # W3C trace context
    priority: int = 5  # 0-9, 9 first
    policy: Policy | None = None  # null = the defaults
    limit: str = ""  # name of the limit that holds beside the tenant's; empty = none
    notify: str = ""  # URL that its alerts go to; empty = the tenant's target
    every_ms: int | None = (
        None  # interval, counted from start_at or else from the broker's stamp of this record
    )
    timing: Timing | None = None  # null = the defaults
    tags: list[str] = msgspec.field(default_factory=list)  # up to 16 names


class CancelJob(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: no instant and no attempt after this. Key <tenant>/<job_id>."""

    tenant: str
    job_id: str
    command_id: str  # 1-64 of [A-Za-z0-9._-]; deduplicated per (tenant, job id)
    issued_at: int  # ms since the epoch, UTC, by the sender's clock
    actor: str = ""  # as claimed by the sender
    reason: str = ""
    expected_version: int | None = None  # of the job; null = any


class PauseJob(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: no instant of a job comes due until it is resumed; what is open goes on. Key <tenant>/<job_id>."""

    tenant: str
    job_id: str
    command_id: str  # 1-64 of [A-Za-z0-9._-]; deduplicated per (tenant, job id)
    issued_at: int  # ms since the epoch, UTC, by the sender's clock
    actor: str = ""  # as claimed by the sender
    reason: str = ""
    expected_version: int | None = None  # of the job; null = any


class PurgeJob(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: a closed job and its history are shown no more; the log stays. Key <tenant>/<job_id>."""

    tenant: str
    job_id: str
    command_id: str  # 1-64 of [A-Za-z0-9._-]; deduplicated per (tenant, job id)
    issued_at: int  # ms since the epoch, UTC, by the sender's clock
    actor: str = ""  # as claimed by the sender
    reason: str = ""


class ResumeJob(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: instants of a paused job come due again. Key <tenant>/<job_id>."""

    tenant: str
    job_id: str
    command_id: str  # 1-64 of [A-Za-z0-9._-]; deduplicated per (tenant, job id)
    issued_at: int  # ms since the epoch, UTC, by the sender's clock
    actor: str = ""  # as claimed by the sender
    reason: str = ""
    is_caught_up: bool = False  # those of the pause are made up for, as the misfire policy says; else skipped
    expected_version: int | None = None  # of the job; null = any


class EditJob(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: another version of a job, from the next instant on. Key <tenant>/<job_id>."""

    tenant: str
    job_id: str
    command_id: str  # 1-64 of [A-Za-z0-9._-]; deduplicated per (tenant, job id)
    issued_at: int  # ms since the epoch, UTC, by the sender's clock
    actor: str = ""  # as claimed by the sender
    reason: str = ""
    expected_version: int | None = None  # of the job; null = any
    job: SubmitJob  # the whole job as it is to be, under the same ids


class RunJobNow(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: one execution at once, beside the schedule. Key <tenant>/<job_id>."""

    tenant: str
    job_id: str
    command_id: str  # 1-64 of [A-Za-z0-9._-]; deduplicated per (tenant, job id)
    issued_at: int  # ms since the epoch, UTC, by the sender's clock
    actor: str = ""  # as claimed by the sender
    reason: str = ""


class DeclareQueue(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: declare a queue or change it. Key queue::<name>."""

    name: str
    command_id: str
    issued_at: int
    actor: str = ""
    is_open: bool = False  # also published on executions-due.<name>
    tenants: list[str] = msgspec.field(default_factory=list)  # who may use it; empty = everybody


class CancelExecution(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: no further attempt of one execution. Key <tenant>/<job_id>."""

    tenant: str
    job_id: str
    command_id: str  # 1-64 of [A-Za-z0-9._-]; deduplicated per (tenant, job id)
    issued_at: int  # ms since the epoch, UTC, by the sender's clock
    actor: str = ""  # as claimed by the sender
    reason: str = ""
    execution: str  # id of the execution


class RedriveExecution(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: run a dead execution again, under a new generation. Key <tenant>/<job_id>."""

    tenant: str
    job_id: str
    command_id: str  # 1-64 of [A-Za-z0-9._-]; deduplicated per (tenant, job id)
    issued_at: int  # ms since the epoch, UTC, by the sender's clock
    actor: str = ""  # as claimed by the sender
    reason: str = ""
    execution: str  # id of the execution
    payload: bytes | None = None  # JSON text that it runs with from now on; null = unchanged


class DiscardExecution(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: a dead execution needs no attention any more. Key <tenant>/<job_id>."""

    tenant: str
    job_id: str
    command_id: str  # 1-64 of [A-Za-z0-9._-]; deduplicated per (tenant, job id)
    issued_at: int  # ms since the epoch, UTC, by the sender's clock
    actor: str = ""  # as claimed by the sender
    reason: str = ""
    execution: str  # id of the execution


class PauseQueue(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: grant nothing of a queue. Key queue::<name>."""

    name: str
    command_id: str
    issued_at: int
    actor: str = ""
    reason: str = ""


class ResumeQueue(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: grant again what is queued, and take jobs again. Key queue::<name>."""

    name: str
    command_id: str
    issued_at: int
    actor: str = ""
    reason: str = ""


class DrainQueue(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: take no new job for a queue; what it has goes on. Key queue::<name>."""

    name: str
    command_id: str
    issued_at: int
    actor: str = ""
    reason: str = ""


class StartOperation(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: do something to all executions or jobs that fit. Key operation:<tenant>:<operation>."""

    tenant: str
    operation: str  # id, a name
    command_id: str  # 1-64 of [A-Za-z0-9._-]
    issued_at: int  # ms since the epoch, UTC, by the sender's clock
    actor: str = ""  # as claimed by the sender
    reason: str = ""
    # redrive: run dead executions again; backfill: run past instants of a job; pause, resume, cancel: jobs
    kind: str = "redrive"
    filter: OperationFilter
    rate_per_s: int = 0  # over all partitions, 0 = as fast as live work allows


class CancelOperation(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: no more of an operation; what is done stays. Key operation:<tenant>:<operation>."""

    tenant: str
    operation: str
    command_id: str
    issued_at: int
    actor: str = ""
    reason: str = ""


class DeclareLimit(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: declare a limit or change it; the fields replace what was. Key limit:<tenant>:<name>."""

    tenant: str
    name: str  # empty = the tenant-wide one
    command_id: str
    issued_at: int
    actor: str = ""
    concurrency: int | None = None  # attempts that run at once, at most; null = any number
    rate_count: int | None = None  # starts within any rate_period_ms, at most; null = any number
    rate_period_ms: int | None = None  # given with rate_count


class PauseLimit(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: start nothing under a limit for a while, or resume it. Key limit:<tenant>:<name>."""

    tenant: str
    name: str  # empty = the tenant-wide one
    command_id: str
    issued_at: int
    actor: str = ""
    reason: str = ""
    until: int | None = None  # ms since the epoch, UTC
    for_ms: int | None = None  # from the broker's stamp of this record; neither until nor for_ms = resume


class DeleteLimit(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: free the jobs of a limit from it. Key limit:<tenant>:<name>."""

    tenant: str
    name: str  # empty = the tenant-wide one
    command_id: str
    issued_at: int
    actor: str = ""
    reason: str = ""


class DeclareTask(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: what payload a task takes. Key task::<name>."""

    name: str
    command_id: str
    issued_at: int
    actor: str = ""
    payload_schema: str = ""  # JSON Schema as JSON text of at most 64 KiB; empty = any payload


class AskWorker(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: a worker is to take no more grants, to take them again, or to leave. Key worker::<worker id>."""

    name: str  # id of the worker
    command_id: str
    issued_at: int
    actor: str = ""
    reason: str = ""
    what: str  # quiet, resume or stop


class DeclareCalendar(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: declare the dates of a calendar or change them. Key calendar:<tenant>:<name>."""

    tenant: str
    name: str  # of the calendar
    command_id: str
    issued_at: int
    actor: str = ""
    reason: str = ""
    first_days: list[int]  # first date of each range, in days since 1970-01-01
    last_days: list[int]  # last date of each range, the same number of them


class DeleteCalendar(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: free the jobs of a calendar from it. Key calendar:<tenant>:<name>."""

    tenant: str
    name: str  # of the calendar
    command_id: str
    issued_at: int
    actor: str = ""
    reason: str = ""


class DeclareKey(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: an API key is good from now on. Key key:<tenant>:<key>."""

    tenant: str
    key: str  # its id, a name; the key itself is never sent
    command_id: str  # 1-64 of [A-Za-z0-9._-]
    issued_at: int  # ms since the epoch, UTC, by the sender's clock
    actor: str = ""  # as claimed by the sender
    reason: str = ""
    role: str  # viewer, submitter, operator, admin or worker
    sha256: bytes  # SHA-256 of the key
    label: str = ""  # for people
    expires_at: int | None = None  # ms since the epoch, UTC; null = never


class RevokeKey(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Command: an API key is good no more. Key key:<tenant>:<key>."""

    tenant: str
    key: str  # its id
    command_id: str  # 1-64 of [A-Za-z0-9._-]
    issued_at: int  # ms since the epoch, UTC, by the sender's clock
    actor: str = ""  # as claimed by the sender
    reason: str = ""


JobCommand = (
    SubmitJob
    | CancelJob
    | RunJobNow
    | CancelExecution
    | RedriveExecution
    | PauseJob
    | ResumeJob
    | EditJob
    | PurgeJob
    | DiscardExecution
)
QueueCommand = DeclareQueue | PauseQueue | ResumeQueue | DrainQueue
LimitCommand = DeclareLimit | PauseLimit | DeleteLimit
CalendarCommand = DeclareCalendar | DeleteCalendar
KeyCommand = DeclareKey | RevokeKey
OperationCommand = StartOperation | CancelOperation
NamedCommand = QueueCommand | DeclareTask | AskWorker
"""About something that has a name and belongs to no tenant."""
Command = JobCommand | NamedCommand | LimitCommand | OperationCommand | CalendarCommand | KeyCommand
