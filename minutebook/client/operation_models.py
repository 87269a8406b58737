"""What the API takes and answers about bulk operations, typed once for both sides."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from minutebook.client.models import Cause, InstantText, Name

OperationState = Literal["pending", "running", "stopping", "completed", "cancelled"]
_Rate = Annotated[int, Meta(ge=1, le=10_000, description="executions a second at most, over all partitions")]
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


class RedriveManyRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Run many dead executions again. An empty filter means all of the tenant's."""

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


class OperationProgress(msgspec.Struct, kw_only=True):
    """Sums over the partitions, as each told last; `matched` and `left` are null until every one has counted."""

    matched: int | None
    done: int
    refused: int
    left: int | None


class Operation(msgspec.Struct, kw_only=True):
    """A bulk operation. `pending`: durable, not yet decided; `stopping`: cancelled, not yet known everywhere."""

    id: Name
    kind: Literal["redrive"]
    state: OperationState
    filter: DeadLetterFilter
    rate_per_s: int | None
    reason: str
    actor: str
    progress: OperationProgress
    started_at: InstantText | None = None
    ended_at: InstantText | None = None
    cancelled_by: str | None = None
    cancel_reason: str | None = None


class OperationPage(msgspec.Struct):
    """Operations, the latest first."""

    items: list[Operation]
    next_cursor: str | None
