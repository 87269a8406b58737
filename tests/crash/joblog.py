"""Topics as they lie on the broker, read by librdkafka: another client than the owners use, and no view of ours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

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
    """All partitions of a topic from their beginning, followed."""

    def __init__(self, kafka: KafkaSettings, topic: str, partitions: int) -> None:
        self._consumer = Consumer(
            kafka.confluent()
            | {
                "group.id": "nobody",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
            }
        )
        name = kafka.topic(topic)
        self._consumer.assign([TopicPartition(name, p, OFFSET_BEGINNING) for p in range(partitions)])
        self._ends: set[int] = set()
        self._partitions = partitions

    def read(self, within_s: float = 0.05) -> Iterator[tuple[int, RawRecord]]:
        """What has come since the last call, waiting a moment for the first."""
        message: Any
        for message in self._consumer.consume(10_000, within_s):
            if message.error() is None:
                self._ends.discard(message.partition())
                yield message.partition(), raw(message, message.key(), message.value())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                self._ends.add(message.partition())

    def is_at_end(self) -> bool:
        """Whether every partition was read to its end."""
        return len(self._ends) == self._partitions

    def close(self) -> None:
        self._consumer.close()


def read_whole(kafka: KafkaSettings, topic: str, partitions: int) -> list[list[RawRecord]]:
    """Every record that a topic holds now, by partition."""
    tail = Tail(kafka, topic, partitions)
    found: list[list[RawRecord]] = [[] for _ in range(partitions)]
    while not tail.is_at_end():
        for partition, record in tail.read():
            found[partition].append(record)
    tail.close()
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
