"""Kafka's record batches byte by byte, also those that no decent client would send."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import cramjam
from aiokafka import TopicPartition as Place
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import for_code
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.util import calc_crc32c

from minutebook.log.settings import KafkaSettings

GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4
_XERIAL_HEADER: Final = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


class Raw(NamedTuple):
    """A record as a producer may send it: names of headers are any bytes."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[bytes, bytes | None]] = ()


def batch(records: Sequence[Raw], codec: int = 0, stamp: int = 0) -> bytes:
    """`records` as one batch. `stamp` is the sender's, ms; -1 = none."""
    body = b"".join(_record(number, record) for number, record in enumerate(records))
    return _sealed(len(records), _compressed(codec, body), codec, stamp)


def java_snappy_batch(records: Sequence[Raw], block_bytes: int) -> bytes:
    """As the Java client compresses: blocks of its own library's format."""
    body = b"".join(_record(number, record) for number, record in enumerate(records))
    blocks = [bytes(cramjam.snappy.compress_raw(part)) for part in _cut(body, block_bytes)]
    framed = b"".join(struct.pack(">i", len(block)) + block for block in blocks)
    return _sealed(len(records), _XERIAL_HEADER + framed, SNAPPY, 0)


def bomb(value_bytes: int, count: int = 1) -> bytes:
    """A gzip batch of `count` records with values of `value_bytes` zeros each, a thousand times smaller than they are."""
    press = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts: list[bytes] = []
    for number in range(count):
        head = b"\0" + _varint(0) + _varint(number) + _varint(-1) + _varint(value_bytes)
        parts.append(press.compress(_varint(len(head) + value_bytes + 1) + head))
        parts += [press.compress(zeros) for zeros in _zeros(value_bytes)]
        parts.append(press.compress(b"\0"))
    return _sealed(count, b"".join(parts) + press.flush(), GZIP, 0)


def _zeros(count: int, step: int = 1 << 20) -> Iterable[bytes]:
    for start in range(0, count, step):
        yield bytes(min(step, count - start))


def _cut(data: bytes, step: int) -> list[bytes]:
    return [data[start : start + step] for start in range(0, len(data), step)]


def _compressed(codec: int, body: bytes) -> bytes:
    match codec:
        case 0:
            return body
        case 1:
            return gzip.compress(body)
        case 2:
            return bytes(cramjam.snappy.compress_raw(body))
        case 3:
            press = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)  # as Kafka wants it
            press.compress(body)
            return bytes(press.finish())
    return bytes(cramjam.zstd.compress(body))


def _sealed(count: int, body: bytes, codec: int, stamp: int) -> bytes:
    checked = struct.pack(">hiqqqhii", codec, count - 1, stamp, stamp, -1, -1, -1, count) + body
    rest = struct.pack(">ibI", -1, 2, calc_crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(rest)) + rest


def _record(number: int, record: Raw) -> bytes:
    parts = [b"\0", _varint(0), _varint(number), _sized(record.key), _sized(record.value)]
    parts.append(_varint(len(record.headers)))
    for name, value in record.headers:
        parts += [_sized(name), _sized(value)]
    whole = b"".join(parts)
    return _varint(len(whole)) + whole


def _sized(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _varint(number: int) -> bytes:
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


async def produce(kafka: KafkaSettings, topic: str, partition: int, data: bytes) -> int:
    """Have the broker take a batch as it is. Offset of its first record. Raises KafkaError if it refuses."""
    client = AIOKafkaClient(**kafka.aiokafka(), request_timeout_ms=120_000)
    await client.bootstrap()
    try:
        name = kafka.topic(topic)
        await client.set_topics([name])
        leader = client.cluster.leader_for_partition(Place(name, partition))
        request = ProduceRequest(None, -1, 120_000, [(name, [(partition, data)])])
        answer = await client.send(leader, request)
        ((_, ((_, code, offset, *_),)),) = answer.topics
        if code:
            raise for_code(code)(name)
        return int(offset)
    finally:
        await client.close()
