"""What the API answers of lists over all jobs and executions, and of the overview, typed once for both sides."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from minutebook.client.models import AttemptError, AttemptStatus, InstantText, Job, JobStatus, Name, Outcome

JobOrder = Literal["-created", "created", "due", "-due"]
ExecutionOrder = Literal["-scheduled", "scheduled"]

_NextCursor = Annotated[
    str | None, Meta(description="null on the last page; a page may have fewer items than asked for")
]


class JobPage(msgspec.Struct):
    """Jobs by the instant at which they were created, or by their next one, then id."""

    items: list[Job]
    next_cursor: _NextCursor


class ExecutionSummary(msgspec.Struct, kw_only=True):
    """An execution as its latest attempt has it, or a range of skipped instants (`count`, by its first one)."""

    execution_id: str
    job_id: Name
    task: Name
    queue: Name
    status: AttemptStatus
    outcome: Outcome | None
    attempt: Annotated[int, Meta(description="number of the latest one")]
    scheduled_at: InstantText
    due_at: InstantText
    queued_at: InstantText | None
    started_at: InstantText | None
    ended_at: InstantText | None
    worker: str | None
    error: AttemptError | None
    reason: Annotated[str | None, Meta(description="of a skipped one")]
    count: Annotated[int | None, Meta(description="instants in a skipped range")]


class ExecutionsPage(msgspec.Struct):
    """Executions by scheduled_at, then id."""

    items: list[ExecutionSummary]
    next_cursor: _NextCursor


class DueSoon(msgspec.Struct):
    """Jobs whose next instant comes within so many minutes, to the full minute."""

    in_1m: int
    in_5m: int
    in_60m: int


class Lateness(msgspec.Struct):
    """How long after they were due attempts started, of the last `of_last_s` seconds; null where none did."""

    p50_ms: Annotated[int | None, Meta(description="at most an eighth too high")]
    p99_ms: Annotated[int | None, Meta(description="at most an eighth too high")]
    of_last_s: int


class Overview(msgspec.Struct):
    """How the jobs of a tenant stand, from counts that are kept."""

    jobs: Annotated[dict[JobStatus, int], Meta(description="jobs by status")]
    executions: Annotated[
        dict[AttemptStatus, int],
        Meta(
            description="executions by status; failed and lost ones were given up, a range of skipped ones counts once"
        ),
    ]
    due: DueSoon
    lateness: Lateness
    started_per_min: Annotated[
        list[int], Meta(description="attempts started in each of the last 60 minutes, this one last")
    ]
    oldest_overdue_at: Annotated[
        InstantText | None,
        Meta(description="of what is due and has not started; to the minute before it is queued"),
    ]
    dead_letters: Annotated[
        int, Meta(description="executions given up, and neither redriven nor discarded since")
    ] = 0
