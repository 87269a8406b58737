"""The state as it was: the log folded up to an instant or an offset, and asked."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from heapq import merge
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Final

import msgspec

from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.view_rows import ExecutionRow, JobRow, Progress
from minutebook.times import format_instant
from replay.frames import AuditReader, check_whole
from replay.reading import Advance, Log, Until, unheard
from replay.refold import MakeRows, Refold, folding, on_disk

DUE_SHOWN: Final = 20
EXECUTIONS_SHOWN: Final = 50


class PartitionThen(msgspec.Struct, kw_only=True):
    """How far a partition was. `now`: the time of its last decision, by its owner's clock. The last `void_at_end` records
    through `position` are void."""

    partition: int
    position: int
    now: str | None
    owner: str
    epoch: int
    void_at_end: int = 0


class DueThen(msgspec.Struct, kw_only=True):
    """What was to come due, or waited for its retry: a job's next instant, or an execution."""

    at: str
    tenant: str
    job_id: str
    execution_id: str | None


class JobThen(msgspec.Struct, kw_only=True):
    """A job as it was. `latest`: its executions, the latest first."""

    id: str
    version: int
    status: str
    task: str
    queue: str
    cron: str | None
    every_ms: int | None
    zone: str
    next_at: str | None
    tags: list[str]
    executions: dict[str, int]
    latest: list[dict[str, object]]


class StateThen(msgspec.Struct, kw_only=True):
    """What the log folds to up to then, of one tenant or of all (`tenant` None)."""

    tenant: str | None
    partitions: list[PartitionThen]
    jobs: dict[str, int]
    open_executions: dict[str, int]
    due_next: list[DueThen]
    job: JobThen | None = None


def state_at(
    log: Log,
    partitions: list[int],
    until: Until,
    tenant: str | None = None,
    job_id: str | None = None,
    advance: Advance = unheard,
    make_rows: MakeRows = on_disk,
) -> StateThen:
    """The state of `partitions` after the last record up to `until`; of one job where it is named, with its tenant.

    Raises SettingsError where a partition does not begin with its first record, LogError, KafkaError.
    """
    check_whole(log, partitions)
    jobs: Counter[str] = Counter()
    executions: Counter[str] = Counter()
    found = StateThen(tenant=tenant, partitions=[], jobs={}, open_executions={}, due_next=[])
    due: list[list[DueThen]] = []
    for partition in partitions:
        with tempfile.TemporaryDirectory(prefix="minutebook-replay-") as folder:
            refold = Refold(Path(folder), partition, make_rows)
            try:
                found.partitions.append(_folded(log, refold, until, advance))
                jobs.update(progress.status for _, progress in _jobs(refold, tenant))
                executions.update(_statuses(refold.book, tenant))
                due.append(list(islice(_due(refold.book, tenant), DUE_SHOWN)))
                if job_id is not None and tenant is not None and found.job is None:
                    found.job = _job(refold, tenant, job_id)
            finally:
                refold.close()
    found.jobs, found.open_executions = dict(sorted(jobs.items())), dict(sorted(executions.items()))
    found.due_next = list(islice(merge(*due, key=attrgetter("at")), DUE_SHOWN))
    return found


def _folded(log: Log, refold: Refold, until: Until, advance: Advance) -> PartitionThen:
    reader = AuditReader()
    then = PartitionThen(partition=refold.partition, position=-1, now=None, owner="", epoch=0)
    for frame in folding(log, refold, reader, until, advance):
        then.now, then.owner, then.epoch = format_instant(frame.now), frame.owner, frame.epoch
    then.position, then.void_at_end = reader.position, reader.void_at_end
    refold.rows("streams")
    refold.rows("view")
    return then


def _jobs(refold: Refold, tenant: str | None) -> Iterator[tuple[str, Progress]]:
    start = refold.view.prefix + (b"" if tenant is None else f"{tenant}\0".encode())
    decode = msgspec.msgpack.Decoder(Progress).decode
    for key, value in refold.rows("view").scan("progress", start, keys.after(start)):
        yield key[len(refold.view.prefix) :].decode(), decode(value)


def _statuses(book: Book, tenant: str | None) -> Iterator[str]:
    """`scheduled` or `queued` of what waits, `running` of what runs."""
    prefix = b"" if tenant is None else f"{tenant}\0".encode()
    for family in (book.executions, book.running):
        for _, execution in family.scan(prefix):
            yield execution.status


def _due(book: Book, tenant: str | None) -> Iterator[DueThen]:
    for key, _ in book.index.scan(b""):
        at, kind, row = keys.index_parts(key)
        if kind not in (keys.JOB, keys.EXECUTION):
            continue
        owner, name = keys.names(row)
        if tenant in (None, owner):
            execution = name if kind == keys.EXECUTION else None
            job_id = name.rpartition(":")[0] if execution else name
            yield DueThen(at=format_instant(at), tenant=owner, job_id=job_id, execution_id=execution)


def _job(refold: Refold, tenant: str, job_id: str) -> JobThen | None:
    found = refold.view.job(tenant, job_id)
    if found is None:
        return None
    row, progress = found
    executions = [(name, execution) for _, name, execution in refold.view.executions(tenant, job_id)]
    return JobThen(
        id=job_id,
        version=row.version,
        status=progress.status,
        task=row.task,
        queue=row.queue,
        cron=row.cron or None,
        every_ms=_given(row),
        zone=row.zone,
        next_at=None if progress.next_at < 0 else format_instant(progress.next_at),
        tags=row.tags,
        executions={
            name: getattr(progress, name) for name in ("open", "succeeded", "dead", "cancelled", "skipped")
        },
        latest=[_execution(*one) for one in executions[: -EXECUTIONS_SHOWN - 1 : -1]],
    )


def _given(row: JobRow) -> int | None:
    return None if row.every_ms < 0 else row.every_ms


def _execution(name: str, row: ExecutionRow) -> dict[str, object]:
    last = row.last
    return {
        "execution_id": name,
        "version": row.version,
        "status": last.status,
        "outcome": row.outcome or None,
        "attempt": last.number,
        "due_at": format_instant(last.due_at),
        "count": None if row.skip is None else row.skip.count,
    }
