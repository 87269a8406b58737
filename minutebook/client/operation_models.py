"""What the API takes and answers about bulk operations, typed once for both sides."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from minutebook.client.models import Cause, InstantText, Name

OperationKind = Literal["redrive", "backfill", "pause", "resume", "cancel", "discard"]
JobOperationKind = Literal["pause", "resume", "cancel"]
OperationState = Literal["pending", "running", "stopping", "completed", "cancelled"]
_Rate = Annotated[
    int, Meta(ge=1, le=10_000, description="executions or jobs a second at most, over all partitions")
]
_Reason = Annotated[str, Meta(max_length=1000)]


class DeadLetterFilter(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Which dead executions are meant: those that fit all that is given."""

    task: Name | UnsetType = UNSET
    queue: Name | UnsetType = UNSET
    error_type: Annotated[str | UnsetType, Meta(description="of the last error, 1-256 characters")] = UNSET
    cause: Cause | UnsetType = UNSET
    job_prefix: Annotated[Name | UnsetType, Meta(description="start of the job id")] = UNSET
    given_up_from: Annotated[InstantText | UnsetType, Meta(description="given up then or later")] = UNSET
    given_up_until: Annotated[InstantText | UnsetType, Meta(description="given up before")] = UNSET


class JobFilter(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Which jobs are meant: those that fit all that is given, and were created before the operation."""

    task: Name | UnsetType = UNSET
    queue: Name | UnsetType = UNSET
    tag: Annotated[Name | UnsetType, Meta(description="that the job has")] = UNSET
    status: Literal["active", "paused"] | UnsetType = UNSET
    job_prefix: Annotated[Name | UnsetType, Meta(description="start of the job id")] = UNSET
    created_from: Annotated[InstantText | UnsetType, Meta(description="created then or later")] = UNSET
    created_until: Annotated[InstantText | UnsetType, Meta(description="created before")] = UNSET


class OperationFilter(DeadLetterFilter, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """What an operation is about: dead executions; of a backfill those of one job's instants within a range; of a pause,
    a resume or a cancel the jobs that fit."""

    job_id: Annotated[Name | UnsetType, Meta(description="of a backfill")] = UNSET
    from_at: Annotated[InstantText | UnsetType, Meta(description="of a backfill: instants then or later")] = (
        msgspec.field(default=UNSET, name="from")
    )
    until_at: Annotated[
        InstantText | UnsetType, Meta(description="of a backfill: instants before; not later than now")
    ] = msgspec.field(default=UNSET, name="until")
    tag: Annotated[Name | UnsetType, Meta(description="of jobs: that the job has")] = UNSET
    status: Annotated[Literal["active", "paused"] | UnsetType, Meta(description="of jobs")] = UNSET
    created_from: Annotated[InstantText | UnsetType, Meta(description="of jobs: created then or later")] = (
        UNSET
    )
    created_until: Annotated[InstantText | UnsetType, Meta(description="of jobs: created before")] = UNSET


class OperationRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Do something to many executions or jobs."""

    kind: OperationKind
    filter: OperationFilter
    dry_run: Annotated[bool, Meta(description="count them, change nothing")] = False
    rate_per_s: _Rate | UnsetType = UNSET
    reason: _Reason = ""


class BackfillRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Run past instants of a job that never ran: those of its schedule within a range of 366 days at most."""

    from_at: Annotated[InstantText, Meta(description="instants then or later")] = msgspec.field(name="from")
    until_at: Annotated[InstantText, Meta(description="instants before; not later than now")] = msgspec.field(
        name="until"
    )
    dry_run: Annotated[bool, Meta(description="count them, change nothing")] = False
    rate_per_s: _Rate | UnsetType = UNSET
    reason: _Reason = ""


class RedriveManyRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Run many dead executions again. An empty filter means all of the tenant's."""

    filter: DeadLetterFilter
    dry_run: Annotated[bool, Meta(description="count them, change nothing")] = False
    rate_per_s: _Rate | UnsetType = UNSET
    reason: _Reason = ""


class DiscardManyRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Discard many dead executions. An empty filter means all of the tenant's."""

    filter: DeadLetterFilter
    dry_run: Annotated[bool, Meta(description="count them, change nothing")] = False
    rate_per_s: _Rate | UnsetType = UNSET
    reason: _Reason = ""


class ReasonCount(msgspec.Struct):
    """Dead executions given up alike."""

    cause: Cause
    error_type: str
    count: int


class DryRun(msgspec.Struct, kw_only=True):
    """What an operation would be about, as the view has it. `complete` false: there are more than could be looked at."""

    matched: int
    complete: bool
    reasons: Annotated[list[ReasonCount], Meta(description="the most frequent first")]


class JobCount(msgspec.Struct):
    """Jobs of one status, task and queue."""

    status: Literal["active", "paused"]
    task: str
    queue: str
    count: int


class JobDryRun(msgspec.Struct, kw_only=True):
    """Which jobs an operation would change, as the view has it. `complete` false: there are more than could be looked at."""

    matched: int
    complete: bool
    jobs: Annotated[list[JobCount], Meta(description="the most frequent first")]


BackfillReason = Literal[
    "before_creation",
    "paused",
    "overlap",
    "misfire",
    "start_deadline",
    "deadline",
    "dst_gap",
    "ran",
    "undecided",
    "unknown",
]


class BackfillCount(msgspec.Struct):
    """Instants that fare alike in a backfill, and why: what they were skipped for, or why they are refused."""

    reason: Annotated[
        BackfillReason,
        Meta(
            description="`ran`: there is an execution, open or ended; `undecided`: neither run nor skipped yet; "
            "`unknown`: too long ago to know"
        ),
    ]
    would_run: bool
    count: int


class BackfillDryRun(msgspec.Struct, kw_only=True):
    """What a backfill would do, as the view has it: `matched` instants in the range, from `first_at` to `last_at` those
    that would run."""

    matched: int
    would_run: int
    refused: int
    first_at: InstantText | None
    last_at: InstantText | None
    reasons: Annotated[list[BackfillCount], Meta(description="the most frequent first")]


class OperationRefusal(msgspec.Struct):
    """Why nothing more of an operation could be done."""

    reason: str
    detail: str


class OperationProgress(msgspec.Struct, kw_only=True):
    """Sums over the partitions, as each told last; `matched` and `left` are null until every one has counted."""

    matched: int | None
    done: int
    refused: int
    left: int | None


class Operation(msgspec.Struct, kw_only=True):
    """A bulk operation. `pending`: durable, not yet decided; `stopping`: cancelled, not yet known everywhere."""

    id: Name
    kind: OperationKind
    state: OperationState
    filter: OperationFilter
    rate_per_s: int | None
    reason: str
    actor: str
    progress: OperationProgress
    started_at: InstantText | None = None
    ended_at: InstantText | None = None
    cancelled_by: str | None = None
    cancel_reason: str | None = None
    refusal: Annotated[
        OperationRefusal | None, Meta(description="of a backfill whose job cannot be filled, or no longer")
    ] = None


class OperationPage(msgspec.Struct):
    """Operations, the latest first."""

    items: list[Operation]
    next_cursor: str | None
