"""Due records on their way to `executions-due.<queue>`, each queue by a task of its own.

They are hints that are published again while they are unclaimed, so none of them is awaited by `sent_through`: a due topic
that is not there, or not writable, holds up nothing but its own queue. It is tried again for ever, and said in `faults`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from minutebook.log.settings import KafkaSettings
from minutebook.wire import codec, topics
from streams import metrics
from streams.open_queues import OpenQueues

ROWS_WAITING_MAX: Final = 2_000
BYTES_WAITING_MAX: Final = 1 << 20
ROWS_A_CYCLE: Final = 400
ROWS_AT_ONCE: Final = 20
SEND_S: Final = 5.0
"""Until a topic that the broker does not know is called missing, or one that it does not take from us held back."""
RETRY_MAX_S: Final = 10.0

log = structlog.get_logger()


class _Encoded(NamedTuple):
    row: bytes
    key: bytes
    value: bytes


class DueRecords:
    """Due records of one partition. `faults`: queue -> why its due records do not go out at present."""

    def __init__(
        self,
        producer: AIOKafkaProducer,
        kafka: KafkaSettings,
        partition: int,
        open_queues: Callable[[], OpenQueues],
        now: Callable[[], int],
        wake: Callable[[], None],
    ) -> None:
        self._producer = producer
        self._kafka = kafka
        self._partition = partition
        self._open_queues = open_queues
        self._now = now
        self._wake = wake
        self._waiting: dict[str, deque[_Encoded]] = defaultdict(deque)
        self._bytes: dict[str, int] = defaultdict(int)
        self._sending: set[str] = set()
        self._more = asyncio.Event()
        self.faults: dict[str, str] = {}

    def publish(self) -> None:
        """Take over what is to be published now. Call it while no decision is pending."""
        queues = self._open_queues()
        for queue in queues.names:
            rows = 0
            while rows < ROWS_A_CYCLE and self._has_room(queue):
                hints = queues.take(queue, self._now(), ROWS_AT_ONCE)
                if not hints:
                    break
                rows += len(hints)
                for hint in hints:
                    if hint.is_repeat:
                        metrics.REPUBLISHED.add((queue,))
                    encoded = _Encoded(hint.key, hint.record.execution.encode(), codec.encode(hint.record))
                    self._waiting[queue].append(encoded)
                    self._bytes[queue] += len(encoded.value)
            if rows:
                self._more.set()

    def is_behind(self) -> bool:
        """Whether more can be published at once."""
        queues = self._open_queues()
        return any(queues.has_fresh(queue) and self._has_room(queue) for queue in queues.names)

    def _has_room(self, queue: str) -> bool:
        return len(self._waiting[queue]) < ROWS_WAITING_MAX and self._bytes[queue] < BYTES_WAITING_MAX

    async def run(self) -> None:
        """Send what waits, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._more.wait()
                self._more.clear()
                for queue in [name for name, rows in self._waiting.items() if rows]:
                    if queue not in self._sending:
                        self._sending.add(queue)
                        tasks.create_task(self._empty(queue), name=f"due records of {queue}")

    async def _empty(self, queue: str) -> None:
        rows, wait_s = self._waiting[queue], 0.25
        while rows:
            fault = await self._send(queue, list(rows))
            if not fault:
                self.faults.pop(queue, None)
                wait_s = 0.25
                continue
            if queue not in self.faults:
                log.error(
                    "due_records_held_back",
                    partition=self._partition,
                    topic=self._topic(queue),
                    error=fault,
                )
            self.faults[queue] = fault
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, RETRY_MAX_S)
        self._sending.discard(queue)

    async def _send(self, queue: str, batch: list[_Encoded]) -> str:
        """Why not all of `batch` went out; empty if all did. What the broker has waits no more."""
        futures, fault = await self._start(queue, batch)
        outcomes = await asyncio.gather(*futures, return_exceptions=True)
        done: list[_Encoded] = []
        for encoded, outcome in zip(batch, outcomes, strict=False):
            if isinstance(outcome, BaseException) and not isinstance(outcome, MessageSizeTooLargeError):
                fault = fault or type(outcome).__name__
                continue
            if isinstance(outcome, MessageSizeTooLargeError):
                log.error("due_record_refused", topic=self._topic(queue))
            done.append(encoded)
        self._done(queue, done)
        return fault

    async def _start(self, queue: str, batch: list[_Encoded]) -> tuple[list[asyncio.Future[Any]], str]:
        futures: list[asyncio.Future[Any]] = []
        topic = self._topic(queue)
        try:
            async with asyncio.timeout(SEND_S):
                for encoded in batch:
                    sent = self._producer.send(topic, encoded.value, key=encoded.key, partition=0)
                    futures.append(await sent)
        except MessageSizeTooLargeError as error:
            futures.append(_failed(error))
        except (KafkaError, TimeoutError) as error:
            return futures, type(error).__name__
        return futures, ""

    def _done(self, queue: str, done: list[_Encoded]) -> None:
        queues, now, rows = self._open_queues(), self._now(), self._waiting[queue]
        gone = set(map(id, done))
        kept = [encoded for encoded in rows if id(encoded) not in gone]
        rows.clear()
        rows.extend(kept)
        for encoded in done:
            self._bytes[queue] -= len(encoded.value)
            queues.sent(queue, encoded.row, now)
        self._wake()

    def _topic(self, queue: str) -> str:
        return self._kafka.topic(topics.due_topic(queue).name)


def _failed(error: Exception) -> asyncio.Future[Any]:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    return future
