"""What becomes of an instant that comes up while other executions of its job are open: the overlap policy of a job.

An execution is open until it has its outcome: one that waits for its retry is, and so is a run-now. One that is held is
not counted: it waits for the others.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.job_events import OVERLAP
from minutebook.domain.state import Job

HELD_MAX: Final = 100
"""Executions of one job that are held at one time, under `queue_all`."""
CLEARED_MAX: Final = 1_000
"""Executions that one instant cancels, under `cancel_running`: a frame holds only so many."""
_HELD_MAX: Final = {"skip": 0, "queue_one": 1, "queue_all": HELD_MAX}


class Turns(NamedTuple):
    """How many of some instants, the earliest first, run now, are held after those, and are skipped; `is_latest`: the
    skipped ones are the first instead."""

    running: int
    held: int
    skipped: int
    is_latest: bool = False


def is_busy(job: Job) -> bool:
    """Whether something of the job is open that what is held must wait for."""
    return job.open > len(job.held)


def turns(policy: str, count: int, *, is_busy: bool, held: int) -> Turns:
    """What becomes of `count` instants that come up one after the other, where `held` executions are held before."""
    if policy == "allow" or not count:
        return Turns(count, 0, 0)
    if policy == "cancel_running":
        return Turns(0, 1, count - 1, True) if is_busy else Turns(1, 0, count - 1, True)
    running = 0 if is_busy else 1
    more = max(0, min(count - running, _HELD_MAX[policy] - held))
    return Turns(running, more, count - running - more)


def cleared(book: Book, row: bytes, now: int) -> tuple[list[Event], bool]:
    """What ends or stops everything that is open of a job, and whether something of it goes on until it has stopped.

    What is held is skipped, or the end of the others would let it go its way. Of very many, those beyond `CLEARED_MAX`
    are left to the next instant.
    """
    held: list[Event] = []
    cancelled: list[Event] = []
    is_busy = False
    tenant, job_id = keys.names(row)
    for key, execution in book.executions_of(row):
        name, is_running = keys.names(key)[1], execution.status == "running"
        if execution.is_held:
            held.append(facts.ExecutionExpired(tenant, name, execution.attempt, OVERLAP))
            continue
        is_left = len(cancelled) >= CLEARED_MAX
        is_busy = is_busy or is_running or is_left
        if not (execution.is_stopping or is_left):
            token = execution.token if is_running else -1
            cancelled.append(facts.ExecutionCancelled(tenant, job_id, "", "", OVERLAP, now, name, token))
    return [*held, *cancelled], is_busy
