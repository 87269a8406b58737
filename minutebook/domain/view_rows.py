"""Rows of the read model: what the API answers from. Only `view` makes and changes them.

Every key starts with its partition (two bytes, big-endian), so that what one partition's log folds to can be digested
and dropped apart from the others. Names hold no NUL byte, so NUL parts them. `array_like` structs: new fields go last,
with a default. Instants are ms since the epoch, UTC; -1 = none.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final, NamedTuple

import msgspec

from minutebook.domain.policy import Policy
from minutebook.domain.timing import Timing
from minutebook.store.port import Rows

FAMILIES: Final = (
    "cursors",
    "jobs",
    "versions",
    "progress",
    "due_counts",
    "due_hours",
    "due_index",
    "executions",
    "requests",
    "commands",
    "queues",
    "sessions",
    "dead",
    "limits",
    "permits_used",
    "permits_asked",
    "alerts",
    "alert_counts",
    "operations",
    "tasks",
    "calendars",
    "calendar_jobs",
    "skips",
    "owners",
    "job_index",
    "job_counts",
    "execution_index",
    "execution_counts",
    "execution_totals",
    "starts",
    "retention",
    "expiries",
    "api_keys",
    "audit",
)
FORMAT: Final = 7
"""Version of these rows: a view of another version is dropped and folded again."""

MINUTE_MS: Final = 60_000
DAY_MS: Final = 86_400_000

AT_MAX: Final = (1 << 63) - 1

HOUR_MS: Final = 3_600_000

ALERTS_KEPT: Final = 200
"""Alerts of a tenant in a partition: the latest ones."""

_PARTITION = struct.Struct(">H")
_INSTANT = struct.Struct(">q")
_VERSION = struct.Struct(">I")
_VERSION_MAX: Final = 0xFFFF_FFFF


class JobRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One version of a job. Never changes. `created_at` -1 = with this version; `reason` is that of the edit."""

    version: int
    task: str
    payload: bytes
    queue: str
    cron: str
    zone: str
    late: str
    timeout_ms: int
    priority: int
    first_at: int
    accepted_at: int
    actor: str
    traceparent: str
    policy: Policy | None = None
    limit: str = ""
    notify: str = ""
    every_ms: int = -1
    anchor_at: int = -1
    timing: Timing | None = None
    created_at: int = -1
    reason: str = ""
    tags: list[str] = []

    @property
    def is_recurring(self) -> bool:
        """Whether it has a rule of instants rather than one."""
        return bool(self.cron) or self.every_ms >= 0


class Pause(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Since when a job is paused, and why: by a command, or since an execution was given up (cause `failure`)."""

    at: int
    cause: str
    reason: str
    actor: str


class Progress(msgspec.Struct, array_like=True, gc=False):
    """Where a job stands. Counts are of executions, by outcome; `open` ones have none yet."""

    status: str
    next_at: int
    open: int = 0
    succeeded: int = 0
    dead: int = 0
    cancelled: int = 0
    skipped: int = 0
    last_outcome: str = ""
    version: int = 1
    pause: Pause | None = None
    closed_at: int = -1
    """When it was closed last, and nothing of it was open any more."""

    @property
    def coming_at(self) -> int:
        """The next instant that comes due; -1 = none: a paused job has none."""
        return -1 if self.status == "paused" else self.next_at


class Headway(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """How far a running attempt said it was, and when."""

    at: int
    fraction: float
    text: str


class Attempt(msgspec.Struct, array_like=True, gc=False):
    """One try of an execution. `is_held`: while it is scheduled it waits for other executions of its job, not for a time."""

    number: int
    status: str
    due_at: int
    queued_at: int = -1
    started_at: int = -1
    ended_at: int = -1
    session: str = ""
    error_type: str = ""
    message: str = ""
    result: bytes = b""
    headway: Headway | None = None
    is_held: bool = False


class Skip(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Instants that did not become runs: a range with its count."""

    reason: str
    last_at: int
    count: int


class Discard(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """That a dead execution needs no attention any more. `operation` empty = it was discarded alone."""

    at: int
    actor: str
    reason: str
    operation: str


class ExecutionRow(msgspec.Struct, array_like=True, gc=False):
    """An execution with its attempts, oldest first, or (`skip`) a range of instants without any.

    `lane`: task and queue of one that was redriven with a payload of its own, which is no version of its job.
    """

    version: int
    scheduled_at: int
    outcome: str
    last: Attempt
    earlier: tuple[Attempt, ...] = ()
    skip: Skip | None = None
    generation: int = 0
    lane: tuple[str, str] | None = None
    discard: Discard | None = None


class CommandRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What a command was answered. `position` is the offset of the frame, `version` that of the job or queue."""

    command: str
    job_id: str
    is_accepted: bool
    reason: str
    field: str
    detail: str
    version: int
    position: int
    answered_at: int


class QueueRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A partition's copy of a declared queue. `tenants` empty = everybody may use it."""

    version: int
    is_open: bool
    tenants: list[str]
    is_paused: bool = False
    is_draining: bool = False


class LimitRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A partition's copy of a limit. -1 = not bounded, not paused; a deleted one keeps its version."""

    version: int
    concurrency: int
    rate_count: int
    rate_period_ms: int
    paused_until: int
    is_deleted: bool


class CalendarRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A partition's copy of a calendar: ranges of days since the epoch, in order; a deleted one keeps its version."""

    version: int
    first_days: list[int]
    last_days: list[int]
    is_deleted: bool


class PermitsUsedRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Permits of a limit as its home counts them: `in_use` are out; `demands`: (partition, permits) that were asked for
    under the limit's `version` and not granted."""

    version: int = 0
    in_use: int = 0
    demands: tuple[tuple[int, int], ...] = ()


class PermitsAskedRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Permits that a partition has asked for under a limit's `version` and not got."""

    version: int = 0
    count: int = 0


class TaskRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A declared task, at its home. `payload_schema` empty = any payload."""

    version: int
    payload_schema: str
    actor: str
    accepted_at: int


class DeadRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An execution given up, and neither redriven nor discarded since."""

    cause: str
    error_type: str
    message: str
    attempt: int
    generation: int


class AlertRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One of the latest alerts of a tenant."""

    id: str
    kind: str
    job_id: str
    execution: str
    task: str
    queue: str
    at: int
    text: str
    notify: str
    left_out: int
    details: bytes


class CursorRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """How far a partition's log is folded. `head` is the chain after `position`, `head_before` the one before it.

    `commands_through`: last offset of `job-commands` that the owner has consumed, as its frames say. `decided_at` is the
    `now` of the last frame, `stamped_at` the broker's stamp on it; `void_frames` counts from the log's start.
    """

    position: int = -1
    head: bytes = bytes(32)
    head_before: bytes = bytes(32)
    commands_through: int = -1
    format: int = FORMAT
    decided_at: int = -1
    stamped_at: int = -1
    void_frames: int = 0


def partition_prefix(partition: int) -> bytes:
    """Start of every key of a partition; that of `partition` + 1 ends its range."""
    return _PARTITION.pack(partition)


def job_row(prefix: bytes, tenant: str, job_id: str) -> bytes:
    """Key of a job, in `jobs` and `progress`."""
    return prefix + f"{tenant}\0{job_id}".encode()


def due_row(prefix: bytes, tenant: str, number: int) -> bytes:
    """Key of how many jobs of a tenant have their next instant in the minute, or hour, of that number from the epoch."""
    return prefix + f"{tenant}\0".encode() + _INSTANT.pack(number)


def due_number(key: bytes) -> int:
    """Minute, or hour, in a key of due counts."""
    return int(_INSTANT.unpack(key[-_INSTANT.size :])[0])


def tenant_of(key: bytes) -> str:
    """Tenant in a key that has it right behind the partition."""
    return key[_PARTITION.size : key.index(b"\0", _PARTITION.size)].decode()


def version_row(job: bytes, version: int) -> bytes:
    """Key of a version of a job that is its version no more: the latest sorts first."""
    return job + b"\0" + _VERSION.pack(_VERSION_MAX - version)


def versions_of(job: bytes, through: int | None) -> tuple[bytes, bytes]:
    """First key, and end, of all earlier versions of a job, those above number `through` left out."""
    return job + b"\0" if through is None else version_row(job, through), job + b"\1"


def execution_row(job: bytes, scheduled_at: int, kind: bytes = b"") -> bytes:
    """Key of an execution: those of one job sort by instant. `kind`: empty, `r<command id>`, or `s` for skipped."""
    return job + b"\0" + _INSTANT.pack(scheduled_at) + kind


def execution_suffix(job: bytes, key: bytes) -> str:
    """What follows the colon in the id of the execution under `key`: its instant, or `r<command id>`."""
    kind = key[len(job) + 9 :].decode()
    return kind if kind.startswith("r") else str(_INSTANT.unpack_from(key, len(job) + 1)[0])


def instant_of(key: bytes) -> int:
    """Instant in the key of an execution."""
    job_end = key.index(b"\0", key.index(b"\0", 2) + 1)
    return int(_INSTANT.unpack_from(key, job_end + 1)[0])


def executions_of(job: bytes) -> tuple[bytes, bytes]:
    """First key, and end, of all executions of a job."""
    return job + b"\0", job + b"\1"


def dead_row(prefix: bytes, tenant: str, at: int, execution: str) -> bytes:
    """Key of a dead execution: those of a tenant sort by the instant at which they were given up."""
    return prefix + f"{tenant}\0".encode() + _INSTANT.pack(at) + execution.encode()


def dead_parts(key: bytes, first: bytes) -> tuple[int, str]:
    """(instant, execution id) in the key of a dead execution; `first` is the first key of its tenant."""
    return int(_INSTANT.unpack_from(key, len(first) - 8)[0]), key[len(first) :].decode()


def limit_row(prefix: bytes, tenant: str, name: str) -> bytes:
    """Key of a limit; those of one tenant follow one another by name, the tenant-wide one (no name) first."""
    return prefix + f"{tenant}\0{name}".encode()


def calendar_row(prefix: bytes, tenant: str, name: str) -> bytes:
    """Key of a calendar; those of one tenant follow one another by name."""
    return prefix + f"{tenant}\0{name}".encode()


def calendar_job_row(prefix: bytes, tenant: str, name: str, job_id: str) -> bytes:
    """Key that says that a job depends, or depended, on a calendar; those of one calendar follow one another by job."""
    return prefix + f"{tenant}\0{name}\0{job_id}".encode()


def alert_rows(prefix: bytes, tenant: str) -> bytes:
    """Start of the keys of a tenant's alerts; also the key of how many there were."""
    return prefix + f"{tenant}\0".encode()


def alert_row(prefix: bytes, tenant: str, number: int) -> bytes:
    """Key of a tenant's alert of that number, from 0: it takes the place of the one `ALERTS_KEPT` before it."""
    return alert_rows(prefix, tenant) + _PARTITION.pack(number % ALERTS_KEPT)


def job_of_key(key: bytes) -> tuple[str, str]:
    """(tenant, job id) in a key that begins with a job's."""
    tenant, job_id = key[_PARTITION.size :].split(b"\0", 2)[:2]
    return tenant.decode(), job_id.decode()


def job_of_version(key: bytes) -> bytes:
    """Key of the job in that of an earlier version of it."""
    return key[: -1 - _VERSION.size]


def request_row(prefix: bytes, tenant: str, execution: str) -> bytes:
    """Key of the instant at which an execution was asked for."""
    return prefix + f"{tenant}\0{execution}".encode()


def request_parts(key: bytes) -> tuple[str, str, bytes]:
    """(tenant, job id, what follows the colon in the execution's id) in the key of a request."""
    tenant, execution = key[_PARTITION.size :].decode().split("\0")
    job_id, _, suffix = execution.rpartition(":")
    return tenant, job_id, suffix.encode()


def command_row(prefix: bytes, tenant: str, command_id: str, job_id: str) -> bytes:
    """What names a command: ids are unique for a tenant and job only. Its row is kept under it, on the shelf of its week."""
    return prefix + f"{tenant}\0{command_id}\0{job_id}".encode()


def digest(rows: Rows, partition: int) -> bytes:
    """SHA-256 over what a partition's log folds to, as committed: equal states have equal digests.

    The cursor is not in it: it says how far the log was read, and is compared beside the digest.
    """
    total = hashlib.sha256()
    start, end = partition_prefix(partition), partition_prefix(partition + 1)
    for family in FAMILIES[1:]:
        total.update(family.encode() + b"\0")
        for key, value in rows.scan(family, start, end):
            total.update(struct.pack(">II", len(key), len(value)) + key + value)
    return total.digest()


class JobCard(NamedTuple):
    """What lists need of a version of a job."""

    version: int
    created_at: int
    task: str
    queue: str
    tags: tuple[str, ...]


def card_of(row: JobRow) -> JobCard:
    """The card of a version."""
    created_at = row.accepted_at if row.created_at < 0 else row.created_at
    return JobCard(row.version, created_at, row.task, row.queue, tuple(row.tags))


class HotJob(msgspec.Struct, gc=False):
    """A job's progress, decoded, its key and id. `card`: that of its version, None until somebody asks.

    `filed_status` and `filed_card`: how the indexes have it; no status = not yet, no card = as in `card`. `filed_at`: the
    instant under which the index by next instants has it; NONE_AT = it has not. `is_dropped`: nothing is to be stored
    of it.
    """

    key: bytes
    progress: Progress
    tenant: str
    name: bytes
    card: JobCard | None = None
    filed_status: str = ""
    filed_card: JobCard | None = None
    filed_at: int = -1
    is_dropped: bool = False


class HotExecution(msgspec.Struct, gc=False):
    """An execution, decoded, its key, its job, and what it runs. `filed`: the entries that the indexes have of it."""

    key: bytes
    row: ExecutionRow
    job: HotJob
    task: str
    queue: str
    filed: tuple[tuple[bytes, bytes], ...] = ()
    is_dropped: bool = False
