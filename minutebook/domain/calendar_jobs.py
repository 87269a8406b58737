"""Which jobs depend on which calendars: rows that folds write with a job's version, and take away with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from minutebook.domain import keys

if TYPE_CHECKING:
    from minutebook.domain.book import Book
    from minutebook.domain.state import Spec


def enter(book: Book, job: bytes, spec: Spec) -> None:
    """The job of that row comes due by `spec` from here on."""
    for row in _rows(job, spec):
        book.calendar_jobs.put(row, b"")


def leave(book: Book, job: bytes, spec: Spec) -> None:
    """The job of that row does not come due by `spec` any more."""
    for row in _rows(job, spec):
        book.calendar_jobs.delete(row)


def _rows(job: bytes, spec: Spec) -> Iterable[bytes]:
    if spec.explicit_timing is None:
        return
    tenant, job_id = keys.names(job)
    for name in dict.fromkeys(spec.explicit_timing.calendars):
        yield keys.calendar_job_row(tenant, name, job_id)
