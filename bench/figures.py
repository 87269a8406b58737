"""From what was submitted and what the handlers saw to the figures of a repetition. Pure."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from bench.witness import Start

_NS_PER_MS = 1_000_000

Number = TypeVar("Number", int, float)


class Figures(NamedTuple):
    """Starts in seconds after T (the first `due_at`), lateness in seconds after each run's own `due_at`.

    A run that started twice counts by its first start, and once in `repeated`. None where nothing started.
    """

    started: int
    first_start_s: float | None
    last_start_s: float | None
    p50_s: float | None
    p99_s: float | None
    max_s: float | None
    runs_per_s: float | None
    early: int
    lost: int
    repeated: int


class Tally:
    """First start of each submitted run. `due_ms` holds the `due_at` of run 0, 1, 2, …"""

    def __init__(self, due_ms: Sequence[int]) -> None:
        self.due_ms = due_ms
        self.started = 0
        self.repeated = 0
        self.early = 0
        self._first = array("q", bytes(8 * len(due_ms)))

    def add(self, starts: Iterable[Start]) -> None:
        """More starts. Raises ValueError for a run that was not submitted."""
        for number, at_ns in starts:
            if not 0 <= number < len(self._first):
                raise ValueError(f"run {number} started, but only 0 to {len(self._first) - 1} were submitted")
            first = self._first[number]
            if first:
                self.repeated += 1
                self._first[number] = min(first, at_ns)
            else:
                self.started += 1
                self._first[number] = at_ns
            if at_ns < self.due_ms[number] * _NS_PER_MS:
                self.early += 1

    @property
    def last_start_ns(self) -> int:
        """The latest first start; 0 if nothing started."""
        return max(self._first, default=0)

    def late_s(self, runs: range) -> list[float]:
        """Seconds from its `due_at` to its first start, of each of `runs` that started; the shortest first."""
        found = (self._first[run] - self.due_ms[run] * _NS_PER_MS for run in runs if self._first[run])
        return [_seconds(late) for late in sorted(found)]

    def started_after(self, at_ns: float, runs: range) -> int:
        """How many of `runs` started only after a moment, or never; nanoseconds since the epoch."""
        return sum(not 0 < self._first[run] <= at_ns for run in runs)

    def figures(self) -> Figures:
        """What the starts so far amount to."""
        lost = len(self._first) - self.started
        if not self.started:
            return Figures(0, None, None, None, None, None, None, 0, lost, 0)
        t_ns = min(self.due_ms) * _NS_PER_MS
        late = sorted(
            at_ns - due * _NS_PER_MS for at_ns, due in zip(self._first, self.due_ms, strict=True) if at_ns
        )
        first_ns = min(at_ns for at_ns in self._first if at_ns) - t_ns
        last_ns = self.last_start_ns - t_ns
        return Figures(
            started=self.started,
            first_start_s=_seconds(first_ns),
            last_start_s=_seconds(last_ns),
            p50_s=_seconds(quantile(late, 0.5)),
            p99_s=_seconds(quantile(late, 0.99)),
            max_s=_seconds(late[-1]),
            runs_per_s=round(self.started / last_ns * 1e9, 1) if last_ns > 0 else None,
            early=self.early,
            lost=lost,
            repeated=self.repeated,
        )


def quantile(ordered: Sequence[Number], part: float) -> Number:
    """The smallest of `ordered` that `part` (over 0, up to 1) of them do not exceed. Raises IndexError if there are none."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def median(values: Sequence[float]) -> float:
    """The middle one; of an even number the lower of the two. Raises IndexError if there are none."""
    return sorted(values)[(len(values) - 1) // 2]


def _seconds(ns: int) -> float:
    return round(ns / 1e9, 4)
