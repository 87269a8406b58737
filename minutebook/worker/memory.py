"""The channel without a broker, for tests: reports are handed to a listener, inbox records come from `deliver`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from minutebook.clock import Clock
from minutebook.domain.records import Inbox, Report
from minutebook.errors import DecodeError
from minutebook.wire import codec

Listener = Callable[[int, Report], None]


class MemoryChannel:
    """A channel whose other end is `listener(partition, report)`, called in the link's thread for each report that the
    broker would have. `hold` and `release` play a broker that is away.
    """

    def __init__(self, clock: Clock, partitions: int, listener: Listener) -> None:
        self.worker_id = ""
        self._clock = clock
        self.partitions = partitions
        self._listener = listener
        self.commands: list[tuple[str, codec.Record]] = []
        self.is_forbidden = False

    async def open(self, worker_id: str) -> int:
        """See `Channel.open`."""
        self.worker_id = worker_id
        self._loop = asyncio.get_running_loop()
        self._inbox: asyncio.Queue[bytes] = asyncio.Queue()
        self._is_there = asyncio.Event()
        self._is_there.set()
        return self.partitions

    async def poll(self) -> list[bytes]:
        """See `Channel.poll`."""
        found = [await self._inbox.get()]
        while not self._inbox.empty():
            found.append(self._inbox.get_nowait())
        return found

    async def send(self, partition: int, value: bytes) -> int:
        """See `Channel.send`."""
        await self._is_there.wait()
        report = codec.decode(value)
        if not isinstance(report, Report):
            raise DecodeError(f"a {type(report).__name__} among the reports")
        stamp = self._clock.now()
        self._listener(partition, report)
        return stamp

    async def command(self, key: str, value: bytes) -> bool:
        """See `Channel.command`. They are kept in `commands`, unless `is_forbidden`."""
        await self._is_there.wait()
        if self.is_forbidden:
            return False
        self.commands.append((key, codec.decode(value)))
        return True

    async def close(self) -> None:
        """See `Channel.close`."""

    def deliver(self, record: Inbox) -> None:
        """Put a record into the inbox; from any thread."""
        self.deliver_bytes(codec.encode(record))

    def deliver_bytes(self, value: bytes) -> None:
        """Put any bytes into the inbox; from any thread."""
        self._loop.call_soon_threadsafe(self._inbox.put_nowait, value)

    def hold(self) -> None:
        """From now on nothing is acknowledged; from any thread."""
        self._loop.call_soon_threadsafe(self._is_there.clear)

    def release(self) -> None:
        """The broker is back; from any thread."""
        self._loop.call_soon_threadsafe(self._is_there.set)
