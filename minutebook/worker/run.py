"""One granted attempt on its way from the inbox to the user's function and back."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

import msgspec

from minutebook.domain.policy import DEFAULT
from minutebook.domain.records import Granted, Inbox
from minutebook.worker.outcomes import Outcome


class Run(msgspec.Struct, frozen=True, gc=False):
    """What a worker knows of an attempt. `session` is the number of the session that holds it; instants are ms, UTC;
    `start_by` is seconds on the worker's monotonic clock: later it is handed back. `details`: what the attempt before noted.
    `traceparent`: the trace context that it goes on with, empty = none.
    """

    partition: int
    session: int
    token: int
    tenant: str
    execution: str
    attempt: int
    task: str
    queue: str
    scheduled_at: int
    due_at: int
    timeout_ms: int
    payload: bytes
    start_by: float
    max_attempts: int = DEFAULT.max_attempts
    deadline_at: int = -1
    details: bytes = b""
    traceparent: str = ""

    @property
    def key(self) -> tuple[int, int]:
        """What names it in this process: tokens are unique within a partition."""
        return self.partition, self.token


class Ended(msgspec.Struct, frozen=True, gc=False):
    """An attempt that ended. Without `frees_slot` its thread runs on; once that ends, a second one says so."""

    run: Run
    outcome: Outcome
    start_delay_ms: int = 0
    run_ms: int = 0
    frees_slot: bool = True


class StopReason(Enum):
    """Why an attempt is stopped before its end."""

    TIMEOUT = auto()
    CANCELLED = auto()  # asked for by the owner; the result still counts
    LOST = auto()  # the lease or the session is over; the result counts for nobody
    DRAIN = auto()  # the worker leaves; handed back


class Stop(NamedTuple):
    """Order to stop one attempt."""

    key: tuple[int, int]
    reason: StopReason


class Orders(NamedTuple):
    """What the user's side has to do."""

    starts: list[Run]
    stops: list[Stop]


def runs_of(record: Inbox, granted: Granted, number: int, start_by: float) -> list[Run]:
    """The rows of a record for session `number`. Token = frame offset x 65,536 + row."""
    more = granted.max_attempts or granted.deadlines_at or granted.details or granted.traceparents
    plain = _plain_runs(record, granted, number, start_by)
    return _with_policies(plain, granted) if more else plain


def _with_policies(runs: list[Run], granted: Granted) -> list[Run]:
    """Runs with what their jobs say of attempts, where any says something."""
    return [
        msgspec.structs.replace(
            run,
            max_attempts=granted.max_attempts[row] if granted.max_attempts else run.max_attempts,
            deadline_at=granted.deadlines_at[row] if granted.deadlines_at else -1,
            details=granted.details[row] if granted.details else b"",
            traceparent=granted.traceparents[row] if granted.traceparents else "",
        )
        for row, run in enumerate(runs)
    ]


def _plain_runs(record: Inbox, granted: Granted, number: int, start_by: float) -> list[Run]:
    partition, base = record.partition, record.frame << 16
    tenants, tasks, queues = granted.tenants, granted.tasks, granted.queues
    return [
        Run(
            partition,
            number,
            base + row,
            tenants[tenant],
            execution,
            attempt,
            tasks[task],
            queues[queue],
            scheduled_at,
            due_at,
            timeout_ms,
            payload,
            start_by,
        )
        for row, tenant, execution, attempt, task, queue, scheduled_at, due_at, timeout_ms, payload in zip(
            granted.rows,
            granted.tenant,
            granted.executions,
            granted.attempts,
            granted.task,
            granted.queue,
            granted.scheduled_at,
            granted.due_at,
            granted.timeout_ms,
            granted.payloads,
            strict=True,
        )
    ]
