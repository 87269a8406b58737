"""The events with which an execution is given up."""

from __future__ import annotations

from typing import NamedTuple

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.events import Event
from minutebook.domain.state import Execution


class Held(NamedTuple):
    """An attempt that a decision is about: the row of its execution, its token (-1: it does not run), its state."""

    key: bytes
    token: int
    execution: Execution


def dead(held: Held, cause: str, error_type: str, message: str, now: int) -> Event:
    """No further attempt: a dead letter follows."""
    tenant, name = keys.names(held.key)
    execution = held.execution
    return facts.ExecutionDead(
        tenant=tenant,
        execution=name,
        version=execution.version,
        generation=execution.generation,
        attempt=execution.attempt,
        scheduled_at=execution.scheduled_at,
        due_at=execution.due_at,
        given_up_at=now,
        cause=cause,
        error_type=error_type,
        message=message,
    )


def expiry(held: Held, reason: str, now: int) -> Event:
    """A waiting execution past its deadline: skipped where nothing was tried, else dead."""
    if held.execution.failures or held.execution.losses:
        return dead(held, "deadline", "Deadline", "no attempt succeeded before its deadline", now)
    return facts.ExecutionExpired(*keys.names(held.key), held.execution.attempt, reason)
