"""How many instants come due soon, of all tenants: counted now and then beside the requests, from the view's due counts."""

from __future__ import annotations

import asyncio
from typing import Final

from api.view import View
from minutebook.clock import Clock
from minutebook.domain.view_rows import MINUTE_MS

HORIZONS: Final = {"1m": 1, "5m": 5, "60m": 60}
"""Name -> minutes."""
EVERY_S: Final = 15.0
SHARE: Final = 50
"""With many tenants a count takes its time; then the next one waits this many times as long."""
SLICE_S: Final = 0.002


class DueAhead:
    """`counts`: horizon -> instants within it, as of the last count; empty before the first."""

    def __init__(self, view: View, clock: Clock) -> None:
        self.counts: dict[str, int] = {}
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
        found = dict.fromkeys(HORIZONS, 0)
        for part in self._view.parts:
            for tenant in part.tenants_due():
                for at, jobs in part.due_counts(tenant, minute, minute + max(HORIZONS.values()) + 1):
                    for name, minutes in HORIZONS.items():
                        found[name] += jobs if at <= minute + minutes else 0
                if self._clock.monotonic() - turn_at > SLICE_S:
                    await asyncio.sleep(0)
                    turn_at = self._clock.monotonic()
        self.counts = found
        return self._clock.monotonic() - began_at
