"""Rows in memory, for replay, simulation and tests."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from minutebook.store.port import Pending, Ranges


class MemoryRows:
    """A `Rows` in dicts; keys are sorted when a scan needs it."""

    def __init__(self, families: Sequence[str]) -> None:
        self._rows: dict[str, dict[bytes, bytes]] = {name: {} for name in families}
        self._sorted: dict[str, list[bytes] | None] = {name: [] for name in families}

    def get(self, family: str, key: bytes) -> bytes | None:
        """See `Rows.get`."""
        return self._rows[family].get(key)

    def scan(self, family: str, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """See `Rows.scan`. Rows written meanwhile may be missed, deleted ones are not shown."""
        keys, rows = self._keys(family), self._rows[family]
        for index in range(bisect.bisect_left(keys, start), len(keys)):
            key = keys[index]
            if end is not None and key >= end:
                return
            if key in rows:
                yield key, rows[key]

    def scan_back(self, family: str, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See `Rows.scan_back`, and `scan`."""
        keys, rows = self._keys(family), self._rows[family]
        for index in range(bisect.bisect_left(keys, end) - 1, -1, -1):
            key = keys[index]
            if key < start:
                return
            if key in rows:
                yield key, rows[key]

    def _keys(self, family: str) -> list[bytes]:
        keys = self._sorted[family]
        if keys is None:
            keys = self._sorted[family] = sorted(self._rows[family])
        return keys

    def write(self, pending: Pending, ranges: Ranges) -> None:
        """See `Rows.write`."""
        for family, start, end in ranges:
            for key in [key for key in self._rows[family] if start <= key < end]:
                del self._rows[family][key]
        for family, rows in pending.items():
            target = self._rows[family]
            for key, value in rows.items():
                if value is None:
                    target.pop(key, None)
                else:
                    target[key] = value
        for family in {family for family, _, _ in ranges} | set(pending):
            self._sorted[family] = None

    def checkpoint(self, folder: str) -> None:
        """See `Rows.checkpoint`."""
        Path(folder).mkdir(parents=True)
        (Path(folder) / "rows.msgpack").write_bytes(msgspec.msgpack.encode(self._rows))

    def close(self) -> None:
        """See `Rows.close`."""
        self._rows.clear()
