"""Durations as tasks give them."""

from __future__ import annotations

import math
from datetime import timedelta

from minutebook.times import parse_short_duration

Duration = str | float | timedelta
"""Text such as `30s`, `2m` or `PT2M`, seconds, or a timedelta."""


def duration_ms(value: Duration) -> int:
    """Whole milliseconds of `value`. Raises ValueError where it is no duration, negative or not finite."""
    if isinstance(value, str):
        return parse_short_duration(value)
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{value!r} is no duration: give 0 or more seconds")
    return int(seconds * 1_000)
