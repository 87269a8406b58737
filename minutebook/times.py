"""Instants and durations as text: RFC 3339 and ISO 8601, and the short form (`2m`) that people type.

Reads no clock. Instants are ms since the epoch, UTC; durations are ms.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

_INSTANT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_DURATION: Final = re.compile(
    r"P(?:(\d{1,9})W|(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:\.(\d{1,3}))?S)?)?)",
    re.ASCII,
)
_SHORT: Final = re.compile(r"(\d{1,9})(ms|s|m|h|d)", re.ASCII)
_SHORT_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


def datetime_of(at: int) -> datetime:
    """`at` as an aware datetime in UTC."""
    return _EPOCH + at * _MS


def instant_of(at: datetime) -> int:
    """An aware datetime as an instant, finer digits than ms cut off. Raises ValueError for one without a zone."""
    if at.tzinfo is None:
        raise ValueError("give an instant with its zone, such as datetime(2030, 1, 1, tzinfo=UTC)")
    return (at - _EPOCH) // _MS


def format_instant(at: int) -> str:
    """`at` as RFC 3339 in UTC with milliseconds and `Z`."""
    return datetime_of(at).isoformat(timespec="milliseconds")[:-6] + "Z"


@lru_cache(maxsize=1_024)
def parse_instant(text: str) -> int:
    """RFC 3339 with an offset, finer digits than ms cut off. Raises ValueError with the remedy."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise ValueError("give an RFC 3339 instant with its offset, such as 2030-01-31T08:00:00Z")
    year, month, day, hour, minute, second, fraction, sign, offset_hour, offset_minute = found.groups()
    if int(second) > 59:
        raise ValueError("second 60 does not exist here: give 59, or the minute after")
    offset_min = 0
    if sign:
        if int(offset_hour) > 23 or int(offset_minute) > 59:
            raise ValueError("the offset is beyond 23:59")
        offset_min = int(sign + "1") * (int(offset_hour) * 60 + int(offset_minute))
    try:
        wall = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)
    except ValueError as error:
        raise ValueError(f"no such date or time: {error}") from None
    since = wall - _EPOCH
    whole_ms = since.days * 86_400_000 + since.seconds * 1_000 - offset_min * 60_000
    return whole_ms + (int(fraction[:3].ljust(3, "0")) if fraction else 0)


def parse_duration(text: str) -> int:
    """ISO 8601 duration of fixed length, such as PT2M, in ms. Raises ValueError with the remedy."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()) or text.endswith("T"):
        raise ValueError("give an ISO 8601 duration of weeks, days, hours, minutes and seconds, such as PT2M")
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:5])
    whole_s = (((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds
    return whole_s * 1_000 + int((found.group(6) or "0").ljust(3, "0"))


def parse_short_duration(text: str) -> int:
    """`500ms`, `30s`, `2m`, `1h`, `7d`, or ISO 8601, in ms. Raises ValueError with the remedy."""
    found = _SHORT.fullmatch(text)
    if found is None:
        try:
            return parse_duration(text)
        except ValueError:
            raise ValueError("give a duration such as 30s, 2m, 1h, 7d or PT2M") from None
    return int(found.group(1)) * _SHORT_MS[found.group(2)]


def format_duration(ms: int) -> str:
    """`ms` (not negative) as ISO 8601, in days, hours, minutes and seconds."""
    days, rest = divmod(ms, 86_400_000)
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds = f"{rest / 1000:g}" if rest % 1000 else str(rest // 1000)
    parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else "", f"{seconds}S" if rest else ""]
    time = "".join(parts)
    if not days and not time:
        return "PT0S"
    return "P" + (f"{days}D" if days else "") + (f"T{time}" if time else "")
