"""How many jobs are due when, from the view's due counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final, Literal, NamedTuple, get_args

from api.parameters import instant_of_query
from api.problems import refused_field
from api.view import View
from minutebook.client.live_models import DueBucket, Upcoming
from minutebook.domain.view_rows import HOUR_MS, MINUTE_MS
from minutebook.times import format_instant

By = Literal["minute", "hour", "day"]
Family = Literal["due_counts", "due_hours"]


class _Unit(NamedTuple):
    """Length of a bucket; the counts that it is made of, each so long; most buckets."""

    ms: int
    family: Family
    counted_ms: int
    buckets_max: int


_UNITS: Final[dict[By, _Unit]] = {
    "minute": _Unit(MINUTE_MS, "due_counts", MINUTE_MS, 180),
    "hour": _Unit(HOUR_MS, "due_hours", HOUR_MS, 168),
    "day": _Unit(24 * HOUR_MS, "due_hours", HOUR_MS, 92),
}
_LATEST_AT: Final = 253_370_764_800_000
"""9999-01-01T00:00:00Z."""
_CHUNK: Final = 240
"""Counts of a partition that are read before others get their turn."""


class Range(NamedTuple):
    """Which buckets: instants in ms, UTC, at the borders of buckets; the last one is not included."""

    by: By
    start_at: int
    end_at: int


def range_of(query: dict[str, str], now: int) -> Range:
    """What `from`, `until` and `by` ask for, widened to whole buckets. Raises Refused (bad-parameter)."""
    by = query.get("by", "minute")
    if by not in get_args(By):
        raise refused_field("by", "must be minute, hour or day", "bad-parameter")
    unit = _UNITS[by]  # type: ignore[index]  # one of them
    start_at = instant_of_query(query, "from", now)
    start_at -= start_at % unit.ms
    if not 0 <= start_at <= _LATEST_AT:
        raise refused_field("from", "must lie in the years 1970 to 9998", "bad-parameter")
    end_at = instant_of_query(query, "until", start_at + unit.buckets_max * unit.ms)
    end_at += -end_at % unit.ms
    if not start_at < end_at <= start_at + unit.buckets_max * unit.ms:
        raise refused_field(
            "until", f"must lie after `from`, by at most {unit.buckets_max} {by}s", "bad-parameter"
        )
    return Range(by, start_at, end_at)  # type: ignore[arg-type]  # one of them


async def upcoming(view: View, tenant: str, wanted: Range) -> Upcoming:
    """The buckets of a range, empty ones too. Others get their turn after each part."""
    unit = _UNITS[wanted.by]
    view.commit_all()
    found: Counter[int] = Counter()
    first, end = wanted.start_at // unit.counted_ms, wanted.end_at // unit.counted_ms
    for start in range(first, end, _CHUNK):
        counts = view.due_counts(tenant, start, min(start + _CHUNK, end), unit.family)
        for number, count in counts.items():
            found[number * unit.counted_ms // unit.ms] += count
        await asyncio.sleep(0)
    buckets = [
        DueBucket(format_instant(number * unit.ms), found[number])
        for number in range(wanted.start_at // unit.ms, wanted.end_at // unit.ms)
    ]
    return Upcoming(by=wanted.by, total=found.total(), buckets=buckets)
