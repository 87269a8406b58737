"""How late attempts started, by minute and tenant, for a day: what the overview shows is a sum of few small rows.

Latenesses are counted in buckets, eight to an octave: what is read from them is at most an eighth too high.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

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


def row_key(prefix: bytes, minute: int, tenant: str) -> bytes:
    """Key of the starts of a tenant in a minute."""
    return prefix + _MINUTE.pack(minute) + tenant.encode()


def read(rows: Rows, prefix: bytes, tenant: str, minute: int) -> list[tuple[int, int]]:
    """(bucket, attempts) of a tenant that started in a minute."""
    stored = rows.get(FAMILY, row_key(prefix, minute, tenant))
    return [] if stored is None else _decode(stored)


def added(rows: Rows, prefix: bytes, starts: Iterable[Starts], now: int) -> dict[bytes, bytes | None]:
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
        buckets.update(dict(read(rows, prefix, tenant, minute)))
        found[row_key(prefix, minute, tenant)] = _encode(sorted(buckets.items()))
    return found


def expired(rows: Rows, prefix: bytes, now: int) -> dict[bytes, bytes | None]:
    """The rows that are kept no longer, deleted."""
    end = prefix + _MINUTE.pack(max(0, first_kept(now)))
    return {key: None for key, _ in rows.scan(FAMILY, prefix, end)}
