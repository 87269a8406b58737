"""How late attempts started, by minute and tenant, for a day: what the overview shows is a sum of few small rows.

Latenesses are counted in buckets, eight to an octave: what is read from them is at most an eighth too high.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from minutebook.domain.view_index import shelf_of
from minutebook.domain.view_rows import MINUTE_MS
from minutebook.store.port import Rows

FAMILY: Final = "starts"
KEPT_MIN: Final = 24 * 60
"""Minutes that are kept; older ones go by the hour."""
_HOUR_MIN: Final = 60
_OCTAVE: Final = 8
_MINUTE = struct.Struct(">q")
_LATE_MS_MAX: Final = 1 << 40

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[int, int]]).decode

Starts = tuple[int, Sequence[str], Iterable[int], Iterable[int]]
"""Attempts that started at one instant: it, names of tenants, and columns: tenant of each, and when it was due."""


def bucket_of(late_ms: int) -> int:
    """Bucket of a lateness; what is early counts as punctual."""
    late_ms = min(max(late_ms, 0), _LATE_MS_MAX)
    octave = max(0, late_ms.bit_length() - 4)
    return _OCTAVE * octave + (late_ms >> octave)


def bucket_end(bucket: int) -> int:
    """The highest lateness in a bucket, in ms."""
    octave = max(0, bucket // _OCTAVE - 1)
    return ((bucket - _OCTAVE * octave + 1) << octave) - 1


def first_kept(now: int) -> int:
    """The first minute that is kept at `now`, counted from the epoch."""
    return now // MINUTE_MS // _HOUR_MIN * _HOUR_MIN - KEPT_MIN


def row_key(partition: int, minute: int, tenant: str) -> bytes:
    """Key of the starts of a tenant in a minute: those of an hour lie together, and in it those of a tenant."""
    return shelf_of(partition, minute // _HOUR_MIN) + f"{tenant}\0".encode() + _MINUTE.pack(minute)


def read(
    rows: Rows, partition: int, tenant: str, first: int, last: int
) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """(minute, (bucket, attempts) of a tenant that started in it), from minute `first` to `last`, where there are any."""
    for hour in range(first // _HOUR_MIN, last // _HOUR_MIN + 1):
        begin = max(first, hour * _HOUR_MIN)
        end = min(last + 1, (hour + 1) * _HOUR_MIN)
        start = row_key(partition, begin, tenant)
        for key, value in rows.scan(FAMILY, start, start[: -_MINUTE.size] + _MINUTE.pack(end)):
            yield int(_MINUTE.unpack_from(key, len(start) - _MINUTE.size)[0]), _decode(value)


def added(rows: Rows, partition: int, starts: Iterable[Starts], now: int) -> dict[bytes, bytes | None]:
    """The rows that `starts` change."""
    fresh: dict[tuple[int, str], Counter[int]] = {}
    for at, tenants, columns, due_ats in starts:
        minute = at // MINUTE_MS
        if minute < first_kept(now):
            continue
        for (number, due_at), count in Counter(zip(columns, due_ats, strict=True)).items():
            buckets = fresh.setdefault((minute, tenants[number]), Counter())
            buckets[bucket_of(at - due_at)] += count
    found: dict[bytes, bytes | None] = {}
    for (minute, tenant), buckets in fresh.items():
        key = row_key(partition, minute, tenant)
        stored = rows.get(FAMILY, key)
        if stored is not None:
            buckets.update(dict(_decode(stored)))
        found[key] = _encode(sorted(buckets.items()))
    return found


def first_shelf(now: int) -> int:
    """The first hour that is kept at `now`, counted from the epoch."""
    return max(0, first_kept(now)) // _HOUR_MIN
