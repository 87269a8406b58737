"""Instants as people read them: in UTC as the API tells them, on this machine's clock, from now, or as a number."""

from __future__ import annotations

import re
from typing import Final

from minutebook.cli.presentation import TimeFormat

INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
"""An instant as the API writes it."""
_UNITS: Final = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))


def shown_instant(text: str, form: TimeFormat) -> str:
    """`text`, an instant as the API writes it, in that form."""
    if form is TimeFormat.UTC:
        return text
    # Loaded where they are needed: the client takes a while.
    from minutebook.clock import SystemClock
    from minutebook.times import datetime_of, parse_instant

    at = parse_instant(text)
    if form is TimeFormat.EPOCH:
        return str(at)
    if form is TimeFormat.LOCAL:
        return datetime_of(at).astimezone().isoformat(" ", "milliseconds")
    return from_now(at - SystemClock().now())


def from_now(ms: int) -> str:
    """How far away an instant is: `in 2h 5m`, `3d ago`, `now`; the two largest units."""
    rest = abs(ms)
    parts: list[str] = []
    for unit, unit_ms in _UNITS:
        count, rest = divmod(rest, unit_ms)
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
        if len(parts) == 2:
            break
    told = " ".join(filter(None, parts))
    if not told:
        return "now"
    return f"in {told}" if ms > 0 else f"{told} ago"
