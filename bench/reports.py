"""What lies on `worker-reports`: how many records in which time, by the broker's stamps. Read afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from aiokafka import TopicPartition

from minutebook.domain.records import Report
from minutebook.log.kafka import reader
from minutebook.log.settings import KafkaSettings
from minutebook.wire import codec, topics


class Said(NamedTuple):
    """A record: its stamp, ms; whether a worker wrote it, or an owner to mark the time; its bytes; how many tokens it lists."""

    stamp: int
    is_report: bool
    size: int
    held: int


class Rate(NamedTuple):
    """What came a second in a stretch of time, and the most tokens that one record listed."""

    reports_per_s: float
    ticks_per_s: float
    bytes_per_s: float
    held_max: int


def rate(said: Iterable[Said], from_ms: int, to_ms: int) -> Rate:
    """Over the time from `from_ms` until before `to_ms`."""
    within = [one for one in said if from_ms <= one.stamp < to_ms]
    seconds = (to_ms - from_ms) / 1000
    reports = sum(one.is_report for one in within)
    return Rate(
        round(reports / seconds, 2),
        round((len(within) - reports) / seconds, 2),
        round(sum(one.size for one in within) / seconds, 1),
        max((one.held for one in within), default=0),
    )


async def read(kafka: KafkaSettings, partitions: int) -> list[Said]:
    """Everything that the topic holds now."""
    consumer = reader(kafka)
    await consumer.start()
    try:
        places = [TopicPartition(kafka.topic(topics.REPORTS), number) for number in range(partitions)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        ends = await consumer.end_offsets(places)
        found: list[Said] = []
        while any([await consumer.position(place) < end for place, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found += [_said(record.timestamp, record.value) for record in records]
        return found
    finally:
        await consumer.stop()


def _said(stamp: int, value: bytes) -> Said:
    record = codec.decode(value)
    held = len(record.full.held) if isinstance(record, Report) and record.full is not None else 0
    return Said(stamp, isinstance(record, Report), len(value), held)
