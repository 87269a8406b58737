"""Alerts on their way to their targets: a queue for each tenant and target, tried again with growing waits, bounded.

What is settled is delivered, given up, or nobody's. Positions are committed up to the first that is not.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

import structlog

from api.notifier.message import body_of
from api.notifier.post import Outcome
from api.notifier.repeats import Repeats
from api.notifier.signature import signed_headers
from api.notifier.targets import Receiver, Targets
from minutebook.clock import Clock
from minutebook.domain.notify import Target
from minutebook.domain.records import Alert

RETRY_S: Final = (5.0, 15.0, 30.0, 60.0, 120.0, 240.0)
"""Waits between posts of one alert; after the last one it is given up."""
PATIENCE_MS: Final = 600_000
"""What has waited so long behind others is posted once, and not again."""
AGE_MAX_MS: Final = 86_400_000
"""Nobody wants to hear of what happened earlier."""
WAITING_MAX: Final = 100
"""Of one target; the oldest is given up for the newest."""
LANES_MAX: Final = 50
"""Targets of one tenant that anything waits for; what goes to a further one is given up."""
AT_ONCE_MAX: Final = 4
"""Posts under way for one tenant: its slow targets take nothing from others."""

log = structlog.get_logger()


class Post(Protocol):
    """Something that posts to a target."""

    async def post(self, target: Target, headers: dict[str, str], body: bytes) -> Outcome:
        """Post once."""
        ...


class _Waiting(NamedTuple):
    offset: int
    alert: Alert
    receiver: Receiver
    taken_at: int


_Lane = tuple[str, str]
"""Tenant and URL."""


class Deliveries:
    """What one process delivers, from the moment that it reads the topic until it must let go of it."""

    def __init__(
        self,
        targets: Targets,
        poster: Post,
        clock: Clock,
        tally: Counter[str],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._targets = targets
        self._poster = poster
        self._clock = clock
        self._tally = tally
        self._sleep = sleep
        self._repeats = Repeats()
        self._next = 0
        self._open: dict[int, None] = {}
        self._lanes: dict[_Lane, deque[_Waiting]] = {}
        self._tasks: dict[_Lane, asyncio.Task[None]] = {}
        self._turns: dict[str, asyncio.Semaphore] = {}

    def settled_through(self) -> int:
        """The offset before which everything taken is settled."""
        return next(iter(self._open), self._next)

    def waiting(self) -> int:
        """Alerts that are not settled."""
        return len(self._open)

    def take(self, offset: int, alert: Alert | None) -> None:
        """The next record of the topic; None: one that is no alert."""
        self._next = offset + 1
        if alert is None:
            self._tally["unreadable"] += 1
            return
        receiver = self._targets.receiver(alert)
        if self._repeats.is_repeat(alert):
            self._tally["repeated"] += 1
        elif receiver is None:
            self._tally["nobody"] += 1
        elif isinstance(receiver, str):
            self._give_up(alert, f"the target {receiver}")
        elif self._clock.now() - alert.at > AGE_MAX_MS:
            self._give_up(alert, "too old")
        else:
            self._enqueue(_Waiting(offset, alert, receiver, self._clock.now()))

    async def close(self) -> None:
        """Let go of everything: what is not settled is somebody else's to deliver."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._open.clear()
        self._lanes.clear()
        self._tasks.clear()

    def _enqueue(self, waiting: _Waiting) -> None:
        tenant = waiting.alert.tenant
        lane = tenant, waiting.receiver.target.url
        if lane not in self._lanes and sum(owner == tenant for owner, _ in self._lanes) >= LANES_MAX:
            self._give_up(waiting.alert, f"{LANES_MAX} other targets of this tenant are behind")
            return
        self._open[waiting.offset] = None
        queue = self._lanes.setdefault(lane, deque())
        queue.append(waiting)
        if len(queue) > WAITING_MAX:
            # The first is under way.
            dropped = queue[1]
            del queue[1]
            self._settle(dropped, "its target is too far behind")
        if lane not in self._tasks:
            self._tasks[lane] = asyncio.create_task(self._empty(lane), name=f"alerts of {tenant}")

    async def _empty(self, lane: _Lane) -> None:
        queue = self._lanes[lane]
        try:
            while queue:
                self._settle(queue[0], await self._deliver(queue[0]))
                queue.popleft()
        finally:
            if not queue:
                self._lanes.pop(lane, None)
                self._tasks.pop(lane, None)

    async def _deliver(self, waiting: _Waiting) -> str:
        """Post until the target has it; why it does not, in the end, or empty."""
        body = body_of(waiting.alert)
        for wait_s in RETRY_S:
            outcome = await self._once(waiting, body)
            is_late = self._clock.now() - waiting.taken_at >= PATIENCE_MS
            if not outcome.reason or outcome.is_final or is_late:
                return outcome.reason
            self._tally["retried"] += 1
            await self._sleep(wait_s)
        return (await self._once(waiting, body)).reason

    async def _once(self, waiting: _Waiting, body: bytes) -> Outcome:
        alert, receiver = waiting.alert, waiting.receiver
        turn = self._turns.setdefault(alert.tenant, asyncio.Semaphore(AT_ONCE_MAX))
        async with turn:
            # Signed for each post: a receiver refuses an old timestamp.
            headers = signed_headers(receiver.key, alert.id, self._clock.now() // 1_000, body)
            return await self._poster.post(receiver.target, headers, body)

    def _settle(self, waiting: _Waiting, reason: str) -> None:
        self._open.pop(waiting.offset, None)
        if reason:
            self._give_up(waiting.alert, reason)
        else:
            self._tally["delivered"] += 1

    def _give_up(self, alert: Alert, reason: str) -> None:
        self._tally["given_up"] += 1
        log.warning(
            "alert_not_delivered",
            alert=alert.id,
            tenant=alert.tenant,
            kind=alert.kind,
            reason=reason[:300],
        )
