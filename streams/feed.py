"""Inputs of one partition on their way from Faust's agent to the owner: each record once, in order, none passed over.

Faust may deliver again, drop what lies below its own mark, or start where the group's commits say. None of that
counts: the frames say what was consumed. A record below the expected offset is dropped; when one above it shows up,
or the inbox was full, it is kept aside and the stretch before it is read from the topic itself. What the topic does
not have (transaction markers) is a hole and passed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

import structlog
from aiokafka.errors import KafkaError

from minutebook.errors import LogError
from minutebook.log.kafka import read_range
from minutebook.log.port import RawRecord
from minutebook.log.settings import KafkaSettings

WAITING_MAX: Final = 2_000
WAITING_BYTES_MAX: Final = 32 << 20
ASIDE_MAX: Final = 2_000
RETRY_S: Final = 0.5

log = structlog.get_logger()


class Feed:
    """Bounded inbox of one input topic-partition. `wake` is called when something arrives."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topic: str,
        partition: int,
        expected: int,
        wake: Callable[[], None],
        halt: Callable[[BaseException], None],
    ) -> None:
        self.place = (topic, partition)
        self._kafka = kafka
        self._topic = topic
        self._partition = partition
        self._wake = wake
        self._halt = halt
        self._expected = expected
        self.seen = expected - 1
        """Last record that is known to be there."""
        self.delivered = expected - 1
        """Last record that the agent brought, or that was there at the start."""
        self.end = expected
        """Where the topic ends, as the broker last said."""
        self._fill: asyncio.Task[None] | None = None
        self._bytes = 0
        self._room = asyncio.Event()
        self._room.set()
        self._aside: deque[RawRecord] = deque()
        self.waiting: deque[RawRecord] = deque()

    def has_all_below(self, end: int) -> bool:
        """Whether every record below `end` has been taken from here."""
        return self._next() >= end

    def left(self) -> int:
        """Records of the topic that were not taken from here yet, as far as is known."""
        return max(0, max(self.end, self.seen + 1) - self._next())

    def _next(self) -> int:
        return self.waiting[0].offset if self.waiting else self._expected

    def offer(self, records: Iterable[RawRecord]) -> None:
        """Records from the agent. Never waits."""
        for record in records:
            self._offer(record)

    def _offer(self, record: RawRecord) -> None:
        self.seen = max(self.seen, record.offset)
        self.delivered = max(self.delivered, record.offset)
        if record.offset < self._expected:
            return
        if self._fill is None and record.offset == self._expected and self.has_room():
            self._accept(record)
            return
        if len(self._aside) < ASIDE_MAX:
            self._aside.append(record)
        if self._fill is None:
            self._start_filling()

    def catch_up(self, end: int) -> None:
        """At the start: everything below `end` is read from the topic, whatever the agent brings."""
        self.delivered = max(self.delivered, end - 1)
        self.read_below(end)

    def read_below(self, end: int) -> None:
        """Read everything below `end` that has not come yet."""
        self.seen = max(self.seen, end - 1)
        if self.seen >= self._expected and self._fill is None:
            self._start_filling()

    def take(self) -> RawRecord:
        """The next record; only while `waiting` is not empty."""
        record = self.waiting.popleft()
        self._bytes -= len(record.value or b"")
        if self.has_room():
            self._room.set()
        return record

    def put_back(self, records: list[RawRecord]) -> None:
        """Records taken for a frame that turned out void, in their order."""
        self.waiting.extendleft(reversed(records))
        self._bytes += sum(len(record.value or b"") for record in records)

    def oldest_stamp(self) -> int | None:
        """Stamp of the oldest record that waits, ms; None if none waits."""
        return self.waiting[0].stamp if self.waiting else None

    async def close(self) -> None:
        """Stop reading."""
        if self._fill is not None:
            self._fill.cancel()
            await asyncio.gather(self._fill, return_exceptions=True)

    def has_room(self) -> bool:
        """Whether more records are taken in."""
        return len(self.waiting) < WAITING_MAX and self._bytes < WAITING_BYTES_MAX

    def _accept(self, record: RawRecord) -> None:
        self.waiting.append(record)
        self._bytes += len(record.value or b"")
        self._expected = record.offset + 1
        if not self.has_room():
            self._room.clear()
        self._wake()

    def _start_filling(self) -> None:
        self._fill = asyncio.create_task(self._run_fill(), name=f"fill {self._topic}-{self._partition}")

    async def _run_fill(self) -> None:
        try:
            while self._expected <= self.seen:
                await self._room.wait()
                await self._read_to(self._aside[0].offset if self._aside else self.seen + 1)
                await self._take_aside()
        except LogError as error:
            self._halt(error)
        finally:
            self._fill = None

    async def _take_aside(self) -> None:
        """Records that came meanwhile, as far as they follow one another."""
        while self._aside and self._aside[0].offset <= self._expected:
            await self._room.wait()
            record = self._aside.popleft()
            if record.offset == self._expected:
                self._accept(record)

    async def _read_to(self, end: int) -> None:
        if self._expected >= end:
            return
        try:
            async for record in read_range(self._kafka, self._topic, self._partition, self._expected, end):
                await self._room.wait()
                self._accept(record)
        except KafkaError as error:
            log.warning("input_not_readable", topic=self._topic, error=type(error).__name__)
            await asyncio.sleep(RETRY_S)
        else:
            self._expected = max(self._expected, end)
