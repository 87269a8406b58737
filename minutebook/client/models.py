"""What the API takes and answers, typed once for both sides.

Instants are RFC 3339 text in UTC, durations ISO 8601 text. A payload is `msgspec.Raw`: the bytes as they were sent.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from minutebook.schedule import DayMatch, Fold, Gap

Name = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9._-]{1,128}$", description="1-128 ASCII letters, digits, ._-")
]
InstantText = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
DurationText = Annotated[str, Meta(extra_json_schema={"format": "duration"})]
JobStatus = Literal["active", "paused", "completed", "dead", "cancelled"]
AttemptStatus = Literal[
    "scheduled", "queued", "running", "succeeded", "failed", "lost", "cancelled", "skipped"
]
Outcome = Literal["succeeded", "dead", "cancelled", "skipped"]
Cause = Literal["permanent", "attempts", "losses", "deadline"]
OnStuck = Literal["report", "stop"]
Via = Literal["api", "cli", "page", "sdk", "worker"]
AlertKind = Literal["execution_dead", "attempt_stuck", "task_unknown"]
Overlap = Literal["allow", "skip", "queue_one", "queue_all", "cancel_running"]
Misfire = Literal["all", "latest", "none"]

_MaxAttempts = Annotated[int, Meta(ge=1, le=100, description="failures after which it is given up")]
_First = Annotated[DurationText, Meta(description="wait before the second attempt, up to P1D")]
_Max = Annotated[DurationText, Meta(description="longest wait, up to P1D")]
_Factor = Annotated[float, Meta(ge=1, le=10, description="each wait is so many times the one before")]
_Jitter = Annotated[float, Meta(ge=0, le=1, description="up to this share is added to a wait")]
_NonRetryable = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=256)]],
    Meta(max_length=32, description="error types after which it is given up at once"),
]
_MaxLosses = Annotated[int, Meta(ge=1, le=100, description="lost attempts after which it is given up")]
_Concurrency = Annotated[int, Meta(ge=1, le=100_000, description="attempts that run at once, at most")]
_RateCount = Annotated[
    int, Meta(ge=1, le=1_000, description="attempts that start within any rate_period, at most")
]
_Tags = Annotated[list[Name], Meta(max_length=16, description="each once; jobs can be listed by tag")]
_Priority = Annotated[int, Meta(ge=0, le=9, description="9 goes first")]
_Notify = Annotated[
    str, Meta(max_length=2048, description="https URL that its alerts go to; empty = the tenant's target")
]
_Cron = Annotated[
    str,
    Meta(max_length=256, description="5, 6 (second first) or 7 (year last) fields, a macro, or @every 90s"),
]
_Every = Annotated[
    DurationText,
    Meta(description="fixed interval, PT1S to P366D, counted from start_at or else from the create"),
]
_MisfireWindow = Annotated[
    DurationText, Meta(description="what was missed longer ago does not run, up to P30D")
]
_MisfireMax = Annotated[int, Meta(ge=1, le=10_000, description="of what was missed the latest so many run")]
_CalendarNames = Annotated[list[Name], Meta(max_length=16)]
_Overlap = Annotated[
    Overlap, Meta(description="what becomes of an instant while executions of the job are open")
]
_Gap = Annotated[Gap, Meta(description="local times that a clock change leaves out")]
_Fold = Annotated[Fold, Meta(description="local times that come twice")]
_DayMatch = Annotated[DayMatch, Meta(description="of two restricted day fields either, or both")]
_Spread = Annotated[
    DurationText, Meta(description="each instant is due up to so much later, never early; up to P1D")
]
_MaxRuns = Annotated[int, Meta(ge=1, description="instants that become executions, at most")]


class RetryRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """How failed attempts are tried again; what is left out has its default."""

    max_attempts: _MaxAttempts = 5
    first: _First = "PT1S"
    max: _Max = "PT1H"
    factor: _Factor = 2.0
    jitter: _Jitter = 0.25
    non_retryable: _NonRetryable = []


class MisfireRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """What becomes of instants that were missed; what is left out has its default."""

    policy: Misfire = "all"
    window: _MisfireWindow = "P1D"
    max: _MisfireMax = 100


class CalendarsRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Calendars whose dates have no instants, and those of which only the dates have any."""

    exclude: _CalendarNames = []
    include: _CalendarNames = []


class JobRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A job to create. At most one of run_at, delay, cron, every; none of them = run now."""

    task: Name
    id: Name | UnsetType = UNSET
    payload: Annotated[
        Raw | UnsetType, Meta(description="any JSON up to 256 KiB, depth 64; kept byte for byte")
    ] = UNSET
    queue: Name = "default"
    run_at: Annotated[
        InstantText | UnsetType, Meta(description="with an offset; at most 100 years ahead")
    ] = UNSET
    delay: Annotated[DurationText | UnsetType, Meta(description="from the moment the command is durable")] = (
        UNSET
    )
    cron: _Cron | UnsetType = UNSET
    every: _Every | UnsetType = UNSET
    zone: Annotated[str, Meta(max_length=128, description="IANA name, for cron and calendars")] = "UTC"
    start_at: Annotated[InstantText | UnsetType, Meta(description="no instant before")] = UNSET
    end_at: Annotated[InstantText | UnsetType, Meta(description="no instant from then on")] = UNSET
    max_runs: _MaxRuns | UnsetType = UNSET
    calendars: CalendarsRequest | UnsetType = UNSET
    gap: _Gap = "auto"
    fold: _Fold = "auto"
    day_match: _DayMatch = "or"
    jitter: _Spread = "PT0S"
    misfire: MisfireRequest | UnsetType = UNSET
    overlap: _Overlap = "allow"
    pause_on_failure: Annotated[bool, Meta(description="when an execution is given up")] = False
    late: Annotated[
        Literal["refuse", "run"], Meta(description="what becomes of a run_at more than a day past")
    ] = "refuse"
    timeout: Annotated[DurationText, Meta(description="of one attempt, PT1S to P7D")] = "PT5M"
    retry: RetryRequest | UnsetType = UNSET
    max_losses: _MaxLosses = 10
    deadline: Annotated[
        DurationText | UnsetType, Meta(description="after due_at, for all attempts, up to P30D")
    ] = UNSET
    start_deadline: Annotated[
        DurationText | UnsetType, Meta(description="after due_at, for the first start, up to P30D")
    ] = UNSET
    stuck_after: Annotated[
        DurationText | UnsetType,
        Meta(description="without progress for so long a running attempt is reported, PT1S to P7D"),
    ] = UNSET
    on_stuck: Annotated[OnStuck, Meta(description="`stop` also stops it; needs stuck_after")] = "report"
    priority: _Priority = 5
    limit: Annotated[
        Name | UnsetType,
        Meta(description="limit that holds beside the tenant-wide one, where they are declared"),
    ] = UNSET
    notify: _Notify = ""
    tags: _Tags = []


class Counts(msgspec.Struct):
    """Executions of a job by outcome; `open` ones have none yet."""

    open: int
    succeeded: int
    dead: int
    cancelled: int
    skipped: int


class RetryPolicy(msgspec.Struct, kw_only=True):
    """How failed attempts are tried again."""

    max_attempts: _MaxAttempts = 5
    first: _First = "PT1S"
    max: _Max = "PT1H"
    factor: _Factor = 2.0
    jitter: _Jitter = 0.25
    non_retryable: _NonRetryable = []


class MisfirePolicy(msgspec.Struct, kw_only=True):
    """What becomes of instants that were missed."""

    policy: Misfire = "all"
    window: _MisfireWindow = "P1D"
    max: _MisfireMax = 100


class Calendars(msgspec.Struct, kw_only=True):
    """Calendars whose dates have no instants, and those of which only the dates have any."""

    exclude: _CalendarNames = []
    include: _CalendarNames = []


class Pause(msgspec.Struct):
    """Since when a job is paused, and why; `failure`: since an execution was given up."""

    at: InstantText
    cause: Literal["command", "failure"]
    reason: str


class Job(msgspec.Struct, kw_only=True):
    """A job as it stands. Instants, durations and numbers that are null bound nothing."""

    id: Name
    task: Name
    payload: Raw
    queue: Name
    run_at: InstantText | None
    cron: str | None
    every: _Every | None = None
    zone: str
    start_at: InstantText | None = None
    end_at: InstantText | None = None
    max_runs: _MaxRuns | None = None
    calendars: Calendars = msgspec.field(default_factory=Calendars)
    gap: _Gap = "auto"
    fold: _Fold = "auto"
    day_match: _DayMatch = "or"
    jitter: _Spread = "PT0S"
    misfire: MisfirePolicy = msgspec.field(default_factory=MisfirePolicy)
    overlap: _Overlap = "allow"
    pause_on_failure: bool = False
    late: Literal["refuse", "run"]
    timeout: DurationText
    retry: RetryPolicy = msgspec.field(default_factory=RetryPolicy)
    max_losses: _MaxLosses = 10
    deadline: DurationText | None = None
    start_deadline: DurationText | None = None
    stuck_after: DurationText | None = None
    on_stuck: OnStuck = "report"
    priority: _Priority = 5
    limit: Name | None = None
    notify: _Notify = ""
    tags: _Tags = []
    status: JobStatus
    paused: Annotated[Pause | None, Meta(description="null unless it is paused")] = None
    version: int
    next_at: InstantText | None
    created_at: InstantText
    executions: Counts


class AttemptError(msgspec.Struct):
    """Why an attempt failed or was lost."""

    type: str
    message: str


class Progress(msgspec.Struct):
    """How far an attempt said that it was, and when."""

    fraction: Annotated[float, Meta(ge=0, le=1)]
    text: str
    at: InstantText


def _no_result() -> Raw:
    return Raw(b"null")


class Execution(msgspec.Struct, kw_only=True):
    """One attempt of an execution; where `status` is skipped, one that expired, or a range of instants without a run."""

    execution_id: str
    attempt: int
    status: AttemptStatus
    scheduled_at: InstantText
    due_at: InstantText
    queued_at: InstantText | None = None
    started_at: InstantText | None = None
    ended_at: InstantText | None = None
    waiting_for: Annotated[
        Literal["worker", "permit", "paused_queue", "overlap"] | None,
        Meta(description="of a queued one; overlap: of a scheduled one that others of its job come before"),
    ] = None
    worker: str | None = None
    progress: Progress | None = None
    result: Annotated[Raw, Meta(description="what the task returned, any JSON; null without one")] = (
        msgspec.field(default_factory=_no_result)
    )
    error: AttemptError | None = None
    reason: Annotated[str | UnsetType, Meta(description="of a skipped one")] = UNSET
    last_at: Annotated[InstantText | UnsetType, Meta(description="end of a skipped range")] = UNSET
    count: Annotated[int | UnsetType, Meta(description="instants in a skipped range")] = UNSET


class ExecutionPage(msgspec.Struct):
    """Attempts ordered by scheduled_at, then attempt."""

    items: list[Execution]
    next_cursor: str | None


class Discarded(msgspec.Struct):
    """That a dead execution needs no attention any more: since when, by whom and why."""

    at: InstantText
    actor: str
    reason: str
    operation: Annotated[Name | None, Meta(description="that it was a part of; null = discarded alone")]


class WholeExecution(msgspec.Struct, kw_only=True):
    """An execution: `status` is that of its latest attempt, `outcome` null while it is open."""

    execution_id: str
    job_id: Name
    status: AttemptStatus
    outcome: Outcome | None
    version: Annotated[int, Meta(description="of its job, which it runs with")] = 1
    generation: Annotated[int, Meta(description="how often it was redriven")]
    scheduled_at: InstantText
    attempts: Annotated[list[Execution], Meta(description="oldest first")]
    discarded: Discarded | None = None


class ReasonRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Why something is done; it stays on record."""

    reason: Annotated[str, Meta(max_length=1000)] = ""


class RedriveRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Run a dead execution again."""

    payload: Annotated[
        Raw | UnsetType, Meta(description="any JSON, kept byte for byte; left out, the payload stays")
    ] = UNSET
    reason: Annotated[str, Meta(max_length=1000)] = ""


class Alert(msgspec.Struct, kw_only=True):
    """What people must hear of. `job_id` and `execution_id` are null where it is about all of a task."""

    id: str
    kind: AlertKind
    at: InstantText
    job_id: Name | None
    execution_id: str | None
    task: Name
    queue: Name
    text: str
    left_out: Annotated[
        int, Meta(description="causes of that job and kind since the last alert, told by this one alone")
    ]
    details: Annotated[Raw, Meta(description="an object that depends on the kind")]


class AlertPage(msgspec.Struct):
    """Alerts, the latest first."""

    items: list[Alert]
    next_cursor: str | None


class RunNow(msgspec.Struct):
    """The execution that a run-now made."""

    execution_id: str
    job_id: Name
    command_id: str


class Command(msgspec.Struct, kw_only=True):
    """A command: `outcome` is null until its partition's owner has decided."""

    command_id: str
    outcome: Literal["accepted", "rejected"] | None
    job_id: str | None = None
    reason: str | None = None
    detail: str | None = None


class Queue(msgspec.Struct):
    """A declared queue. `tenants` empty = everybody may use it; `open`: its executions are claimed by consumers on Kafka."""

    name: Name
    version: int
    tenants: list[Name]
    open: bool = False
    paused: Annotated[bool, Meta(description="nothing of it is granted")] = False
    draining: Annotated[bool, Meta(description="no new job is taken for it")] = False


class QueuePage(msgspec.Struct):
    """Queues by name."""

    items: list[Queue]
    next_cursor: str | None


class QueueRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A queue to declare, or to change."""

    name: Name
    tenants: Annotated[list[Name], Meta(max_length=100)] = []
    open: Annotated[
        bool, Meta(description="due records go to executions-due.<name>, for consumers without the SDK")
    ] = False


class Limit(msgspec.Struct, kw_only=True):
    """A limit of a tenant's jobs. Null bounds nothing; without a name it holds for all of them."""

    name: Annotated[Name | None, Meta(description="null = the tenant-wide limit")]
    version: int
    concurrency: _Concurrency | None = None
    rate_count: _RateCount | None = None
    rate_period: DurationText | None = None
    paused_until: Annotated[InstantText | None, Meta(description="nothing starts before")] = None
    in_use: Annotated[
        int, Meta(description="permits that are out: attempts that run, or start in a moment")
    ] = 0
    waiting: Annotated[
        int, Meta(description="permits that are asked for, for free slots of workers, and not there")
    ] = 0


class LimitPage(msgspec.Struct):
    """Limits by name, the tenant-wide one first."""

    items: list[Limit]
    next_cursor: str | None


class LimitRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """The bounds of a limit; what is left out bounds nothing."""

    concurrency: _Concurrency | UnsetType = UNSET
    rate_count: _RateCount | UnsetType = UNSET
    rate_period: Annotated[DurationText | UnsetType, Meta(description="with rate_count, PT1S to P1D")] = UNSET


class PauseRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Until when nothing starts, and why."""

    until: Annotated[
        str, Meta(description="an instant with an offset, or a duration from now; at most 366 days")
    ]
    reason: Annotated[str, Meta(max_length=1000)] = ""


class FieldError(msgspec.Struct):
    """One fault of a request: JSON pointer into the body, or the name of the header or query parameter."""

    pointer: str
    detail: str


class Problem(msgspec.Struct, kw_only=True):
    """RFC 9457 problem details."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    trace_id: str
    errors: list[FieldError] = []


class BatchRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Up to 500 creates."""

    jobs: Annotated[list[JobRequest], Meta(min_length=1, max_length=500)]


class BatchItem(msgspec.Struct, kw_only=True):
    """Result of one create of a batch: the status it would have had alone."""

    status: int
    id: str | None = None
    command_id: str | None = None
    problem: Problem | None = None


class BatchResult(msgspec.Struct):
    """Results in the order of the request."""

    items: list[BatchItem]


def value_of(payload: Raw) -> Any:
    """A payload as Python objects."""
    return msgspec.json.decode(payload)
