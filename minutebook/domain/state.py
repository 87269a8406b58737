"""State of a partition: immutable rows, stored as they are. Only `fold` makes new ones.

`array_like` structs: new fields go last, with a default, so old and new read each other. Instants are ms, UTC; -1 = none.
"""

from __future__ import annotations

from typing import Final

import msgspec

from minutebook.domain.keys import CATCH_UP_PRIORITY, Lane
from minutebook.domain.policy import DEFAULT, Policy
from minutebook.domain.timing import DEFAULT as DEFAULT_TIMING
from minutebook.domain.timing import Timing

NONE_AT: Final = -1
ACTIVE: Final = "active"
PAUSED: Final = "paused"
"""Statuses of a job that is not closed, beside `cancelled` while something of it runs."""
UNCHANGED: Final = -2
"""In a `next_at` column: this row does not come from the job's schedule."""


class Job(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A job that is not closed. `open` counts its open executions; `indexed_at` is where its row of the index lies.
    `version` is what comes due next; versions are numbered up to `last_version`. `runs`: instants of its schedule that
    became executions. `held`: ids of the executions that wait until no other is open, the earliest first. `older`:
    (version, open executions) for each version before this one that has any. `last_at`: the latest instant of its
    schedule that is on record. `edited`: fingerprint of the body that it was last edited to, empty if it never was.
    `since_at`: an edit or a resume after which instants count only from here on; none = from the create.

    A job that fires once (`is_once`) counts its one execution as open from the start and keeps `next_at` and
    `indexed_at`, so that its row need not be written again when it comes due.
    """

    version: int
    status: str
    next_at: int
    indexed_at: int
    open: int
    last_outcome: str
    fingerprint: bytes
    command_id: str
    accepted_at: int
    is_once: bool = False
    has_deadlines: bool = False
    last_version: int = 1
    runs: int = 0
    held: list[str] = []
    jitter_ms: int = 0
    older: list[tuple[int, int]] = []
    last_at: int = NONE_AT
    edited: bytes = b""
    since_at: int = NONE_AT

    @property
    def counts_after(self) -> int:
        """No instant of its schedule up to here comes any more: it is on record, or before the job was as it is."""
        return max(self.accepted_at, self.last_at, self.since_at)


class Spec(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One version of a job: what to run, and when. Never changes."""

    task: str
    queue: str
    priority: int
    payload: bytes
    cron: str
    zone: str
    timeout_ms: int
    traceparent: str
    explicit: Policy | None = None
    limit: str = ""
    notify: str = ""
    every_ms: int = NONE_AT
    anchor_at: int = NONE_AT
    explicit_timing: Timing | None = None
    tags: list[str] = []

    def lane(self, tenant: str) -> Lane:
        """Where an execution of this version, of a job of `tenant`, waits in the queued set if it is not made up for."""
        return Lane(self.queue, self.task, self.priority, tenant, self.limit)

    @property
    def policy(self) -> Policy:
        """How attempts are retried and bounded."""
        return self.explicit or DEFAULT

    @property
    def timing(self) -> Timing:
        """How instants are bounded, spread and made up for."""
        return self.explicit_timing or DEFAULT_TIMING

    @property
    def says_nothing_of_instants(self) -> bool:
        """Whether one that comes at its time simply runs: it has neither deadlines nor policies of its own."""
        return self.explicit is None and self.explicit_timing is None

    @property
    def is_recurring(self) -> bool:
        """Whether it has a rule of instants rather than one."""
        return bool(self.cron) or self.every_ms != NONE_AT


class Execution(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An open execution. `ready_at` is its time in the queued set, `indexed_at` its place in the time index;
    `details` is what an attempt noted last, to resume from; `permits` are those it runs under, by name of the limit.
    `is_catch_up`: its instant is made up for, so it waits behind all that come due at theirs.
    """

    version: int
    attempt: int
    status: str
    scheduled_at: int
    due_at: int
    ready_at: int
    indexed_at: int = NONE_AT
    token: int = -1
    session: str = ""
    failures: int = 0
    losses: int = 0
    withdrawals: int = 0
    generation: int = 0
    is_stopping: bool = False
    started_at: int = NONE_AT
    details: bytes = b""
    permits: list[tuple[str, int]] = []
    is_catch_up: bool = False

    @property
    def is_held(self) -> bool:
        """Whether it waits, without a place in the time index, until no other execution of its job is open."""
        return self.status == "scheduled" and self.indexed_at == NONE_AT

    def priority_of(self, spec: Spec) -> int:
        """Its priority as an execution of version `spec`."""
        return CATCH_UP_PRIORITY if self.is_catch_up else spec.priority

    def lane(self, spec: Spec, tenant: str) -> Lane:
        """Where it waits in the queued set, as an execution of version `spec` of a job of `tenant`."""
        return Lane(spec.queue, spec.task, self.priority_of(spec), tenant, spec.limit)


class DeadExecution(Execution, array_like=True, frozen=True, gc=False):
    """An execution given up, kept for a redrive: when and why. A discarded one is redriven no more."""

    given_up_at: int = NONE_AT
    cause: str = ""
    error_type: str = ""
    is_discarded: bool = False


class Queue(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A declared queue. `tenants` empty = everybody may use it."""

    version: int
    is_open: bool
    tenants: list[str]
    is_paused: bool = False
    is_draining: bool = False


class Limit(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """How much of a tenant, or of the jobs that name it, may run. -1 = not bounded, not paused.

    A deleted one keeps its row: it is of a version, and what is older than that changes nothing.
    """

    version: int
    concurrency: int = -1
    rate_count: int = -1
    rate_period_ms: int = -1
    paused_until: int = NONE_AT
    is_deleted: bool = False


class Calendar(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Dates of a tenant: ranges of days since the epoch, both ends included, sorted and apart from one another.

    A deleted one keeps its row: it is of a version, and what is older than that changes nothing.
    """

    version: int
    first_days: list[int] = []
    last_days: list[int] = []
    is_deleted: bool = False


class Rescheduling(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Next instants that are computed anew, piece by piece. `since_at`: when the reason for it came to be, ms, UTC.
    `through`: the last row that was looked at.
    """

    cause: str
    since_at: int
    through: bytes = b""


class Stock(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Permits of one limit where they are used: those that no attempt runs under. `free`: (permit, received at), those
    for which there was no grant yet. `spent`: those whose attempt has ended. `asked`: how many were asked for and have
    not come, of the limit's `version`, and with which priority last.
    """

    version: int = 0
    asked: int = 0
    priority: int = -1
    free: list[tuple[int, int]] = []
    spent: list[int] = []


class Home(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Permits of one limit at its home. `in_use`: how many are out. `demands`: (partition, permits, priority) asked for
    of the limit's `version`, by partition. `recent`: (instant, permits) granted within the period of its rate. `turn`:
    the partition that got the last one.
    """

    version: int = 0
    in_use: int = 0
    demands: list[tuple[int, int, int]] = []
    recent: list[tuple[int, int]] = []
    turn: int = -1


class Task(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A declared task, at its home. Its payload's schema itself is in the log and in the views."""

    version: int
    schema_sha256: bytes


class ApiKey(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An API key, at its home. A revoked one stays: its id is not given out again."""

    role: str
    sha256: bytes
    label: str
    expires_at: int = NONE_AT
    is_revoked: bool = False


class Session(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A session that was granted something."""

    worker: str
    tasks: list[str]
    lease_ms: int
    pulse_ms: int


class Answer(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What a command was answered, kept to answer a repeat the same way."""

    is_accepted: bool
    reason: str


class Alerted(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """When the last alert of a job and kind was raised, and how many causes came after it."""

    raised_at: int = NONE_AT
    causes: int = 0


class Cursor(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """How far the log is folded, and what the frame headers said last.

    `inputs`: topic -> (topic id, last offset consumed). `mail`: sender -> (frame, row) last taken. `days`: days that
    hold remembered rows. `index_low`: nothing that is to come due lies before it. `voids`: void records above
    `outputs_sent_through`, so that outputs are sent again of valid frames alone. `format`: that of the store's rows.
    `tzdata`: the version that the last frame was decided by.
    """

    position: int = -1
    head: bytes = bytes(32)
    head_before: bytes = bytes(32)
    epoch: int = 0
    owner: str = ""
    now: int = 0
    log_id: str = ""
    partition: int = -1
    partitions: int = 0
    outputs_sent_through: int = -1
    index_low: int = 0
    inputs: dict[str, tuple[str, int]] = {}
    mail: dict[int, tuple[int, int]] = {}
    days: list[int] = []
    taken_at: int = -1
    rules: int = 1
    voids: list[int] = []
    format: int = 1
    tzdata: str = ""
