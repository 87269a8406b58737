"""One attempt for tests of one function: its context, and the function called as a worker calls it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from minutebook import ids
from minutebook.times import instant_of
from minutebook.worker.context import Context, Phase
from minutebook.worker.progress import Noted
from minutebook.worker.run import Run

_START: Final = datetime(2030, 1, 1, tzinfo=UTC)


class TaskEnv:
    """An attempt that somebody grants in a test. Pass `context` to the function: `await send(payload, env.context)`."""

    def __init__(
        self,
        *,
        attempt: int = 1,
        task: str = "task",
        job_id: str = "job",
        tenant: str = "test",
        queue: str = "default",
        token: int = 1,
        last_progress: Any = None,
        due_at: datetime = _START,
        timeout: timedelta = timedelta(minutes=5),
    ) -> None:
        at = instant_of(due_at)
        timeout_ms = timeout // timedelta(milliseconds=1)
        execution = ids.execution_id(job_id, at)
        run = Run(0, 0, token, tenant, execution, attempt, task, queue, at, at, timeout_ms, b"null", 0.0)
        if last_progress is not None:
            run = msgspec.structs.replace(run, details=msgspec.json.encode(last_progress))
        self._phase = Phase()
        self.progress: list[tuple[float, str]] = []
        """What the function said of its progress: share and words."""
        self.context = Context(run, timeout_ms, at, self._phase, self._note)

    def _note(self, item: Noted) -> None:
        self.progress.append((item.fraction, item.text))

    def cancel(self) -> None:
        """From now on `cancel_requested` is true: the job was cancelled, or its lease or time is over."""
        self.context.request_cancel()

    def drain(self) -> None:
        """From now on `draining` is true: the worker leaves."""
        self._phase.is_draining = True
