"""Keeps the view at the log's end: reads `job-events`, all partitions, without a group.

Starts where the stored rows end, after proof that they belong to this log; a partition whose rows do not is folded
again from its start. Faults of the log halt the view: it says so and answers nothing, rather than something wrong.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaConnectionError, KafkaError, OffsetOutOfRangeError

from api.catch_up import CatchUp
from api.view import View
from minutebook.clock import Clock
from minutebook.errors import LogError, SettingsError
from minutebook.log import admin
from minutebook.log.fetching import wait_longer_for_all
from minutebook.log.kafka import raw, read_range, reader
from minutebook.log.reader import Void, next_head
from minutebook.log.settings import KafkaSettings
from minutebook.wire import topics

SLICE_S: Final = 0.002
_COMMIT_EVERY_S: Final = 0.2
_RETRY_S: Final = 1.0
_POLL_MS: Final = 200

_log = structlog.get_logger()


class Follower:
    """Feeds `view`. `fault` is empty, or why the view can answer nothing; `is_caught_up` turns true once, for good."""

    def __init__(self, view: View, kafka: KafkaSettings, clock: Clock) -> None:
        self.fault = ""
        self.is_caught_up = False
        self.lag: dict[int, int] = {}
        """Records not yet folded, by partition, as last known."""
        self._view = view
        self._kafka = kafka
        self._clock = clock
        self._topic = kafka.topic(topics.EVENTS)
        self.catch_up = CatchUp()
        """How far the log is read, and how fast."""
        self._starts: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    def unready(self) -> str:
        """Why nothing can be answered; empty if it can."""
        if self.fault:
            return self.fault
        return "" if self.is_caught_up else f"the view is still reading the log, {self.catch_up.all().text()}"

    async def run(self) -> None:
        """Follow until cancelled. Returns early, with `fault` set, where the log cannot be trusted."""
        consumer = await self._connected()
        try:
            await self._resume(consumer)
            await self._follow(consumer)
        except (LogError, SettingsError, OffsetOutOfRangeError) as error:
            # The reason names jobs; it goes to the log alone, as anybody may ask for readiness.
            self.fault = f"the view is halted by a {type(error).__name__}, see the log of this process"
            _log.error("view_halted", reason=f"{type(error).__name__}: {error}")
        finally:
            if not self.fault:
                # A frame that broke in the middle must leave nothing behind.
                self._view.commit_all()
            await consumer.stop()

    async def _connected(self) -> AIOKafkaConsumer:
        """A consumer, however long the broker takes to come up, once the topics are as declared."""
        while True:
            consumer = reader(self._kafka)
            try:
                await asyncio.to_thread(admin.require, self._kafka, self._view.partitions)
                await consumer.start()
                wait_longer_for_all(consumer)
                return consumer
            except (KafkaError, OSError, SettingsError) as error:
                await consumer.stop()
                self.fault = "the broker is not usable yet"
                _log.warning("broker_not_usable", reason=str(error))
                await asyncio.sleep(_RETRY_S)

    async def _resume(self, consumer: AIOKafkaConsumer) -> None:
        """Assign all partitions, each from where its stored rows end."""
        self.fault = ""
        places = [TopicPartition(self._topic, partition) for partition in range(self._view.partitions)]
        consumer.assign(places)
        starts = await consumer.beginning_offsets(places)
        ends = await consumer.end_offsets(places)
        for place in places:
            await self._check_stored(place.partition, starts[place], ends[place])
            consumer.seek(place, self._view.readers[place.partition].position + 1)
            self._starts[place.partition], self._ends[place.partition] = starts[place], ends[place]
        self._note_lag(consumer)

    async def _check_stored(self, partition: int, start: int, end: int) -> None:
        """Restart a partition whose stored rows are not of this log, or of another format."""
        cursor = self._view.parts[partition].cursor
        if cursor.position < 0:
            return
        reason = ""
        if not self._view.parts[partition].is_of_this_format():
            reason = "rows of another version"
        elif cursor.position >= end:
            reason = f"the log ends at {end}, before position {cursor.position}"
        elif cursor.position >= start:
            async for record in read_range(
                self._kafka, topics.EVENTS, partition, cursor.position, cursor.position + 1
            ):
                if next_head(cursor.head_before, record) != cursor.head:
                    reason = f"another record lies at {cursor.position}"
        if reason:
            _log.warning("view_partition_restarted", partition=partition, reason=reason)
            self._view.restart(partition)

    async def _follow(self, consumer: AIOKafkaConsumer) -> None:
        committed_at = self._clock.monotonic()
        while True:
            try:
                found = await consumer.getmany(timeout_ms=_POLL_MS)
            except KafkaConnectionError as error:
                _log.warning("broker_not_reachable", reason=str(error))
                await asyncio.sleep(_RETRY_S)
                continue
            for place, records in found.items():
                await self._fold(place.partition, records)
            self._note_lag(consumer)
            now = self._clock.monotonic()
            if now - committed_at >= _COMMIT_EVERY_S:
                self._view.commit_all()
                committed_at = now

    async def _fold(self, partition: int, records: list[ConsumerRecord]) -> None:
        """Fold in slices, so that queries are answered meanwhile."""
        started_at = self._clock.monotonic()
        for record in records:
            taken = self._view.take(partition, raw(record))
            if isinstance(taken, Void):
                _log.info("frame_void", partition=partition, offset=taken.offset, reason=taken.reason)
            if self._clock.monotonic() - started_at >= SLICE_S:
                await asyncio.sleep(0)
                started_at = self._clock.monotonic()

    def _note_lag(self, consumer: AIOKafkaConsumer) -> None:
        for partition, view_reader in enumerate(self._view.readers):
            place = TopicPartition(self._topic, partition)
            end = max(consumer.highwater(place) or 0, self._ends.get(partition, 0))
            self.lag[partition] = max(0, end - 1 - view_reader.position)
        read = {
            partition: max(0, self._view.readers[partition].position + 1 - start)
            for partition, start in self._starts.items()
        }
        self.catch_up.note(self._clock.monotonic(), read, self.lag)
        if not self.is_caught_up and all(
            self._view.readers[partition].position + 1 >= end for partition, end in self._ends.items()
        ):
            self.is_caught_up = True
            _log.info("view_caught_up", records=sum(self._ends.values()))
