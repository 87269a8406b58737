"""Faust's Kafka driver with three of its fixed values put right: faust-streaming 0.15.3 offers no setting for them. And
with a shorter way for a record.

It lets the broker hold a fetch for 1.5 s, and aiokafka has one fetch under way at a time: a partition that was not yet
drained when the fetch went out is not in it, so its next records would wait out the others' silence. It reads
uncommitted records of transactions. It takes at most 1 MiB a partition.

For each record it makes four tasks, to hand it to a stream or else to hear that the flow is suspended. A stream that has
room takes a record without waiting; so that is tried first, and the tasks are made only where there is something to
wait for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Final

from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer
from mode.services import WaitResults

from minutebook.wire import topics

FETCH_WAIT_MS: Final = 50


class InputThread(AIOKafkaConsumerThread):
    """The thread that Faust fetches in."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        consumer._isolation_level = "read_committed"
        consumer._max_partition_fetch_bytes = topics.MESSAGE_BYTES_MAX + (1 << 20)
        return consumer


class InputConsumer(Consumer):
    """Faust's consumer on that thread."""

    def _new_consumer_thread(self) -> Any:
        return InputThread(self, loop=self.loop, beacon=self.beacon)

    async def wait_first(self, *coros: Any, timeout: Any = None) -> Any:
        """See `mode.Service`: the first of `coros` to end. One that ends at once wins without tasks."""
        first, *others = coros
        if timeout is None and all(map(asyncio.iscoroutine, coros)):
            begun = Begun(first)
            if begun.is_done:
                for other in others:
                    other.close()
                return WaitResults([first], [begun.result], False)
            coros = (begun, *others)
        return await super().wait_first(*coros, timeout=timeout)


class Begun:
    """A coroutine that was begun outside of a task: it has ended, or can be awaited for the rest."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine
        self.is_done = False
        self.result: Any = None
        self._waits_for: Any = None
        try:
            self._waits_for = coroutine.send(None)
        except StopIteration as end:
            self.is_done, self.result = True, end.value

    def __await__(self) -> Generator[Any, Any, Any]:
        waits_for = self._waits_for
        try:
            while True:
                try:
                    value = yield waits_for
                except BaseException as error:  # a cancel, too, is for the coroutine
                    waits_for = self._coroutine.throw(error)
                else:
                    waits_for = self._coroutine.send(value)
        except StopIteration as end:
            return end.value
