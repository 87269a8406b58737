"""Which queued execution goes to which session: priority, then tenants in turn, then time; the most free session.

Pure over what it is given: heads of lanes and sessions. Priority is strict within a partition.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from minutebook.domain.keys import Lane
from minutebook.domain.offers import Session


class Head(Protocol):
    """The front of a lane."""

    def head(self) -> bytes | None:
        """The earliest row, None if the lane is empty."""
        ...

    def pop(self) -> None:
        """Take it."""
        ...


class Takers:
    """Sessions that can be granted something this cycle, the most free first, by queue and task."""

    def __init__(self, sessions: Iterable[Session], now: int) -> None:
        self._able = [session for session in sessions if session.free() > 0 and session.may_be_granted(now)]
        self._heaps: dict[tuple[str, str], list[tuple[int, str, Session]]] = {}

    def __bool__(self) -> bool:
        return bool(self._able)

    def best(self, queue: str, task: str) -> Session | None:
        """The session with most free slots that reads the queue and knows the task; None if there is none."""
        heap = self._heaps.get((queue, task))
        if heap is None:
            heap = [
                (-session.free_for(queue), session.name, session)
                for session in self._able
                if task in session.tasks and queue in session.queues
            ]
            heapq.heapify(heap)
            self._heaps[(queue, task)] = heap
        while heap:
            free, name, session = heap[0]
            left = session.free_for(queue)
            if left <= 0:
                heapq.heappop(heap)
            elif left == -free:
                return session
            else:
                heapq.heapreplace(heap, (-left, name, session))
        return None

    def take(self, queue: str, task: str) -> Session:
        """The session that `best` just named; one slot of it is spoken for now."""
        heap = self._heaps[(queue, task)]
        _, name, session = heap[0]
        session.planned += 1
        heapq.heapreplace(heap, (-session.free_for(queue), name, session))
        return session


class Grant(NamedTuple):
    """One queued execution for one session: its row in the queued set, whose it is, its id in bytes."""

    row: bytes
    tenant: str
    execution: bytes
    session: Session


class _Source(NamedTuple):
    task: str
    head: Head
    prefix: bytes
    prefix_bytes: int


class Plan:
    """Grants of one cycle for one queue, made one by one until nobody offers or nothing is queued."""

    def __init__(
        self, queue: str, lanes: Iterable[tuple[Lane, Head]], takers: Takers, last_tenant: str
    ) -> None:
        self._queue = queue
        self._takers = takers
        self.last_tenant = last_tenant
        self._by_priority: dict[int, dict[str, list[_Source]]] = {}
        for lane, head in lanes:
            prefix = lane.prefix()
            source = _Source(lane.task, head, prefix, len(prefix))
            self._by_priority.setdefault(lane.priority, {}).setdefault(lane.tenant, []).append(source)

    def grants(self) -> Iterator[Grant]:
        """Grants one by one, each popped from its lane as it is given out."""
        for priority in sorted(self._by_priority, reverse=True):
            tenants = self._by_priority[priority]
            names = sorted(tenants)
            turn = [name for name in names if name > self.last_tenant]
            turn += [name for name in names if name <= self.last_tenant]
            while turn:
                still: list[str] = []
                for tenant in turn:
                    grant = self._one(tenant, tenants[tenant])
                    if grant is not None:
                        self.last_tenant = tenant
                        still.append(tenant)
                        yield grant
                turn = still

    def _one(self, tenant: str, sources: list[_Source]) -> Grant | None:
        """The earliest row of a tenant that somebody can take."""
        best: _Source | None = None
        best_tail = b""
        for source in sources:
            key = source.head.head()
            if key is None or self._takers.best(self._queue, source.task) is None:
                continue
            tail = key[source.prefix_bytes :]
            if best is None or tail < best_tail:
                best, best_tail = source, tail
        if best is None:
            return None
        best.head.pop()
        session = self._takers.take(self._queue, best.task)
        return Grant(best.prefix + best_tail, tenant, best_tail[8:], session)
