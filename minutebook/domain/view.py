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

from minutebook.domain import events as facts
from minutebook.domain import view_rows as keys
from minutebook.domain.events import Event
from minutebook.domain.state import NONE_AT, UNCHANGED
from minutebook.domain.transitions import closed_status
from minutebook.domain.view_rows import (
    FAMILIES,
    FORMAT,
    Attempt,
    CommandRow,
    CursorRow,
    ExecutionRow,
    HotExecution,
    HotJob,
    JobRow,
    Progress,
    QueueRow,
    Skip,
)
from minutebook.errors import BrokenFrameError
from minutebook.ids import job_of
from minutebook.store.port import Pending, Ranges, Rows

T = TypeVar("T")

HOT_MAX: Final = 32_768
"""Jobs and open executions, taken together, that one partition keeps decoded."""

_encode = msgspec.msgpack.Encoder().encode
_DECODERS: Final[dict[type, Callable[[bytes], Any]]] = {
    kind: msgspec.msgpack.Decoder(kind).decode
    for kind in (JobRow, Progress, ExecutionRow, CommandRow, QueueRow, CursorRow, str, int)
}


class PartitionView:
    """The read model of `partition`, over `rows` that partitions share."""

    def __init__(self, rows: Rows, partition: int, hot_max: int = HOT_MAX) -> None:
        self.partition = partition
        self.answered: list[bytes] = []
        """Keys of the commands answered since the caller last took them."""
        self._rows = rows
        self._prefix = keys.partition_prefix(partition)
        self._hot_max = hot_max
        self._jobs: dict[str, dict[str, HotJob]] = {}
        self._executions: dict[str, dict[str, HotExecution]] = {}
        self._dirty: dict[str, dict[bytes, Any]] = {family: {} for family in FAMILIES}
        self.cursor = self._read("cursors", self._prefix, CursorRow) or CursorRow()
        self._now = 0
        self._position = self.cursor.position

    # -- the log comes in

    def fold(self, events: Iterable[Event], now: int, position: int) -> None:
        """Apply the events of the frame at `position`, decided at `now`. Raises BrokenFrameError."""
        self._now, self._position = now, position
        for event in events:
            apply = _FOLDS.get(type(event))
            if apply is not None:
                apply(self, event)

    def advance(self, cursor: CursorRow) -> None:
        """Move the cursor: after a frame is folded, or a void record passed."""
        self.cursor = cursor
        self._dirty["cursors"][self._prefix] = cursor

    def pending(self) -> int:
        """Rows changed since the last `drain`."""
        return sum(map(len, self._dirty.values()))

    def drain(self) -> Pending:
        """All rows changed since the last call, encoded: to be written at once, in one batch."""
        found = {
            family: {key: _encode(row) for key, row in dirty.items()}
            for family, dirty in self._dirty.items()
            if dirty
        }
        for dirty in self._dirty.values():
            dirty.clear()
        self._cool()
        return found

    def reset(self) -> Ranges:
        """Forget everything; the ranges to delete. The log is to be folded again from its start."""
        end = keys.partition_prefix(self.partition + 1)
        self._jobs.clear()
        self._executions.clear()
        for dirty in self._dirty.values():
            dirty.clear()
        self.answered.clear()
        self.cursor = CursorRow()
        return [(family, self._prefix, end) for family in FAMILIES]

    def is_of_this_format(self) -> bool:
        """Whether the stored rows were written by this version of the read model."""
        return self.cursor.format == FORMAT

    # -- answers come out

    def job(self, tenant: str, job_id: str) -> tuple[JobRow, Progress] | None:
        """A job and where it stands."""
        key = keys.job_row(self._prefix, tenant, job_id)
        hot = self._jobs.get(tenant, {}).get(job_id)
        row = self._read("jobs", key, JobRow)
        progress = self._read("progress", key, Progress) if hot is None else hot.progress
        return None if row is None or progress is None else (row, progress)

    def executions(
        self, tenant: str, job_id: str, start: bytes = b""
    ) -> Iterator[tuple[bytes, str, ExecutionRow]]:
        """(key, execution id, row) of a job's executions by instant, from key `start` on. Reads committed rows only."""
        job = keys.job_row(self._prefix, tenant, job_id)
        first, end = keys.executions_of(job)
        decode = _DECODERS[ExecutionRow]
        for key, value in self._rows.scan("executions", max(first, start), end):
            yield key, f"{job_id}:{keys.execution_suffix(job, key)}", decode(value)

    def command(self, tenant: str, command_id: str, job_id: str) -> CommandRow | None:
        """What a command of that job was answered."""
        return self._read("commands", keys.command_row(self._prefix, tenant, command_id, job_id), CommandRow)

    def commands(self, tenant: str, command_id: str) -> Iterator[CommandRow]:
        """What commands with that id were answered, whichever job they were for. Reads committed rows only."""
        start = keys.command_row(self._prefix, tenant, command_id, "")
        for _, value in self._rows.scan("commands", start, start[:-1] + b"\1"):
            yield _DECODERS[CommandRow](value)

    def queue(self, name: str) -> QueueRow | None:
        """This partition's copy of a declared queue."""
        return self._read("queues", self._prefix + name.encode(), QueueRow)

    def worker(self, session: str) -> str:
        """Name of the worker behind a session; empty if it was never told."""
        return self._read("sessions", self._prefix + session.encode(), str) or ""

    # -- rows

    def _read(self, family: str, key: bytes, kind: type[T]) -> T | None:
        found = self._dirty[family].get(key)
        if found is None:
            stored = self._rows.get(family, key)
            found = None if stored is None else _DECODERS[kind](stored)
        return found

    def _cool(self) -> None:
        """Let go of what is committed: ended executions at once, everything where it is too much.

        Both kinds go together, since a hot execution must share its job's progress with the hot job.
        """
        for executions in self._executions.values():
            for name in [name for name, hot in executions.items() if hot.row.outcome]:
                del executions[name]
        if sum(map(len, self._jobs.values())) + sum(map(len, self._executions.values())) > self._hot_max:
            self._jobs.clear()
            self._executions.clear()

    def _job(self, tenant: str, job_id: str) -> HotJob:
        hot = self._jobs.setdefault(tenant, {})
        found = hot.get(job_id)
        if found is None:
            key = keys.job_row(self._prefix, tenant, job_id)
            progress = self._read("progress", key, Progress)
            if progress is None:
                raise BrokenFrameError(f"job {tenant}/{job_id} is not there")
            found = hot[job_id] = HotJob(key, progress)
        return found

    def _execution(self, tenant: str, execution: str) -> HotExecution:
        hot = self._executions.setdefault(tenant, {})
        found = hot.get(execution)
        if found is None:
            found = hot[execution] = self._load(tenant, execution)
        return found

    def _load(self, tenant: str, execution: str) -> HotExecution:
        job = self._job(tenant, job_of(execution))
        suffix = execution.rpartition(":")[2]
        if suffix.startswith("r"):
            scheduled_at = self._read("requests", self._prefix + f"{tenant}\0{execution}".encode(), int)
            key = keys.execution_row(
                job.key, NONE_AT if scheduled_at is None else scheduled_at, suffix.encode()
            )
        else:
            key = keys.execution_row(job.key, int(suffix))
        row = self._read("executions", key, ExecutionRow)
        if row is None:
            raise BrokenFrameError(f"execution {tenant}/{execution} is not there")
        return HotExecution(key, row, job)

    def _touch(self, hot: HotExecution) -> Attempt:
        """The latest attempt of an execution that is about to change."""
        self._dirty["executions"][hot.key] = hot.row
        return hot.row.last

    def _further(self, hot: HotExecution, status: str, due_at: int, queued_at: int) -> None:
        row = hot.row
        row.earlier = (*row.earlier, row.last)
        row.last = Attempt(row.last.number + 1, status, due_at, queued_at)

    def _end(self, hot: HotExecution, outcome: str) -> None:
        """An execution has reached its outcome."""
        hot.row.outcome = outcome
        progress = hot.job.progress
        progress.open -= 1
        progress.last_outcome = outcome
        setattr(progress, outcome, getattr(progress, outcome) + 1)
        self._settle(hot.job)

    def _settle(self, job: HotJob) -> None:
        """Close a job that has come to its end."""
        progress = job.progress
        self._dirty["progress"][job.key] = progress
        status = closed_status(progress.status, progress.next_at, progress.open, progress.last_outcome)
        if status is not None:
            progress.status = status

    def _answer(
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
        row = CommandRow(
            command,
            job_id,
            is_accepted,
            reason,
            getattr(event, "field", ""),
            getattr(event, "detail", ""),
            version,
            self._position,
            self._now,
        )
        key = keys.command_row(self._prefix, tenant, event.command_id, job_id)
        self._dirty["commands"][key] = row
        self.answered.append(key)

    # -- jobs

    def _submitted(self, event: facts.JobSubmitted) -> None:
        key = keys.job_row(self._prefix, event.tenant, event.job_id)
        self._dirty["jobs"][key] = JobRow(
            1,
            event.task,
            event.payload,
            event.queue,
            event.cron,
            event.zone,
            event.late,
            event.timeout_ms,
            event.priority,
            event.next_at,
            event.accepted_at,
            event.actor,
            event.traceparent,
        )
        progress = Progress("active", event.next_at)
        self._dirty["progress"][key] = progress
        self._jobs.setdefault(event.tenant, {})[event.job_id] = HotJob(key, progress)
        self._answer(event, "SubmitJob", job_id=event.job_id, tenant=event.tenant, version=1)

    def _cancelled(self, event: facts.JobCancelled) -> None:
        job = self._job(event.tenant, event.job_id)
        job.progress.status = "cancelled"
        job.progress.next_at = NONE_AT
        for name in event.executions:
            hot = self._execution(event.tenant, name)
            attempt = self._touch(hot)
            attempt.status, attempt.ended_at = "cancelled", self._now
            self._end(hot, "cancelled")
        self._settle(job)
        self._answer(event, "CancelJob", job_id=event.job_id, tenant=event.tenant, version=1)

    def _requested(self, event: facts.ExecutionRequested) -> None:
        job = self._job(event.tenant, event.job_id)
        at = event.accepted_at
        key = keys.execution_row(job.key, at, event.execution.rpartition(":")[2].encode())
        row = ExecutionRow(1, at, "", Attempt(1, "scheduled", at))
        self._dirty["requests"][self._prefix + f"{event.tenant}\0{event.execution}".encode()] = at
        self._dirty["executions"][key] = row
        self._executions.setdefault(event.tenant, {})[event.execution] = HotExecution(key, row, job)
        job.progress.open += 1
        self._settle(job)
        self._answer(event, "RunJobNow", job_id=event.job_id, tenant=event.tenant, version=1)

    def _skipped(self, event: facts.ExecutionsSkipped) -> None:
        job = self._job(event.tenant, event.job_id)
        key = keys.execution_row(job.key, event.first_at, b"s")
        skip = Skip(event.reason, event.last_at, event.count)
        attempt = Attempt(1, "skipped", event.first_at, ended_at=self._now)
        self._dirty["executions"][key] = ExecutionRow(1, event.first_at, "skipped", attempt, skip=skip)
        if event.next_at != UNCHANGED:
            job.progress.next_at = event.next_at
        job.progress.skipped += event.count
        self._settle(job)

    # -- executions come due

    def _due(self, event: Any, status: str) -> None:
        now, dirty, progresses = self._now, self._dirty["executions"], self._dirty["progress"]
        execution_row = keys.execution_row
        sessions, session = _sessions(event)
        jobs = [self._jobs.setdefault(tenant, {}) for tenant in event.tenants]
        hots = [self._executions.setdefault(tenant, {}) for tenant in event.tenants]
        started_at = now if status == "running" else NONE_AT
        for tenant, execution, version, scheduled_at, due_at, next_at, holder in zip(
            event.tenant,
            event.executions,
            event.versions,
            event.scheduled_at,
            event.due_at,
            event.next_at,
            session,
            strict=True,
        ):
            if next_at == UNCHANGED:
                self._due_again(event.tenants[tenant], execution, status, sessions[holder])
                continue
            job_id = execution.rpartition(":")[0]
            job = jobs[tenant].get(job_id) or self._job(event.tenants[tenant], job_id)
            progress = job.progress
            progress.open += 1
            progress.next_at = next_at
            progresses[job.key] = progress
            key = execution_row(job.key, scheduled_at)
            attempt = Attempt(1, status, due_at, now, started_at, NONE_AT, sessions[holder])
            row = ExecutionRow(version, scheduled_at, "", attempt)
            dirty[key] = row
            hots[tenant][execution] = HotExecution(key, row, job)

    def _due_again(self, tenant: str, execution: str, status: str, session: str) -> None:
        """A retry, a run-now or a wait that is over: its attempt is there already."""
        attempt = self._touch(self._execution(tenant, execution))
        attempt.status, attempt.queued_at, attempt.session = status, self._now, session
        attempt.started_at = self._now if status == "running" else NONE_AT

    def _due_granted(self, event: facts.ExecutionsDueGranted) -> None:
        self._due(event, "running")

    def _queued(self, event: facts.ExecutionsQueued) -> None:
        self._due(event, "queued")

    def _granted(self, event: facts.ExecutionsGranted) -> None:
        now, dirty, sessions = self._now, self._dirty["executions"], event.sessions
        hots = [self._executions.setdefault(tenant, {}) for tenant in event.tenants]
        for tenant, execution, holder in zip(event.tenant, event.executions, event.session, strict=True):
            hot = hots[tenant].get(execution) or self._execution(event.tenants[tenant], execution)
            row = hot.row
            attempt = row.last
            attempt.status, attempt.started_at, attempt.session = "running", now, sessions[holder]
            dirty[hot.key] = row

    # -- attempts end

    def _succeeded(self, event: facts.AttemptsSucceeded) -> None:
        now, dirty, progresses = self._now, self._dirty["executions"], self._dirty["progress"]
        hots = [self._executions.setdefault(tenant, {}) for tenant in event.tenants]
        for tenant, execution in zip(event.tenant, event.executions, strict=True):
            hot = hots[tenant].get(execution) or self._execution(event.tenants[tenant], execution)
            row, job = hot.row, hot.job
            row.outcome = "succeeded"
            attempt = row.last
            attempt.status, attempt.ended_at = "succeeded", now
            dirty[hot.key] = row
            progress = job.progress
            progress.open -= 1
            progress.succeeded += 1
            progress.last_outcome = "succeeded"
            progresses[job.key] = progress
            if not progress.open and progress.next_at < 0:
                self._settle(job)

    def _failed(self, event: facts.AttemptFailed) -> None:
        hot = self._execution(event.tenant, event.execution)
        attempt = self._touch(hot)
        attempt.status, attempt.ended_at = "failed", self._now
        attempt.error_type, attempt.message = event.error_type, event.message
        if event.retry_at >= 0:
            self._further(hot, "scheduled", event.retry_at, NONE_AT)

    def _lost(self, event: facts.AttemptsLost) -> None:
        for tenant, execution, has_retry in zip(event.tenant, event.executions, event.has_retry, strict=True):
            if event.cause == "session_died" and has_retry:
                # A withdrawal that is counted as a loss afterwards: the attempt waits already, and stays so.
                continue
            hot = self._execution(event.tenants[tenant], execution)
            attempt = self._touch(hot)
            attempt.status, attempt.ended_at, attempt.error_type = "lost", self._now, event.cause
            if has_retry:
                self._further(hot, "queued", attempt.due_at, self._now)

    def _returned(self, event: facts.GrantsReturned) -> None:
        for tenant, execution, wait_until in zip(
            event.tenant, event.executions, event.wait_until, strict=True
        ):
            attempt = self._touch(self._execution(event.tenants[tenant], execution))
            attempt.status = "scheduled" if wait_until >= 0 else "queued"
            attempt.started_at, attempt.session = NONE_AT, ""

    def _dead(self, event: facts.ExecutionDead) -> None:
        hot = self._execution(event.tenant, event.execution)
        self._touch(hot)
        self._end(hot, "dead")

    def _stopped(self, event: facts.AttemptCancelled) -> None:
        hot = self._execution(event.tenant, event.execution)
        attempt = self._touch(hot)
        attempt.status, attempt.ended_at = "cancelled", self._now
        self._end(hot, "cancelled")

    # -- answers, sessions, shared facts

    def _answered(self, event: facts.CommandAnswered) -> None:
        """A repeat: the first answer to this very command id stands."""
        key = keys.command_row(self._prefix, event.tenant, event.command_id, event.job_id)
        if self._read("commands", key, CommandRow) is not None:
            self.answered.append(key)
            return
        self._answer(event, "", job_id=event.job_id, tenant=event.tenant, reason=event.reason)

    def _rejected(self, event: facts.CommandRejected) -> None:
        self._answer(
            event,
            event.command,
            job_id=event.job_id,
            tenant=event.tenant,
            is_accepted=False,
            reason=event.reason,
        )

    def _session_started(self, event: facts.SessionStarted) -> None:
        self._dirty["sessions"][self._prefix + event.session.encode()] = event.worker

    def _queue_declared(self, event: facts.QueueDeclared) -> None:
        self._answer(event, "DeclareQueue", job_id=event.name, tenant="", version=event.version)

    def _queue_copied(self, event: facts.QueueCopied) -> None:
        key = self._prefix + event.name.encode()
        self._dirty["queues"][key] = QueueRow(event.version, event.is_open, event.tenants)


def _sessions(event: Any) -> tuple[list[str], list[int]]:
    """Sessions of an event and its column of them; where it has none, one without a name."""
    if isinstance(event, facts.ExecutionsDueGranted):
        return event.sessions, event.session
    return [""], [0] * len(event.executions)


_FOLDS: Final[dict[type, Callable[[PartitionView, Any], None]]] = {
    facts.ExecutionsDueGranted: PartitionView._due_granted,
    facts.AttemptsSucceeded: PartitionView._succeeded,
    facts.ExecutionsGranted: PartitionView._granted,
    facts.ExecutionsQueued: PartitionView._queued,
    facts.JobSubmitted: PartitionView._submitted,
    facts.AttemptFailed: PartitionView._failed,
    facts.GrantsReturned: PartitionView._returned,
    facts.AttemptsLost: PartitionView._lost,
    facts.ExecutionDead: PartitionView._dead,
    facts.ExecutionsSkipped: PartitionView._skipped,
    facts.ExecutionRequested: PartitionView._requested,
    facts.JobCancelled: PartitionView._cancelled,
    facts.AttemptCancelled: PartitionView._stopped,
    facts.CommandAnswered: PartitionView._answered,
    facts.CommandRejected: PartitionView._rejected,
    facts.SessionStarted: PartitionView._session_started,
    facts.QueueDeclared: PartitionView._queue_declared,
    facts.QueueCopied: PartitionView._queue_copied,
}
