"""Read the zone files of tzdata into a plain list of offset changes.

`zoneinfo` answers one wall clock time at a time and keeps its transitions to itself; the walk over instants needs them
as sorted integers. This module owns that reading and nothing else: it opens no file and knows no zone names.
Source: RFC 8536 (TZif, its section 3.3.1 for the footer), POSIX.1-2017 8.3 for the `TZ` text in the footer.
"""

import re
import struct
from bisect import bisect_right
from dataclasses import dataclass
from datetime import date

YEAR_END = 2200
"""First year that is not covered: timelines end with its first second, UTC."""

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
END_S = (date(YEAR_END, 1, 1).toordinal() - _EPOCH_ORDINAL) * 86_400

_HEADER = struct.Struct(">4sc15x6L")
_NAME = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)"
_TIME = r"[+-]?\d{1,3}(?::\d\d){0,2}"
_RULE = rf"(?:M\d{{1,2}}\.\d\.\d|J?\d{{1,3}})(?:/{_TIME})?"
_POSIX = re.compile(
    rf"{_NAME}(?P<std>{_TIME})(?:{_NAME}(?P<dst>{_TIME})?,(?P<start>{_RULE}),(?P<end>{_RULE}))?"
)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Offsets of one zone up to the year 2200.

    `offsets[i]` (seconds east of UTC) holds from `starts[i - 1]` (included) to `starts[i]` (excluded), both in seconds
    since the epoch; `offsets[0]` holds before the first. Neighbouring offsets differ, except at the last start, which
    is `END_S` and closes the list. One offset more than starts.
    """

    starts: tuple[int, ...]
    offsets: tuple[int, ...]

    def offset_at(self, utc_s: int) -> int:
        """Offset in seconds east of UTC at `utc_s`, seconds since the epoch."""
        return self.offsets[bisect_right(self.starts, utc_s)]


def read_timeline(data: bytes) -> Timeline:
    """Timeline of one TZif file of version 2 or later.

    Raises ValueError if `data` is no such file. Files with leap seconds are refused: `utc_s` counts POSIX seconds.
    """
    first, offset_before, footer = _read_block(data)
    changes = first + _footer_changes(footer, first[-1][0] if first else None)
    starts: list[int] = []
    offsets = [offset_before]
    for utc_s, offset_s in changes:
        if offset_s != offsets[-1]:
            starts.append(utc_s)
            offsets.append(offset_s)
    return Timeline((*starts, END_S), (*offsets, offsets[-1]))


def _read_block(data: bytes) -> tuple[list[tuple[int, int]], int, str]:
    """Changes (utc_s, offset_s) in order, the offset before the first, and the `TZ` text of the 64-bit block."""
    v1 = _counts(data, 0)
    start = _HEADER.size + _block_size(v1, 4)
    isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt = _counts(data, start)
    if leapcnt:
        raise ValueError("zone file counts leap seconds")
    at = start + _HEADER.size
    times = struct.unpack_from(f">{timecnt}q", data, at)
    kinds = data[at + 8 * timecnt : at + 9 * timecnt]
    types = [struct.unpack_from(">lBB", data, at + 9 * timecnt + 6 * k) for k in range(typecnt)]
    end = at + 9 * timecnt + 6 * typecnt + charcnt + isstdcnt + isutcnt
    enclosed = data[end:]
    if len(enclosed) < 2 or not (enclosed.startswith(b"\n") and enclosed.endswith(b"\n")):
        raise ValueError("zone file is cut short")
    footer = enclosed.decode("ascii").strip("\n")
    changes = [(utc_s, types[kind][0]) for utc_s, kind in zip(times, kinds, strict=True)]
    return changes, types[0][0], footer


def _counts(data: bytes, start: int) -> tuple[int, ...]:
    if len(data) < start + _HEADER.size:
        raise ValueError("zone file is cut short")
    magic, version, *counts = _HEADER.unpack_from(data, start)
    if magic != b"TZif" or version < b"2":
        raise ValueError("not a TZif file of version 2 or later")
    return tuple(counts)


def _block_size(counts: tuple[int, ...], time_bytes: int) -> int:
    isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt = counts
    return (
        (time_bytes + 1) * timecnt + 6 * typecnt + charcnt + (time_bytes + 4) * leapcnt + isstdcnt + isutcnt
    )


def _footer_changes(footer: str, last_s: int | None) -> list[tuple[int, int]]:
    """Changes after `last_s` that the `TZ` text asks for, in order."""
    if not footer:
        return []
    parts = _POSIX.fullmatch(footer)
    if parts is None:
        raise ValueError(f"zone file ends with the unknown rule {footer!r}")
    std_s = -_seconds(parts["std"])
    first_s = last_s if last_s is not None else -(1 << 62)
    if parts["start"] is None:
        return [(first_s, std_s)]
    dst_s = -_seconds(parts["dst"]) if parts["dst"] else std_s + 3600
    changes: list[tuple[int, int]] = []
    # A zone whose file lists no change at all has followed its rule since the epoch, as far as we are asked.
    year = 1969 if last_s is None else date.fromordinal(last_s // 86_400 + _EPOCH_ORDINAL).year
    for y in range(year, YEAR_END):
        changes.append((_rule_s(parts["start"], y) - std_s, dst_s))
        changes.append((_rule_s(parts["end"], y) - dst_s, std_s))
    return sorted(change for change in changes if first_s < change[0] < END_S)


def _seconds(text: str) -> int:
    """Seconds of `[+-]h[:mm[:ss]]`."""
    hours, minutes, seconds = ([int(part) for part in text.lstrip("+-").split(":")] + [0, 0])[:3]
    total = hours * 3600 + minutes * 60 + seconds
    return -total if text.startswith("-") else total


def _rule_s(rule: str, year: int) -> int:
    """Wall clock second of a rule's change in `year`, counted from the epoch as if the wall clock were UTC."""
    day_text, _, time_text = rule.partition("/")
    ordinal = _rule_ordinal(day_text, year)
    return (ordinal - _EPOCH_ORDINAL) * 86_400 + (_seconds(time_text) if time_text else 7200)


def _rule_ordinal(text: str, year: int) -> int:
    new_year = date(year, 1, 1).toordinal()
    if text.startswith("J"):  # 1 to 365, 29 February is never counted
        day = int(text[1:])
        return new_year + day - 1 + (day >= 60 and date(year, 3, 1).toordinal() - new_year == 60)
    if not text.startswith("M"):  # 0 to 365, 29 February is counted
        return new_year + int(text)
    month, week, weekday = (int(part) for part in text[1:].split("."))
    first = date(year, month, 1).toordinal()
    ordinal = first + (weekday - first) % 7 + 7 * (week - 1)
    # Week 5 is the last one, which may be the fourth.
    return ordinal if date.fromordinal(ordinal).month == month else ordinal - 7
