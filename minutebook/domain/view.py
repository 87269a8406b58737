"""The read model of one partition: its log folded into rows that answer questions. No clock, no chance, no I/O.

The state is a function of the partition's log alone, whenever and however often it is committed, so that a digest of it
can be compared with one made by replay. Fold trusts the owner's decisions; an event that names a job or execution that
is not there breaks the log's promise and halts the partition.

Rows change in memory, where reads find them; `drain` gives what changed since, to be written in one batch with the
cursor. A row written meanwhile is written once, however often it changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

from minutebook.domain import view_drops, view_expiry, view_index
from minutebook.domain import view_rows as keys
from minutebook.domain.events import Event
from minutebook.domain.transitions import closed_status
from minutebook.domain.view_audit import note
from minutebook.domain.view_drain import drained, dropped
from minutebook.domain.view_folds import FOLDS
from minutebook.domain.view_keys import KeyRow
from minutebook.domain.view_reads import DECODERS, ViewReads
from minutebook.domain.view_retention import Retention, answer_shelf
from minutebook.domain.view_rows import (
    FAMILIES,
    FORMAT,
    Attempt,
    CommandRow,
    CursorRow,
    ExecutionRow,
    HotExecution,
    HotJob,
    JobCard,
    JobRow,
    Progress,
)
from minutebook.domain.view_starts import Starts
from minutebook.domain.view_sweep import Sweep
from minutebook.errors import BrokenFrameError
from minutebook.ids import job_of
from minutebook.store.port import Pending, Ranges, Rows

T = TypeVar("T")

_DEFAULT: Final = Retention()
HOT_MAX: Final = 32_768
"""Jobs and open executions, taken together, that one partition keeps decoded."""


class PartitionView(ViewReads):
    """The read model of `partition`, over `rows` that partitions share."""

    def __init__(
        self, rows: Rows, partition: int, hot_max: int = HOT_MAX, retention: Retention = _DEFAULT
    ) -> None:
        super().__init__(rows, partition, retention)
        self._sweep = Sweep(self.prefix)
        self.filed = 0
        """Rows that the frame that is folded has filed to go later."""
        self.has_turned = False
        """Whether days of history have gone since the last `drain`."""
        self.answered: list[bytes] = []
        """Keys of the commands answered since the caller last took them."""
        self.changed_keys: list[tuple[str, str, KeyRow]] = []
        """(tenant, id, row) of the API keys that changed since the caller last took them."""
        self._hot_max = hot_max
        self.starts: list[Starts] = []
        """Attempts that started since the last `drain`."""
        self.starts_from = 0
        """The first hour of which starts are kept, as of the last `drain`."""
        self.due_moves: list[tuple[str, int, int]] = []
        """(tenant, next instant that comes due before, and now) of jobs since the last `drain`; NONE_AT = none."""
        self.now = 0
        self.position = self.cursor.position

    # -- the log comes in

    def fold(self, events: Iterable[Event], now: int, position: int) -> None:
        """Apply the events of the frame at `position`, decided at `now`. Raises BrokenFrameError."""
        self.now, self.position, self.filed = now, position, 0
        first = now // keys.DAY_MS - self.retention.history_days
        if first > self.kept_from:
            view_drops.drop_days(self, first)
        for event in events:
            apply = FOLDS.get(type(event))
            if apply is not None:
                apply(self, event)
        self._sweep.go_on(self)

    def advance(self, cursor: CursorRow) -> None:
        """Move the cursor: after a frame is folded, or a void record passed."""
        self.cursor = cursor
        self.dirty["cursors"][self.prefix] = cursor

    def pending(self) -> int:
        """Rows changed since the last `drain`."""
        changed = len(self.changed_jobs) + len(self.changed_executions)
        return changed + sum(map(len, self.dirty.values()))

    def drain(self) -> tuple[Pending, Ranges]:
        """All rows changed since the last call, encoded, and ranges that are to be deleted first, in one batch."""
        found, ranges = drained(self), dropped(self)
        self._clear()
        self._cool()
        return found, ranges

    def _clear(self) -> None:
        for dirty in self.dirty.values():
            dirty.clear()
        self.changed_jobs.clear()
        self.changed_executions.clear()
        self.due_moves.clear()
        self.starts.clear()
        self.has_turned = False

    def reset(self) -> Ranges:
        """Forget everything; the ranges to delete. The log is to be folded again from its start."""
        end = keys.partition_prefix(self.partition + 1)
        self.hot_jobs.clear()
        self.hot_executions.clear()
        self._clear()
        self.answered.clear()
        self.changed_keys.clear()
        self.cursor = CursorRow()
        self.kept_from, self.forgotten_through = 0, -1
        self._sweep = Sweep(self.prefix)
        return [(family, self.prefix, end) for family in FAMILIES]

    def is_of_this_format(self) -> bool:
        """Whether the stored rows were written by this version of the read model."""
        kept = self.kept()
        return self.cursor.format == FORMAT and (kept is None or kept.retention == self.retention)

    # -- rows

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
            found.filed_at = progress.coming_at
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
        key = self.execution_key(tenant, execution, job.key)
        stored = None if key is None else self.stored(key)
        if key is None or stored is None:
            raise BrokenFrameError(f"execution {tenant}/{execution} is not there")
        return self.stored_execution(key, stored, job)

    def stored_execution(self, key: bytes, stored: bytes, job: HotJob) -> HotExecution:
        """An execution of a job as it is stored."""
        return self.execution_of(key, DECODERS[ExecutionRow](stored), job)

    def execution_of(self, key: bytes, row: ExecutionRow, job: HotJob) -> HotExecution:
        """An execution of a job, from its row as it is stored."""
        hot = HotExecution(key, row, job, *(row.lane or self.lane(job, row.version)))
        hot.filed = view_index.execution_entries(self.partition, self.kept_from, hot)
        return hot

    def entered(self, key: bytes, row: ExecutionRow, job: HotJob) -> HotExecution:
        """A new execution of a job, in place of one that may have been dropped from under its key."""
        hot = HotExecution(key, row, job, *self.lane(job, row.version))
        dropped = self.changed_executions.get(key)
        if dropped is not None:
            hot.filed = dropped.filed
        self.changed_executions[key] = hot
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
        if outcome == "dead":
            view_expiry.given_up(self, hot)
        elif hot.row.scheduled_at < self.kept_at:
            view_expiry.ended_late(self, hot)
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
            view_expiry.closed(self, job)

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
        actor: str | None = None,
        why: str | None = None,
    ) -> None:
        """What a command was answered, and who wanted it and why: as the event says, where these two are not given."""
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
        shelf = view_index.shelf_of(self.partition, answer_shelf(self.now))
        self.dirty["commands"][view_index.on_shelf(shelf, key)] = row
        self.answered.append(key)
        note(self, tenant, row, event, actor, why)
