"""What the API answers about dead letters, typed once for both sides."""

from __future__ import annotations

import msgspec

from minutebook.client.models import AttemptError, Cause, InstantText, Name


class DeadLetter(msgspec.Struct, kw_only=True):
    """An execution that was given up, and neither redriven nor discarded since; `attempt` is the number of its last one."""

    execution_id: str
    job_id: Name
    task: Name
    queue: Name
    given_up_at: InstantText
    cause: Cause
    error: AttemptError
    attempt: int
    generation: int


class DeadLetterPage(msgspec.Struct):
    """Dead executions, the earliest given up first. A page may have fewer items than asked for, and still a next one."""

    items: list[DeadLetter]
    next_cursor: str | None
