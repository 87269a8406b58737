"""The link to the owners: a thread with an event loop of its own, so that a blocked user's loop never costs the lease.

All of the exchange lives in this thread. Orders go to the user's loop in one call per poll, ends of attempts come back in one
call per batch.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from minutebook.broker_clock import BrokerClock
from minutebook.clock import Clock
from minutebook.domain.commands import DeclareTask
from minutebook.domain.records import Inbox, Report
from minutebook.errors import DecodeError
from minutebook.eventloop import new_event_loop
from minutebook.ids import task_key
from minutebook.wire import codec
from minutebook.wire.topics import murmur2
from minutebook.worker.channel import Channel
from minutebook.worker.exchange import Exchange, Profile, is_whole
from minutebook.worker.progress import Board
from minutebook.worker.run import Ended, Orders
from minutebook.worker.watch import EVERY_S, Watch

UNACKNOWLEDGED_S: Final = 2.0
SILENT_S: Final = 10.0
"""The link looks twice a second."""
PROGRESS_EVERY_S: Final = 0.25
_CLOSE_S: Final = 2.0

log = structlog.get_logger(__name__)


class Link:
    """Made on the user's loop. `failed` gets an exception if the thread breaks; `quiet` is set once the worker leaves, no
    slot is taken and everything is acknowledged; `stop_asked` once somebody wants the worker to leave.
    """

    def __init__(
        self,
        channel: Channel,
        profile: Profile,
        clock: Clock,
        declared: Sequence[DeclareTask] = (),
        clock_bound_ms: int = 1_000,
    ) -> None:
        self._clock_bound_ms = clock_bound_ms
        self._channel = channel
        self._profile = profile
        self._clock = clock
        self._declared = declared
        self._user_loop = asyncio.get_running_loop()
        self._watch = Watch(self._user_loop, threading.current_thread())
        self._thread = threading.Thread(target=self._run, name="minutebook-link", daemon=True)
        self._loop = new_event_loop()
        self._ends: list[list[Ended]] = []
        self._is_leaving = False
        self._woken = asyncio.Event()
        self._sent_at: dict[int, float] = {}
        self._is_overdue = False
        self._exchange: Exchange | None = None
        self._progress_at = 0.0
        self.board = Board(lambda: self._call(self._woken.set))
        """Where running tasks note how far they are."""
        self.failed: asyncio.Future[None] = self._user_loop.create_future()
        self.quiet = asyncio.Event()
        self.stop_asked = asyncio.Event()
        self.broker_clock = BrokerClock()
        self.has_started = False
        """Whether the broker ever took a report."""
        self._looked_at = clock.monotonic()

    # -- called on the user's loop

    def start(self, deliver: Callable[[Orders], None]) -> None:
        """Connect and begin. Orders are given by `deliver`, on the user's loop."""
        self._deliver = deliver
        self._thread.start()

    def finish(self, ends: list[Ended]) -> None:
        """Attempts that ended."""
        self._call(self._take_ends, ends)

    def leave(self) -> None:
        """Tell the owners that nothing more will be started."""
        self._call(self._leave)

    async def stop(self) -> tuple[int, int]:
        """Disconnect. Answers how many attempts ended and how many were handed back since `leave`."""
        self._call(lambda: self._main.cancel())
        await asyncio.to_thread(self._thread.join)
        return (self._exchange.drained, self._exchange.handed_back) if self._exchange else (0, 0)

    # -- called from any thread

    def slots(self) -> tuple[int, int]:
        """Busy and free ones."""
        return (0, self._profile.slots) if self._exchange is None else self._exchange.slots

    def silence(self) -> str:
        """Why the link is taken for dead; empty if it lives."""
        silent_s = self._clock.monotonic() - self._looked_at
        return f"the link stands still for {silent_s:.0f} s" if silent_s > SILENT_S else ""

    def unready(self) -> str:
        """Why nothing could be started now; empty if it could."""
        if not self.has_started:
            return "no report has reached the broker yet"
        if self._is_leaving:
            return "the worker leaves"
        if self._is_overdue:
            return "the broker does not acknowledge reports"
        return self.broker_clock.fault(self._clock.now(), self._clock_bound_ms)

    def _call(self, callback: Callable[..., object], *args: object) -> None:
        """In the link's thread; nothing happens once that has ended, which `failed` has told."""
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    # -- the thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._main = self._loop.create_task(self._live())
            self._loop.run_until_complete(self._main)
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # raised again on the user's loop, where it ends the worker
            self._user_loop.call_soon_threadsafe(self._fail, error)
        finally:
            self._loop.close()

    def _fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    async def _live(self) -> None:
        try:
            partitions = await self._channel.open(self._profile.worker_id)
            exchange = Exchange(self._profile, partitions, murmur2(self._profile.worker_id.encode()))
            self._exchange = exchange
            async with asyncio.TaskGroup() as group:
                group.create_task(self._read(exchange))
                group.create_task(self._look())
                group.create_task(self._declare())
                group.create_task(self._speak(exchange, group))
        finally:
            await self._close()

    async def _close(self) -> None:
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._channel.close()
        except TimeoutError:
            log.warning("left_without_goodbye")

    async def _read(self, exchange: Exchange) -> None:
        while True:
            records = [
                record for value in await self._channel.poll() if (record := _inbox(value)) is not None
            ]
            if records:
                self._order(exchange.take(records, self._clock.monotonic()))
                if exchange.is_stop_asked:
                    self._user_loop.call_soon_threadsafe(self.stop_asked.set)
                self._woken.set()

    async def _declare(self) -> None:
        """Tell what payloads the tasks take. Beside everything else: no run waits for it."""
        for command in self._declared:
            if not await self._channel.command(task_key(command.name), codec.encode(command)):
                log.warning(
                    "tasks_not_declared",
                    remedy="allow this worker to write job-commands",
                )
                return

    async def _look(self) -> None:
        while True:
            now = self._looked_at = self._clock.monotonic()
            self._watch.look(now)
            self._look_for_acks(now)
            await asyncio.sleep(EVERY_S)

    def _look_for_acks(self, now: float) -> None:
        is_overdue = any(now - sent_at > UNACKNOWLEDGED_S for sent_at in self._sent_at.values())
        if is_overdue and not self._is_overdue:
            log.warning("reports_not_acknowledged")
        if self._is_overdue and not is_overdue:
            log.info("reports_acknowledged")
        self._is_overdue = is_overdue

    async def _speak(self, exchange: Exchange, group: asyncio.TaskGroup) -> None:
        """Send what is due, again and again. Leases run on a clock that goes on in suspend, timers do not: so it looks
        every now and then even if nothing is due.
        """
        while True:
            now = self._clock.monotonic()
            self._note_progress(exchange, now)
            self._note_ends(exchange)
            self._order(exchange.tick(now))
            for partition, report in exchange.reports(now):
                group.create_task(self._send(exchange, partition, report, now))
            next_at = min(exchange.next_at(), self._progress_at if self.board.has_any() else math.inf)
            alarm = self._loop.call_later(min(EVERY_S, max(0.0, next_at - now)), self._woken.set)
            await self._woken.wait()
            self._woken.clear()
            alarm.cancel()

    def _note_progress(self, exchange: Exchange, now: float) -> None:
        """Now and then, or with what ended: then what an attempt noted last must not be late."""
        if now >= self._progress_at or self._ends:
            self._progress_at = now + PROGRESS_EVERY_S
            exchange.progressed(self.board.take())

    def _note_ends(self, exchange: Exchange) -> None:
        if self._is_leaving and not exchange.is_leaving:
            exchange.leave()
        waiting, self._ends = self._ends, []
        for ends in waiting:
            exchange.ended(ends)
        if exchange.is_leaving and exchange.is_quiet:
            self._user_loop.call_soon_threadsafe(self.quiet.set)

    async def _send(self, exchange: Exchange, partition: int, report: Report, sent_at: float) -> None:
        self._sent_at[partition] = sent_at
        stamp = await self._channel.send(partition, codec.encode(report))
        del self._sent_at[partition]
        now, wall = self._clock.monotonic(), self._clock.now()
        exchange.acknowledged(partition, report, stamp, sent_at, now)
        self.broker_clock.acknowledged(wall - int((now - sent_at) * 1_000), stamp, wall)
        self.has_started = True
        self._woken.set()

    def _order(self, orders: Orders) -> None:
        if orders.starts or orders.stops:
            self._user_loop.call_soon_threadsafe(self._deliver, orders)

    def _take_ends(self, ends: list[Ended]) -> None:
        self._ends.append(ends)
        self._woken.set()

    def _leave(self) -> None:
        """Without a broker yet there is nobody to tell."""
        self._is_leaving = True
        self._woken.set()
        if self._exchange is None:
            self._user_loop.call_soon_threadsafe(self.quiet.set)


def _inbox(value: bytes) -> Inbox | None:
    """An inbox record, None where it is none: what it granted is withdrawn and comes again."""
    try:
        record = codec.decode(value)
    except DecodeError as error:
        log.error("inbox_record_unreadable", reason=str(error))
        return None
    if not isinstance(record, Inbox) or not is_whole(record):
        log.error("inbox_record_broken", kind=type(record).__name__)
        return None
    return record
