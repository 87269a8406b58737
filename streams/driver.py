"""Faust's Kafka driver with three of its fixed values put right: faust-streaming 0.15.3 offers no setting for them. And
with a shorter way for a record.

It lets the broker hold a fetch for 1.5 s, and aiokafka has one fetch under way at a time: a partition that was not yet
drained when the fetch went out is not in it, so its next records would wait out the others' silence. It reads
uncommitted records of transactions. It takes at most 1 MiB a partition.

A fetch costs the same for one record as for hundreds, and more with each partition that it asks for. A fleet's pulses come
one by one, so fetches keep a distance: what gathers meanwhile shares the next one. What comes after a silence does not
wait.

For each record Faust makes four tasks, to hand it to a stream or else to hear that the flow is suspended. A stream that has
room takes a record without waiting; so that is tried first, and the tasks are made only where there is something to
wait for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final

from aiokafka.protocol.fetch import FetchRequest
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer
from mode.services import WaitResults

from minutebook.wire import topics

FETCH_WAIT_MS: Final = 50
FETCH_GAP_S: Final = 0.01


class InputThread(AIOKafkaConsumerThread):
    """The thread that Faust fetches in."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        consumer._isolation_level = "read_committed"
        consumer._max_partition_fetch_bytes = topics.MESSAGE_BYTES_MAX + (1 << 20)
        consumer._client.send = Paced(consumer._client.send)
        return consumer


class Paced:
    """Sends requests to brokers. What a fetch brought is passed on `FETCH_GAP_S` after the one before, not earlier: the
    next request is made only then, so it asks for every partition that is drained by then.
    """

    def __init__(self, send: Callable[..., Awaitable[Any]]) -> None:
        self._send = send
        self._passed_at: dict[int, float] = {}

    async def __call__(self, node_id: int, request: Any, **more: Any) -> Any:
        """See `AIOKafkaClient.send`."""
        response = await self._send(node_id, request, **more)
        if isinstance(request, FetchRequest):
            clock = asyncio.get_running_loop().time
            wait_s = self._passed_at.get(node_id, 0.0) + FETCH_GAP_S - clock()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            self._passed_at[node_id] = clock()
        return response


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
