"""Topics as they lie on the broker, read by librdkafka: another client than the owners use, and no view of ours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader, Taken, Void
from minutebook.log.settings import KafkaSettings
from minutebook.wire import topics
from minutebook.wire.frames import Frame, placed


class Fact(NamedTuple):
    """One event of a valid frame, with the token of its first row. `now` is the frame's, ms."""

    partition: int
    frame: int
    now: int
    token: int
    event: Any


def raw(message: Any, key: bytes | None, value: bytes | None) -> RawRecord:
    """A message of librdkafka, whose own types promise too little, as the log sees it."""
    return RawRecord(message.offset(), message.timestamp()[1], key, value, tuple(message.headers() or ()))


class Tail:
    """All partitions of a topic from their beginning, followed.

    From 0, or from the first record that is left: where a partition begins librdkafka asks in vain at first, and then waits.
    """

    def __init__(self, kafka: KafkaSettings, topic: str, partitions: int) -> None:
        self._consumer = Consumer(
            kafka.confluent()
            | {
                "group.id": "nobody",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
            }
        )
        self._partitions = [TopicPartition(kafka.topic(topic), p, 0) for p in range(partitions)]
        self._consumer.assign(self._partitions)
        self._ends = [-1] * partitions
        """Where each partition was last seen to end."""

    def read(self, within_s: float = 0.05) -> Iterator[tuple[int, RawRecord]]:
        """What has come since the last call, waiting a moment for the first."""
        message: Any
        for message in self._consumer.consume(10_000, within_s):
            if message.error() is None:
                yield message.partition(), raw(message, message.key(), message.value())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                self._ends[message.partition()] = message.offset()

    def read_all(self) -> Iterator[tuple[int, RawRecord]]:
        """What has come since the last call, up to where each partition ends by now."""
        ends = [self._consumer.get_watermark_offsets(partition, 20)[1] for partition in self._partitions]
        while any(seen < end for seen, end in zip(self._ends, ends, strict=True)):
            yield from self.read()

    def close(self) -> None:
        self._consumer.close()


class Whole:
    """Every record of a topic, by partition, read by a consumer that is kept."""

    def __init__(self, kafka: KafkaSettings, topic: str, partitions: int) -> None:
        self._tail = Tail(kafka, topic, partitions)
        self._found: list[list[RawRecord]] = [[] for _ in range(partitions)]

    def read(self) -> list[list[RawRecord]]:
        """All that the topic holds now, and ever held since the first call."""
        for partition, record in self._tail.read_all():
            self._found[partition].append(record)
        return [list(records) for records in self._found]

    def close(self) -> None:
        self._tail.close()


def read_whole(kafka: KafkaSettings, topic: str, partitions: int) -> list[list[RawRecord]]:
    """Every record that a topic holds now, by partition."""
    whole = Whole(kafka, topic, partitions)
    found = whole.read()
    whole.close()
    return found


class JobLog:
    """`job-events`: raw records, frames (None = void), and the facts of the valid ones in the order of each partition."""

    def __init__(self, partitions: int) -> None:
        self.records: list[list[RawRecord]] = [[] for _ in range(partitions)]
        self.frames: list[list[Frame | None]] = [[] for _ in range(partitions)]
        self.facts: list[Fact] = []
        self.voids: list[tuple[int, Void]] = []
        self._by_kind: dict[type, list[Fact]] = defaultdict(list)
        self._readers = [FrameReader() for _ in range(partitions)]

    def take(self, partition: int, record: RawRecord) -> None:
        """The next record of a partition. Raises LogError where the log cannot be trusted."""
        found = self._readers[partition].take(record)
        self.records[partition].append(record)
        self.frames[partition].append(found.frame if isinstance(found, Taken) else None)
        if isinstance(found, Void):
            self.voids.append((partition, found))
            return
        for event, token in placed(found.frame):
            fact = Fact(partition, record.offset, found.frame.now, token, event)
            self.facts.append(fact)
            self._by_kind[type(event)].append(fact)

    def of(self, kind: type) -> list[Fact]:
        """Facts of one kind."""
        return self._by_kind[kind]

    def events(self, kind: type[Any]) -> list[Any]:
        """Events of one kind."""
        return [fact.event for fact in self._by_kind[kind]]

    def head(self, partition: int) -> tuple[int, bytes]:
        """(offset of the last record, chain after it)."""
        return self._readers[partition].position, self._readers[partition].head


def whole_log(kafka: KafkaSettings, partitions: int) -> JobLog:
    """`job-events` read anew from the beginning."""
    found = JobLog(partitions)
    for partition, records in enumerate(read_whole(kafka, topics.EVENTS, partitions)):
        for record in records:
            found.take(partition, record)
    return found
