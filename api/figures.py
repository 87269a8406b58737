"""Figures over all tenants, for metrics: counted now and then beside the requests, from counters that the view keeps."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

from api.view import View
from minutebook.clock import Clock
from minutebook.domain import view_index
from minutebook.domain.view import PartitionView
from minutebook.domain.view_due import due_counts
from minutebook.domain.view_lists import counts_by_status, tenants
from minutebook.domain.view_rows import MINUTE_MS

HORIZONS: Final = {"1m": 1, "5m": 5, "60m": 60}
"""Name -> minutes."""
EVERY_S: Final = 15.0
SHARE: Final = 50
"""With many tenants a count takes its time; then the next one waits this many times as long."""
SLICE_S: Final = 0.002


class Figures:
    """As of the last count, empty before the first. `due`: instants within each horizon; `jobs` and `attempts`: jobs, and
    executions by their latest attempt, by status.
    """

    def __init__(self, view: View, clock: Clock) -> None:
        self.due: Counter[str] = Counter()
        self.jobs: Counter[str] = Counter()
        self.attempts: Counter[str] = Counter()
        self._view = view
        self._clock = clock

    async def run(self) -> None:
        """Count again and again, until cancelled."""
        while True:
            took_s = await self.count()
            await asyncio.sleep(max(EVERY_S, took_s * SHARE))

    async def count(self) -> float:
        """Count once; how long it took, s. Requests get their turn meanwhile."""
        began_at = turn_at = self._clock.monotonic()
        minute = self._clock.now() // MINUTE_MS
        due, jobs, attempts = Counter(dict.fromkeys(HORIZONS, 0)), Counter[str](), Counter[str]()
        for part in self._view.parts:
            for tenant in tenants(part):
                due.update(_due(part, tenant, minute))
                jobs.update(counts_by_status(part, view_index.JOB_COUNTS, tenant))
                attempts.update(counts_by_status(part, view_index.EXECUTION_TOTALS, tenant))
                if self._clock.monotonic() - turn_at > SLICE_S:
                    await asyncio.sleep(0)
                    turn_at = self._clock.monotonic()
        self.due, self.jobs, self.attempts = due, jobs, attempts
        return self._clock.monotonic() - began_at


def _due(part: PartitionView, tenant: str, minute: int) -> dict[str, int]:
    """Instants of a tenant that come due within each horizon from `minute` on."""
    last = minute + max(HORIZONS.values())
    counts = list(due_counts(part, tenant, minute, last + 1))
    return {
        name: sum(jobs for at, jobs in counts if at <= minute + ahead) for name, ahead in HORIZONS.items()
    }
