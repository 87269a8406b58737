"""What a task may know of its attempt."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from minutebook import ids, tracing
from minutebook.actions import TASK
from minutebook.times import datetime_of
from minutebook.worker.progress import Note, noted

if TYPE_CHECKING:
    from minutebook.worker.run import Run


class Phase:
    """Whether the worker leaves; one object for all its contexts."""

    def __init__(self) -> None:
        self.is_draining = False


class Context:
    """Passed to tasks that take a second argument. Safe to read from the task's thread."""

    def __init__(self, run: Run, timeout_ms: int, started_at: int, phase: Phase, note: Note) -> None:
        self._run = run
        self._note = note
        self._timeout_ms = timeout_ms
        self._started_at = started_at
        self._phase = phase
        self._is_cancel_requested = False

    @property
    def execution_id(self) -> str:
        """The idempotency key: the same in every attempt of this due instant, unique within the tenant."""
        return self._run.execution

    @property
    def job_id(self) -> str:
        """The job it belongs to."""
        return ids.job_of(self._run.execution)

    @property
    def tenant(self) -> str:
        """Whose job it is."""
        return self._run.tenant

    @property
    def task(self) -> str:
        """Name of the task."""
        return self._run.task

    @property
    def queue(self) -> str:
        """Queue that it came through."""
        return self._run.queue

    @property
    def attempt(self) -> int:
        """Number of this attempt, from 1."""
        return self._run.attempt

    @property
    def max_attempts(self) -> int:
        """After so many failures the execution is given up."""
        return self._run.max_attempts

    @property
    def last_progress(self) -> Any:
        """`details` of the last `progress` of an attempt before, to resume from; None if there are none."""
        return msgspec.json.decode(self._run.details) if self._run.details else None

    def progress(self, fraction: float, text: str = "", details: Any = None) -> None:
        """Say how far the attempt is (0 to 1), in words for people, with details for an attempt that may follow.

        From any thread, as often as you like: the latest goes out about once a second. Raises ValueError for a share
        beyond 0 to 1 and for details beyond 16 KiB of JSON.
        """
        self._note(noted(self._run, fraction, text, details))

    @property
    def token(self) -> int:
        """Fencing number of this attempt: grows with every grant of its partition."""
        return self._run.token

    @property
    def scheduled_at(self) -> datetime:
        """Nominal instant, UTC."""
        return datetime_of(self._run.scheduled_at)

    @property
    def due_at(self) -> datetime:
        """Instant at which it was due, UTC."""
        return datetime_of(self._run.due_at)

    @property
    def deadline(self) -> datetime:
        """When this attempt times out, UTC, by the worker's clock."""
        return datetime_of(self._started_at + self._timeout_ms)

    @property
    def cancel_requested(self) -> bool:
        """Whether it must stop: cancelled, timed out, its lease is over, or the grace of a leaving worker is.

        Functions on a thread look here; coroutines are cancelled as well.
        """
        return self._is_cancel_requested

    @property
    def draining(self) -> bool:
        """Whether the worker leaves; the attempt has until the end of the grace to finish."""
        return self._phase.is_draining

    @property
    def trace(self) -> str:
        """W3C `traceparent` to pass on to what the task calls; empty where nothing is traced."""
        return tracing.current() or self._run.traceparent

    @property
    def logger(self) -> Any:
        """A structlog logger with the attempt's fields."""
        return structlog.get_logger("minutebook.task").bind(
            action=TASK,
            job_id=self.job_id,
            execution_id=self.execution_id,
            attempt=self.attempt,
            task=self.task,
            queue=self.queue,
            tenant=self.tenant,
            partition=self._run.partition,
        )

    def request_cancel(self) -> None:
        """Make `cancel_requested` true. Called by the worker, and by tests of tasks."""
        self._is_cancel_requested = True
