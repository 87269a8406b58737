"""Next instants computed anew: after a change of a calendar or of the zone data, and where an instant is off its dates.

Only what is still to come moves: an instant that is due already is decided as such, and a schedule that has come to its
end stays there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys, plans
from minutebook.domain.book import Book
from minutebook.domain.names import Names
from minutebook.domain.placing import job_version
from minutebook.domain.state import Job, Rescheduling, Spec
from minutebook.errors import ScheduleError

TZDATA: Final = "tzdata"
"""The work of computing anew what the zone data has a say in."""
LOOKED_AT_MAX: Final = 500
"""Jobs looked at in one step."""


def off_calendar(book: Book, tenant: str, job_id: str, job: Job, spec: Spec) -> facts.JobsRescheduled | None:
    """What becomes of a job that has come due if its calendars have changed since its instant was computed; None if that
    instant stands.

    An instant that they do not allow goes; while the job's turn in a rescheduling is to come, one that they newly allow
    comes before it.
    """
    if not spec.timing.calendars:
        return None
    after = job.next_at
    if changes := _pending(book, tenant, job_id, spec):
        # What was due before the change, in a pause, say, still is.
        after = min(max(min(changes), job.counts_after), job.next_at - 1)
    elif plans.plan_of(book, tenant, job_id, spec).allows(job.next_at):
        return None
    next_at = plans.next_at(book, tenant, job_id, spec, after)
    if next_at == job.next_at:
        return None
    return facts.JobsRescheduled("calendars", [tenant], [0], [job_id], [next_at], "", b"", True)


def _pending(book: Book, tenant: str, job_id: str, spec: Spec) -> list[int]:
    """When the calendars of a job changed whose reschedulings have not come to it yet."""
    found = []
    for name in spec.timing.calendars:
        work = book.reschedulings.get(ids.calendar_key(tenant, name).encode())
        if work is not None and work.through < keys.calendar_job_row(tenant, name, job_id):
            found.append(work.since_at)
    return found


def zone_data_changed(book: Book, tzdata: str) -> list[facts.ReschedulingStarted]:
    """What follows where an owner decides by another version of the zone data than the frame before."""
    before = book.cursor.tzdata
    if before in ("", tzdata):
        return []
    return [facts.ReschedulingStarted(TZDATA, f"tzdata {before} to {tzdata}")]


def advance(book: Book, work: bytes, reached: Rescheduling, now: int) -> facts.JobsRescheduled:
    """The next step of `work`: a bounded number of jobs is looked at."""
    rows = list(islice(_jobs_of(book, work, reached.through), LOOKED_AT_MAX))
    moved = [one for _, job in rows for one in _moved(book, job, reached.since_at, now)]
    tenants = Names()
    return facts.JobsRescheduled(
        cause=reached.cause,
        tenant=tenants.column([tenant for tenant, _, _ in moved]),
        tenants=tenants.texts,
        job_ids=[job_id for _, job_id, _ in moved],
        next_at=[next_at for _, _, next_at in moved],
        work=work.decode(),
        through=rows[-1][0] if rows else reached.through,
        is_finished=len(rows) < LOOKED_AT_MAX,
    )


def _jobs_of(book: Book, work: bytes, through: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(row that the work has reached with it, row of the job) of what is left, in order."""
    if work.decode() == TZDATA:
        for row, _ in book.jobs.walk(through + b"\0" if through else b"", None):
            yield row, row
        return
    _, tenant, name = work.decode().split(":")
    prefix = keys.calendar_job_row(tenant, name, "")
    for row, _ in book.calendar_jobs.walk(through + b"\0" if through else prefix, keys.after(prefix)):
        yield row, keys.job_row(tenant, row[len(prefix) :].decode())


def _moved(book: Book, row: bytes, since_at: int, now: int) -> Iterator[tuple[str, str, int]]:
    """(tenant, job id, next instant) of a job whose next instant is another one: the first after `since_at`, or it would be
    lost where nobody was there in between.
    """
    job = book.jobs.get(row)
    if job is None or job.is_once or job.status == "cancelled" or job.next_at <= now:
        return
    tenant, job_id = keys.names(row)
    try:
        version, after = job_version(book, row, job.version), max(since_at, job.counts_after)
        next_at = plans.next_at(book, tenant, job_id, version, after)
    except ScheduleError:
        return  # a zone that this zone data lacks: what was computed stands
    if next_at != job.next_at:
        yield tenant, job_id, next_at
