"""The partition of a key is the one that everybody's default producer chooses."""

from __future__ import annotations

import pytest
from aiokafka.partitioner import murmur2 as reference
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from minutebook.wire.topics import ending_in, murmur2, partition_of

KNOWN = {  # Kafka's own UtilsTest.testMurmur2
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "hashed"), KNOWN.items())
def test_murmur2_is_kafkas(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFFFFFF


@given(key=st.binary(max_size=80))
def test_murmur2_is_that_of_another_client(key: bytes) -> None:
    assert murmur2(key) == reference(key) & 0xFFFFFFFF


@given(key=st.text(max_size=40), partitions=st.integers(1, 64))
def test_partitions_are_those_of_another_client(key: str, partitions: int) -> None:
    assert partition_of(key, partitions) == (reference(key.encode()) & 0x7FFFFFFF) % partitions


def test_librdkafka_puts_keys_where_we_do() -> None:
    """With `murmur2_random`, as our settings for it say; its own default would hash by CRC32."""
    producer = Producer(
        {"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "partitioner": "murmur2_random"}
    )
    placed: dict[str, int] = {}

    def delivered(error: object, message: object) -> None:
        assert error is None
        placed[message.key().decode()] = message.partition()  # type: ignore[attr-defined]

    names = [f"acme/job-{number}" for number in range(100)]
    for name in names:
        producer.produce("job-commands", b"", key=name.encode(), on_delivery=delivered)
    assert producer.flush(20) == 0
    partitions = len(producer.list_topics("job-commands", timeout=10).topics["job-commands"].partitions)
    assert partitions > 1
    assert placed == {name: partition_of(name, partitions) for name in names}


@given(start=st.text(max_size=40), partitions=st.integers(1, 16), choice=st.integers(0, 15))
def test_an_ending_puts_a_key_where_it_is_wanted(start: str, partitions: int, choice: int) -> None:
    partition = choice % partitions
    endings = [f"{number:03x}" for number in range(4_096)]
    ending = ending_in(partition, partitions, start, endings)
    assert ending is not None
    assert partition_of(start + ending, partitions) == partition
    assert all(partition_of(start + one, partitions) != partition for one in endings[: endings.index(ending)])


def test_there_may_be_no_ending() -> None:
    here = partition_of("acme/a", 8)
    assert ending_in((here + 1) % 8, 8, "acme/", ["a"]) is None
