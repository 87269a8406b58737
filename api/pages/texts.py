"""Instants, durations and JSON as people read them."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from minutebook.times import datetime_of, format_instant, parse_duration, parse_instant

_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def show_instant(text: str) -> str:
    """An RFC 3339 instant, to the second, or to the ms where it has some; UTC goes without saying it here."""
    at = parse_instant(text)
    shown = datetime_of(at).isoformat(sep=" ", timespec="milliseconds" if at % 1000 else "seconds")
    return shown.removesuffix("+00:00")


def later(text: str, ms: int) -> str:
    """The RFC 3339 instant so long after another one."""
    return format_instant(parse_instant(text) + ms)


def show_clock(text: str, beside: str) -> str:
    """An RFC 3339 instant; its time of day alone where another one is of the same day in UTC."""
    shown = show_instant(text)
    return shown.split(" ")[1] if text[:10] == beside[:10] else shown


def show_ms(ms: int) -> str:
    """A length of time in its two largest units; one below zero, which two clocks can make, is 0."""
    if ms < 1000:
        return f"{max(ms, 0)} ms"
    if ms < 10_000:
        return f"{ms / 1000:.3g} s"
    for number, (size, unit) in enumerate(_UNITS):
        if ms >= size:
            whole, rest = divmod(ms, size)
            below = _UNITS[number + 1] if number + 1 < len(_UNITS) else None
            more = rest // below[0] if below else 0
            return f"{whole} {unit} {more} {below[1]}" if below and more else f"{whole} {unit}"
    raise AssertionError("a second is the smallest unit")


def show_duration(text: str) -> str:
    """An ISO 8601 duration."""
    return show_ms(parse_duration(text))


def show_between(start: str, end: str) -> str:
    """How long it was from one RFC 3339 instant to a later one."""
    return show_ms(parse_instant(end) - parse_instant(start))


def show_since(text: str, now: int) -> str:
    """How long it is since an RFC 3339 instant, at `now` (ms since the epoch)."""
    return show_ms(now - parse_instant(text))


def show_age(text: str, now: int) -> str:
    """How far an RFC 3339 instant lies from `now` (ms since the epoch): `in 5 min`, `3 h 2 min ago`."""
    ms = parse_instant(text) - now
    if abs(ms) < 1000:
        return "now"
    return f"in {show_ms(ms)}" if ms > 0 else f"{show_ms(-ms)} ago"


def show_json(raw: Raw | bytes) -> str:
    """JSON over several lines, its numbers and texts as they were sent."""
    return msgspec.json.format(bytes(raw), indent=2).decode(errors="replace")


def show_short(number: int) -> str:
    """A whole number in few characters: `999`, `1.2k`, `34k`, `5M`."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.2g}{unit}" if number < 10 * size else f"{number // size}{unit}"
    return str(number)


def show_count(number: int) -> str:
    """A whole number with its digits in threes."""
    return f"{number:,}".replace(",", "\u202f")
