"""Whether and when a failed or lost attempt is followed by another one, and when a waiting execution has expired."""

from __future__ import annotations

import zlib
from typing import Final, NamedTuple

from minutebook.domain.policy import Policy
from minutebook.domain.state import Execution

RETRY_AFTER_MAX_MS: Final = 7 * 86_400_000
WITHDRAWALS_FREE: Final = 3
WITHDRAWAL_WAIT_MAX_MS: Final = 60_000


class Retry(NamedTuple):
    """A further attempt is due at `at` (ms, UTC)."""

    at: int


class GiveUp(NamedTuple):
    """No further attempt; `cause` is `permanent`, `attempts`, `losses` or `deadline`."""

    cause: str


class Failing(NamedTuple):
    """A failed attempt as its retry is decided: `failures` counts it, `retry_after_ms` is what the task asked for."""

    tenant: str
    execution: str
    failures: int
    error_type: str
    is_permanent: bool
    retry_after_ms: int | None


def backoff_ms(policy: Policy, tenant: str, execution: str, failures: int) -> int:
    """Wait after the `failures`-th failure, by default 1, 2, 4, 8 s … plus up to a quarter: a pure function of its
    arguments, in steps of multiplication, so that every machine finds the same.
    """
    wait = float(min(policy.first_ms, policy.max_ms))
    for _ in range(failures - 1):
        wait = min(wait * policy.factor, float(policy.max_ms))
    share = zlib.crc32(f"{tenant}/{execution}/{failures}".encode()) / 2**32
    return int(wait) + int(int(wait) * policy.jitter * share)


def is_sane(retry_after_ms: int) -> bool:
    """Whether a wait that a task asks for is taken."""
    return 0 <= retry_after_ms <= RETRY_AFTER_MAX_MS


def after_failure(policy: Policy, failing: Failing, deadline_at: int | None, now: int) -> Retry | GiveUp:
    """What follows a failure. `retry_after_ms` from the task stands before the backoff, if sane.

    `deadline_at`: ms, UTC; nothing is tried again from there on.
    """
    if failing.is_permanent or failing.error_type in policy.non_retryable:
        return GiveUp("permanent")
    if failing.failures >= policy.max_attempts:
        return GiveUp("attempts")
    after_ms = failing.retry_after_ms
    if after_ms is None or not is_sane(after_ms):
        after_ms = backoff_ms(policy, failing.tenant, failing.execution, failing.failures)
    if deadline_at is not None and now + after_ms >= deadline_at:
        return GiveUp("deadline")
    return Retry(now + after_ms)


def after_loss(policy: Policy, losses: int, deadline_at: int | None, now: int) -> Retry | GiveUp:
    """What follows the `losses`-th loss: at once again, up to a cap of its own."""
    if losses >= policy.max_losses:
        return GiveUp("losses")
    return GiveUp("deadline") if deadline_at is not None and now >= deadline_at else Retry(now)


def deadline_at(policy: Policy, execution: Execution) -> int | None:
    """Until when attempts of an execution may run, ms, UTC. One that was redriven has no such end."""
    if policy.deadline_ms is None or execution.generation:
        return None
    return execution.due_at + policy.deadline_ms


def expired(policy: Policy, execution: Execution, now: int) -> str:
    """Why an execution that waits must not start any more: `deadline`, `start_deadline`, or empty if it may."""
    if not policy.has_deadlines or execution.generation:
        return ""
    reason = expired_instant(policy, execution.due_at, now)
    has_started = execution.attempt > 1
    return "" if reason == "start_deadline" and has_started else reason


def expired_instant(policy: Policy, due_at: int, now: int) -> str:
    """Why nothing that was due at `due_at` (ms, UTC) may start for the first time; empty if it may."""
    if policy.deadline_ms is not None and now >= due_at + policy.deadline_ms:
        return "deadline"
    if policy.start_deadline_ms is not None and now >= due_at + policy.start_deadline_ms:
        return "start_deadline"
    return ""


def withdrawal_wait_ms(withdrawals: int) -> int:
    """Wait before the next grant after so many withdrawals: none for the first three, then 1, 2, 4 s …."""
    if withdrawals <= WITHDRAWALS_FREE:
        return 0
    return int(min(1_000 * 2 ** min(withdrawals - WITHDRAWALS_FREE - 1, 16), WITHDRAWAL_WAIT_MAX_MS))
