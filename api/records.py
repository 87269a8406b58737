"""Where the API reads the log from when somebody asks for the past."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from minutebook.log.kafka import read_range
from minutebook.log.port import RawRecord
from minutebook.log.settings import KafkaSettings
from minutebook.wire import topics


class Records(Protocol):
    """The records of `job-events`."""

    def read(self, partition: int, end: int) -> AsyncIterator[RawRecord]:
        """From the first one up to and without `end`. Raises LogError or KafkaError where they cannot be had."""
        ...


class KafkaRecords:
    """`Records` on Kafka."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka

    def read(self, partition: int, end: int) -> AsyncIterator[RawRecord]:
        """See `Records.read`."""
        return read_range(self._kafka, topics.EVENTS, partition, 0, end)
