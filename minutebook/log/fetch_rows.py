"""Fetches of many partitions, written and read a row at a time: aiokafka 0.14 does it field by field.

A consumer of a hundred partitions asks for all of them forty times a second, and most of the answer says that there is
nothing new. Only rows of the usual form are read here, everything else is left to aiokafka.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from io import BytesIO
from typing import Any, Final

from aiokafka.protocol.fetch import FetchRequest_v11, FetchResponse_v11

_ASKED: Final = struct.Struct(">iiqqi")  # partition, leader epoch, offset, log start, bytes at most
_FOUND: Final = struct.Struct(">ihqqqiii")  # partition, error, three offsets, transactions, replica, bytes
_NO_TRANSACTIONS: Final[dict[int, list[object] | None]] = {0: [], -1: None}


class AskedRow:
    """Takes the place of aiokafka's schema of a partition in a request."""

    def __init__(self, whole: Any) -> None:
        self._whole = whole

    def encode(self, item: Sequence[int]) -> bytes:
        """The row as aiokafka would write it."""
        return _ASKED.pack(*item)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)


class FoundRow:
    """Takes the place of aiokafka's schema of a partition in a response."""

    def __init__(self, whole: Any) -> None:
        self._whole = whole

    def decode(self, data: BytesIO) -> tuple[Any, ...]:
        """The row at the place where `data` is to be read, as aiokafka would read it."""
        start = data.tell()
        head = data.read(_FOUND.size)
        if len(head) == _FOUND.size:
            partition, error, high, stable, first, count, replica, length = _FOUND.unpack(head)
            if count in _NO_TRANSACTIONS and length >= 0:
                records = data.read(length)
                if len(records) == length:
                    return partition, error, high, stable, first, _NO_TRANSACTIONS[count], replica, records
        data.seek(start)
        return tuple(self._whole.decode(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)


def use_rows() -> None:
    """From now on all consumers of this process write and read fetches by these rows."""
    asked = _partitions(FetchRequest_v11)
    if not isinstance(asked.array_of, AskedRow):
        asked.array_of = AskedRow(asked.array_of)
    found = _partitions(FetchResponse_v11)
    if not isinstance(found.array_of, FoundRow):
        found.array_of = FoundRow(found.array_of)


def _partitions(message: Any) -> Any:
    """The array of partitions in the array of topics of a message."""
    topics = message.SCHEMA.fields[message.SCHEMA.names.index("topics")]
    return topics.array_of.fields[1]
