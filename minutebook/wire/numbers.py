"""Numbers as Kafka and Avro write them: zigzag, seven bits a byte, the lowest first."""

from __future__ import annotations

from typing import Final

_SHIFT_MAX: Final = 63


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number of up to 64 bits at `at`, and where it ends. Raises IndexError where the data ends before, or goes on."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > _SHIFT_MAX:
            raise IndexError("more than 64 bits")


def as_varint(number: int) -> bytes:
    """A number of up to 64 bits, as it is written."""
    left = (number << 1) ^ (number >> 63)
    found = bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)
