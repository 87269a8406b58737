"""The one reader of the log: owners, views and replay take frames through it and through nothing else.

A frame is valid at the offset that it declares, on the head of the chain before it, with its `now` at most the clock
bound ahead of the broker's stamp. Any other record is void for everyone, for ever, but its bytes count in the chain:
c(n) = SHA-256(c(n-1) | offset | stamp | len+key | len+value | headers), integers big-endian, a null length -1.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final, NamedTuple

from minutebook.errors import BrokenFrameError, DecodeError, LogGapError
from minutebook.log.port import RawRecord, Unreadable
from minutebook.wire.frames import Frame, decode_frame

HEAD_BEFORE_ALL: Final = bytes(32)
CLOCK_BOUND_MS: Final = 1_000


class Taken(NamedTuple):
    """A valid frame."""

    frame: Frame
    stamp: int


class Void(NamedTuple):
    """A record that counts for nobody, but for the chain. `kind`: offset, head, clock or foreign."""

    offset: int
    reason: str
    kind: str


def _sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def next_head(head: bytes, record: RawRecord) -> bytes:
    """The chain's head after `record`, given the head before it."""
    digest = hashlib.sha256(head)
    digest.update(struct.pack(">qq", record.offset, record.stamp))
    digest.update(_sized(record.key))
    digest.update(_sized(record.value))
    for name, value in record.headers:
        digest.update(_sized(name.encode("utf-8", "surrogateescape")) + _sized(value))
    return digest.digest()


class FrameReader:
    """Takes the records of one partition in order. `position` is the last offset taken, `head` the chain after it."""

    def __init__(
        self, position: int = -1, head: bytes = HEAD_BEFORE_ALL, bound_ms: int = CLOCK_BOUND_MS
    ) -> None:
        self.position = position
        self.head = head
        self.head_before = head
        self._bound_ms = bound_ms

    def take(self, record: RawRecord) -> Taken | Void:
        """The next record as frame or void.

        Raises LogGapError where a record is missing before it or its bytes cannot be had, BrokenFrameError where it
        claims to be valid but cannot be decoded: both halt the partition.
        """
        if record.offset != self.position + 1:
            raise LogGapError(f"offset {record.offset} follows {self.position}")
        if isinstance(record.value, Unreadable):
            raise LogGapError(f"offset {record.offset} cannot be read: {record.value.reason}")
        before, self.head_before = self.head, self.head
        self.head = next_head(before, record)
        self.position = record.offset
        try:
            frame = decode_frame(record.value)
        except DecodeError as error:
            if _is_foreign(record.value):
                return Void(record.offset, f"no frame: {error}", "foreign")
            raise BrokenFrameError(f"offset {record.offset}: {error}") from error
        return self._fault(frame, record, before) or Taken(frame, record.stamp)

    def own(self, record: RawRecord, now: int) -> bool:
        """Take a record just appended by the caller, built on this very head; whether it is valid.

        Saves decoding what was encoded a moment ago; offset and head are right by construction, the clock is not.
        """
        if record.offset != self.position + 1:
            raise LogGapError(f"offset {record.offset} follows {self.position}")
        self.head_before, self.head = self.head, next_head(self.head, record)
        self.position = record.offset
        return now <= record.stamp + self._bound_ms

    def _fault(self, frame: Frame, record: RawRecord, before: bytes) -> Void | None:
        if frame.offset != record.offset:
            return Void(record.offset, f"declared for offset {frame.offset}", "offset")
        if frame.head != before:
            return Void(record.offset, "built on another head of the chain", "head")
        if frame.now > record.stamp + self._bound_ms:
            ahead_ms = frame.now - record.stamp
            return Void(record.offset, f"{ahead_ms} ms ahead of the broker's stamp", "clock")
        return None


def _is_foreign(value: bytes | None) -> bool:
    """Whether `value` does not even claim to be a record of ours: nobody can have meant it as a frame."""
    return value is None or value[:2] != b"\xc3\x01"
