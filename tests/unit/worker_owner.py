"""An owner of all partitions, small enough to be read: grants what is queued against offers, and keeps what it hears.

It runs in the link's thread, as the listener of a MemoryChannel; tests wait for facts with `until`.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from minutebook.clock import SystemClock
from minutebook.domain.records import (
    CancelledByTask,
    Failed,
    Granted,
    Inbox,
    Progress,
    Report,
    Snoozed,
)
from minutebook.worker.memory import MemoryChannel

TENANT = "acme"


class Queued(NamedTuple):
    """An execution that waits for a grant."""

    execution: str
    task: str
    payload: bytes
    timeout_ms: int
    deadline_at: int = -1
    details: bytes = b""


class OwnerDouble:
    """Owner of `partitions` partitions. Made on the test's loop."""

    def __init__(self, partitions: int = 2) -> None:
        self.clock = SystemClock()
        self.channel = MemoryChannel(self.clock, partitions, self.hear)
        self.reports: list[tuple[int, Report]] = []
        self.succeeded: dict[str, int] = {}
        self.failed: dict[str, Failed] = {}
        self.snoozed: dict[str, Snoozed] = {}
        self.cancelled: dict[str, CancelledByTask] = {}
        self.progress: dict[str, list[Progress]] = defaultdict(list)
        self.results: dict[str, bytes] = {}
        self.handed_back: list[str] = []
        self.granted: dict[str, int] = {}
        self.sessions: dict[int, str] = {}
        self.start_within_ms = 1_500
        self.is_granting_again = True
        self._running: dict[tuple[int, int], Queued] = {}
        self._queued: dict[int, list[Queued]] = defaultdict(list)
        self._offers: dict[int, int] = defaultdict(int)
        self._frames: dict[int, int] = defaultdict(int)
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._lock = threading.RLock()

    # -- what a test does

    def queue(
        self,
        execution: str,
        task: str,
        payload: bytes = b"null",
        *,
        partition: int = 0,
        timeout_ms: int = 60_000,
        deadline_at: int = -1,
        details: bytes = b"",
    ) -> None:
        """One more execution to be granted as soon as it is offered for."""
        one = Queued(execution, task, payload, timeout_ms, deadline_at, details)
        with self._lock:
            self._queued[partition].append(one)
            self._grant(partition)

    def cancel(self, execution: str, partition: int = 0) -> None:
        """Ask the session to stop what it runs."""
        self._tell(partition, cancelled=[self.granted[execution]])

    def ask(self, what: str, partition: int = 0) -> None:
        """Ask the worker to do something."""
        self._tell(partition, asked=what)

    def end_session(self, partition: int = 0) -> None:
        """Declare the session over; its attempts are lost, and its offer is void."""
        with self._lock:
            self._offers[partition] = 0
            self._tell(partition, is_session_over=True)

    async def until(self, fact: Callable[[], bool]) -> None:
        """Wait until `fact` holds; the test's own timeout bounds it."""
        while not fact():
            self._changed.clear()
            if not fact():
                await self._changed.wait()

    async def ready(self) -> None:
        """Wait until every partition has heard a full pulse."""
        await self.until(lambda: len(self.sessions) == self.channel.partitions)

    def held(self, partition: int = 0) -> list[int]:
        """Tokens that the last full pulse listed."""
        return next(r.full.held for p, r in reversed(self.reports) if p == partition and r.full is not None)

    # -- the owner

    def hear(self, partition: int, report: Report) -> None:
        """Take a report; from any thread."""
        with self._lock:
            self.reports.append((partition, report))
            self._take_results(partition, report)
            if report.full is not None:
                self.sessions[partition] = report.session
            if report.pulse is not None:
                above = [t for (p, t) in self._running if p == partition and t > report.pulse.last_token]
                self._offers[partition] = report.pulse.offer - len(above)
            self._grant(partition)
        self._loop.call_soon_threadsafe(self._changed.set)

    def _take_results(self, partition: int, report: Report) -> None:
        for progress in report.progress:
            if (partition, progress.token) in self._running:
                self.progress[progress.execution].append(progress)
        if report.succeeded is not None:
            self.results.update(zip(report.succeeded.executions, report.succeeded.results, strict=False))
            for execution, token in zip(report.succeeded.executions, report.succeeded.tokens, strict=True):
                if self._running.pop((partition, token), None):
                    self.succeeded[execution] = token
        for failed in report.failed:
            if self._running.pop((partition, failed.token), None):
                self.failed[failed.execution] = failed
        for snoozed in report.snoozed:
            if self._running.pop((partition, snoozed.token), None):
                self.snoozed[snoozed.execution] = snoozed
        for cancelled in report.cancelled:
            if self._running.pop((partition, cancelled.token), None):
                self.cancelled[cancelled.execution] = cancelled
        for token in report.handed_back.tokens if report.handed_back else ():
            back = self._running.pop((partition, token), None)
            if back is not None:
                self.handed_back.append(back.execution)
                if self.is_granting_again:
                    self._queued[partition].insert(0, back)

    def _grant(self, partition: int) -> None:
        queued = self._queued[partition]
        count = min(len(queued), self._offers[partition])
        if count <= 0 or partition not in self.sessions:
            return
        now, self._queued[partition] = queued[:count], queued[count:]
        self._offers[partition] -= count
        self._frames[partition] += 1
        base = self._frames[partition] << 16
        for row, one in enumerate(now):
            self.granted[one.execution] = base + row
            self._running[partition, base + row] = one
        self._tell(partition, granted=columns(now, self.clock.now()))

    def _tell(self, partition: int, **more: object) -> None:
        record = {
            "session": self.sessions[partition],
            "partition": partition,
            "frame": self._frames[partition],
            "start_by": self.clock.now() + self.start_within_ms,
            "queued": [0] * 5 + [len(self._queued[partition])],
        }
        self.channel.deliver(Inbox(**(record | more)))


def columns(queued: list[Queued], at: int) -> Granted:
    """Grants of one tenant and queue, rows from 0."""
    tasks = sorted({one.task for one in queued})
    count = len(queued)
    return Granted(
        tenants=[TENANT],
        queues=["default"],
        tasks=tasks,
        rows=list(range(count)),
        tenant=[0] * count,
        queue=[0] * count,
        task=[tasks.index(one.task) for one in queued],
        executions=[one.execution for one in queued],
        attempts=[1] * count,
        versions=[1] * count,
        scheduled_at=[at] * count,
        due_at=[at] * count,
        timeout_ms=[one.timeout_ms for one in queued],
        payloads=[one.payload for one in queued],
        traceparents=[],
        deadlines_at=[one.deadline_at for one in queued],
        details=[one.details for one in queued],
    )
