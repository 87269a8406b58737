"""Answers of the read model of one partition: rows, pending or stored.

What scans reads committed rows only.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from minutebook.domain import view_index
from minutebook.domain import view_rows as keys
from minutebook.domain.view_audit import AuditRow
from minutebook.domain.view_keys import KeyRow
from minutebook.domain.view_operations import FAMILY as OPERATIONS
from minutebook.domain.view_operations import OperationRow, operation_row
from minutebook.domain.view_owners import FAMILY as OWNERS
from minutebook.domain.view_owners import OwnerRow
from minutebook.domain.view_retention import (
    Retention,
    RetentionRow,
    answer_shelf,
    first_answers,
)
from minutebook.domain.view_rows import (
    FAMILIES,
    AlertRow,
    CalendarRow,
    CommandRow,
    CursorRow,
    DeadRow,
    ExecutionRow,
    HotExecution,
    HotJob,
    JobRow,
    LimitRow,
    PermitsAskedRow,
    PermitsUsedRow,
    Progress,
    QueueRow,
    TaskRow,
)
from minutebook.ids import job_of
from minutebook.store.port import Rows

T = TypeVar("T")

DECODERS: Final[dict[type, Callable[[bytes], Any]]] = {
    kind: msgspec.msgpack.Decoder(kind).decode
    for kind in (
        JobRow,
        Progress,
        ExecutionRow,
        CommandRow,
        QueueRow,
        CursorRow,
        RetentionRow,
        DeadRow,
        LimitRow,
        PermitsUsedRow,
        PermitsAskedRow,
        AlertRow,
        OperationRow,
        TaskRow,
        CalendarRow,
        KeyRow,
        AuditRow,
        OwnerRow,
        str,
        int,
    )
}


class ViewReads:
    """The rows of `partition`, over `rows` that partitions share."""

    def __init__(self, rows: Rows, partition: int, retention: Retention) -> None:
        self.partition = partition
        self.retention = retention
        self.rows = rows
        self.prefix = keys.partition_prefix(partition)
        self.hot_jobs: dict[str, dict[str, HotJob]] = {}
        self.hot_executions: dict[str, dict[str, HotExecution]] = {}
        self.dirty: dict[str, dict[bytes, Any]] = {family: {} for family in FAMILIES}
        self.changed_jobs: dict[bytes, HotJob] = {}
        """Jobs whose progress changed since it was written last."""
        self.changed_executions: dict[bytes, HotExecution] = {}
        self.cursor = self.read("cursors", self.prefix, CursorRow) or CursorRow()
        kept = self.kept()
        self.kept_from = 0 if kept is None else kept.kept_from
        """The first day of which history is kept, counted from the epoch."""
        self.forgotten_through = -1 if kept is None else kept.forgotten_through
        """The last day of which the owner names nothing any more that had ended by then."""

    def kept(self) -> RetentionRow | None:
        """By which retention the rows are kept; None where they are of another version, or there are none."""
        is_ours = self.cursor.format == keys.FORMAT
        return self.read("retention", self.prefix, RetentionRow) if is_ours else None

    @property
    def kept_at(self) -> int:
        """The instant from which history is kept."""
        return self.kept_from * keys.DAY_MS

    @property
    def today(self) -> int:
        """The day of the latest frame, counted from the epoch."""
        return self.kept_from + self.retention.history_days

    def job(self, tenant: str, job_id: str) -> tuple[JobRow, Progress] | None:
        """A job and where it stands."""
        row = self.read("jobs", keys.job_row(self.prefix, tenant, job_id), JobRow)
        if row is None:
            return None
        progress = self.progress(tenant, job_id)
        return None if progress is None else (row, progress)

    def progress(self, tenant: str, job_id: str) -> Progress | None:
        """Where a job stands."""
        hot = self.hot_jobs.get(tenant, {}).get(job_id)
        if hot is not None:
            return hot.progress
        return self.read("progress", keys.job_row(self.prefix, tenant, job_id), Progress)

    def jobs_named(self, tenant: str, start: str) -> Iterator[tuple[str, JobRow, Progress]]:
        """(id, job, where it stands) of a tenant's jobs whose ids begin with `start`, by id. Reads committed rows only."""
        prefix = keys.job_row(self.prefix, tenant, "")
        first = prefix + start.encode()
        for key, value in self.rows.scan("jobs", first, first + b"\xff"):
            job_id = key[len(prefix) :].decode()
            found = self.job(tenant, job_id)
            if found is not None:
                yield job_id, DECODERS[JobRow](value), found[1]

    def versions(self, tenant: str, job_id: str, through: int | None = None) -> Iterator[JobRow]:
        """Versions of a job, the latest first, from number `through` on. Reads committed rows only."""
        job = keys.job_row(self.prefix, tenant, job_id)
        current = self.read("jobs", job, JobRow)
        if current is not None and (through is None or current.version <= through):
            yield current
        start, end = keys.versions_of(job, through)
        for _, value in self.rows.scan("versions", start, end):
            yield DECODERS[JobRow](value)

    def executions(
        self, tenant: str, job_id: str, start: bytes = b""
    ) -> Iterator[tuple[bytes, str, ExecutionRow]]:
        """(key, execution id, row) of a job's executions by instant, from key `start` on. Reads committed rows only."""
        job = keys.job_row(self.prefix, tenant, job_id)
        first, end = keys.execution_row(job, 0), keys.execution_row(job, keys.AT_MAX)
        decode = DECODERS[ExecutionRow]
        for key, value in self.history(job, max(first, start), end):
            yield key, f"{job_id}:{keys.execution_suffix(job, key)}", decode(value)

    def has_execution(self, tenant: str, job_id: str, at: int) -> bool:
        """Whether the instant of a job became an execution, which may still be open."""
        return (
            self.execution_at(keys.execution_row(keys.job_row(self.prefix, tenant, job_id), at)) is not None
        )

    def skipped(self, tenant: str, job_id: str, start_at: int) -> Iterator[ExecutionRow]:
        """Ranges of skipped instants of a job that end at `start_at` or later, by time. Reads committed rows only."""
        job = keys.job_row(self.prefix, tenant, job_id)
        first, end = keys.execution_row(job, start_at), keys.executions_of(job)[1]
        # A range is filed under the day on which it was recorded, so it ends on that day or before.
        days = self._skip_days(start_at // keys.DAY_MS)
        for _, first_at in heapq.merge(*(self._on_shelf("skips", day, first, end) for day in days)):
            row = self.execution_at(keys.execution_row(job, DECODERS[int](first_at), b"s"))
            if row is not None:
                yield row

    def skips_of(self, start: bytes, end: bytes) -> list[bytes]:
        """Keys of what tells of skipped ranges, with an execution's key from `start` up to `end`, pending or stored."""
        pending = [key for key in self.dirty["skips"] if start <= view_index.off_shelf(key) < end]
        stored = (
            view_index.on_shelf(view_index.shelf_of(self.partition, day), key)
            for day in self._skip_days(0)
            for key, _ in self._on_shelf("skips", day, start, end)
        )
        return [*pending, *stored]

    def _skip_days(self, first: int) -> Iterator[int]:
        last = view_index.STANDING - 1
        return view_index.shelves_between(
            self.rows, "skips", self.partition, max(first, self.kept_from), last
        )

    def command(self, tenant: str, command_id: str, job_id: str) -> CommandRow | None:
        """What a command of that job was answered."""
        key = keys.command_row(self.prefix, tenant, command_id, job_id)
        for shelf in self._answer_shelves():
            found = self.read("commands", view_index.on_shelf(shelf, key), CommandRow)
            if found is not None:
                return found
        return None

    def commands(self, tenant: str, command_id: str) -> Iterator[CommandRow]:
        """What commands with that id were answered, whichever job they were for. Reads committed rows only."""
        for shelf in self._answer_shelves():
            start = view_index.on_shelf(shelf, keys.command_row(self.prefix, tenant, command_id, ""))
            for _, value in self.rows.scan("commands", start, start[:-1] + b"\1"):
                yield DECODERS[CommandRow](value)

    def _answer_shelves(self) -> Iterator[bytes]:
        """Where answers lie, the latest first."""
        last = answer_shelf(self.today * keys.DAY_MS)
        for number in range(last, first_answers(self.retention, self.today) - 1, -1):
            yield view_index.shelf_of(self.partition, number)

    def queue(self, name: str) -> QueueRow | None:
        """This partition's copy of a declared queue."""
        return self.read("queues", self.prefix + name.encode(), QueueRow)

    def queues(self) -> Iterator[tuple[str, QueueRow]]:
        """(name, row) of this partition's copies of queues, by name. Reads committed rows only."""
        end = keys.partition_prefix(self.partition + 1)
        for key, value in self.rows.scan("queues", self.prefix, end):
            yield key[len(self.prefix) :].decode(), DECODERS[QueueRow](value)

    def limit(self, tenant: str, name: str) -> LimitRow | None:
        """This partition's copy of a limit, a deleted one too."""
        return self.read("limits", keys.limit_row(self.prefix, tenant, name), LimitRow)

    def limits(self, tenant: str, start: str = "") -> Iterator[tuple[str, LimitRow]]:
        """(name, row) of this partition's copies of a tenant's limits, by name from `start` on. Reads committed rows only."""
        first = keys.limit_row(self.prefix, tenant, "")
        for key, value in self.rows.scan("limits", first + start.encode(), first[:-1] + b"\1"):
            yield key[len(first) :].decode(), DECODERS[LimitRow](value)

    def calendar(self, tenant: str, name: str) -> CalendarRow | None:
        """This partition's copy of a calendar, a deleted one too."""
        return self.read("calendars", keys.calendar_row(self.prefix, tenant, name), CalendarRow)

    def calendars(self, tenant: str, start: str = "") -> Iterator[tuple[str, CalendarRow]]:
        """(name, row) of this partition's copies of a tenant's calendars, by name from `start` on. Reads committed rows only."""
        first = keys.calendar_row(self.prefix, tenant, "")
        for key, value in self.rows.scan("calendars", first + start.encode(), first[:-1] + b"\1"):
            yield key[len(first) :].decode(), DECODERS[CalendarRow](value)

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
            yield key[len(self.prefix) :].decode(), DECODERS[TaskRow](value)

    def execution(self, tenant: str, execution: str) -> ExecutionRow | None:
        """One execution with its attempts; None if it is not there, or not due yet."""
        hot = self.hot_executions.get(tenant, {}).get(execution)
        if hot is not None:
            return hot.row
        job = keys.job_row(self.prefix, tenant, job_of(execution))
        key = self.execution_key(tenant, execution, job)
        if key is None:
            return None
        # A range of skipped instants goes by its first one.
        return self.execution_at(key) or self.execution_at(key + b"s")

    def execution_at(self, key: bytes) -> ExecutionRow | None:
        """The execution under a key."""
        hot = self.changed_executions.get(key)
        if hot is not None:
            return None if hot.is_dropped else hot.row
        stored = self.stored(key)
        return None if stored is None else DECODERS[ExecutionRow](stored)

    def stored(self, key: bytes) -> bytes | None:
        """The execution under a key as it is stored: with what stands, or on the shelf of its day."""
        day = keys.instant_of(key) // keys.DAY_MS
        found = None
        if day >= self.kept_from:
            found = self.rows.get(
                "executions", view_index.on_shelf(view_index.shelf_of(self.partition, day), key)
            )
        standing = view_index.shelf_of(self.partition, view_index.STANDING)
        return self.rows.get("executions", view_index.on_shelf(standing, key)) if found is None else found

    def history(
        self, job: bytes, first: bytes, end: bytes, *, is_ascending: bool = True
    ) -> Iterator[tuple[bytes, bytes]]:
        """(key, execution as it is stored) of a job, first <= key < end, by key. Reads committed rows only."""
        first_day, last_day = (keys.instant_of(key) // keys.DAY_MS for key in (first, end))
        first_day = max(first_day, self.kept_from)
        days = view_index.days_between(self.rows, self.partition, first_day, last_day, is_ascending)
        ended = (
            found for day in days for found in self._on_shelf("executions", day, first, end, is_ascending)
        )
        standing = self._on_shelf("executions", view_index.STANDING, first, end, is_ascending)
        return heapq.merge(standing, ended, reverse=not is_ascending)

    def _on_shelf(
        self, family: str, day: int, first: bytes, end: bytes, is_ascending: bool = True
    ) -> Iterator[tuple[bytes, bytes]]:
        shelf = view_index.shelf_of(self.partition, day)
        scan = self.rows.scan if is_ascending else self.rows.scan_back
        start, stop = view_index.on_shelf(shelf, first), view_index.on_shelf(shelf, end)
        for stored, value in scan(family, start, stop):
            yield view_index.off_shelf(stored), value

    def dead(self, tenant: str, start: bytes = b"") -> Iterator[tuple[bytes, int, str, DeadRow]]:
        """(key, given up at, execution id, row) of dead executions, the earliest first. Reads committed rows only."""
        first = keys.dead_row(self.prefix, tenant, 0, "")
        end = first[:-9] + b"\1"
        for key, value in self.rows.scan("dead", max(first, start), end):
            at, name = keys.dead_parts(key, first)
            yield key, at, name, DECODERS[DeadRow](value)

    def alerts(self, tenant: str) -> Iterator[AlertRow]:
        """The latest alerts of a tenant, in no order. Reads committed rows only."""
        start = keys.alert_rows(self.prefix, tenant)
        for _, value in self.rows.scan("alerts", start, start[:-1] + b"\1"):
            yield DECODERS[AlertRow](value)

    def operation(self, tenant: str, operation: str) -> OperationRow | None:
        """An operation whose home this partition is."""
        return self.read(OPERATIONS, operation_row(self.prefix, tenant, operation), OperationRow)

    def operations(self, tenant: str) -> Iterator[OperationRow]:
        """A tenant's operations whose home this partition is, by id. Reads committed rows only."""
        start = operation_row(self.prefix, tenant, "")
        for _, value in self.rows.scan(OPERATIONS, start, start[:-1] + b"\1"):
            yield DECODERS[OperationRow](value)

    def owner(self) -> OwnerRow | None:
        """Who owns this partition; None where nobody ever did."""
        return self.read(OWNERS, self.prefix, OwnerRow)

    def worker(self, session: str) -> str:
        """Name of the worker behind a session; empty if it was never told."""
        return self.read("sessions", self.prefix + session.encode(), str) or ""

    def read(self, family: str, key: bytes, kind: type[T]) -> T | None:
        """A row, pending or stored; None where there is none."""
        dirty = self.dirty[family]
        if key in dirty:
            pending: T | None = dirty[key]
            return pending
        stored = self.rows.get(family, key)
        return None if stored is None else DECODERS[kind](stored)

    def rows_of(self, family: str, start: bytes, end: bytes, kind: type[T]) -> Iterator[tuple[bytes, T]]:
        """(key, row) with start <= key < end. Reads committed rows only."""
        decode = DECODERS[kind]
        for key, value in self.rows.scan(family, start, end):
            yield key, decode(value)

    def keys_between(self, family: str, start: bytes, end: bytes) -> set[bytes]:
        """Keys of rows with start <= key < end, pending or stored."""
        dirty = self.dirty[family]
        pending = {key for key, row in dirty.items() if row is not None and start <= key < end}
        return pending | {key for key, _ in self.rows.scan(family, start, end) if key not in dirty}

    def execution_key(self, tenant: str, execution: str, job: bytes) -> bytes | None:
        """Key of an execution's row; None for an id that names none."""
        suffix = execution.rpartition(":")[2]
        if suffix.startswith("r"):
            at = self.read("requests", keys.request_row(self.prefix, tenant, execution), int)
            return None if at is None else keys.execution_row(job, at, suffix.encode())
        # Written in one way only: of two spellings the owner would know one.
        is_instant = suffix.isascii() and suffix.isdigit() and len(suffix) < 19 and str(int(suffix)) == suffix
        return keys.execution_row(job, int(suffix)) if is_instant else None
