"""The conversation with the owner of one partition: which tokens are held, and what the next report says.

Pure: no I/O, times (seconds, monotonic) are arguments. At most one report of a partition is on its way at a time; what
ends meanwhile goes into the next one.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final, TypeVar

from minutebook.domain.records import FullPulse, Pulse, Report
from minutebook.worker.ends import failed_of, handed_back_of, succeeded_of
from minutebook.worker.lease import Lease
from minutebook.worker.outcomes import Verdict
from minutebook.worker.run import Ended, Run

GAP_S: Final = 0.005
GATHER_S: Final = 0.025
"""Reports of a partition keep the first distance, so that results of a burst travel together; the second one where nobody
waits for the slots that they free.
"""
SHOW_AFTER_S: Final = 0.05
"""Grants whose tasks run longer are acknowledged by a full pulse."""
ROWS_MAX: Final = 2_000
FAILED_MAX: Final = 64
"""Bounds of one report: each message may have 8 KiB."""


T = TypeVar("T")


class Session:
    """A life of this worker toward one partition; ended by the owner, it goes on under the next number."""

    def __init__(self, worker: str, partition: int, lease_s: float, pulse_s: float) -> None:
        self.partition = partition
        self.number = 0
        self.last_token = -1
        self.running: dict[int, Run] = {}
        self.is_in_flight = False
        self._worker = worker
        self._lease_s = lease_s
        self._pulse_s = pulse_s
        self._begin()

    def _begin(self) -> None:
        self.name = f"{self._worker}.{self.number}"
        self.lease = Lease(self._lease_s)
        self._sequence = 0
        self._succeeded: deque[Ended] = deque()
        self._failed: deque[Ended] = deque()
        self._handed_back: deque[Run] = deque()
        self._sending: list[int] = []
        self._unshown: deque[tuple[float, list[int]]] = deque()
        self._sent_at = -math.inf
        self._full_at = -math.inf

    # -- what happened

    def took(self, started: list[Run], now: float) -> None:
        """Grants that are started."""
        if started:
            self.running.update({run.token: run for run in started})
            self._unshown.append((now, [run.token for run in started]))

    def hand_back(self, runs: list[Run]) -> None:
        """Grants that are not started."""
        self._handed_back.extend(runs)

    def ended(self, end: Ended) -> bool:
        """An attempt ended; False where its result counts for nobody any more."""
        if end.run.session != self.number or self.running.pop(end.run.token, None) is None:
            return False
        if end.outcome is Verdict.SUCCEEDED:
            self._succeeded.append(end)
        elif end.outcome is Verdict.HANDED_BACK:
            self._handed_back.append(end.run)
        else:
            self._failed.append(end)
        return True

    def drop_running(self) -> list[Run]:
        """The lease is over: what still runs is held no longer and must stop."""
        dropped = list(self.running.values())
        self.running.clear()
        return dropped

    def speak_up(self) -> None:
        """Something must be said at once: a full pulse is due."""
        self._full_at = -math.inf

    def restart(self) -> list[Run]:
        """The owner ended the session: nothing of it counts any more, and the next one begins. What must stop."""
        dropped = self.drop_running()
        self.number += 1
        self._begin()
        return dropped

    def acknowledged(self, name: str, sent_at: float) -> None:
        """The report on its way, of session `name`, is with the broker."""
        self.is_in_flight = False
        if name == self.name:
            self._sending = []
            self.lease.renewed(sent_at)

    # -- what follows

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is left to report."""
        return not (self.is_in_flight or self._has_results)

    @property
    def _has_results(self) -> bool:
        return bool(self._succeeded or self._failed or self._handed_back)

    def held(self) -> list[int]:
        """All tokens held: running, or with a result that the broker has not acknowledged."""
        tokens = [*self.running, *self._sending, *(run.token for run in self._handed_back)]
        tokens += (end.run.token for end in self._succeeded)
        tokens += (end.run.token for end in self._failed)
        return tokens

    def due_at(self, *, is_scarce: bool) -> float:
        """When the next report should go, but for changed offers; infinity while one is on its way.

        `is_scarce`: the owner may be waiting for slots.
        """
        if self.is_in_flight:
            return math.inf
        due = self._full_at + self._pulse_s
        if self._failed or self._handed_back or (self._succeeded and is_scarce):
            due = min(due, self._sent_at + GAP_S)
        elif self._succeeded:
            due = min(due, self._sent_at + GATHER_S)
        while self._unshown and not any(token in self.running for token in self._unshown[0][1]):
            self._unshown.popleft()
        return min(due, self._unshown[0][0] + SHOW_AFTER_S) if self._unshown else due

    def is_full_due(self, now: float) -> bool:
        """Whether the report that goes now must be a full pulse."""
        is_unshown = bool(self._unshown) and now >= self._unshown[0][0] + SHOW_AFTER_S
        return is_unshown or now >= self._full_at + self._pulse_s

    def report(self, pulse: Pulse, full: FullPulse | None, now: float) -> Report:
        """The next report, now on its way. `full` has its `held` from this session."""
        self._sequence += 1
        self._sent_at = now
        self.lease.sent(now)
        self.is_in_flight = True
        if full is not None:
            self._full_at = now
            self._unshown.clear()
        succeeded = _pop(self._succeeded, ROWS_MAX)
        failed = _pop(self._failed, FAILED_MAX)
        handed_back = _pop(self._handed_back, ROWS_MAX)
        self._sending = [end.run.token for end in succeeded + failed] + [run.token for run in handed_back]
        return Report(
            self.name,
            self._sequence,
            pulse,
            full,
            succeeded_of(succeeded) if succeeded else None,
            [failed_of(end) for end in failed],
            handed_back_of(handed_back) if handed_back else None,
        )


def _pop(waiting: deque[T], count_max: int) -> list[T]:
    return [waiting.popleft() for _ in range(min(len(waiting), count_max))]
