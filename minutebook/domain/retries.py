"""Whether and when a failed or lost attempt is followed by another one."""

from __future__ import annotations

import zlib
from typing import Final, NamedTuple

ATTEMPTS_MAX: Final = 5
LOSSES_MAX: Final = 10
FIRST_MS: Final = 1_000
FACTOR: Final = 2
BACKOFF_MAX_MS: Final = 3_600_000
JITTER: Final = 0.25
RETRY_AFTER_MAX_MS: Final = 7 * 86_400_000
WITHDRAWALS_FREE: Final = 3
WITHDRAWAL_WAIT_MAX_MS: Final = 60_000


class Retry(NamedTuple):
    """A further attempt is due at `at` (ms, UTC)."""

    at: int


class GiveUp(NamedTuple):
    """No further attempt; `cause` is `permanent`, `attempts` or `losses`."""

    cause: str


def backoff_ms(tenant: str, execution: str, failures: int) -> int:
    """Wait after the `failures`-th failure: 1, 2, 4, 8 s …, plus up to a quarter, a pure function of its arguments."""
    wait = int(min(FIRST_MS * FACTOR ** (failures - 1), BACKOFF_MAX_MS))
    share = zlib.crc32(f"{tenant}/{execution}/{failures}".encode()) / 2**32
    return wait + int(wait * JITTER * share)


def after_failure(
    tenant: str, execution: str, failures: int, *, is_permanent: bool, retry_after_ms: int | None, now: int
) -> Retry | GiveUp:
    """What follows the `failures`-th failure. `retry_after_ms` from the task stands before the backoff, if sane."""
    if is_permanent:
        return GiveUp("permanent")
    if failures >= ATTEMPTS_MAX:
        return GiveUp("attempts")
    if retry_after_ms is not None and 0 <= retry_after_ms <= RETRY_AFTER_MAX_MS:
        return Retry(now + retry_after_ms)
    return Retry(now + backoff_ms(tenant, execution, failures))


def after_loss(losses: int, now: int) -> Retry | GiveUp:
    """What follows the `losses`-th loss: at once again, up to a cap of its own."""
    return GiveUp("losses") if losses >= LOSSES_MAX else Retry(now)


def withdrawal_wait_ms(withdrawals: int) -> int:
    """Wait before the next grant after so many withdrawals: none for the first three, then 1, 2, 4 s …."""
    if withdrawals <= WITHDRAWALS_FREE:
        return 0
    return int(min(1_000 * 2 ** min(withdrawals - WITHDRAWALS_FREE - 1, 16), WITHDRAWAL_WAIT_MAX_MS))
