"""The conversation with the owner of one partition: which tokens are held, and what the next report says.

Pure: no I/O, times (seconds, monotonic) are arguments. At most one report of a partition is on its way at a time; what
ends meanwhile goes into the next one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from itertools import accumulate, islice, takewhile
from typing import Final

from minutebook.domain.records import FullPulse, Pulse, Report
from minutebook.worker.ends import (
    cancelled_of,
    failed_of,
    handed_back_of,
    progress_of,
    snoozed_of,
    succeeded_of,
)
from minutebook.worker.lease import Lease
from minutebook.worker.outcomes import Cancelling, Failure, Result, Snoozing, Verdict
from minutebook.worker.progress import Noted
from minutebook.worker.run import Ended, Run

GAP_S: Final = 0.005
GATHER_S: Final = 0.025
"""Reports of a partition keep the first distance, so that results of a burst travel together; the second one where nobody
waits for the slots that they free.
"""
SHOW_AFTER_S: Final = 0.05
"""Grants whose tasks run longer are acknowledged by a full pulse."""
ROWS_MAX: Final = 2_000
REPORT_BYTES_MAX: Final = 600 << 10
ROW_BYTES: Final = 100
NOTED_BYTES: Final = 4_000
OTHERS_MAX: Final = 64
PROGRESS_EVERY_S: Final = 1.0
PROGRESS_MAX: Final = 64


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
        self._others: deque[Ended] = deque()
        self._progress: dict[int, Noted] = {}
        self._progress_at = -math.inf
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
        if end.outcome is Verdict.SUCCEEDED or isinstance(end.outcome, Result):
            if self._progress:
                self._progress.pop(end.run.token, None)
            self._succeeded.append(end)
        elif end.outcome is Verdict.HANDED_BACK:
            self._handed_back.append(end.run)
        else:
            self._others.append(end)
        return True

    def progressed(self, item: Noted) -> None:
        """How far an attempt is; of one that has ended nobody wants to know."""
        if item.run.session == self.number and item.run.token in self.running:
            self._progress[item.run.token] = item

    def drop_running(self) -> list[Run]:
        """The lease is over: what still runs is held no longer and must stop."""
        dropped = list(self.running.values())
        self.running.clear()
        self._progress.clear()
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
        return bool(self._succeeded or self._others or self._handed_back)

    def held(self) -> list[int]:
        """All tokens held: running, or with a result that the broker has not acknowledged."""
        tokens = [*self.running, *self._sending, *(run.token for run in self._handed_back)]
        tokens += (end.run.token for end in self._succeeded)
        tokens += (end.run.token for end in self._others)
        return tokens

    def due_at(self, *, is_scarce: bool) -> float:
        """When the next report should go, but for changed offers; infinity while one is on its way.

        `is_scarce`: the owner may be waiting for slots.
        """
        if self.is_in_flight:
            return math.inf
        due = self._full_at + self._pulse_s
        if self._others or self._handed_back or (self._succeeded and is_scarce):
            due = min(due, self._sent_at + GAP_S)
        elif self._succeeded:
            due = min(due, self._sent_at + GATHER_S)
        if self._progress:
            due = min(due, self._progress_at + PROGRESS_EVERY_S)
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
        budget = _Budget()
        others = budget.take(self._others, OTHERS_MAX, self._size)
        progress = self._told(others, budget, now)
        succeeded = budget.take(self._succeeded, ROWS_MAX, self._size)
        handed_back = [self._handed_back.popleft() for _ in range(min(len(self._handed_back), ROWS_MAX))]
        self._sending = [end.run.token for end in succeeded + others] + [run.token for run in handed_back]
        return Report(
            self.name,
            self._sequence,
            pulse,
            full,
            succeeded_of(succeeded) if succeeded else None,
            [failed_of(end) for end in others if isinstance(end.outcome, Failure)],
            handed_back_of(handed_back) if handed_back else None,
            [],
            [snoozed_of(end) for end in others if isinstance(end.outcome, Snoozing)],
            [cancelled_of(end) for end in others if isinstance(end.outcome, Cancelling)],
            [progress_of(item) for item in progress],
        )

    def _size(self, end: Ended) -> int:
        """Bytes of an end in a report, about; what its attempt noted last goes along."""
        if end.outcome is Verdict.SUCCEEDED and not self._progress:
            return ROW_BYTES
        match end.outcome:
            case Result(data):
                return ROW_BYTES + len(data)
            case Failure():
                size = ROW_BYTES + len(end.outcome.message) * 2
            case _:
                size = ROW_BYTES
        noted = self._progress.get(end.run.token)
        return size if noted is None else size + NOTED_BYTES + len(noted.details)

    def _told(self, others: list[Ended], budget: _Budget, now: float) -> list[Noted]:
        """Progress that goes along: of what ends with this report always, of what runs once a second."""
        found = [item for end in others if (item := self._progress.pop(end.run.token, None)) is not None]
        waiting = {end.run.token for end in self._others}
        if now >= self._progress_at + PROGRESS_EVERY_S:
            self._progress_at = now
            running = [token for token in self._progress if token not in waiting]
            for token in running:
                size = len(self._progress[token].details) + NOTED_BYTES
                if len(found) >= PROGRESS_MAX or not budget.has_room(size):
                    break
                found.append(self._progress.pop(token))
        return found


class _Budget:
    """Bytes and rows that a report may hold; the broker takes 1 MiB, and names and the list of held tokens come on top."""

    def __init__(self) -> None:
        self._bytes = REPORT_BYTES_MAX

    def has_room(self, size: int) -> bool:
        """Whether so many bytes more may go; they are spent then."""
        if size > self._bytes:
            return False
        self._bytes -= size
        return True

    def take(self, waiting: deque[Ended], count_max: int, size: Callable[[Ended], int]) -> list[Ended]:
        """As many of the first as may go."""
        sizes = accumulate(map(size, islice(waiting, count_max)))
        fitting = list(takewhile(self._bytes.__ge__, sizes))
        self._bytes -= fitting[-1] if fitting else 0
        return [waiting.popleft() for _ in fitting]
