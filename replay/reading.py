"""Where audits read the log: Kafka, by kafka-python, bounded, without a group; nothing is ever written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaTimeoutError

from minutebook.errors import SettingsError
from minutebook.log.port import RawRecord
from minutebook.log.reader import HEAD_BEFORE_ALL
from minutebook.log.settings import KafkaSettings
from minutebook.wire import topics

_BOOTSTRAP_MS: Final = 10_000
_POLL_MS: Final = 500
_SILENT_POLLS_MAX: Final = 60


class Until(NamedTuple):
    """Where to end: after the record at `offset`, or before the first one stamped later than `at` (ms). None = the end."""

    offset: int | None = None
    at: int | None = None

    def is_over(self, record: RawRecord) -> bool:
        """Whether `record` lies behind the end asked for."""
        if self.offset is not None and record.offset > self.offset:
            return True
        return self.at is not None and record.stamp > self.at


TO_THE_END: Final = Until()


Advance = Callable[[int, int], None]
"""Told (partition, records read since the last call)."""


def unheard(partition: int, records: int) -> None:
    """Where nobody is told how far a reading is."""


class Log(Protocol):
    """A log that does not grow while it is read. Pickled, it is the same log, opened anew by who gets it."""

    @property
    def topic(self) -> str:
        """Its name."""
        ...

    def partitions(self) -> list[int]:
        """Its partitions, in order."""
        ...

    def bounds(self, partition: int) -> tuple[int, int]:
        """Offset of the first record, and that after the last one."""
        ...

    def head_before(self, partition: int) -> bytes:
        """The chain's head before the first record: zeros, but where this is a stretch of a log."""
        ...

    def read(self, partition: int, start: int, end: int) -> Iterator[RawRecord]:
        """Records from `start` up to and without `end`, as they lie."""
        ...

    def close(self) -> None:
        """Give back what was opened."""
        ...


def beginning(log: Log, partition: int) -> tuple[int, bytes]:
    """Offset from which records must be there, and the chain's head before it: only a stretch that says how the chain stood
    before its first record need not begin with the log.
    """
    head = log.head_before(partition)
    return (0, head) if head == HEAD_BEFORE_ALL else (log.bounds(partition)[0], head)


class KafkaLog:
    """A topic of Kafka. Every method raises KafkaError where the broker cannot be reached."""

    def __init__(self, kafka: KafkaSettings, topic: str | None = None) -> None:
        self._kafka = kafka
        self._topic = topic or kafka.topic(topics.EVENTS)
        self._consumer = KafkaConsumer(
            **kafka.kafka_python(),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            allow_auto_create_topics=False,
            isolation_level="read_committed",
            max_partition_fetch_bytes=topics.MESSAGE_BYTES_MAX + (1 << 20),
            bootstrap_timeout_ms=_BOOTSTRAP_MS,
            metrics_enabled=False,
        )

    def __reduce__(self) -> tuple[type[KafkaLog], tuple[KafkaSettings, str]]:
        """Its settings: a connection is nobody else's."""
        return KafkaLog, (self._kafka, self._topic)

    @property
    def topic(self) -> str:
        """See `Log.topic`."""
        return self._topic

    def partitions(self) -> list[int]:
        """See `Log.partitions`. Raises SettingsError where there is no such topic."""
        found = self._consumer.partitions_for_topic(self._topic)
        if not found:
            raise SettingsError(f"there is no topic {self._topic}")
        return sorted(found)

    def bounds(self, partition: int) -> tuple[int, int]:
        """See `Log.bounds`."""
        place = TopicPartition(self._topic, partition)
        start = self._consumer.beginning_offsets([place])[place]
        return start, self._consumer.end_offsets([place])[place]

    def head_before(self, partition: int) -> bytes:
        """See `Log.head_before`."""
        return HEAD_BEFORE_ALL

    def offset_at(self, partition: int, at: int) -> int:
        """Offset of the first record stamped `at` (ms) or later; that after the last one where there is none."""
        place = TopicPartition(self._topic, partition)
        found = self._consumer.offsets_for_times({place: max(0, at)}).get(place)
        return self.bounds(partition)[1] if found is None or found.offset < 0 else found.offset

    def read(self, partition: int, start: int, end: int) -> Iterator[RawRecord]:
        """See `Log.read`. Raises KafkaTimeoutError where nothing comes for half a minute."""
        place = TopicPartition(self._topic, partition)
        self._consumer.assign([place])
        self._consumer.seek(place, start)
        silent = 0
        while self._consumer.position(place) < end:
            found = self._consumer.poll(timeout_ms=_POLL_MS).get(place, ())
            silent = 0 if found else silent + 1
            if silent > _SILENT_POLLS_MAX:
                raise KafkaTimeoutError(
                    f"no record of {self._topic}-{partition} in {_SILENT_POLLS_MAX / 2:.0f} s"
                )
            for record in found:
                if record.offset >= end:
                    return
                yield RawRecord(
                    record.offset, record.timestamp, record.key, record.value, tuple(record.headers)
                )

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()
