"""Frames to steps: each thing that happened to one job and its executions, and where the log says so.

A frame holds many events about many jobs, some of them columns of rows. A step is one row of one event, told apart by
its place: partition, offset of the frame, index of the event in the frame, row in the event. Instants are milliseconds
since the epoch, UTC; -1 stands for none, as in the events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from minutebook.domain import events as facts
from minutebook.domain.events import Event
from minutebook.domain.rows import rows_of
from minutebook.ids import job_of
from minutebook.wire.frames import Frame


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where in the log: the row of an event of the frame at `offset`. `token`: that of the row, if it is a grant."""

    partition: int
    offset: int
    index: int
    row: int
    token: int


class Step(msgspec.Struct, frozen=True, gc=False):
    """One thing that happened at `at` to a job, or to one of its executions.

    `kind` names it; `said` is what the event says of it, by the event's own names, dictionaries resolved. `owner` decided
    it, in its `epoch`, by the zone data `tzdata`.
    """

    at: int
    place: Place
    owner: str
    epoch: int
    tzdata: str
    kind: str
    tenant: str
    job_id: str
    execution: str
    said: dict[str, Any]

    @property
    def event_id(self) -> str:
        """Place as text: it stays the same for ever."""
        return f"{self.place.partition}.{self.place.offset}.{self.place.index}.{self.place.row}"


class Wanted(NamedTuple):
    """Whose steps: those of all jobs of a tenant, of one job, or of one execution, as far as they are named."""

    tenant: str
    job_id: str = ""
    execution: str = ""

    def is_job(self, tenant: str, job_id: str) -> bool:
        """Whether that job is meant."""
        return tenant == self.tenant and self.job_id in ("", job_id)

    def is_execution(self, execution: str) -> bool:
        """Whether that execution of the tenant is meant."""
        if not self.job_id:
            return True
        if not execution.startswith(self.job_id):
            return False
        return job_of(execution) == self.job_id and self.execution in ("", execution)


class _Found(NamedTuple):
    row: int
    job_id: str
    execution: str
    said: dict[str, Any]


def steps_of(partition: int, frame: Frame, wanted: Wanted) -> Iterator[Step]:
    """What a frame of the job's partition says of it, in the order in which it was decided."""
    first_row = 0
    for index, event in enumerate(frame.events):
        kind, read = _READERS.get(type(event), ("", None))
        if read is not None:
            for found in read(event, wanted):
                place = Place(
                    partition, frame.offset, index, found.row, (frame.offset << 16) + first_row + found.row
                )
                yield Step(
                    frame.now,
                    place,
                    frame.owner,
                    frame.epoch,
                    frame.tzdata,
                    kind,
                    wanted.tenant,
                    found.job_id,
                    found.execution,
                    found.said,
                )
        first_row += rows_of(event)


# -- events about one job


def _of_job(event: Any, wanted: Wanted) -> Iterator[_Found]:
    if wanted.is_job(event.tenant, event.job_id):
        execution = getattr(event, "execution", "")
        if not wanted.execution or execution in ("", wanted.execution):
            yield _Found(0, event.job_id, execution, _fields(event))


def _of_edit(event: facts.JobEdited, wanted: Wanted) -> Iterator[_Found]:
    if wanted.is_job(event.job.tenant, event.job.job_id):
        said = _fields(event.job) | {"version": event.version, "reason": event.reason}
        yield _Found(0, event.job.job_id, "", said)


def _of_cancel(event: facts.JobCancelled, wanted: Wanted) -> Iterator[_Found]:
    if wanted.is_job(event.tenant, event.job_id):
        name = wanted.execution
        if not name or name in event.executions or name in event.stopping:
            yield _Found(0, event.job_id, name, _fields(event))


def _of_skip(event: facts.ExecutionsSkipped, wanted: Wanted) -> Iterator[_Found]:
    if wanted.is_job(event.tenant, event.job_id):
        at = wanted.execution.rpartition(":")[2]
        if not at or (at.isdecimal() and event.first_at <= int(at) <= event.last_at):
            yield _Found(0, event.job_id, wanted.execution, _fields(event))


def _of_places(event: facts.ExecutionsPlaced, wanted: Wanted) -> Iterator[_Found]:
    if not wanted.is_job(event.tenant, event.job_id):
        return
    shared = {name: getattr(event, name) for name in ("cause", "version", "next_at", "operation")}
    for row, at in enumerate(event.scheduled_at):
        name = f"{event.job_id}:{at}"
        if wanted.execution in ("", name):
            own = {"scheduled_at": at, "due_at": event.due_at[row], "place_at": event.place_at[row]}
            yield _Found(row, event.job_id, name, shared | own)


def _of_rescheduling(event: facts.JobsRescheduled, wanted: Wanted) -> Iterator[_Found]:
    for row, (tenant, job_id) in enumerate(zip(event.tenant, event.job_ids, strict=True)):
        if wanted.is_job(event.tenants[tenant], job_id):
            said = {"cause": event.cause, "work": event.work, "next_at": event.next_at[row]}
            yield _Found(row, job_id, "", said)


# -- events about executions


def _of_execution(event: Any, wanted: Wanted) -> Iterator[_Found]:
    if event.tenant == wanted.tenant and wanted.is_execution(event.execution):
        yield _Found(0, job_of(event.execution), event.execution, _fields(event))


def _columns(*columns: str, **dictionaries: str) -> Callable[[Any, Wanted], Iterator[_Found]]:
    """Reads an event of columns. `dictionaries`: column -> the list of the event that its numbers point into."""

    def read(event: Any, wanted: Wanted) -> Iterator[_Found]:
        if wanted.tenant not in event.tenants:
            return
        number = event.tenants.index(wanted.tenant)
        for row, (tenant, execution) in enumerate(zip(event.tenant, event.executions, strict=True)):
            if tenant == number and wanted.is_execution(execution):
                yield _Found(row, job_of(execution), execution, _row_of(event, row, columns, dictionaries))

    return read


def _row_of(event: Any, row: int, columns: tuple[str, ...], dictionaries: dict[str, str]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for column in columns:
        values = getattr(event, column)
        said[_SINGULAR.get(column, column)] = values[row] if values else None
    for column, names in dictionaries.items():
        values = getattr(event, column)
        said[column] = getattr(event, names)[values[row]] if values else ""
    for name in ("cause", "reason"):
        if hasattr(event, name):
            said[name] = getattr(event, name)
    if isinstance(event, facts.ExecutionsGranted):
        permits = zip(event.permit_row, event.permit_limit, event.permit_ids, strict=True)
        said["permits"] = [
            {"limit": event.limits[limit], "permit": permit} for of, limit, permit in permits if of == row
        ]
    return said


_SINGULAR: Final = {
    "versions": "version",
    "attempts": "attempt",
    "priorities": "priority",
    "tokens": "token",
    "results": "result",
}
_DUE: Final = ("versions", "scheduled_at", "due_at", "next_at", "attempts", "priorities")


def _fields(event: msgspec.Struct) -> dict[str, Any]:
    return msgspec.structs.asdict(event)


_READERS: Final[dict[type[Event], tuple[str, Callable[[Any, Wanted], Iterator[_Found]]]]] = {
    facts.JobSubmitted: ("submitted", _of_job),
    facts.JobEdited: ("edited", _of_edit),
    facts.JobPaused: ("paused", _of_job),
    facts.JobResumed: ("resumed", _of_job),
    facts.JobPurged: ("purged", _of_job),
    facts.JobCancelled: ("cancelled", _of_cancel),
    facts.ExecutionRequested: ("requested", _of_job),
    facts.ExecutionsSkipped: ("skipped", _of_skip),
    facts.ExecutionsPlaced: ("placed", _of_places),
    facts.JobsRescheduled: ("rescheduled", _of_rescheduling),
    facts.CommandAnswered: ("answered", _of_job),
    facts.CommandRejected: ("refused", _of_job),
    facts.ExecutionsQueued: (
        "queued",
        _columns(*_DUE, queue="queues", task="tasks", limit="limits"),
    ),
    facts.ExecutionsDueGranted: (
        "due_granted",
        _columns(*_DUE, "permits", queue="queues", task="tasks", session="sessions"),
    ),
    facts.ExecutionsGranted: ("granted", _columns("attempts", session="sessions")),
    facts.GrantsReturned: ("returned", _columns("tokens", "wait_until", session="sessions")),
    facts.AttemptsSucceeded: ("succeeded", _columns("tokens", "start_delay_ms", "run_ms", "results")),
    facts.AttemptsLost: ("lost", _columns("tokens", "has_retry", session="sessions")),
    facts.AttemptFailed: ("failed", _of_execution),
    facts.AttemptSnoozed: ("snoozed", _of_execution),
    facts.AttemptProgressed: ("progressed", _of_execution),
    facts.AttemptStuck: ("stuck", _of_execution),
    facts.AttemptCancelled: ("attempt_cancelled", _of_execution),
    facts.ExecutionCancelled: ("execution_cancelled", _of_execution),
    facts.ExecutionExpired: ("expired", _of_execution),
    facts.ExecutionDead: ("dead", _of_execution),
    facts.ExecutionRedriven: ("redriven", _of_execution),
    facts.ExecutionDiscarded: ("discarded", _of_execution),
    facts.ReportRefused: ("report_refused", _of_execution),
    facts.AlertRaised: ("alerted", _of_job),
}
KINDS: Final = tuple(kind for kind, _ in _READERS.values())
"""Every kind of step."""
