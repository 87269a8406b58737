"""A stuck process looks alive to the group, so the age of the oldest undecided input is watched from outside the owners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from minutebook.clock import Clock
from streams.host import Host

EVERY_S: Final = 1.0


async def watch(host: Host, clock: Clock, stuck_after_s: float, leave: Callable[[str], None]) -> None:
    """Look once a second; `leave` when a served partition has decided nothing for `stuck_after_s` though inputs wait."""
    seen: dict[int, tuple[int | None, float]] = {}
    while True:
        await asyncio.sleep(EVERY_S)
        now = clock.monotonic()
        for item in host.status()["partitions"]:
            partition, oldest = item["partition"], item["oldest_input_at"]
            before, since = seen.get(partition, (None, now))
            if oldest is None or oldest != before or item["state"] != "serving":
                seen[partition] = (oldest, now)
            elif now - since > stuck_after_s:
                leave(f"partition {partition} has not decided its oldest input for {stuck_after_s} s")
