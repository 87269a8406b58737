"""The only reader of time. Everything else is told what time it is."""

from __future__ import annotations

import time
from typing import Protocol

from minutebook.ids import Instant


class Clock(Protocol):
    """What owners, workers and the API ask for the time."""

    def now(self) -> Instant:
        """Milliseconds since the epoch, UTC. Never goes back."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that also runs while the machine sleeps; only differences mean anything."""
        ...


class SystemClock:
    """Monotonic time set from the wall clock at start, so steps of the wall clock are not followed.

    `set_from` moves it to a broker's stamp at a take-over. CLOCK_BOOTTIME runs through suspend, CLOCK_MONOTONIC does not.
    """

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def now(self) -> Instant:
        """Milliseconds since the epoch, UTC."""
        return Instant((time.clock_gettime_ns(time.CLOCK_BOOTTIME) + self._offset_ns) // 1_000_000)

    def monotonic(self) -> float:
        """Seconds since boot."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)


class ManualClock:
    """A clock that moves only when told, for tests and for users' tests."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self._now = now

    def now(self) -> Instant:
        """Milliseconds since the epoch, UTC."""
        return Instant(self._now)

    def monotonic(self) -> float:
        """Seconds, in step with `now`."""
        return self._now / 1000

    def advance(self, ms: int) -> None:
        """Move forward by `ms` milliseconds."""
        if ms < 0:
            raise ValueError("a clock does not go back: ms must be >= 0")
        self._now += ms


def wall_ns() -> int:
    """Nanoseconds since the epoch by the wall clock, for measurements alone."""
    return time.time_ns()
