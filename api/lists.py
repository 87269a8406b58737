"""Lists over all of a tenant's jobs and executions, and the overview: what routes and pages show.

A list goes on from a place: an instant and an id. A row keeps both, so that no page repeats or skips one that was there when
the first page was read; but a job's next instant moves on with each run, and so does the job in a list by it. One page
looks at a bounded number of rows: where few fit, it ends early.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Final

from api.answers import attempt_error, job_body, shown_instant
from api.list_filters import ListFilter
from api.services import Services
from api.view import View
from minutebook.client.list_models import DueSoon, ExecutionSummary, Lateness, Overview
from minutebook.client.models import AttemptStatus, Job, JobStatus
from minutebook.domain import view_coming, view_index, view_lists, view_starts
from minutebook.domain.view import PartitionView
from minutebook.domain.view_due import due_counts
from minutebook.domain.view_lists import Filter, Found
from minutebook.domain.view_rows import (
    MINUTE_MS,
    ExecutionRow,
    JobRow,
    Progress,
    card_of,
    execution_row,
    job_row,
)
from minutebook.times import format_instant

_Entry = tuple[bytes, bytes, PartitionView]
"""Place and value of an entry, and the partition that has it."""

LOOKED_AT_MAX: Final = 2_000
"""Rows that one page looks at."""
_LATENESS_MIN: Final = 60


def list_jobs(
    services: Services, tenant: str, asked: ListFilter, place: bytes, limit: int
) -> tuple[list[Job], bytes]:
    """Up to `limit` jobs from `place` on (empty = the start), and the place of the next page (empty = there is none)."""
    view, span = services.view, asked.span(place)
    view.commit_all()
    walks = (
        _with(
            part,
            view_coming.jobs_by_due(part, tenant, span)
            if asked.is_by_due
            else view_lists.jobs(part, tenant, asked.wanted, span),
        )
        for part in view.parts
    )
    found = _side_by_side(walks, asked)
    items: list[Job] = []
    for number, (at, _, part) in enumerate(found):
        if len(items) == limit or number == LOOKED_AT_MAX:
            return items, at
        job_id = view_index.job_of_place(at)
        job = part.job(tenant, job_id)
        if job is not None and _fits_job(asked, *job):
            items.append(job_body(job_id, *job))
    return items, b""


def _fits_job(asked: ListFilter, row: JobRow, progress: Progress) -> bool:
    wanted, (created_from, created_until) = asked.wanted, asked.created
    return (
        created_from <= card_of(row).created_at < created_until
        and (asked.due is None or asked.due[0] <= progress.coming_at < asked.due[1])
        and wanted.status in ("", progress.status)
        and wanted.task in ("", row.task)
        and wanted.queue in ("", row.queue)
        and (not wanted.tag or wanted.tag in row.tags)
    )


def list_executions(
    services: Services, tenant: str, asked: ListFilter, place: bytes, limit: int
) -> tuple[list[ExecutionSummary], bytes]:
    """Up to `limit` executions from `place` on, and the place of the next page, as `list_jobs` has them."""
    services.view.commit_all()
    if asked.job_id:
        return _of_job(services, tenant, asked, place, limit)
    span, wanted = asked.span(place), asked.wanted
    walks = (_with(part, view_lists.executions(part, tenant, wanted, span)) for part in services.view.parts)
    found = _side_by_side(walks, asked)
    items: list[ExecutionSummary] = []
    for number, (at, value, part) in enumerate(found):
        if len(items) == limit or number == LOOKED_AT_MAX:
            return items, at
        facts = view_index.facts_of(value)
        if not _fits(wanted, facts):
            continue
        job_id, scheduled_at, kind = view_index.execution_of_place(at)
        row = part.execution_at(execution_row(job_row(part.prefix, tenant, job_id), scheduled_at, kind))
        if row is not None:
            items.append(_summary(part, job_id, kind, row, facts.task, facts.queue))
    return items, b""


def _of_job(
    services: Services, tenant: str, asked: ListFilter, place: bytes, limit: int
) -> tuple[list[ExecutionSummary], bytes]:
    view = services.view
    part = view.parts[view.partition_of_job(tenant, asked.job_id)]
    lanes: dict[int, tuple[str, str]] = {}
    items: list[ExecutionSummary] = []
    found = view_lists.executions_of_job(part, tenant, asked.job_id, asked.span(place))
    for number, (at, row) in enumerate(found):
        if len(items) == limit or number == LOOKED_AT_MAX:
            return items, at
        if row.version not in lanes:
            lanes[row.version] = view_lists.lane_of_version(part, tenant, asked.job_id, row.version)
        task, queue = row.lane or lanes[row.version]
        has_error = not asked.wanted.error_type or (
            row.outcome == "dead" and row.last.error_type == asked.wanted.error_type
        )
        if has_error and _fits(asked.wanted, view_index.Facts(row.last.status, queue, task)):
            kind = view_index.execution_of_place(at)[2]
            items.append(_summary(part, asked.job_id, kind, row, task, queue))
    return items, b""


def _fits(wanted: Filter, facts: view_index.Facts) -> bool:
    return (
        wanted.status in ("", facts.status)
        and wanted.task in ("", facts.task)
        and wanted.queue in ("", facts.queue)
    )


def _with(part: PartitionView, found: Iterator[Found]) -> Iterator[_Entry]:
    for place, value in found:
        yield place, value, part


def _side_by_side(found: Iterable[Iterator[_Entry]], asked: ListFilter) -> Iterator[_Entry]:
    """What all partitions have, in one order: a place names one row of one partition."""
    return heapq.merge(*found, key=itemgetter(0), reverse=not asked.is_ascending)


def _summary(
    part: PartitionView, job_id: str, kind: bytes, row: ExecutionRow, task: str, queue: str
) -> ExecutionSummary:
    attempt = row.last
    is_skipped = attempt.status == "skipped"
    suffix = kind.decode() if kind.startswith(b"r") else str(row.scheduled_at)
    return ExecutionSummary(
        execution_id=f"{job_id}:{suffix}",
        job_id=job_id,
        task=task,
        queue=queue,
        status=attempt.status,  # type: ignore[arg-type]  # one of the statuses by the fold
        outcome=row.outcome or None,  # type: ignore[arg-type]  # one of the outcomes by the fold
        attempt=attempt.number,
        scheduled_at=format_instant(row.scheduled_at),
        due_at=format_instant(attempt.due_at),
        queued_at=shown_instant(attempt.queued_at),
        started_at=shown_instant(attempt.started_at),
        ended_at=shown_instant(attempt.ended_at),
        worker=(part.worker(attempt.session) or None) if attempt.session else None,
        error=attempt_error(attempt),
        reason=(row.skip.reason if row.skip else attempt.error_type) if is_skipped else None,
        count=row.skip.count if row.skip else None,
    )


# -- overview


def overview(services: Services, tenant: str) -> Overview:
    """How a tenant's jobs stand by now, from counts alone."""
    view = services.view
    jobs, executions = counts_by_status(view, tenant)
    minute = services.clock.now() // MINUTE_MS
    lateness, started = _starts(view.parts, tenant, minute)
    return Overview(
        jobs=jobs,
        executions=executions,
        due=_due(services, tenant, minute),
        lateness=Lateness(_percentile(lateness, 0.5), _percentile(lateness, 0.99), _LATENESS_MIN * 60),
        started_per_min=started,
        oldest_overdue_at=shown_instant(_oldest_overdue(services, tenant, minute)),
        dead_letters=_dead_letters(view.parts, tenant, executions),
    )


def _dead_letters(parts: list[PartitionView], tenant: str, executions: dict[AttemptStatus, int]) -> int:
    """How many were given up, and neither redriven nor discarded since."""
    given_up = executions.get("failed", 0) + executions.get("lost", 0)
    return given_up - sum(view_lists.discarded(part, tenant) for part in parts)


def counts_by_status(view: View, tenant: str) -> tuple[dict[JobStatus, int], dict[AttemptStatus, int]]:
    """How many jobs and executions of a tenant have each status."""
    view.commit_all()
    jobs: Counter[str] = Counter()
    executions: Counter[str] = Counter()
    for part in view.parts:
        jobs.update(view_lists.counts_by_status(part, view_index.JOB_COUNTS, tenant))
        executions.update(view_lists.counts_by_status(part, view_index.EXECUTION_TOTALS, tenant))
    return dict(jobs), dict(executions)  # type: ignore[return-value]  # statuses by the fold


def _starts(parts: list[PartitionView], tenant: str, minute: int) -> tuple[Counter[int], list[int]]:
    """Attempts that started in the hour that ends with a minute: by lateness, and by minute."""
    lateness: Counter[int] = Counter()
    started = [0] * _LATENESS_MIN
    first = minute - _LATENESS_MIN + 1
    for part in parts:
        for at, buckets in view_starts.read(part.rows, part.partition, tenant, first, minute):
            for bucket, count in buckets:
                lateness[bucket] += count
                started[at - first] += count
    return lateness, started


def _due(services: Services, tenant: str, minute: int) -> DueSoon:
    counts = services.view.due_counts(tenant, minute, minute + 61)
    within = (sum(count for one, count in counts.items() if one <= minute + ahead) for ahead in (1, 5, 60))
    return DueSoon(*within)


def _percentile(found: Counter[int], share: float) -> int | None:
    left = share * found.total()
    for bucket, count in sorted(found.items()):
        left -= count
        if left <= 0:
            return view_starts.bucket_end(bucket)
    return None


def _oldest_overdue(services: Services, tenant: str, minute: int) -> int:
    """The earliest instant that is due and has not started, -1 where there is none."""
    found: list[int] = []
    span = view_lists.span_of(0, view_lists.LAST_AT, is_ascending=True)
    for part in services.view.parts:
        first = next(due_counts(part, tenant, 0, minute), None)
        queued = next(view_lists.executions(part, tenant, Filter("queued"), span), None)
        found += [] if first is None else [first[0] * MINUTE_MS]
        found += [] if queued is None else [view_index.execution_of_place(queued[0])[1]]
    return min(found, default=-1)
