"""What the API answers about the audit log, typed once for both sides."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from minutebook.client.models import InstantText, Via

SubjectKind = Literal["job", "queue", "limit", "calendar", "operation", "key", "task", "worker"]


class LogPosition(msgspec.Struct):
    """Where the decision stands on `job-events`."""

    partition: int
    offset: int


class AuditEntry(msgspec.Struct, kw_only=True):
    """A command: who wanted what, when, from where and why, and what was decided."""

    at: Annotated[InstantText, Meta(description="when it was decided")]
    tenant: Annotated[str | None, Meta(description="null: queues, tasks and workers belong to none")]
    actor: Annotated[str, Meta(description="as on record; empty where an older log does not say")]
    key_id: Annotated[str | None, Meta(description="of the actor; null where it is no key")]
    via: Via | None
    address: Annotated[str | None, Meta(description="where it came from")]
    operation_id: Annotated[str | None, Meta(description="the operation that did it as a part of its work")]
    reason: str
    command: Annotated[str, Meta(description="name of its schema")]
    command_id: str
    subject_kind: SubjectKind
    subject: Annotated[str, Meta(description="name or id; empty = the tenant-wide limit")]
    execution_id: str | None
    accepted: bool
    code: Annotated[
        str | None, Meta(description="why it was refused; of an accepted one, that it changed nothing")
    ]
    detail: str | None
    version: Annotated[int | None, Meta(description="of what it is about, as it left it")]
    position: LogPosition


class AuditPage(msgspec.Struct):
    """A page of the audit log. A filter may leave fewer items than asked for, or none: what counts is the cursor."""

    items: list[AuditEntry]
    next_cursor: str | None
