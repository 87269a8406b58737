"""The read model of one partition: its log folded into rows that answer questions. No clock, no chance, no I/O.

The state is a function of the partition's log alone, whenever and however often it is committed, so that a digest of it
can be compared with one made by replay. Fold trusts the owner's decisions; an event that names a job or execution that
is not there breaks the log's promise and halts the partition.

Rows change in memory, where reads find them; `drain` gives what changed since, to be written in one batch with the
cursor. A row written meanwhile is written once, however often it changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from minutebook.domain import view_index
from minutebook.domain import view_rows as keys
from minutebook.domain.events import Event
from minutebook.domain.transitions import closed_status
from minutebook.domain.view_drain import drained
from minutebook.domain.view_folds import FOLDS
from minutebook.domain.view_operations import FAMILY as OPERATIONS
from minutebook.domain.view_operations import OperationRow, operation_row
from minutebook.domain.view_owners import FAMILY as OWNERS
from minutebook.domain.view_owners import OwnerRow
from minutebook.domain.view_rows import (
    FAMILIES,
    FORMAT,
    AlertRow,
    Attempt,
    CalendarRow,
    CommandRow,
    CursorRow,
    DeadRow,
    ExecutionRow,
    HotExecution,
    HotJob,
    JobCard,
    JobRow,
    LimitRow,
    PermitsAskedRow,
    PermitsUsedRow,
    Progress,
    QueueRow,
    TaskRow,
)
from minutebook.domain.view_starts import Starts
from minutebook.errors import BrokenFrameError
from minutebook.ids import job_of
from minutebook.store.port import Pending, Ranges, Rows

T = TypeVar("T")

HOT_MAX: Final = 32_768
"""Jobs and open executions, taken together, that one partition keeps decoded."""

_DECODERS: Final[dict[type, Callable[[bytes], Any]]] = {
    kind: msgspec.msgpack.Decoder(kind).decode
    for kind in (
        JobRow,
        Progress,
        ExecutionRow,
        CommandRow,
        QueueRow,
        CursorRow,
        DeadRow,
        LimitRow,
        PermitsUsedRow,
        PermitsAskedRow,
        AlertRow,
        OperationRow,
        TaskRow,
        CalendarRow,
        OwnerRow,
        str,
        int,
    )
}


class PartitionView:
    """The read model of `partition`, over `rows` that partitions share."""

    def __init__(self, rows: Rows, partition: int, hot_max: int = HOT_MAX) -> None:
        self.partition = partition
        self.answered: list[bytes] = []
        """Keys of the commands answered since the caller last took them."""
        self.rows = rows
        self.prefix = keys.partition_prefix(partition)
        self._hot_max = hot_max
        self.hot_jobs: dict[str, dict[str, HotJob]] = {}
        self.hot_executions: dict[str, dict[str, HotExecution]] = {}
        self.dirty: dict[str, dict[bytes, Any]] = {family: {} for family in FAMILIES}
        self.changed_jobs: dict[bytes, HotJob] = {}
        """Jobs whose progress changed since the last `drain`."""
        self.changed_executions: dict[bytes, HotExecution] = {}
        self.starts: list[Starts] = []
        """Attempts that started since the last `drain`."""
        self.starts_from = 0
        """The first minute of which starts are kept, as of the last `drain`."""
        self.due_moves: list[tuple[str, int, int]] = []
        """(tenant, next instant that comes due before, and now) of jobs since the last `drain`; NONE_AT = none."""
        self.cursor = self.read("cursors", self.prefix, CursorRow) or CursorRow()
        self.now = 0
        self.position = self.cursor.position

    # -- the log comes in

    def fold(self, events: Iterable[Event], now: int, position: int) -> None:
        """Apply the events of the frame at `position`, decided at `now`. Raises BrokenFrameError."""
        self.now, self.position = now, position
        for event in events:
            apply = FOLDS.get(type(event))
            if apply is not None:
                apply(self, event)

    def advance(self, cursor: CursorRow) -> None:
        """Move the cursor: after a frame is folded, or a void record passed."""
        self.cursor = cursor
        self.dirty["cursors"][self.prefix] = cursor

    def pending(self) -> int:
        """Rows changed since the last `drain`."""
        changed = len(self.changed_jobs) + len(self.changed_executions)
        return changed + sum(map(len, self.dirty.values()))

    def drain(self) -> Pending:
        """All rows changed since the last call, encoded: to be written at once, in one batch."""
        found = drained(self)
        self._clear()
        self._cool()
        return found

    def _clear(self) -> None:
        for dirty in self.dirty.values():
            dirty.clear()
        self.changed_jobs.clear()
        self.changed_executions.clear()
        self.due_moves.clear()
        self.starts.clear()

    def reset(self) -> Ranges:
        """Forget everything; the ranges to delete. The log is to be folded again from its start."""
        end = keys.partition_prefix(self.partition + 1)
        self.hot_jobs.clear()
        self.hot_executions.clear()
        self._clear()
        self.answered.clear()
        self.cursor = CursorRow()
        return [(family, self.prefix, end) for family in FAMILIES]

    def is_of_this_format(self) -> bool:
        """Whether the stored rows were written by this version of the read model."""
        return self.cursor.format == FORMAT

    # -- answers come out

    def job(self, tenant: str, job_id: str) -> tuple[JobRow, Progress] | None:
        """A job and where it stands."""
        key = keys.job_row(self.prefix, tenant, job_id)
        row, progress = self.read("jobs", key, JobRow), self.progress(tenant, job_id)
        return None if row is None or progress is None else (row, progress)

    def progress(self, tenant: str, job_id: str) -> Progress | None:
        """Where a job stands."""
        hot = self.hot_jobs.get(tenant, {}).get(job_id)
        key = keys.job_row(self.prefix, tenant, job_id)
        return self.read("progress", key, Progress) if hot is None else hot.progress

    def jobs_named(self, tenant: str, start: str) -> Iterator[tuple[str, JobRow, Progress]]:
        """(id, job, where it stands) of a tenant's jobs whose ids begin with `start`, by id. Reads committed rows only."""
        prefix = keys.job_row(self.prefix, tenant, "")
        first = prefix + start.encode()
        for key, value in self.rows.scan("jobs", first, first + b"\xff"):
            job_id = key[len(prefix) :].decode()
            found = self.job(tenant, job_id)
            if found is not None:
                yield job_id, _DECODERS[JobRow](value), found[1]

    def versions(self, tenant: str, job_id: str, through: int | None = None) -> Iterator[JobRow]:
        """Versions of a job, the latest first, from number `through` on. Reads committed rows only."""
        job = keys.job_row(self.prefix, tenant, job_id)
        current = self.read("jobs", job, JobRow)
        if current is not None and (through is None or current.version <= through):
            yield current
        start, end = keys.versions_of(job, through)
        for _, value in self.rows.scan("versions", start, end):
            yield _DECODERS[JobRow](value)

    def executions(
        self, tenant: str, job_id: str, start: bytes = b""
    ) -> Iterator[tuple[bytes, str, ExecutionRow]]:
        """(key, execution id, row) of a job's executions by instant, from key `start` on. Reads committed rows only."""
        job = keys.job_row(self.prefix, tenant, job_id)
        first, end = keys.executions_of(job)
        decode = _DECODERS[ExecutionRow]
        for key, value in self.rows.scan("executions", max(first, start), end):
            yield key, f"{job_id}:{keys.execution_suffix(job, key)}", decode(value)

    def has_execution(self, tenant: str, job_id: str, at: int) -> bool:
        """Whether the instant of a job became an execution, which may still be open."""
        return (
            self.execution_at(keys.execution_row(keys.job_row(self.prefix, tenant, job_id), at)) is not None
        )

    def skipped(self, tenant: str, job_id: str, start_at: int) -> Iterator[ExecutionRow]:
        """Ranges of skipped instants of a job that end at `start_at` or later, by time. Reads committed rows only."""
        job = keys.job_row(self.prefix, tenant, job_id)
        for _, first_at in self.rows.scan(
            "skips", keys.execution_row(job, start_at), keys.executions_of(job)[1]
        ):
            row = self.execution_at(keys.execution_row(job, _DECODERS[int](first_at), b"s"))
            if row is not None:
                yield row

    def command(self, tenant: str, command_id: str, job_id: str) -> CommandRow | None:
        """What a command of that job was answered."""
        return self.read("commands", keys.command_row(self.prefix, tenant, command_id, job_id), CommandRow)

    def commands(self, tenant: str, command_id: str) -> Iterator[CommandRow]:
        """What commands with that id were answered, whichever job they were for. Reads committed rows only."""
        start = keys.command_row(self.prefix, tenant, command_id, "")
        for _, value in self.rows.scan("commands", start, start[:-1] + b"\1"):
            yield _DECODERS[CommandRow](value)

    def queue(self, name: str) -> QueueRow | None:
        """This partition's copy of a declared queue."""
        return self.read("queues", self.prefix + name.encode(), QueueRow)

    def queues(self) -> Iterator[tuple[str, QueueRow]]:
        """(name, row) of this partition's copies of queues, by name. Reads committed rows only."""
        end = keys.partition_prefix(self.partition + 1)
        for key, value in self.rows.scan("queues", self.prefix, end):
            yield key[len(self.prefix) :].decode(), _DECODERS[QueueRow](value)

    def limit(self, tenant: str, name: str) -> LimitRow | None:
        """This partition's copy of a limit, a deleted one too."""
        return self.read("limits", keys.limit_row(self.prefix, tenant, name), LimitRow)

    def limits(self, tenant: str, start: str = "") -> Iterator[tuple[str, LimitRow]]:
        """(name, row) of this partition's copies of a tenant's limits, by name from `start` on. Reads committed rows only."""
        first = keys.limit_row(self.prefix, tenant, "")
        for key, value in self.rows.scan("limits", first + start.encode(), first[:-1] + b"\1"):
            yield key[len(first) :].decode(), _DECODERS[LimitRow](value)

    def calendar(self, tenant: str, name: str) -> CalendarRow | None:
        """This partition's copy of a calendar, a deleted one too."""
        return self.read("calendars", keys.calendar_row(self.prefix, tenant, name), CalendarRow)

    def calendars(self, tenant: str, start: str = "") -> Iterator[tuple[str, CalendarRow]]:
        """(name, row) of this partition's copies of a tenant's calendars, by name from `start` on. Reads committed rows only."""
        first = keys.calendar_row(self.prefix, tenant, "")
        for key, value in self.rows.scan("calendars", first + start.encode(), first[:-1] + b"\1"):
            yield key[len(first) :].decode(), _DECODERS[CalendarRow](value)

    def calendar_jobs(self, tenant: str, name: str) -> Iterator[str]:
        """Ids of jobs of this partition that depend, or depended, on a calendar. Reads committed rows only."""
        first = keys.calendar_job_row(self.prefix, tenant, name, "")
        for key, _ in self.rows.scan("calendar_jobs", first, first[:-1] + b"\1"):
            yield key[len(first) :].decode()

    def permits_used(self, tenant: str, name: str) -> PermitsUsedRow:
        """How much of a limit is used and asked for; to be asked of the limit's home."""
        key = keys.limit_row(self.prefix, tenant, name)
        return self.read("permits_used", key, PermitsUsedRow) or PermitsUsedRow()

    def permits_asked(self, tenant: str, name: str) -> PermitsAskedRow:
        """How many permits of a limit this partition has asked for and not got."""
        key = keys.limit_row(self.prefix, tenant, name)
        return self.read("permits_asked", key, PermitsAskedRow) or PermitsAskedRow()

    def task(self, name: str) -> TaskRow | None:
        """What a task takes, where this partition is its home."""
        return self.read("tasks", self.prefix + name.encode(), TaskRow)

    def tasks(self) -> Iterator[tuple[str, TaskRow]]:
        """(name, row) of the declared tasks whose home this is, by name. Reads committed rows only."""
        end = keys.partition_prefix(self.partition + 1)
        for key, value in self.rows.scan("tasks", self.prefix, end):
            yield key[len(self.prefix) :].decode(), _DECODERS[TaskRow](value)

    def execution(self, tenant: str, execution: str) -> ExecutionRow | None:
        """One execution with its attempts; None if it is not there, or not due yet."""
        hot = self.hot_executions.get(tenant, {}).get(execution)
        if hot is not None:
            return hot.row
        job = keys.job_row(self.prefix, tenant, job_of(execution))
        key = self._execution_key(tenant, execution, job)
        if key is None:
            return None
        # A range of skipped instants goes by its first one.
        return self.execution_at(key) or self.execution_at(key + b"s")

    def execution_at(self, key: bytes) -> ExecutionRow | None:
        """The execution under a key."""
        hot = self.changed_executions.get(key)
        return self.read("executions", key, ExecutionRow) if hot is None else hot.row

    def dead(self, tenant: str, start: bytes = b"") -> Iterator[tuple[bytes, int, str, DeadRow]]:
        """(key, given up at, execution id, row) of dead executions, the earliest first. Reads committed rows only."""
        first = keys.dead_row(self.prefix, tenant, 0, "")
        end = first[:-9] + b"\1"
        for key, value in self.rows.scan("dead", max(first, start), end):
            at, name = keys.dead_parts(key, first)
            yield key, at, name, _DECODERS[DeadRow](value)

    def alerts(self, tenant: str) -> Iterator[AlertRow]:
        """The latest alerts of a tenant, in no order. Reads committed rows only."""
        start = keys.alert_rows(self.prefix, tenant)
        for _, value in self.rows.scan("alerts", start, start[:-1] + b"\1"):
            yield _DECODERS[AlertRow](value)

    def operation(self, tenant: str, operation: str) -> OperationRow | None:
        """An operation whose home this partition is."""
        return self.read(OPERATIONS, operation_row(self.prefix, tenant, operation), OperationRow)

    def operations(self, tenant: str) -> Iterator[OperationRow]:
        """A tenant's operations whose home this partition is, by id. Reads committed rows only."""
        start = operation_row(self.prefix, tenant, "")
        for _, value in self.rows.scan(OPERATIONS, start, start[:-1] + b"\1"):
            yield _DECODERS[OperationRow](value)

    def owner(self) -> OwnerRow | None:
        """Who owns this partition; None where nobody ever did."""
        return self.read(OWNERS, self.prefix, OwnerRow)

    def worker(self, session: str) -> str:
        """Name of the worker behind a session; empty if it was never told."""
        return self.read("sessions", self.prefix + session.encode(), str) or ""

    # -- rows

    def read(self, family: str, key: bytes, kind: type[T]) -> T | None:
        """A row, pending or stored; None where there is none."""
        found = self.dirty[family].get(key)
        if found is None:
            stored = self.rows.get(family, key)
            found = None if stored is None else _DECODERS[kind](stored)
        return found

    def _cool(self) -> None:
        """Let go of what is committed: ended executions at once, everything where it is too much.

        Both kinds go together, since a hot execution must share its job's progress with the hot job.
        """
        for executions in self.hot_executions.values():
            for name in [name for name, hot in executions.items() if hot.row.outcome]:
                del executions[name]
        if (
            sum(map(len, self.hot_jobs.values())) + sum(map(len, self.hot_executions.values()))
            > self._hot_max
        ):
            self.hot_jobs.clear()
            self.hot_executions.clear()

    def open_job(self, tenant: str, job_id: str) -> HotJob:
        """A job that an event names. Raises BrokenFrameError."""
        hot = self.hot_jobs.setdefault(tenant, {})
        found = hot.get(job_id)
        if found is None:
            key = keys.job_row(self.prefix, tenant, job_id)
            progress = self.read("progress", key, Progress)
            if progress is None:
                raise BrokenFrameError(f"job {tenant}/{job_id} is not there")
            found = hot[job_id] = HotJob(key, progress, tenant, job_id.encode(), None, progress.status)
        return found

    def open_execution(self, tenant: str, execution: str) -> HotExecution:
        """An execution that an event names. Raises BrokenFrameError."""
        hot = self.hot_executions.setdefault(tenant, {})
        found = hot.get(execution)
        if found is None:
            found = hot[execution] = self._load(tenant, execution)
        return found

    def _load(self, tenant: str, execution: str) -> HotExecution:
        job = self.open_job(tenant, job_of(execution))
        key = self._execution_key(tenant, execution, job.key)
        row = None if key is None else self.read("executions", key, ExecutionRow)
        if key is None or row is None:
            raise BrokenFrameError(f"execution {tenant}/{execution} is not there")
        hot = HotExecution(key, row, job, *(row.lane or self.lane(job, row.version)))
        hot.filed = view_index.execution_entries(self.partition, hot)
        return hot

    def entered(self, key: bytes, row: ExecutionRow, job: HotJob) -> HotExecution:
        """A new execution of a job."""
        hot = self.changed_executions[key] = HotExecution(key, row, job, *self.lane(job, row.version))
        return hot

    def card(self, job: HotJob) -> JobCard:
        """What lists need of a job. Raises BrokenFrameError where it has no version."""
        if job.card is None:
            row = self.read("jobs", job.key, JobRow)
            if row is None:
                raise BrokenFrameError(f"job {job.tenant}/{job.name.decode()} has no version")
            job.card = keys.card_of(row)
        return job.card

    def lane(self, job: HotJob, version: int) -> tuple[str, str]:
        """Task and queue of a version of a job. Raises BrokenFrameError where it is not there."""
        card = self.card(job)
        if card.version != version:
            row = self.read("versions", keys.version_row(job.key, version), JobRow)
            if row is None:
                raise BrokenFrameError(f"job {job.tenant}/{job.name.decode()} has no version {version}")
            card = keys.card_of(row)
        return card.task, card.queue

    def _execution_key(self, tenant: str, execution: str, job: bytes) -> bytes | None:
        """Key of an execution's row; None for an id that names none."""
        suffix = execution.rpartition(":")[2]
        if suffix.startswith("r"):
            at = self.read("requests", self.prefix + f"{tenant}\0{execution}".encode(), int)
            return None if at is None else keys.execution_row(job, at, suffix.encode())
        # Written in one way only: of two spellings the owner would know one.
        is_instant = suffix.isascii() and suffix.isdigit() and len(suffix) < 19 and str(int(suffix)) == suffix
        return keys.execution_row(job, int(suffix)) if is_instant else None

    def touch(self, hot: HotExecution) -> Attempt:
        """The latest attempt of an execution that is about to change."""
        self.changed_executions[hot.key] = hot
        return hot.row.last

    def further(self, hot: HotExecution, status: str, due_at: int, queued_at: int) -> None:
        """Another attempt of an execution."""
        row = hot.row
        row.earlier = (*row.earlier, row.last)
        row.last = Attempt(row.last.number + 1, status, due_at, queued_at)

    def end(self, hot: HotExecution, outcome: str) -> None:
        """An execution has reached its outcome."""
        hot.row.outcome = outcome
        progress = hot.job.progress
        progress.open -= 1
        progress.last_outcome = outcome
        setattr(progress, outcome, getattr(progress, outcome) + 1)
        self.settle(hot.job)

    def move_next(self, tenant: str, job: HotJob, next_at: int, status: str = "") -> None:
        """The next instant of a job of `tenant` is another one, or NONE_AT: there is none; and so may be its status.

        Due counts follow: they are of what comes due, so a paused job is in none.
        """
        progress = job.progress
        before_at = progress.coming_at
        progress.status, progress.next_at = status or progress.status, next_at
        self.due_moves.append((tenant, before_at, progress.coming_at))
        self.changed_jobs[job.key] = job

    def settle(self, job: HotJob) -> None:
        """Close a job that has come to its end."""
        progress = job.progress
        self.changed_jobs[job.key] = job
        status = closed_status(progress.status, progress.next_at, progress.open, progress.last_outcome)
        if status is not None:
            progress.status = status

    def answer(
        self,
        event: Any,
        command: str,
        *,
        job_id: str,
        tenant: str,
        is_accepted: bool = True,
        reason: str = "",
        version: int = 0,
    ) -> None:
        """What a command was answered, for those who wait for it."""
        row = CommandRow(
            command,
            job_id,
            is_accepted,
            reason,
            getattr(event, "field", ""),
            getattr(event, "detail", ""),
            version,
            self.position,
            self.now,
        )
        key = keys.command_row(self.prefix, tenant, event.command_id, job_id)
        self.dirty["commands"][key] = row
        self.answered.append(key)
