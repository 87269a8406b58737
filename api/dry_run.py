"""How many dead executions or jobs a filter is about, counted in the view while other requests are answered."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

from api.view import View
from minutebook.client.operation_models import DryRun, JobCount, JobDryRun, ReasonCount
from minutebook.domain.job_operations import STATUSES
from minutebook.domain.keys import DAY_MS
from minutebook.domain.operation import OperationFilter
from minutebook.domain.state import NONE_AT
from minutebook.ids import job_of

LOOKED_AT_MAX: Final = 100_000
"""Rows that one dry run looks at."""
_SLICE: Final = 500
"""Rows after which others get their turn."""


async def count_dead(view: View, tenant: str, wanted: OperationFilter) -> DryRun:
    """Dead executions of a tenant that fit and that their owners remember, by why they were given up; incomplete where there
    are too many.
    """
    reasons: Counter[tuple[str, str]] = Counter()
    is_complete = True
    remembered_at = [(part.forgotten_through + 1) * DAY_MS for part in view.parts]
    first_at = max(min(remembered_at), wanted.from_at)
    for number, (at, name, dead, job) in enumerate(view.dead(tenant, first_at, "")):
        if wanted.until_at != NONE_AT and at >= wanted.until_at:
            break
        if number == LOOKED_AT_MAX:
            is_complete = False
            break
        if number % _SLICE == _SLICE - 1:
            await asyncio.sleep(0)
        if (
            at >= remembered_at[view.partition_of_job(tenant, job_of(name))]
            and wanted.fits_end(at, dead.cause, dead.error_type)
            and wanted.fits_work(job.task, job.queue)
            and job_of(name).startswith(wanted.job_prefix)
        ):
            reasons[dead.cause, dead.error_type] += 1
    return DryRun(
        matched=reasons.total(),
        complete=is_complete,
        reasons=[
            ReasonCount(cause, error_type, count)  # type: ignore[arg-type]  # one of the causes by the owner
            for (cause, error_type), count in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        ],
    )


async def count_jobs(view: View, tenant: str, kind: str, wanted: OperationFilter) -> JobDryRun:
    """Jobs of a tenant that fit and that an operation of that kind would change, by what they run; incomplete where there
    are too many.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    is_complete = True
    for number, (_, job, progress) in enumerate(view.jobs_named(tenant, wanted.job_prefix)):
        if number == LOOKED_AT_MAX:
            is_complete = False
            break
        if number % _SLICE == _SLICE - 1:
            await asyncio.sleep(0)
        created_at = job.accepted_at if job.created_at == NONE_AT else job.created_at
        if (
            progress.status in STATUSES[kind]
            and wanted.status in ("", progress.status)
            and wanted.fits_time(created_at)
            and wanted.fits_work(job.task, job.queue)
            and wanted.fits_tags(job.tags)
        ):
            counts[progress.status, job.task, job.queue] += 1
    return JobDryRun(
        matched=counts.total(),
        complete=is_complete,
        jobs=[
            JobCount(status, task, queue, count)  # type: ignore[arg-type]  # one of the statuses by the fold
            for (status, task, queue), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        ],
    )
