"""Whether and when another attempt follows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutebook.domain.policy import DEFAULT, Policy, faults
from minutebook.domain.retries import (
    RETRY_AFTER_MAX_MS,
    Failing,
    GiveUp,
    Retry,
    after_failure,
    after_loss,
    backoff_ms,
    deadline_at,
    expired,
    expired_instant,
    withdrawal_wait_ms,
)
from minutebook.domain.state import Execution


def after(
    failures: int,
    *,
    is_permanent: bool = False,
    retry_after_ms: int | None = None,
    policy: Policy = DEFAULT,
    error_type: str = "Boom",
    deadline_at: int | None = None,
) -> Retry | GiveUp:
    failing = Failing("acme", "a:1", failures, error_type, is_permanent, retry_after_ms)
    return after_failure(policy, failing, deadline_at, 1_000)


@pytest.mark.parametrize(("failures", "base_ms"), [(1, 1_000), (2, 2_000), (3, 4_000), (4, 8_000)])
def test_waits_double_and_jitter_by_up_to_a_quarter(failures: int, base_ms: int) -> None:
    waits = {backoff_ms(DEFAULT, "acme", f"a:{n}", failures) for n in range(200)}
    assert min(waits) >= base_ms
    assert max(waits) <= base_ms * 1.25
    assert max(waits) - min(waits) > base_ms * 0.2


def test_a_wait_is_the_same_for_ever() -> None:
    """Pure: another process, another year, the same wait."""
    assert [backoff_ms(DEFAULT, "acme", "a:1", n) for n in (1, 2, 3, 4)] == [1_126, 2_047, 4_435, 9_883]


@given(failures=st.integers(1, 200), execution=st.text(max_size=20))
def test_no_wait_is_longer_than_its_bound(failures: int, execution: str) -> None:
    assert 1_000 <= backoff_ms(DEFAULT, "acme", execution, failures) <= DEFAULT.max_ms * 1.25


def test_five_failures_are_the_end() -> None:
    assert [isinstance(after(n), Retry) for n in range(1, DEFAULT.max_attempts)] == [True] * 4
    assert after(DEFAULT.max_attempts) == after(DEFAULT.max_attempts + 1) == GiveUp("attempts")


def test_a_permanent_failure_is_the_end_at_once() -> None:
    assert after(1, is_permanent=True, retry_after_ms=5) == GiveUp("permanent")


@pytest.mark.parametrize("retry_after_ms", [0, 1, RETRY_AFTER_MAX_MS])
def test_retry_after_is_honoured(retry_after_ms: int) -> None:
    assert after(1, retry_after_ms=retry_after_ms) == Retry(1_000 + retry_after_ms)


@pytest.mark.parametrize("retry_after_ms", [-1, RETRY_AFTER_MAX_MS + 1, 1 << 62])
def test_a_senseless_retry_after_is_not(retry_after_ms: int) -> None:
    assert after(1, retry_after_ms=retry_after_ms) == after(1)


def test_retry_after_gives_no_further_attempt() -> None:
    assert after(DEFAULT.max_attempts, retry_after_ms=1) == GiveUp("attempts")


def test_losses_are_retried_at_once_up_to_a_cap_of_their_own() -> None:
    assert [after_loss(DEFAULT, n, None, 7) for n in range(1, DEFAULT.max_losses)] == [Retry(7)] * (
        DEFAULT.max_losses - 1
    )
    assert after_loss(DEFAULT, DEFAULT.max_losses, None, 7) == GiveUp("losses")


def test_withdrawals_wait_after_the_third() -> None:
    assert [withdrawal_wait_ms(n) for n in range(1, 8)] == [0, 0, 0, 1_000, 2_000, 4_000, 8_000]
    assert withdrawal_wait_ms(1_000_000) == 60_000


# -- by policy


def test_waits_follow_the_policy() -> None:
    policy = Policy(first_ms=100, factor=3.0, max_ms=1_000, jitter=0.0, max_attempts=7)
    assert [backoff_ms(policy, "acme", "a:1", n) for n in range(1, 6)] == [100, 300, 900, 1_000, 1_000]
    assert after(6, policy=policy) == Retry(2_000)
    assert after(7, policy=policy) == GiveUp("attempts")


def test_a_first_wait_above_the_longest_is_the_longest() -> None:
    assert backoff_ms(Policy(first_ms=5_000, max_ms=1_000, jitter=0.0), "acme", "a:1", 1) == 1_000


def test_an_error_type_may_be_the_end() -> None:
    policy = Policy(non_retryable=["Gone", "Boom"])
    assert after(1, policy=policy) == GiveUp("permanent")
    assert isinstance(after(1, policy=policy, error_type="Boo"), Retry)


def test_nothing_is_tried_again_from_the_deadline_on() -> None:
    assert after(1, retry_after_ms=500, deadline_at=1_500) == GiveUp("deadline")
    assert after(1, retry_after_ms=499, deadline_at=1_500) == Retry(1_499)
    assert after_loss(DEFAULT, 1, 1_000, 1_000) == GiveUp("deadline")
    assert after_loss(DEFAULT, 1, 1_001, 1_000) == Retry(1_000)


def waiting(attempt: int = 1, generation: int = 0) -> Execution:
    return Execution(1, attempt, "queued", 0, 10_000, 10_000, generation=generation)


def test_a_waiting_execution_expires_at_its_deadlines() -> None:
    policy = Policy(deadline_ms=5_000, start_deadline_ms=1_000)
    assert [expired(policy, waiting(), at) for at in (10_999, 11_000, 15_000)] == [
        "",
        "start_deadline",
        "deadline",
    ]
    assert [expired(policy, waiting(2), at) for at in (14_999, 15_000)] == ["", "deadline"]
    assert expired(DEFAULT, waiting(), 1 << 60) == ""
    assert expired_instant(policy, 10_000, 10_999) == ""


def test_a_redriven_execution_has_no_deadline() -> None:
    policy = Policy(deadline_ms=5_000, start_deadline_ms=1_000)
    assert expired(policy, waiting(7, generation=1), 1 << 60) == ""
    assert deadline_at(policy, waiting(7, generation=1)) is None
    assert deadline_at(policy, waiting()) == 15_000


@pytest.mark.parametrize(
    ("policy", "fields"),
    [
        (Policy(max_attempts=0), ["retry/max_attempts"]),
        (Policy(max_attempts=101), ["retry/max_attempts"]),
        (Policy(first_ms=-1, max_ms=86_400_001), ["retry/first", "retry/max"]),
        (Policy(factor=0.9), ["retry/factor"]),
        (Policy(factor=float("nan")), ["retry/factor"]),
        (Policy(jitter=1.1), ["retry/jitter"]),
        (Policy(max_losses=0), ["max_losses"]),
        (Policy(deadline_ms=0), ["deadline"]),
        (Policy(start_deadline_ms=31 * 86_400_000), ["start_deadline"]),
        (Policy(stuck_after_ms=999), ["stuck_after"]),
        (Policy(is_stuck_stopped=True), ["on_stuck"]),
        (Policy(non_retryable=[""]), ["retry/non_retryable"]),
        (Policy(non_retryable=["a"] * 33), ["retry/non_retryable"]),
        (Policy(max_attempts=100, factor=10.0, jitter=1.0, max_losses=100, deadline_ms=1), []),
        (DEFAULT, []),
    ],
)
def test_a_policy_is_checked_field_by_field(policy: Policy, fields: list[str]) -> None:
    assert [field for field, _ in faults(policy)] == fields
