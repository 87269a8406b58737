"""What the API takes and answers, typed once for both sides.

Instants are RFC 3339 text in UTC, durations ISO 8601 text. A payload is `msgspec.Raw`: the bytes as they were sent.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

Name = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9._-]{1,128}$", description="1-128 ASCII letters, digits, ._-")
]
InstantText = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
DurationText = Annotated[str, Meta(extra_json_schema={"format": "duration"})]
JobStatus = Literal["active", "paused", "completed", "dead", "cancelled"]
AttemptStatus = Literal[
    "scheduled", "queued", "running", "succeeded", "failed", "lost", "cancelled", "skipped"
]


class JobRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A job to create. At most one of run_at, delay, cron; none of them = run now."""

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
    cron: Annotated[str, Meta(max_length=256, description="five fields")] | UnsetType = UNSET
    zone: Annotated[str, Meta(max_length=128, description="IANA name, for cron")] = "UTC"
    late: Annotated[
        Literal["refuse", "run"], Meta(description="what becomes of a run_at more than a day past")
    ] = "refuse"
    timeout: Annotated[DurationText, Meta(description="of one attempt, PT1S to P7D")] = "PT5M"


class Counts(msgspec.Struct):
    """Executions of a job by outcome; `open` ones have none yet."""

    open: int
    succeeded: int
    dead: int
    cancelled: int
    skipped: int


class Job(msgspec.Struct, kw_only=True):
    """A job as it stands."""

    id: Name
    task: Name
    payload: Raw
    queue: Name
    run_at: InstantText | None
    cron: str | None
    zone: str
    late: Literal["refuse", "run"]
    timeout: DurationText
    status: JobStatus
    version: int
    next_at: InstantText | None
    created_at: InstantText
    executions: Counts


class AttemptError(msgspec.Struct):
    """Why an attempt failed or was lost."""

    type: str
    message: str


class Execution(msgspec.Struct, kw_only=True):
    """One attempt of an execution; where `status` is skipped, a range of instants that did not become runs."""

    execution_id: str
    attempt: int
    status: AttemptStatus
    scheduled_at: InstantText
    due_at: InstantText
    queued_at: InstantText | None = None
    started_at: InstantText | None = None
    ended_at: InstantText | None = None
    worker: str | None = None
    error: AttemptError | None = None
    reason: Annotated[str | UnsetType, Meta(description="of a skipped range")] = UNSET
    last_at: Annotated[InstantText | UnsetType, Meta(description="end of a skipped range")] = UNSET
    count: Annotated[int | UnsetType, Meta(description="instants in a skipped range")] = UNSET


class ExecutionPage(msgspec.Struct):
    """Attempts ordered by scheduled_at, then attempt."""

    items: list[Execution]
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


class QueueRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A queue to declare, or to change."""

    name: Name
    tenants: Annotated[list[Name], Meta(max_length=100)] = []
    open: Annotated[
        bool, Meta(description="due records go to executions-due.<name>, for consumers without the SDK")
    ] = False


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
