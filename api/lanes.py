"""Commands on their way to a partition: sent at once while none is under way there, else together.

A lane is busy from the append of a record until the owner has decided its commands, for it would decide none that come
behind them sooner. What comes meanwhile gathers, and shares the next record, the next frame, and all that each costs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import structlog

from api.problems import Refused
from minutebook.domain.commands import Command
from minutebook.wire.codec import BATCH_BYTES_MAX, BATCH_MAX

_log = structlog.get_logger()

WAITING_MAX: Final = 20_000
GATHER_MAX_S: Final = 0.05
"""So long at most commands wait for those before them to be decided: an owner may be away."""
BUSY_MIN: Final = 2
"""So many lanes are kept busy before commands whose partition is free gather: owners work side by side."""
LATE_S: Final = 2 * GATHER_MAX_S
"""A record that is not decided by then marks its lane as late."""
SHUNNED_S: Final = 1.0
"""So long a lane that was late, or refused, is given no command that may go elsewhere."""
_PACKED_BYTES_MAX: Final = BATCH_BYTES_MAX - (64 << 10)


class Keyed(NamedTuple):
    """A command and the key of its record."""

    key: str
    command: Command


class Sized(NamedTuple):
    """A command with its key, and the bytes that it takes in a record, at most."""

    keyed: Keyed
    bytes: int


Append = Callable[[int, list[Keyed]], Awaitable[int | Refused]]
"""Makes commands of a partition durable, as one record: its offset, or why that is not known."""
Decided = Callable[[int, int], asyncio.Future[None]]
"""Done once the commands of a partition through an offset are decided; whoever stops waiting cancels it."""


class _Waiting(NamedTuple):
    sized: Sized
    is_last: bool
    """Of those that were given together; `sent` is theirs in common."""
    sent: asyncio.Future[int]


class Lane:
    """What waits for a partition, and what is under way there."""

    def __init__(self) -> None:
        self.waiting: deque[_Waiting] = deque()
        self.emptying: asyncio.Task[None] | None = None
        self.decided: asyncio.Future[None] | None = None
        """While commands gather: until when."""
        self.begun_at: float | None = None
        """Since when a record is under way."""
        self.shunned_until = 0.0

    def is_late(self, now: float) -> bool:
        """Whether its broker or its owner does not answer in time, at `now`, in seconds of the loop's clock."""
        is_overdue = self.begun_at is not None and now - self.begun_at > LATE_S
        return is_overdue or now < self.shunned_until


class Lanes:
    """A lane for each of `partitions` partitions. Nobody waits longer than `timeout_s` for an acknowledgement."""

    def __init__(self, partitions: int, append: Append, decided: Decided, timeout_s: float) -> None:
        self._append = append
        self._decided = decided
        self._timeout_s = timeout_s
        self._lanes = [Lane() for _ in range(partitions)]
        self._chosen = 0

    def choose(self) -> int:
        """The partition for a command that may go to any: where others gather, else where none is under way; if it can be
        helped not where answers are late, for there commands would gather most.
        """
        now = asyncio.get_running_loop().time()
        chosen = self._lanes[self._chosen]
        if not chosen.waiting or chosen.is_late(now):
            everywhere = range(len(self._lanes))
            self._chosen = self._next(
                [one for one in everywhere if not self._lanes[one].is_late(now)] or everywhere
            )
        return self._chosen

    def _next(self, among: Sequence[int]) -> int:
        """The next of these lanes that is busy, once enough of them are, or that is not; each gets its turn."""
        busy = {one for one in among if self._lanes[one].emptying is not None}
        wanted = busy if len(busy) >= min(BUSY_MIN, len(among)) else set(among) - busy
        return min(wanted, key=lambda one: (one - self._chosen - 1) % len(self._lanes))

    async def send(self, partition: int, commands: Sequence[Sized]) -> int:
        """The offset of the last record that holds any of them. What was refused while it still waited is never sent.

        Raises Refused: overloaded (none was sent), not-durable (any may have been).
        """
        lane = self._lanes[partition]
        if len(lane.waiting) + len(commands) > WAITING_MAX:
            raise Refused("overloaded")
        sent: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        last = len(commands) - 1
        lane.waiting.extend(_Waiting(sized, number == last, sent) for number, sized in enumerate(commands))
        if lane.emptying is None:
            lane.emptying = asyncio.create_task(self._empty(partition))
        elif lane.decided is not None and len(lane.waiting) >= BATCH_MAX:
            lane.decided.cancel()  # they fill a record: more would not come into it
        try:
            async with asyncio.timeout(self._timeout_s):
                return await sent
        except TimeoutError:
            raise Refused("not-durable") from None

    async def stop(self) -> None:
        """Send what waits."""
        emptying = [lane.emptying for lane in self._lanes if lane.emptying is not None]
        await asyncio.gather(*emptying, return_exceptions=True)

    async def _empty(self, partition: int) -> None:
        """Send what waits for a partition, record after record, until nothing does."""
        lane = self._lanes[partition]
        try:
            # Whoever else sends in this turn of the loop comes into the same record.
            await asyncio.sleep(0)
            while packed := _packed(lane.waiting):
                await self._round(lane, partition, packed)
        finally:
            lane.emptying = None

    async def _round(self, lane: Lane, partition: int, packed: list[_Waiting]) -> None:
        """One record, until it is decided or more must not wait for that."""
        clock = asyncio.get_running_loop().time
        lane.begun_at = clock()
        outcome = await self._deliver(partition, packed)
        is_in_time = isinstance(outcome, int)
        if isinstance(outcome, int) and len(lane.waiting) < BATCH_MAX:
            is_in_time = await self._gather(lane, self._decided(partition, outcome))
        is_in_time = is_in_time and clock() - lane.begun_at <= LATE_S
        lane.begun_at, lane.shunned_until = None, 0.0 if is_in_time else clock() + SHUNNED_S

    async def _deliver(self, partition: int, packed: list[_Waiting]) -> int | Refused:
        outcome: int | Refused = Refused("not-durable")
        try:
            outcome = await self._append(partition, [item.sized.keyed for item in packed])
        except Exception:
            _log.exception("commands_not_sent", partition=partition)
        finally:
            _settle(packed, outcome)
        return outcome

    async def _gather(self, lane: Lane, decided: asyncio.Future[None]) -> bool:
        """Let commands gather until those before are `decided`, or they fill a record. False: neither came in time."""
        lane.decided = decided
        try:
            async with asyncio.timeout(GATHER_MAX_S):
                await asyncio.wait((decided,))
        except TimeoutError:
            return False
        finally:
            decided.cancel()
            lane.decided = None
        return True


def _packed(waiting: deque[_Waiting]) -> list[_Waiting]:
    """As many of those that still wait as fit into one record."""
    packed: list[_Waiting] = []
    total = 0
    while waiting and len(packed) < BATCH_MAX:
        if waiting[0].sent.done():
            waiting.popleft()
            continue
        total += waiting[0].sized.bytes
        if packed and total > _PACKED_BYTES_MAX:
            break
        packed.append(waiting.popleft())
    return packed


def _settle(packed: list[_Waiting], outcome: int | Refused) -> None:
    """Tell those who wait; whose commands went into several records hears of the last one, or of the first fault."""
    for item in packed:
        if item.sent.done():
            continue
        if isinstance(outcome, Refused):
            item.sent.set_exception(outcome)
        elif item.is_last:
            item.sent.set_result(outcome)
