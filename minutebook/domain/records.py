"""Records that are neither commands nor events: reports of workers, mail of owners, and what owners send out.

Instants are milliseconds since the epoch, UTC. Columns of one record have equal length.
"""

from __future__ import annotations

import msgspec

from minutebook.domain.operation import OperationCount, OperationFact


class Pulse(msgspec.Struct, frozen=True, gc=False):
    """Free slots offered to this partition."""

    offer: int  # executions it would take above last_token
    last_token: int  # last token seen from this partition, -1 = none
    is_leaving: bool = False  # nothing above last_token will be started
    is_quiet: bool = False  # asked to take no more grants


class QueueOffer(msgspec.Struct, frozen=True, gc=False):
    """A queue that the offer may be used for."""

    name: str
    cap: int | None = None  # at most so many of the offer


class FullPulse(msgspec.Struct, frozen=True, gc=False):
    """Every pulse_ms at the latest; renews all that a fresh owner must know."""

    worker: str  # name for people
    version: str
    tasks: list[str]
    queues: list[QueueOffer]
    lease_ms: int
    pulse_ms: int
    held: list[int]  # all tokens of this partition that it holds


class Succeeded(msgspec.Struct, frozen=True, gc=False):
    """Columns of equal length."""

    tenants: list[str]  # dictionary
    tenant: list[int]  # index into tenants, one per row
    executions: list[str]
    tokens: list[int]
    start_delay_ms: list[int]  # start - due_at
    run_ms: list[int]
    results: list[bytes] = []  # JSON text; empty or one per row


class Failed(msgspec.Struct, frozen=True, gc=False):
    """One failed attempt."""

    tenant: str
    execution: str
    token: int
    error_type: str
    message: str  # at most 8 KiB
    is_permanent: bool
    retry_after_ms: int | None = None
    start_delay_ms: int = 0
    run_ms: int = 0


class HandedBack(msgspec.Struct, frozen=True, gc=False):
    """Grants given back, not counted."""

    tenants: list[str]  # dictionary
    tenant: list[int]  # index into tenants, one per row
    executions: list[str]
    tokens: list[int]


class Claim(msgspec.Struct, frozen=True, gc=False):
    """Grant asked for by name, open queues only."""

    tenant: str
    execution: str
    attempt: int


class Snoozed(msgspec.Struct, frozen=True, gc=False):
    """An attempt that asks for another one later, not counted."""

    tenant: str
    execution: str
    token: int
    after_ms: int = 0  # from the moment the owner decides
    until_at: int | None = None  # ms, UTC; stands before after_ms
    reason: str = ""
    start_delay_ms: int = 0
    run_ms: int = 0


class CancelledByTask(msgspec.Struct, frozen=True, gc=False):
    """An attempt whose task cancels the execution."""

    tenant: str
    execution: str
    token: int
    reason: str = ""


class Progress(msgspec.Struct, frozen=True, gc=False):
    """How far a running attempt is."""

    tenant: str
    execution: str
    token: int
    fraction: float  # 0 to 1
    text: str = ""  # at most 1,000 characters
    details: bytes = b""  # JSON text of at most 16 KiB for the next attempt to resume from


class Report(msgspec.Struct, frozen=True, gc=False):
    """Worker to owner, on worker-reports of the partition. Pulse, results, hand-backs and claims together."""

    session: str  # <worker id>.<n>
    sequence: int  # grows by one per session
    pulse: Pulse | None = None
    full: FullPulse | None = None
    succeeded: Succeeded | None = None
    failed: list[Failed] = msgspec.field(default_factory=list)
    handed_back: HandedBack | None = None
    claims: list[Claim] = msgspec.field(default_factory=list)
    snoozed: list[Snoozed] = msgspec.field(default_factory=list)
    cancelled: list[CancelledByTask] = msgspec.field(default_factory=list)
    progress: list[Progress] = msgspec.field(default_factory=list)


class Tick(msgspec.Struct, frozen=True, gc=False):
    """An owner's own mark on worker-reports; its stamp is evidence of time."""

    owner: str
    number: int


class QueueFact(msgspec.Struct, frozen=True, gc=False):
    """A queue as declared at its home partition."""

    name: str
    version: int
    is_open: bool
    tenants: list[str]
    is_paused: bool = False  # nothing of it is granted
    is_draining: bool = False  # no job is taken for it


class LimitFact(msgspec.Struct, frozen=True, gc=False):
    """A limit as declared at its home partition."""

    tenant: str
    name: str  # empty = the tenant-wide one
    version: int
    concurrency: int  # -1 = any number
    rate_count: int  # -1 = any number
    rate_period_ms: int  # -1 = no rate
    paused_until: int  # ms, UTC; -1 = not paused
    is_deleted: bool


class CalendarFact(msgspec.Struct, frozen=True, gc=False):
    """A calendar as declared at its home partition."""

    tenant: str
    name: str
    version: int
    first_days: list[int]  # first date of each range, in days since 1970-01-01
    last_days: list[int]  # last date of each range, the same number of them
    is_deleted: bool


class PermitDemand(msgspec.Struct, frozen=True, gc=False):
    """A partition could use permits of a limit whose home this is."""

    tenant: str
    limit: str  # empty = the tenant-wide one
    version: int  # of the limit
    count: int  # more than asked for before
    priority: int  # the highest that waits


class PermitGrant(msgspec.Struct, frozen=True, gc=False):
    """Permits that a partition has asked for."""

    tenant: str
    limit: str
    version: int
    permits: list[int]


class PermitReturn(msgspec.Struct, frozen=True, gc=False):
    """Permits that a partition needs no more."""

    tenant: str
    limit: str
    permits: list[int]


class ForwardedCommand(msgspec.Struct, frozen=True, gc=False):
    """A command that lay on another partition than its job's."""

    accepted_at: int  # stamp of its record on job-commands
    topic_partition: int
    topic_offset: int
    command: bytes  # single-object encoding


class Mail(msgspec.Struct, frozen=True, gc=False):
    """Owner to owner, in frame order of the sender."""

    sender: int  # partition
    frame: int  # offset of the sender's frame
    row: int  # row of the event in that frame
    body: (
        QueueFact
        | ForwardedCommand
        | LimitFact
        | PermitDemand
        | PermitGrant
        | PermitReturn
        | OperationFact
        | OperationCount
        | CalendarFact
    )


class Granted(msgspec.Struct, frozen=True, gc=False):
    """Columns of equal length, tokens rising."""

    tenants: list[str]
    queues: list[str]
    tasks: list[str]
    rows: list[int]  # token = frame x 65536 + row
    tenant: list[int]
    queue: list[int]
    task: list[int]
    executions: list[str]
    attempts: list[int]
    versions: list[int]
    scheduled_at: list[int]
    due_at: list[int]
    timeout_ms: list[int]
    payloads: list[bytes]
    traceparents: list[str]  # empty or one per row
    max_attempts: list[int] = []  # empty = the default, or one per row
    deadlines_at: list[int] = []  # empty or one per row, ms, -1 = none: nothing runs beyond
    details: list[bytes] = []  # of the attempt before; empty or one per row


class ClaimAnswer(msgspec.Struct, frozen=True, gc=False):
    """Answer to a claim."""

    tenant: str
    execution: str
    attempt: int
    token: int | None = None
    refusal: str = ""


class Inbox(msgspec.Struct, frozen=True, gc=False):
    """Owner to one session, on worker-inbox, key = worker id."""

    session: str
    partition: int
    frame: int  # offset of the granting frame
    start_by: int  # ms, broker's time: later grants are handed back
    queued: list[int]
    granted: Granted | None = None
    cancelled: list[int] = msgspec.field(default_factory=list)  # tokens that must stop
    is_session_over: bool = False
    answers: list[ClaimAnswer] = msgspec.field(default_factory=list)
    asked: str = ""  # quiet, resume or stop: what the worker is asked to do; empty = nothing


class DueRecord(msgspec.Struct, frozen=True, gc=False):
    """Hint on executions-due.<queue>: this attempt can be claimed. Key = execution id."""

    tenant: str
    execution: str
    attempt: int
    job_id: str
    task: str
    queue: str
    payload: bytes
    scheduled_at: int
    due_at: int
    partition: int  # of job-events; claims go to worker-reports of it
    traceparent: str = ""


class DeadLetter(msgspec.Struct, frozen=True, gc=False):
    """An execution given up. Key <tenant>/<job id>."""

    tenant: str
    job_id: str
    execution: str
    generation: int
    attempt: int  # the last one
    cause: str
    error_type: str
    message: str
    task: str
    queue: str
    payload: bytes
    scheduled_at: int
    due_at: int
    given_up_at: int


class Alert(msgspec.Struct, frozen=True, gc=False):
    """What people must hear of. Key = tenant."""

    id: str  # the same when it is sent again
    kind: str
    tenant: str
    job_id: str  # empty = of no single job
    execution: str
    task: str
    queue: str
    at: int  # ms since the epoch, UTC
    text: str
    notify: str  # URL of the job; empty = the tenant's target
    left_out: int  # causes of that job and kind since the last one, told by this one alone
    details: bytes  # a JSON object
