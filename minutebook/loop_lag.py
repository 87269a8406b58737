"""How late an event loop comes back to its timers: what blocks it delays everything in it."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from minutebook.clock import Clock

EVERY_S: Final = 0.5
KEPT_S: Final = 15.0


class LoopLag:
    """Measures the loop in which `run` runs. `beat_at`: when it last came back, seconds on the monotonic clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, float]] = deque()
        self.beat_at = clock.monotonic()

    async def run(self) -> None:
        """Look twice a second, until cancelled."""
        while True:
            due_at = self._clock.monotonic() + EVERY_S
            await asyncio.sleep(EVERY_S)
            self.beat(due_at)

    def beat(self, due_at: float) -> None:
        """The loop came back to a timer that was due at `due_at`."""
        self.beat_at = now = self._clock.monotonic()
        self._seen.append((now, max(0.0, now - due_at)))
        while now - self._seen[0][0] > KEPT_S:
            self._seen.popleft()

    def worst_s(self) -> float:
        """The most of the last 15 s."""
        return max((late for _, late in self._seen), default=0.0)
