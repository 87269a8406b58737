"""Whether and when another attempt follows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutebook.domain.retries import (
    ATTEMPTS_MAX,
    BACKOFF_MAX_MS,
    LOSSES_MAX,
    RETRY_AFTER_MAX_MS,
    GiveUp,
    Retry,
    after_failure,
    after_loss,
    backoff_ms,
    withdrawal_wait_ms,
)


def after(failures: int, *, is_permanent: bool = False, retry_after_ms: int | None = None) -> Retry | GiveUp:
    return after_failure(
        "acme", "a:1", failures, is_permanent=is_permanent, retry_after_ms=retry_after_ms, now=1_000
    )


@pytest.mark.parametrize(("failures", "base_ms"), [(1, 1_000), (2, 2_000), (3, 4_000), (4, 8_000)])
def test_waits_double_and_jitter_by_up_to_a_quarter(failures: int, base_ms: int) -> None:
    waits = {backoff_ms("acme", f"a:{n}", failures) for n in range(200)}
    assert min(waits) >= base_ms
    assert max(waits) <= base_ms * 1.25
    assert max(waits) - min(waits) > base_ms * 0.2


def test_a_wait_is_the_same_for_ever() -> None:
    """Pure: another process, another year, the same wait."""
    assert [backoff_ms("acme", "a:1", n) for n in (1, 2, 3, 4)] == [1_126, 2_047, 4_435, 9_883]


@given(failures=st.integers(1, 200), execution=st.text(max_size=20))
def test_no_wait_is_longer_than_its_bound(failures: int, execution: str) -> None:
    assert 1_000 <= backoff_ms("acme", execution, failures) <= BACKOFF_MAX_MS * 1.25


def test_five_failures_are_the_end() -> None:
    assert [isinstance(after(n), Retry) for n in range(1, ATTEMPTS_MAX)] == [True] * 4
    assert after(ATTEMPTS_MAX) == after(ATTEMPTS_MAX + 1) == GiveUp("attempts")


def test_a_permanent_failure_is_the_end_at_once() -> None:
    assert after(1, is_permanent=True, retry_after_ms=5) == GiveUp("permanent")


@pytest.mark.parametrize("retry_after_ms", [0, 1, RETRY_AFTER_MAX_MS])
def test_retry_after_is_honoured(retry_after_ms: int) -> None:
    assert after(1, retry_after_ms=retry_after_ms) == Retry(1_000 + retry_after_ms)


@pytest.mark.parametrize("retry_after_ms", [-1, RETRY_AFTER_MAX_MS + 1, 1 << 62])
def test_a_senseless_retry_after_is_not(retry_after_ms: int) -> None:
    assert after(1, retry_after_ms=retry_after_ms) == after(1)


def test_retry_after_gives_no_further_attempt() -> None:
    assert after(ATTEMPTS_MAX, retry_after_ms=1) == GiveUp("attempts")


def test_losses_are_retried_at_once_up_to_a_cap_of_their_own() -> None:
    assert [after_loss(n, 7) for n in range(1, LOSSES_MAX)] == [Retry(7)] * (LOSSES_MAX - 1)
    assert after_loss(LOSSES_MAX, 7) == GiveUp("losses")


def test_withdrawals_wait_after_the_third() -> None:
    assert [withdrawal_wait_ms(n) for n in range(1, 8)] == [0, 0, 0, 1_000, 2_000, 4_000, 8_000]
    assert withdrawal_wait_ms(1_000_000) == 60_000
