"""How a subject stands now, as the view has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from msgspec import UNSET, UnsetType

from api.live.subjects import Subject
from api.operation_bodies import operation_state
from api.view import View
from minutebook.client.models import Outcome
from minutebook.ids import job_of

PURGED: Final = "purged"
"""Of a job that is taken out of the views."""
CLOSED: Final = frozenset({"completed", "dead", "cancelled"})


class Standing(NamedTuple):
    """A subject's status; `tenants` are those who may see it, None = everybody."""

    subject: Subject
    status: str
    job_id: str = ""
    outcome: Outcome | UnsetType | None = UNSET
    tenants: frozenset[str] | None = None


def standings(view: View, subject: Subject, now: int) -> Iterator[Standing]:
    """How `subject` stands at `now` (ms, UTC): nothing where it is no more, and its job besides where that is closed by it."""
    return _STANDINGS[subject.kind](view, subject, now)


def _execution(view: View, subject: Subject, _: int) -> Iterator[Standing]:
    row = view.execution(subject.tenant, subject.id)
    if row is None:
        return
    job_id = job_of(subject.id)
    outcome: Outcome | None = row.outcome or None  # type: ignore[assignment]  # the view's outcomes are these
    yield Standing(subject, row.last.status, job_id, outcome)
    if outcome is not None:
        yield from (
            job for job in _job(view, Subject("job", subject.tenant, job_id), 0) if job.status in CLOSED
        )


def _job(view: View, subject: Subject, _: int) -> Iterator[Standing]:
    progress = view.progress(subject.tenant, subject.id)
    yield Standing(subject, PURGED if progress is None else progress.status, subject.id)


def _operation(view: View, subject: Subject, _: int) -> Iterator[Standing]:
    row = view.operation(subject.tenant, subject.id)
    if row is not None:
        yield Standing(subject, operation_state(row))


def _queue(view: View, subject: Subject, _: int) -> Iterator[Standing]:
    row = view.queue(view.partition_of_queue(subject.id), subject.id)
    if row is not None:
        status = "paused" if row.is_paused else "draining" if row.is_draining else "open"
        yield Standing(subject, status, tenants=frozenset(row.tenants) or None)


def _limit(view: View, subject: Subject, now: int) -> Iterator[Standing]:
    row = view.limit(subject.tenant, subject.id)
    yield Standing(subject, "deleted" if row is None else "paused" if now < row.paused_until else "open")


def _calendar(view: View, subject: Subject, _: int) -> Iterator[Standing]:
    row = view.calendar(subject.tenant, subject.id)
    yield Standing(subject, "deleted" if row is None else "declared")


def _as(status: str) -> Callable[[View, Subject, int], Iterator[Standing]]:
    def found(_view: View, subject: Subject, _now: int) -> Iterator[Standing]:
        yield Standing(subject, status)

    return found


_STANDINGS: Final[dict[str, Callable[[View, Subject, int], Iterator[Standing]]]] = {
    "execution": _execution,
    "job": _job,
    "operation": _operation,
    "queue": _queue,
    "limit": _limit,
    "calendar": _calendar,
    "task": _as("declared"),
    "worker": _as("changed"),
    "alert": _as("raised"),
    "partition": _as("taken"),
}
