"""How crowded the minutes are in which a schedule would be due, from the view's due counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from api.view import View
from minutebook.domain.view_rows import MINUTE_MS
from minutebook.times import format_instant

CROWDED_MIN: Final = 100
"""Jobs of a tenant due in one minute from which another one is named."""
_HOUR: Final = 60


class Crowd(NamedTuple):
    """Jobs whose next instant lies in a minute; where they are many, a better minute of that hour, else empty."""

    due: int
    hint: str


async def crowds(view: View, tenant: str, instants: Iterable[int]) -> list[Crowd]:
    """How crowded the minute of each instant (ms, UTC) is already. Others get their turn after each hour looked at."""
    view.commit_all()
    hours: dict[int, Counter[int]] = {}
    found = []
    for minute in (at // MINUTE_MS for at in instants):
        start = minute - minute % _HOUR
        if start not in hours:
            hours[start] = view.due_counts(tenant, start, start + _HOUR)
            await asyncio.sleep(0)
        counts = hours[start]
        is_crowded = counts[minute] >= CROWDED_MIN
        found.append(Crowd(counts[minute], _hint(counts, start, minute) if is_crowded else ""))
    return found


def _hint(counts: Counter[int], start: int, minute: int) -> str:
    """The quietest minute of the hour, the nearest of several; nothing if all are as crowded."""
    quiet = min(range(start, start + _HOUR), key=lambda other: (counts[other], abs(other - minute)))
    if counts[quiet] == counts[minute]:
        return ""
    clock = format_instant(quiet * MINUTE_MS)[11:16]
    return f"busy minute: try {clock}Z, where {counts[quiet]} are due, or spread it by jitter"
