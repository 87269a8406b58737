"""Past instants of a recurring job that run after all: which of them, how many at once, and what is kept to know it.

An instant is filled if it is known that it never ran: it lies before the job was created, or in a range that was skipped
within the days that are remembered; and it was not filled before. All others are refused: they ran, or it is too long
ago to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys, plans
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.job_events import BACKFILL
from minutebook.domain.operation import OperationFact, OperationFilter
from minutebook.domain.operation_kind import Found, Kind
from minutebook.domain.overlap import is_busy
from minutebook.domain.placing import job_version
from minutebook.domain.refusal import Refusal
from minutebook.domain.state import NONE_AT, UNCHANGED, Job
from minutebook.schedule.plan import Plan

INSTANTS_MAX: Final = 100_000
"""Instants that one operation is about."""
RANGE_MAX_MS: Final = 366 * keys.DAY_MS


def check_range(wanted: OperationFilter, stamp: int) -> None:
    """Raises Refusal naming the part of the filter that no past range of one job can have. `stamp`: ms, of the command."""
    if not ids.is_name(wanted.job_id):
        raise Refusal("invalid", "filter/job_id", "is required: 1-128 ASCII letters, digits, . _ -")
    for field in ("task", "queue", "error_type", "cause", "job_prefix", "tag", "status"):
        if getattr(wanted, field):
            raise Refusal("invalid", f"filter/{field}", "a backfill takes job_id, from and until alone")
    if wanted.from_at < 0:
        raise Refusal("invalid", "filter/from", "is required, not before 1970")
    if wanted.until_at <= wanted.from_at:
        raise Refusal("invalid", "filter/until", "is required, later than from")
    if wanted.until_at > stamp:
        raise Refusal("invalid", "filter/until", "must not be later than now: what is to come runs by itself")
    if wanted.until_at - wanted.from_at > RANGE_MAX_MS:
        raise Refusal("invalid", "filter/until", "at most 366 days after from")


def check_count(count: int) -> None:
    """Raises Refusal for more instants than one operation is about."""
    if count > INSTANTS_MAX:
        remedy = f"there are {count} instants in this range, at most {INSTANTS_MAX} are taken: choose a shorter one"
        raise Refusal("invalid", "filter/until", remedy)


class _NeverRan:
    """Which instants of a job never ran, asked for in ascending order: each skipped range is looked up once."""

    def __init__(self, book: Book, row: bytes, job: Job) -> None:
        self._book = book
        self._row = row
        self._created_at = job.accepted_at
        self._ranges: dict[int, tuple[int, int] | None] = dict.fromkeys(book.cursor.days, (0, NONE_AT))
        """By day: first and last instant of the range at or after the instant that was asked for last."""

    def __contains__(self, at: int) -> bool:
        if self._book.filled.get(keys.instant_row(self._row, at)) is not None:
            return False
        return at <= self._created_at or any(self._is_skipped(day, at) for day in self._ranges)

    def _is_skipped(self, day: int, at: int) -> bool:
        found = self._ranges[day]
        if found is not None and found[1] < at:
            found = self._ranges[day] = self._range_from(day, at)
        return found is not None and found[0] <= at

    def _range_from(self, day: int, at: int) -> tuple[int, int] | None:
        start = keys.remembered_row(day, keys.instant_row(self._row, at))
        end = keys.after(keys.remembered_row(day, self._row + b":"))
        found = self._book.skips.first(start, end)
        return None if found is None else (found[1], keys.instant_of(found[0]))


def _job(book: Book, fact: OperationFact) -> tuple[bytes, Job, Plan] | None:
    """The job and its instants, None where it does not live here. Raises Refusal for one that has no more instants."""
    row = keys.job_row(fact.tenant, fact.filter.job_id)
    job = book.jobs.get(row)
    if job is None and book.remembered(book.closed, row) is None:
        return None
    if job is None or job.next_at == NONE_AT:
        raise Refusal(
            "job_closed", "filter/job_id", "the job has no instant left; only an open one is filled"
        )
    spec = job_version(book, row, job.version)
    if not spec.is_recurring:
        raise Refusal("invalid", "filter/job_id", "the job fires once: run it now, or submit another one")
    return row, job, plans.plan_of(book, fact.tenant, fact.filter.job_id, spec)


def _rows(book: Book, fact: OperationFact, through: bytes) -> Iterator[Found]:
    """The instants of the job's current version within the range."""
    found = _job(book, fact)
    if found is None:
        return
    row, job, plan = found
    after, last_at = (
        keys.instant_of(through) if through else fact.filter.from_at - 1,
        fact.filter.until_at - 1,
    )
    check_count(plan.count(after, last_at))
    never_ran = _NeverRan(book, row, job)
    for at in plan.each(after, last_at):
        execution = keys.execution_row(fact.tenant, ids.execution_id(fact.filter.job_id, at))
        yield Found(keys.instant_row(row, at), execution, is_refused=at not in never_ran)


def _total(book: Book, fact: OperationFact) -> int:
    found = _job(book, fact)
    if found is None:
        return 0
    count = found[2].count(fact.filter.from_at - 1, fact.filter.until_at - 1)
    check_count(count)
    return count


def _lane(book: Book, place: bytes) -> bytes:
    row = keys.job_of_instant(place)
    job = book.jobs.get(row)
    assert job is not None
    lane = job_version(book, row, job.version).lane(keys.names(row)[0])
    return lane._replace(priority=keys.CATCH_UP_PRIORITY).prefix()


def _most(book: Book, fact: OperationFact) -> int:
    """One after the other where executions of the job must not overlap, else as many as may be."""
    found = _job(book, fact)
    if found is None:
        return 0
    row, job, _ = found
    if job_version(book, row, job.version).timing.overlap == "allow":
        return INSTANTS_MAX
    return 0 if is_busy(job) else 1


def _fill(book: Book, fact: OperationFact, executions: Sequence[bytes], now: int) -> Iterator[Event]:
    """They are due now, whatever their instant: lateness and deadlines count from here."""
    if executions:
        row = keys.job_row(fact.tenant, fact.filter.job_id)
        job = book.jobs.get(row)
        assert job is not None
        yield facts.ExecutionsPlaced(
            tenant=fact.tenant,
            job_id=fact.filter.job_id,
            cause=BACKFILL,
            version=job.version,
            scheduled_at=[int(execution[execution.rindex(b":") + 1 :]) for execution in executions],
            due_at=[now] * len(executions),
            place_at=[now] * len(executions),
            next_at=UNCHANGED,
            operation=fact.operation,
        )


KIND: Final = Kind(_rows, _lane, _fill, _most, _total)
