"""Rows of an event: what tokens, permits and mail are numbered by."""

from __future__ import annotations

from minutebook.domain import events as facts
from minutebook.domain.events import Event
from minutebook.errors import BrokenFrameError

_QUEUED = (
    "executions",
    "tenant",
    "queue",
    "task",
    "versions",
    "scheduled_at",
    "due_at",
    "next_at",
    "attempts",
    "priorities",
)
_COLUMNS: dict[type, tuple[str, ...]] = {
    facts.ExecutionsDueGranted: (*_QUEUED, "session"),
    facts.ExecutionsQueued: _QUEUED,
    facts.ExecutionsGranted: ("executions", "tenant", "attempts", "session"),
    facts.AttemptsSucceeded: ("executions", "tenant", "tokens", "start_delay_ms", "run_ms"),
    facts.GrantsReturned: ("executions", "tenant", "tokens", "session", "wait_until"),
    facts.PermitsGranted: ("partitions",),
    facts.PermitsReceived: ("permits",),
    facts.PermitsReleased: ("permits",),
    facts.PermitsReturned: ("permits",),
    facts.ExecutionsPlaced: ("scheduled_at", "due_at", "place_at"),
    facts.JobsRescheduled: ("job_ids", "tenant", "next_at"),
    facts.AttemptsLost: ("executions", "tenant", "tokens", "session", "has_retry"),
}


def rows_of(event: Event) -> int:
    """How many rows `event` has: the length of its columns, 1 where it has none.

    Raises BrokenFrameError where columns differ in length.
    """
    columns = _COLUMNS.get(type(event))
    if columns is None:
        return 1
    lengths = {len(getattr(event, column)) for column in columns}
    if len(lengths) != 1:
        raise BrokenFrameError(f"{type(event).__name__} has columns of unequal length")
    return lengths.pop()
