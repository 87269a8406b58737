"""What owners, views and replay need of a store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

Pending = Mapping[str, Mapping[bytes, bytes | None]]
"""Writes by family and key; None deletes."""

Ranges = list[tuple[str, bytes, bytes]]
"""Deleted ranges: family, first key, end key (exclusive)."""


class Rows(Protocol):
    """Sorted rows in families. Keys sort by bytes."""

    def get(self, family: str, key: bytes) -> bytes | None:
        """The value under `key`, None where there is none."""
        ...

    def scan(self, family: str, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Rows with start <= key < end in order of keys; `end` None = to the last."""
        ...

    def scan_back(self, family: str, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Rows with start <= key < end, the last first."""
        ...

    def write(self, pending: Pending, ranges: Ranges) -> None:
        """Ranges first, then all writes, atomically over all families."""
        ...

    def checkpoint(self, folder: str) -> None:
        """A consistent copy in `folder`, which must not exist yet."""
        ...

    def close(self) -> None:
        """Give the store free for another process; nothing may be called afterwards."""
        ...
