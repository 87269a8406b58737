"""What the API says of what happens now and soon: changes as they are folded, what is due, who owns the partitions."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from minutebook.client.models import InstantText, Outcome

SubjectKind = Literal[
    "job",
    "execution",
    "operation",
    "queue",
    "limit",
    "calendar",
    "task",
    "worker",
    "alert",
    "partition",
]


class Change(msgspec.Struct, kw_only=True):
    """Something changed, and how it stands now: of several changes at once the last one is told."""

    kind: SubjectKind
    id: Annotated[
        str, Meta(description="of an alert its id, of a partition its number; empty: the tenant's limit")
    ]
    status: str
    outcome: Annotated[
        Outcome | UnsetType | None, Meta(description="of an execution alone; null while it is open")
    ] = UNSET
    job_id: Annotated[str | UnsetType, Meta(description="of a job, an execution, an alert")] = UNSET
    at: InstantText
    position: Annotated[str, Meta(description="`<partition>:<offset>` of the frame in `job-events`")]


class Changes(msgspec.Struct):
    """The data of one `changes` event of the stream."""

    changes: list[Change]


class Reset(msgspec.Struct):
    """The data of a `reset` event: changes were not told, so whatever is shown must be read anew."""

    reason: str


class DueBucket(msgspec.Struct):
    """So many jobs have their next instant from `at` on, for the length of a bucket."""

    at: InstantText
    due: int


class Upcoming(msgspec.Struct, kw_only=True):
    """How many jobs are due when. A job that recurs is counted once, at its next instant."""

    by: Literal["minute", "hour", "day"]
    total: int
    buckets: Annotated[list[DueBucket], Meta(description="all from `from` to `until`, empty ones too")]


class Partition(msgspec.Struct, kw_only=True):
    """A partition of the jobs, as its log says and as the view of this process has read it."""

    id: int
    owner: Annotated[str | None, Meta(description="process that decides; null: nobody ever did")]
    epoch: int
    owned_since: InstantText | None
    applied_offset: Annotated[
        int, Meta(description="last record of `job-events` that the view has; -1: none")
    ]
    end_offset: Annotated[int, Meta(description="where the next record of `job-events` goes, as last known")]
    lag: Annotated[int, Meta(description="records of `job-events` that the view has not read")]
    read_per_s: Annotated[
        float | None,
        Meta(description="records that the view reads a second, by the last while; null: unknown"),
    ] = None
    ready_in_s: Annotated[
        int | None, Meta(description="seconds until it has read them at that rate; null: unknown")
    ] = None
    commands_through: Annotated[
        int, Meta(description="last offset of `job-commands` that its owner consumed")
    ]
    void_frames: Annotated[int, Meta(description="records that count for nobody, since the log's start")]
    last_decided_at: Annotated[InstantText | None, Meta(description="`now` of the last frame, by its owner")]
    last_stamped_at: Annotated[
        InstantText | None, Meta(description="when the broker appended it, by its clock")
    ]
    ahead_of_broker_ms: Annotated[
        int | None,
        Meta(description="the first less the second; a few ms below 0 are the append, 1000 the bound"),
    ]


class PartitionPage(msgspec.Struct, kw_only=True):
    """All partitions, and the view that this process answers from."""

    items: list[Partition]
    position: Annotated[str, Meta(description="the view's, as a token for `Minutebook-After`")]
    view_store_bytes: Annotated[
        int | None, Meta(description="files of the view's store; null: it is in memory")
    ]
    view_unready: Annotated[str, Meta(description="why the view answers nothing; empty: it does")]
