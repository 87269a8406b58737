"""A worker in memory: most runs end by the owner's next cycle, some take hours; a few fail, and it may die."""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from typing import Final, NamedTuple

from minutebook.domain.records import CancelledByTask, Failed, FullPulse, Pulse, QueueOffer, Report, Succeeded

LEASE_MS: Final = 600_000
FULL_MS: Final = 3_600_000
"""So often it says all that it holds."""
NEVER: Final = -FULL_MS
OFFER: Final = 60_000
_LONG: Final = 0.02
_FAILS: Final = 0.004


class Run(NamedTuple):
    """An attempt that it holds; it ends at `ends_at`."""

    ends_at: int
    token: int
    tenant: str
    execution: str


class Crew:
    """One worker, and the session that it is in."""

    def __init__(self, name: str, task: str, chance: random.Random) -> None:
        self.name = name
        self._task = task
        self._chance = chance
        self._lives = 0
        self.is_in_a_hurry = False
        """Whether whatever it runs ends at once."""
        self._begin()

    def _begin(self) -> None:
        self.session = f"{self.name}.{self._lives}"
        self._sequence = 0
        self._last_token = -1
        self._runs: list[Run] = []
        self._stopping: set[int] = set()
        self._pulsed_at = self._told_at = NEVER

    @property
    def running(self) -> list[Run]:
        """What it holds and has not reported."""
        return list(self._runs)

    def die(self) -> str:
        """It comes back as another session, and holds nothing; the session that is over."""
        over = self.session
        self._lives += 1
        self._begin()
        return over

    def granted(self, token: int, tenant: str, execution: str, now: int) -> None:
        """A grant to it is in the log."""
        self._last_token = token
        long_ms = int(60_000 * 2 ** self._chance.uniform(0, 11)) if self._chance.random() < _LONG else 0
        heapq.heappush(self._runs, Run(now + long_ms, token, tenant, execution))

    def stop(self, tokens: Sequence[int]) -> None:
        """Those attempts must stop; tokens of others mean nothing."""
        self._stopping.update(tokens)

    def hear_anew(self) -> None:
        """The owner is another one: it must be told everything."""
        self._told_at = NEVER

    def report(self, now: int, *, is_idle: bool = False) -> Report | None:
        """What it says now; None if there is nothing to say."""
        ended = list[Run]()
        while self._runs and (self.is_in_a_hurry or self._runs[0].ends_at <= now):
            ended.append(heapq.heappop(self._runs))
        stopped = self._stopped()
        is_full = now - self._told_at > FULL_MS
        if not (ended or stopped or is_full or now - self._pulsed_at > LEASE_MS // 2):
            return None
        self._sequence += 1
        pulse = Pulse(0 if is_idle else OFFER, self._last_token)
        full = self._full() if is_full else None
        self._pulsed_at = now
        if is_full:
            self._told_at = now
        failed = [_failed(run) for run in ended if self._chance.random() < _FAILS]
        names = {one.token for one in failed}
        succeeded = _succeeded([run for run in ended if run.token not in names]) if ended else None
        return Report(self.session, self._sequence, pulse, full, succeeded, failed, cancelled=stopped)

    def _stopped(self) -> list[CancelledByTask]:
        found = [run for run in self._runs if run.token in self._stopping] if self._stopping else []
        self._stopping.clear()
        if found:
            self._runs = [run for run in self._runs if run not in found]
            heapq.heapify(self._runs)
        return [CancelledByTask(run.tenant, run.execution, run.token) for run in found]

    def _full(self) -> FullPulse:
        held = [run.token for run in self._runs]
        return FullPulse(self.name, "1", [self._task], [QueueOffer("default")], LEASE_MS, LEASE_MS, held)


def _succeeded(runs: list[Run]) -> Succeeded | None:
    if not runs:
        return None
    tenants = list({run.tenant: None for run in runs})
    zeros = [0] * len(runs)
    return Succeeded(
        tenants,
        [tenants.index(run.tenant) for run in runs],
        [run.execution for run in runs],
        [run.token for run in runs],
        zeros,
        zeros,
    )


def _failed(run: Run) -> Failed:
    return Failed(run.tenant, run.execution, run.token, "E", "", is_permanent=run.token % 7 == 0)
