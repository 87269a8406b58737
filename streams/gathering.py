"""Reports on their way to Faust: what a fetch brought of a partition as one message, idle pulses when they have gathered.

A message costs Faust and an owner's cycle more than the pulses in it. Order is kept: whatever must not wait takes along what
was kept back of its partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from aiokafka import ConsumerRecord, TopicPartition

from minutebook.log.kafka import raw
from minutebook.log.port import RawRecord
from minutebook.wire import topics

GATHER_S: Final = 0.25
"""So long idle pulses wait for others."""
LATE_S: Final = 0.05
"""So much longer they wait if need be: fetches of a fleet come more often, and each brings on what is ready of any partition."""


class _Kept(NamedTuple):
    """Idle pulses of a partition, the last of them as it was fetched, and until when they wait."""

    until: float
    records: list[RawRecord]
    last: ConsumerRecord


class Gathering:
    """What is kept back, by partition. `is_news` says of a partition's report whether it must not wait."""

    def __init__(self, is_news: Callable[[int, RawRecord], bool]) -> None:
        self._is_news = is_news
        self._kept: dict[TopicPartition, _Kept] = {}

    def wait_s(self, now: float, timeout: float) -> float:
        """How long to wait for a fetch, `timeout` at most: until something kept back is to go on, or a little longer."""
        first = min((kept.until for kept in self._kept.values()), default=now + timeout)
        return min(max(LATE_S, first - now), timeout)

    def sift(
        self, found: Mapping[TopicPartition, Sequence[ConsumerRecord]], now: float
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """What is to go on at `now`, in seconds of a monotonic clock, after a fetch that brought `found`.

        Of each partition one record at the last one's offset, whose value is the list of `RawRecord`.
        """
        ready = {}
        for place, records in found.items():
            if records:
                fresh = [raw(record) for record in records]
                kept = self._kept.get(place)
                until, before = (now + GATHER_S, []) if kept is None else (kept.until, kept.records)
                self._kept[place] = _Kept(until, before + fresh, records[-1])
                if self._has_news(place, fresh):
                    ready[place] = [_message(self._kept.pop(place))]
        for place in [place for place, kept in self._kept.items() if kept.until <= now]:
            ready[place] = [_message(self._kept.pop(place))]
        return ready

    def _has_news(self, place: TopicPartition, records: Sequence[RawRecord]) -> bool:
        if not place.topic.endswith(topics.REPORTS):
            return True
        return any(self._is_news(place.partition, record) for record in records)

    def forget(self, places: Iterable[TopicPartition]) -> None:
        """Drop what is kept back of partitions that are taken away."""
        for place in places:
            self._kept.pop(place, None)


def _message(kept: _Kept) -> ConsumerRecord:
    last = kept.last
    return ConsumerRecord(
        topic=last.topic,
        partition=last.partition,
        offset=last.offset,
        timestamp=last.timestamp,
        timestamp_type=last.timestamp_type,
        key=None,
        value=kept.records,
        checksum=None,
        serialized_key_size=-1,
        serialized_value_size=last.serialized_value_size,
        headers=(),
    )
