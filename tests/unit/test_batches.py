"""Batches as the consumers of this process read them: no producer's batch can stop them or take their memory."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Sequence
from typing import Any

import cramjam
import pytest
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.record.memory_records import MemoryRecords

from minutebook.errors import LogGapError
from minutebook.log.batches import EXPANDED_BYTES_MAX, Batches, expand
from minutebook.log.kafka import raw
from minutebook.log.port import RawRecord, Unreadable
from minutebook.log.reader import FrameReader, next_head
from tests.simulation.raw_batches import GZIP, LZ4, SNAPPY, ZSTD, Raw, batch, bomb, java_snappy_batch

CODECS = {"none": 0, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
RECORDS = [
    Raw(b"one", b"k1"),
    Raw(None),
    Raw(b"", b"", [(b"name", b"v"), (b"null", None), ("käse".encode(), b"")]),
    Raw(bytes(100_000), b"k4"),
]


def read(data: bytes, start: int = 0, records: Any = Batches) -> list[Any]:
    """What a consumer of aiokafka makes of a fetch from offset `start` on."""
    place = TopicPartition("t", 0)
    found = fetcher.PartitionRecords(
        place, records(data), None, start, None, None, True, fetcher.READ_COMMITTED
    )
    return list(found)


def at(data: bytes, offset: int) -> bytes:
    """A batch, moved to `offset` by a broker."""
    return struct.pack(">q", offset) + data[8:]


def values(found: Sequence[Any]) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in found]


def test_consumers_of_this_process_read_by_it() -> None:
    assert fetcher.MemoryRecords is Batches


@pytest.mark.parametrize("codec", CODECS)
def test_good_batches_are_read_as_aiokafka_reads_them(codec: str) -> None:
    data = batch(RECORDS, CODECS[codec], stamp=7) + at(batch(RECORDS[:2], CODECS[codec]), 4)

    assert read(data) == read(data, records=MemoryRecords)
    assert len(read(data)) == 6
    assert read(data, start=3) == read(data)[3:]


def test_snappy_of_the_java_client_is_read() -> None:
    assert values(read(java_snappy_batch(RECORDS, 30_000))) == values(read(batch(RECORDS)))


def test_fetch_that_ends_within_a_batch_gives_the_whole_ones() -> None:
    data = batch(RECORDS[:1]) + at(batch(RECORDS), 1)

    assert len(read(data[:-1])) == 1
    assert read(data[: len(batch(RECORDS[:1])) + 5]) == read(batch(RECORDS[:1]))
    assert not Batches(b"").has_next()
    assert Batches(data[:-1]).size_in_bytes() == len(data) - 1


@pytest.mark.parametrize("codec", CODECS)
def test_header_name_of_any_bytes_costs_no_record(codec: str) -> None:
    """The records before it are not handed on twice."""
    odd = Raw(b"odd", b"k", [(b"good", b"1"), (b"\xff\xfe\x1b", None)])
    found = read(batch([*RECORDS, odd, *RECORDS], CODECS[codec], stamp=9))

    plain = read(batch([*RECORDS, Raw(b"odd", b"k"), *RECORDS], CODECS[codec], stamp=9))
    assert values(found) == values(plain)
    assert [record.timestamp for record in found] == [record.timestamp for record in plain]
    name, value = found[4].headers[1]
    assert (name.encode("utf-8", "surrogateescape"), value) == (b"\xff\xfe\x1b", None)
    assert [record.headers for record in found[:4]] == [record.headers for record in plain[:4]]


def test_chain_covers_header_names_of_any_bytes() -> None:
    one, other = (read(batch([Raw(b"v", None, [(name, b"")])]))[0] for name in (b"\xff", b"\xfe"))

    assert next_head(bytes(32), raw(one)) != next_head(bytes(32), raw(other))


@pytest.mark.parametrize("count", [1, 40])
def test_bomb_is_not_expanded_and_each_record_of_it_is_unreadable(count: int) -> None:
    data = bomb((64 << 20) // count, count)
    behind = at(batch(RECORDS[:1]), count)
    tracemalloc.start()
    found = read(data + behind)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert [record.offset for record in found] == list(range(count + 1))
    assert all(isinstance(record.value, Unreadable) and not record.value for record in found[:-1])
    assert str(EXPANDED_BYTES_MAX) in found[0].value.reason
    assert found[-1].value == b"one"
    assert peak < 2 * EXPANDED_BYTES_MAX


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
@pytest.mark.parametrize("over", [0, 1])
def test_limit_holds_for_every_codec(codec: int, over: int) -> None:
    room = EXPANDED_BYTES_MAX - len(batch([Raw(bytes(EXPANDED_BYTES_MAX // 2))])) + EXPANDED_BYTES_MAX // 2
    (record,) = read(batch([Raw(bytes(room + 61 + over))], codec))

    assert isinstance(record.value, Unreadable) == bool(over)


def test_limit_holds_over_all_blocks_of_javas_snappy() -> None:
    blocks = java_snappy_batch([Raw(bytes(EXPANDED_BYTES_MAX))], 1 << 20)

    assert [type(record.value) for record in read(blocks)] == [Unreadable]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD, 5, 7])
def test_bytes_that_cannot_be_expanded_raise(codec: int) -> None:
    with pytest.raises((cramjam.DecompressionError, ValueError)):
        expand(codec, b"no such thing")


def test_unreadable_record_of_the_log_halts_its_reader() -> None:
    """Its bytes are in the chain, and nobody can know them."""
    reader = FrameReader()

    with pytest.raises(LogGapError, match="cannot be read: bomb"):
        reader.take(RawRecord(0, 1, None, Unreadable("bomb")))
    assert reader.position == -1
