"""What a backfill would do, from the view: which job it may be about, and which of its instants would run."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Final

from api.coming import plan_of_job
from api.operation_bodies import OperationWish
from api.problems import Refused, refused_field
from api.view import View
from minutebook.client.operation_models import BackfillCount, BackfillDryRun
from minutebook.domain import keys
from minutebook.domain.backfill import check_count, check_range
from minutebook.domain.operation import OperationFilter
from minutebook.domain.refusal import Refusal
from minutebook.domain.state import NONE_AT
from minutebook.domain.view_rows import ExecutionRow, JobRow, Progress
from minutebook.schedule.plan import Plan
from minutebook.times import format_instant

_SLICE: Final = 500
"""Instants after which others get their turn."""
_BEFORE_CREATION: Final = "before_creation"


def check_wish(wish: OperationWish, now: int) -> None:
    """Raises Refused (invalid) naming the field, for a range that no backfill can have at `now` (ms, UTC)."""
    try:
        check_range(wish.wanted, now)
    except Refusal as refusal:
        raise _refused(wish, refusal) from None


def check_job(view: View, tenant: str, wish: OperationWish) -> Plan:
    """The instants of the job that a backfill is about. Raises Refused: not-found, job-closed, invalid."""
    job_id, wanted = wish.wanted.job_id, wish.wanted
    found = view.job(tenant, job_id)
    if found is None:
        raise Refused("not-found")
    row, progress = found
    if not row.is_recurring:
        detail = "it fires once: run it now, or create another one"
        raise refused_field(f"/{wish.where}job_id" if wish.where else "job_id", detail)
    if progress.status not in ("active", "paused") or progress.next_at < 0:
        raise Refused("job-closed")
    plan = plan_of_job(view, tenant, job_id, row)
    try:
        check_count(plan.count(wanted.from_at - 1, wanted.until_at - 1))
    except Refusal as refusal:
        raise _refused(wish, refusal) from None
    return plan


def _refused(wish: OperationWish, refusal: Refusal) -> Refused:
    return refused_field(f"/{wish.where}{refusal.field.removeprefix('filter/')}", refusal.detail)


async def count_instants(
    view: View, tenant: str, wanted: OperationFilter, plan: Plan, now: int
) -> BackfillDryRun:
    """How the instants of a range would fare, while other requests are answered. `now`: ms, UTC."""
    fates = _Fates(view, tenant, wanted, now)
    counts: Counter[tuple[str, bool]] = Counter()
    first_at, last_at = None, None
    for number, at in enumerate(plan.each(wanted.from_at - 1, wanted.until_at - 1)):
        if number % _SLICE == _SLICE - 1:
            await asyncio.sleep(0)
        reason, would_run = fates.of(at)
        counts[reason, would_run] += 1
        if would_run:
            first_at, last_at = at if first_at is None else first_at, at
    would_run_count = sum(count for (_, would_run), count in counts.items() if would_run)
    return BackfillDryRun(
        matched=counts.total(),
        would_run=would_run_count,
        refused=counts.total() - would_run_count,
        first_at=None if first_at is None else format_instant(first_at),
        last_at=None if last_at is None else format_instant(last_at),
        reasons=[
            BackfillCount(reason, would_run, count)  # type: ignore[arg-type]  # one of those of `_Fates`
            for (reason, would_run), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        ],
    )


class _Fates:
    """What would become of instants of a job, asked for in ascending order; as the owner decides."""

    def __init__(self, view: View, tenant: str, wanted: OperationFilter, now: int) -> None:
        self._subject = tenant, wanted.job_id
        self._part = view.parts[view.partition_of_job(tenant, wanted.job_id)]
        job = view.job(tenant, wanted.job_id)
        assert job is not None
        self._job: tuple[JobRow, Progress] = job
        self._oldest_day = now // keys.DAY_MS - keys.REMEMBERED_DAYS
        self._ranges: Iterator[ExecutionRow] = view.skipped(tenant, wanted.job_id, wanted.from_at)
        self._range = next(self._ranges, None)

    def of(self, at: int) -> tuple[str, bool]:
        """(reason, whether it would run)."""
        row, progress = self._job
        if self._part.has_execution(*self._subject, at):
            return "ran", False
        if at <= (row.accepted_at if row.created_at == NONE_AT else row.created_at):
            return _BEFORE_CREATION, True
        if at >= progress.next_at:
            return "undecided", False
        reason = self._skipped_for(at)
        return reason or "unknown", bool(reason)

    def _skipped_for(self, at: int) -> str:
        """Why it was skipped, within the days that are remembered; empty where that is not known."""
        while self._range is not None and self._range.skip is not None and self._range.skip.last_at < at:
            self._range = next(self._ranges, None)
        found = self._range
        if found is None or found.skip is None or found.scheduled_at > at:
            return ""
        return found.skip.reason if found.last.ended_at // keys.DAY_MS >= self._oldest_day else ""
