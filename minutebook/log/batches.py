"""Batches of records as a broker hands them out, read so that no producer can stop a reader.

aiokafka expands a compressed batch whole, however large it becomes, and gives up on the name of a header that is not
UTF-8: such a batch would be fetched again for ever. Here a batch is expanded up to a limit; where it would be larger,
each of its records comes as `Unreadable`, at its own offset. Bytes that are not UTF-8 stay in the name as surrogates.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

import cramjam
from aiokafka.record.default_records import DefaultRecord, DefaultRecordBatch

from minutebook.log.port import Unreadable
from minutebook.wire.numbers import varint

EXPANDED_BYTES_MAX: Final = 32 << 20

_START: Final = struct.Struct(">qi")  # base offset, bytes after this field
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_ATTRIBUTES_AT: Final = 21
_CODEC_MASK: Final = 0x07
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16
_APPEND_TIME: Final = 1


class Batches:
    """Takes the place of aiokafka's `MemoryRecords`: what one fetch brought of one partition, batch by batch.

    Brokers keep every batch in the format of version 2 since Kafka 3.0; no older one is read here.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def size_in_bytes(self) -> int:
        """Bytes fetched."""
        return len(self._data)

    def has_next(self) -> bool:
        """Whether a whole batch follows; a fetch may end within one."""
        return self._end() <= len(self._data)

    def next_batch(self) -> Batch | None:
        """The next whole batch, None at the end."""
        start, end = self._at, self._end()
        if end > len(self._data):
            return None
        self._at = end
        return Batch(self._data[start:end])

    def _end(self) -> int:
        if len(self._data) - self._at < _START.size:
            return len(self._data) + 1
        _, length = _START.unpack_from(self._data, self._at)
        return self._at + _START.size + int(length)


class Batch:
    """One batch: aiokafka's own, but for how its records are read. Most hold a single record: what the fetcher asks each for
    is at hand.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        whole = self._whole = DefaultRecordBatch(data)
        self.validate_crc = whole.validate_crc
        self.producer_id = whole.producer_id
        self.base_offset, self.next_offset = whole.base_offset, whole.next_offset
        self.is_control_batch, self.is_transactional = whole.is_control_batch, whole.is_transactional

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def __next__(self) -> DefaultRecord:
        """The first record of a control batch, which is never compressed."""
        return next(self._whole)

    def __iter__(self) -> Iterator[DefaultRecord]:
        """Its records. After a name that is not UTF-8 they come once more from the start: the fetcher passes over
        offsets that it has seen."""
        if not self._whole.compression_type:
            yield from _read(self._whole, self._data)
            return
        try:
            plain = self._plain()
        except (cramjam.DecompressionError, struct.error, ValueError):
            yield from self._stand_ins()
            return
        yield from _read(DefaultRecordBatch(plain), plain)

    def _plain(self) -> bytes:
        """This batch without compression."""
        body = expand(self._whole.compression_type, self._data[_HEADER.size :])
        header = bytearray(self._data[: _HEADER.size])
        header[_ATTRIBUTES_AT + 1] &= ~_CODEC_MASK & 0xFF
        return bytes(header) + body

    def _stand_ins(self) -> Iterator[DefaultRecord]:
        whole = self._whole
        reason = f"in a batch that expands beyond {EXPANDED_BYTES_MAX} bytes, or is damaged"
        stamp = _HEADER.unpack_from(self._data)[8]
        for offset in range(whole.base_offset, whole.next_offset):
            yield DefaultRecord(offset, stamp, whole.timestamp_type, None, Unreadable(reason), [])


def expand(codec: int, data: bytes) -> bytes:
    """`data` expanded, by the number of its codec in Kafka.

    Raises DecompressionError or ValueError where it would be larger than EXPANDED_BYTES_MAX, or is damaged.
    """
    if codec == DefaultRecordBatch.CODEC_SNAPPY:
        return _expand_snappy(data)
    into = {
        DefaultRecordBatch.CODEC_GZIP: cramjam.gzip.decompress_into,
        DefaultRecordBatch.CODEC_LZ4: cramjam.lz4.decompress_into,
        DefaultRecordBatch.CODEC_ZSTD: cramjam.zstd.decompress_into,
    }.get(codec)
    if into is None:
        raise ValueError(f"no codec {codec}")
    room = bytearray(EXPANDED_BYTES_MAX)
    return bytes(memoryview(room)[: into(data, room)])


def _expand_snappy(data: bytes) -> bytes:
    """Raw, or in the blocks of the Java library."""
    if not data.startswith(_XERIAL_MAGIC):
        return _expand_block(data, EXPANDED_BYTES_MAX)
    parts: list[bytes] = []
    at, room = _XERIAL_HEADER_BYTES, EXPANDED_BYTES_MAX
    while at < len(data):
        (length,) = struct.unpack_from(">i", data, at)
        parts.append(_expand_block(data[at + 4 : at + 4 + length], room))
        room -= len(parts[-1])
        at += 4 + length
    return b"".join(parts)


def _expand_block(data: bytes, room: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(data) > room:
        raise ValueError("too large")
    return bytes(cramjam.snappy.decompress_raw(data))


def _read(batch: DefaultRecordBatch, plain: bytes) -> Iterator[DefaultRecord]:
    """Records of `batch`, whose bytes are `plain`, without compression."""
    try:
        yield from batch
    except UnicodeDecodeError:
        yield from _records(plain)


def _records(plain: bytes) -> Iterator[DefaultRecord]:
    """The records of a batch without compression, whatever bytes the names of their headers are."""
    header = _HEADER.unpack_from(plain)
    base, first_stamp, last_stamp, count = header[0], header[7], header[8], header[12]
    stamp_type = DefaultRecordBatch(plain).timestamp_type
    at = _HEADER.size
    for _ in range(count):
        _, at = varint(plain, at)
        delta, at = varint(plain, at + 1)
        offset, at = varint(plain, at)
        key, at = _sized(plain, at)
        value, at = _sized(plain, at)
        headers, at = _headers(plain, at)
        stamp = last_stamp if stamp_type == _APPEND_TIME else first_stamp + delta
        yield DefaultRecord(base + offset, stamp, stamp_type, key, value, headers)


def _headers(data: bytes, at: int) -> tuple[list[tuple[str, bytes | None]], int]:
    count, at = varint(data, at)
    found: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, at = _sized(data, at)
        value, at = _sized(data, at)
        found.append(((name or b"").decode("utf-8", "surrogateescape"), value))
    return found, at


def _sized(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Bytes with their length before them, and where they end; a length below 0 = null."""
    length, at = varint(data, at)
    return (None, at) if length < 0 else (data[at : at + length], at + length)
