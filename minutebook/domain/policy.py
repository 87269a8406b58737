"""How attempts of a job are retried and bounded, and what a caller may ask for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import msgspec

_SECOND_MS: Final = 1_000
_DAY_MS: Final = 86_400_000
NAMES_MAX: Final = 32
NAME_CHARS_MAX: Final = 256
PRIORITY: Final = 5


class Policy(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Of one job. Durations in ms; None = no such bound. The defaults are those of a job that says nothing."""

    max_attempts: int = 5  # failures after which it is given up
    first_ms: int = 1000  # wait before the second attempt
    max_ms: int = 3600000  # longest wait
    factor: float = 2.0  # each wait is so many times the one before
    jitter: float = 0.25  # up to this share is added to a wait
    non_retryable: list[str] = []  # error types after which it is given up at once
    max_losses: int = 10  # lost attempts after which it is given up
    deadline_ms: int | None = None  # after due_at, for all attempts
    start_deadline_ms: int | None = None  # after due_at, for the first start
    stuck_after_ms: int | None = None  # without progress for so long a running attempt is reported
    is_stuck_stopped: bool = False  # and stopped

    @property
    def has_deadlines(self) -> bool:
        """Whether an execution that waits can expire."""
        return self.deadline_ms is not None or self.start_deadline_ms is not None


DEFAULT: Final = Policy()


class Bound(msgspec.Struct, frozen=True):
    """What a field may hold, and its name in the create body."""

    field: str
    least: float
    most: float
    text: str

    def holds(self, value: float | None) -> bool:
        """Whether the value is within; None is no bound at all."""
        return value is None or (math.isfinite(value) and self.least <= value <= self.most)


BOUNDS: Final[dict[str, Bound]] = {
    "max_attempts": Bound("retry/max_attempts", 1, 100, "must be from 1 to 100"),
    "first_ms": Bound("retry/first", 0, _DAY_MS, "must be from PT0S to P1D"),
    "max_ms": Bound("retry/max", 0, _DAY_MS, "must be from PT0S to P1D"),
    "factor": Bound("retry/factor", 1, 10, "must be from 1 to 10"),
    "jitter": Bound("retry/jitter", 0, 1, "must be from 0 to 1"),
    "max_losses": Bound("max_losses", 1, 100, "must be from 1 to 100"),
    "deadline_ms": Bound("deadline", 1, 30 * _DAY_MS, "must be longer than PT0S, at most P30D"),
    "start_deadline_ms": Bound("start_deadline", 1, 30 * _DAY_MS, "must be longer than PT0S, at most P30D"),
    "stuck_after_ms": Bound("stuck_after", _SECOND_MS, 7 * _DAY_MS, "must be from PT1S to P7D"),
}


def faults(policy: Policy) -> Iterator[tuple[str, str]]:
    """(field of the create body, remedy) for each value out of bounds."""
    for name, bound in BOUNDS.items():
        if not bound.holds(getattr(policy, name)):
            yield bound.field, bound.text
    names = policy.non_retryable
    if len(names) > NAMES_MAX or not all(0 < len(name) <= NAME_CHARS_MAX for name in names):
        yield (
            "retry/non_retryable",
            f"at most {NAMES_MAX} error types of 1 to {NAME_CHARS_MAX} characters",
        )
    if policy.is_stuck_stopped and policy.stuck_after_ms is None:
        yield "on_stuck", "stop needs stuck_after: after how long without progress"


def is_priority(value: int) -> bool:
    """Whether it is 0 to 9; 9 goes first."""
    return 0 <= value <= 9
