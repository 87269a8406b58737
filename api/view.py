"""The read model in this process: every partition's view over one store, and those who wait for it to move.

A partition's rows and its position are written in one batch, a partition at a time. Reads find what is folded at once;
those that scan commit first.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, repeat
from operator import attrgetter, itemgetter
from typing import Any, Final, Literal, TypeVar

import msgspec

from api.key_index import KeyIndex
from api.positions import Token
from minutebook.domain.view import PartitionView
from minutebook.domain.view_audit import Audited, audited, place_of
from minutebook.domain.view_due import due_counts
from minutebook.domain.view_keys import api_keys, job_tenants
from minutebook.domain.view_limits import lacks_permit
from minutebook.domain.view_operations import OperationRow, operation_of, operations_of
from minutebook.domain.view_retention import Retention
from minutebook.domain.view_rows import (
    AlertRow,
    CalendarRow,
    CommandRow,
    DeadRow,
    ExecutionRow,
    JobRow,
    LimitRow,
    PermitsUsedRow,
    Progress,
    QueueRow,
    TaskRow,
    command_row,
    dead_row,
    partition_prefix,
)
from minutebook.ids import (
    calendar_key,
    job_key,
    job_of,
    limit_key,
    operation_command_id,
    operation_key,
    queue_key,
    task_key,
)
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader, Taken, Void
from minutebook.store.port import Rows
from minutebook.wire import topics
from minutebook.wire.frames import Frame
from minutebook.wire.topics import partition_of

T = TypeVar("T", LimitRow, CalendarRow)

_DEFAULT: Final = Retention()
COMMIT_ROWS: Final = 2_000
"""Rows changed in a partition after which it is committed; the loop stands still for about 10 ms meanwhile."""


class _Expected:
    """Commands that somebody waits for together."""

    def __init__(self, future: asyncio.Future[None], keys: set[bytes]) -> None:
        self._future = future
        self._keys = keys

    def answered(self, key: bytes) -> None:
        """One of them is answered; with the last one the wait is over."""
        self._keys.discard(key)
        if not self._keys and not self._future.done():
            self._future.set_result(None)


class View:
    """The read model of `partitions` partitions over `rows`."""

    def __init__(self, rows: Rows, partitions: int, retention: Retention = _DEFAULT) -> None:
        self.partitions = partitions
        self.retention = retention
        self.rows = rows
        self.parts = [PartitionView(rows, partition, retention=retention) for partition in range(partitions)]
        self.readers = [FrameReader(part.cursor.position, part.cursor.head) for part in self.parts]
        self.heard: Callable[[int, Frame], None] | None = None
        """Told of each frame once it is folded, with its partition; None while nobody listens."""
        self.voids: Counter[str] = Counter()
        """Records that count for nobody, by why."""
        self.keys = KeyIndex()
        """API keys that the log has declared."""
        self._load_keys()
        self._answers: dict[bytes, list[_Expected]] = {}
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    # -- the log comes in

    def take(self, partition: int, record: RawRecord) -> Taken | Void:
        """Fold the next record of a partition. Raises LogError, after which the partition must halt."""
        reader, part = self.readers[partition], self.parts[partition]
        taken = reader.take(record)
        before = part.cursor
        moved: dict[str, Any] = {
            "position": record.offset,
            "head": reader.head,
            "head_before": reader.head_before,
        }
        if isinstance(taken, Taken):
            frame = taken.frame
            part.fold(frame.events, frame.now, record.offset)
            moved["decided_at"], moved["stamped_at"] = frame.now, record.stamp
            moved["commands_through"] = max(
                (item.offset for item in frame.inputs if item.topic.endswith(topics.COMMANDS)),
                default=before.commands_through,
            )
        else:
            self.voids[taken.kind] += 1
            moved["void_frames"] = before.void_frames + 1
        part.advance(msgspec.structs.replace(before, **moved))
        if self.heard is not None and isinstance(taken, Taken):
            self.heard(partition, taken.frame)
        self._wake(part)
        if part.pending() >= COMMIT_ROWS:
            self.commit(partition)
        return taken

    def commit(self, partition: int) -> None:
        """Write what changed in one partition."""
        pending, ranges = self.parts[partition].drain()
        if pending or ranges:
            self.rows.write(pending, ranges)

    def commit_all(self) -> None:
        """Write what changed in any partition."""
        for partition in range(self.partitions):
            self.commit(partition)

    def restart(self, partition: int) -> None:
        """Drop a partition's rows; its log is to be folded again from the start."""
        self.rows.write({}, self.parts[partition].reset())
        self.readers[partition] = FrameReader()
        self._load_keys()

    def _load_keys(self) -> None:
        self.commit_all()
        self.keys.replace(row for part in self.parts for row in api_keys(part))

    # -- waiting

    def expect(self, partition: int, subjects: Sequence[tuple[str, str, str]]) -> asyncio.Future[None]:
        """Done once each command is answered: (tenant, job id or queue, command id). Call it before they are sent.

        Whoever stops waiting cancels it.
        """
        future = asyncio.get_running_loop().create_future()
        prefix = partition_prefix(partition)
        keys = [command_row(prefix, tenant, command_id, subject) for tenant, subject, command_id in subjects]
        expected = _Expected(future, set(keys))
        for key in keys:
            self._answers.setdefault(key, []).append(expected)
        future.add_done_callback(lambda _: self._forget(expected, keys))
        return future

    def _forget(self, expected: _Expected, keys: list[bytes]) -> None:
        for key in keys:
            waiting = self._answers.get(key)
            if waiting is not None and expected in waiting:
                waiting.remove(expected)
                if not waiting:
                    del self._answers[key]

    async def until(self, is_reached: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until `is_reached` says so, which is asked after each frame. False if it took longer."""
        if is_reached():
            return True
        try:
            async with asyncio.timeout(timeout_s):
                await self._reaching(is_reached)
        except TimeoutError:
            return False
        return True

    def decided(self, partition: int, offset: int) -> asyncio.Future[None]:
        """Done once the commands of a partition through `offset` are decided. Whoever stops waiting cancels it."""
        part = self.parts[partition]
        return self._reaching(lambda: part.cursor.commands_through >= offset)

    def _reaching(self, is_reached: Callable[[], bool]) -> asyncio.Future[None]:
        future = asyncio.get_running_loop().create_future()
        if is_reached():
            future.set_result(None)
            return future
        entry = (is_reached, future)
        self._waiting.append(entry)
        future.add_done_callback(lambda _: self._waiting.remove(entry))
        return future

    def reached(self) -> Token:
        """Everything that is folded."""
        return Token(
            {part.partition: part.cursor.position for part in self.parts if part.cursor.position >= 0}
        )

    def has_reached(self, token: Token) -> bool:
        """Whether everything that `token` names is folded."""
        return all(
            self.parts[partition].cursor.position >= at for partition, at in token.events.items()
        ) and all(
            self.parts[partition].cursor.commands_through >= at for partition, at in token.commands.items()
        )

    def _wake(self, part: PartitionView) -> None:
        for changed in part.changed_keys:
            self.keys.put(*changed)
        part.changed_keys.clear()
        answered, part.answered = part.answered, []
        if self._answers:
            for key in answered:
                for expected in self._answers.pop(key, ()):
                    expected.answered(key)
        for is_reached, future in self._waiting:
            if not future.done() and is_reached():
                future.set_result(None)

    # -- answers come out

    def partition_of_job(self, tenant: str, job_id: str) -> int:
        """Where a job lives."""
        return partition_of(job_key(tenant, job_id), self.partitions)

    def partition_of_queue(self, name: str) -> int:
        """Home of a queue."""
        return _home_of_queue(name, self.partitions)

    def partition_of_operation(self, tenant: str, operation: str) -> int:
        """Home of a bulk operation."""
        return partition_of(operation_key(tenant, operation), self.partitions)

    def operation(self, tenant: str, operation: str) -> OperationRow | None:
        """A bulk operation, as its home has it."""
        return operation_of(self.parts[self.partition_of_operation(tenant, operation)], tenant, operation)

    def operations(self, tenant: str) -> list[OperationRow]:
        """All bulk operations of a tenant, in no order."""
        self.commit_all()
        return [row for part in self.parts for row in operations_of(part, tenant)]

    def refusal(self, row: OperationRow) -> CommandRow | None:
        """Why nothing more of a backfill could be done, as the partition of its job said; None if it did not say so."""
        tenant, job_id = row.fact.tenant, row.fact.filter.job_id
        if not job_id:
            return None
        part = self.parts[self.partition_of_job(tenant, job_id)]
        return part.command(tenant, operation_command_id(tenant, job_id, row.fact.operation), job_id)

    def job(self, tenant: str, job_id: str) -> tuple[JobRow, Progress] | None:
        """A job and where it stands."""
        return self.parts[self.partition_of_job(tenant, job_id)].job(tenant, job_id)

    def progress(self, tenant: str, job_id: str) -> Progress | None:
        """Where a job stands, without what it is."""
        return self.parts[self.partition_of_job(tenant, job_id)].progress(tenant, job_id)

    def jobs_named(self, tenant: str, start: str) -> Iterator[tuple[str, JobRow, Progress]]:
        """(id, job, where it stands) of a tenant's jobs whose ids begin with `start`, partition after partition."""
        self.commit_all()
        return chain.from_iterable(part.jobs_named(tenant, start) for part in self.parts)

    def versions(self, tenant: str, job_id: str, through: int | None) -> Iterator[JobRow]:
        """Versions of a job, the latest first, from number `through` on."""
        partition = self.partition_of_job(tenant, job_id)
        self.commit(partition)
        return self.parts[partition].versions(tenant, job_id, through)

    def executions(self, tenant: str, job_id: str, start: bytes) -> Iterator[tuple[bytes, str, ExecutionRow]]:
        """(key, execution id, row) of a job's executions by instant, from key `start` on."""
        partition = self.partition_of_job(tenant, job_id)
        self.commit(partition)
        return self.parts[partition].executions(tenant, job_id, start)

    def skipped(self, tenant: str, job_id: str, start_at: int) -> Iterator[ExecutionRow]:
        """Ranges of skipped instants of a job that end at `start_at` or later, by time."""
        partition = self.partition_of_job(tenant, job_id)
        self.commit(partition)
        return self.parts[partition].skipped(tenant, job_id, start_at)

    def execution(self, tenant: str, name: str) -> ExecutionRow | None:
        """An execution with its attempts; one that is not due yet has no row."""
        return self.parts[self.partition_of_job(tenant, job_of(name))].execution(tenant, name)

    def dead(self, tenant: str, at: int, name: str) -> Iterator[tuple[int, str, DeadRow, JobRow]]:
        """(given up at, execution id, row, job) of a tenant's dead executions, by these two, from that place on."""
        self.commit_all()
        return heapq.merge(*(_dead_of(part, tenant, at, name) for part in self.parts), key=itemgetter(0, 1))

    def alerts(self, tenant: str) -> list[AlertRow]:
        """The latest alerts of a tenant, by instant and id, the newest first."""
        self.commit_all()
        found = (alert for part in self.parts for alert in part.alerts(tenant))
        return sorted(found, key=attrgetter("at", "id"), reverse=True)

    def audited(self, tenant: str, at: int) -> Iterator[tuple[int, Audited]]:
        """(partition, command) of a tenant's commands, empty = of no tenant, decided at `at` (ms) or before; the latest
        first, then by command id and subject."""
        self.commit_all()
        found = (zip(repeat(part.partition), audited(part, tenant, at), strict=False) for part in self.parts)
        return heapq.merge(*found, key=lambda item: place_of(item[1]))

    def tenants(self) -> list[str]:
        """Names of all tenants that have, or had, a key or a job, in order."""
        self.commit_all()
        found = self.keys.tenants()
        for part in self.parts:
            found.update(job_tenants(part))
        return sorted(found)

    def due_counts(
        self, tenant: str, start: int, end: int, family: Literal["due_counts", "due_hours"] = "due_counts"
    ) -> Counter[int]:
        """How many jobs of a tenant have their next instant in each minute from `start` up to `end`, not included.

        Minutes are counted from the epoch; with `due_hours` it is hours, all of it. As of the last commit.
        """
        found: Counter[int] = Counter()
        for part in self.parts:
            for number, count in due_counts(part, tenant, start, end, family):
                found[number] += count
        return found

    def command(self, tenant: str, command_id: str) -> tuple[int, CommandRow] | None:
        """Partition of a command, and what it was answered; None if no partition knows it."""
        self.commit_all()
        for part in self.parts:
            for row in part.commands(tenant, command_id):
                return part.partition, row
        return None

    def queue(self, partition: int, name: str) -> QueueRow | None:
        """A partition's copy of a queue; `default` is there from the start, for everybody."""
        found = self.parts[partition].queue(name)
        return QueueRow(0, False, []) if found is None and name == "default" else found

    def queues(self) -> list[tuple[str, QueueRow]]:
        """All queues by name, each as its home has it."""
        self.commit_all()
        found = {
            name: row
            for part in self.parts
            for name, row in part.queues()
            if self.partition_of_queue(name) == part.partition
        }
        return sorted(({"default": QueueRow(0, False, [])} | found).items())

    def partition_of_limit(self, tenant: str, name: str) -> int:
        """Home of a limit."""
        return partition_of(limit_key(tenant, name), self.partitions)

    def limit(self, tenant: str, name: str) -> LimitRow | None:
        """A limit as its home has it; None where it was never declared, or is deleted."""
        found = self.parts[self.partition_of_limit(tenant, name)].limit(tenant, name)
        return None if found is None or found.is_deleted else found

    def permits_used(self, tenant: str, name: str) -> PermitsUsedRow:
        """How much of a limit is used and asked for, as its home counts."""
        return self.parts[self.partition_of_limit(tenant, name)].permits_used(tenant, name)

    def limits(self, tenant: str, start: str) -> Iterator[tuple[str, LimitRow]]:
        """Limits of a tenant by name from `start` on, each as its home has it."""
        self.commit_all()
        homes = (
            _at_home(part, part.limits(tenant, start), tenant, self.partition_of_limit) for part in self.parts
        )
        return heapq.merge(*homes, key=itemgetter(0))

    def partition_of_calendar(self, tenant: str, name: str) -> int:
        """Home of a calendar."""
        return partition_of(calendar_key(tenant, name), self.partitions)

    def calendar(self, tenant: str, name: str) -> CalendarRow | None:
        """A calendar as its home has it; None where it was never declared, or is deleted."""
        found = self.parts[self.partition_of_calendar(tenant, name)].calendar(tenant, name)
        return None if found is None or found.is_deleted else found

    def calendars(self, tenant: str, start: str) -> Iterator[tuple[str, CalendarRow]]:
        """Calendars of a tenant by name from `start` on, each as its home has it."""
        self.commit_all()
        homes = (
            _at_home(part, part.calendars(tenant, start), tenant, self.partition_of_calendar)
            for part in self.parts
        )
        return heapq.merge(*homes, key=itemgetter(0))

    def jobs_of_calendar(self, tenant: str, name: str) -> Iterator[tuple[str, JobRow, Progress]]:
        """(id, job, where it stands) of the jobs that depend on a calendar, in no order."""
        self.commit_all()
        for part in self.parts:
            for job_id in part.calendar_jobs(tenant, name):
                found = part.job(tenant, job_id)
                if found is not None and found[0].timing is not None and name in found[0].timing.calendars:
                    yield job_id, *found

    def task(self, name: str) -> TaskRow | None:
        """What payload a task takes; None if no worker has declared it."""
        return self.parts[_home_of_task(name, self.partitions)].task(name)

    def tasks(self) -> list[tuple[str, TaskRow]]:
        """All declared tasks, by name."""
        self.commit_all()
        return sorted((name, row) for part in self.parts for name, row in part.tasks())

    def waiting_for(self, tenant: str, job_id: str, now: int) -> Literal["worker", "permit", "paused_queue"]:
        """What is lacking where an execution of a job is queued, as far as the job's partition knows. `now`: ms."""
        partition = self.partition_of_job(tenant, job_id)
        part = self.parts[partition]
        job = part.job(tenant, job_id)
        if job is None:
            return "worker"
        queue = self.queue(partition, job[0].queue)
        if queue is not None and queue.is_paused:
            return "paused_queue"
        return "permit" if lacks_permit(part, tenant, job[0].limit, now) else "worker"

    def may_use(self, tenant: str, queue: str) -> bool:
        """Whether a job of `tenant` may go to `queue`, as far as this view knows."""
        found = self.queue(self.partition_of_queue(queue), queue)
        return found is not None and (not found.tenants or tenant in found.tenants)


def _dead_of(
    part: PartitionView, tenant: str, at: int, name: str
) -> Iterator[tuple[int, str, DeadRow, JobRow]]:
    for _, given_up_at, execution, dead in part.dead(tenant, dead_row(part.prefix, tenant, at, name)):
        job = part.job(tenant, job_of(execution))
        if job is not None:
            yield given_up_at, execution, dead, job[0]


def _at_home(
    part: PartitionView, rows: Iterator[tuple[str, T]], tenant: str, home_of: Callable[[str, str], int]
) -> Iterator[tuple[str, T]]:
    """Those of a partition's copies whose home it is, and that are not deleted."""
    for name, row in rows:
        if home_of(tenant, name) == part.partition and not row.is_deleted:
            yield name, row


@lru_cache(maxsize=1024)
def _home_of_queue(name: str, partitions: int) -> int:
    # Asked for each job that is created; the hash is pure Python.
    return partition_of(queue_key(name), partitions)


@lru_cache(maxsize=1024)
def _home_of_task(name: str, partitions: int) -> int:
    return partition_of(task_key(name), partitions)
