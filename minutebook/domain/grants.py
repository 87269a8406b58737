"""Which queued execution goes to which session: priority, then tenants in turn, then time; the most free session.

Pure over what it is given: fronts of lanes and sessions. Priority is strict within a partition.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Final, Generic, Protocol, TypeVar

from minutebook.domain import events as facts
from minutebook.domain.came_back import CameBack
from minutebook.domain.keys import Lane
from minutebook.domain.names import Names
from minutebook.domain.offers import Session


class Source(Protocol):
    """The front of a lane: what waits for a grant there, in order of time."""

    lane: Lane

    def head_at(self) -> int | None:
        """Since when its earliest row is ready, ms; None if the lane is empty."""
        ...

    def head_key(self) -> bytes:
        """Row of the execution that `head_at` has named."""
        ...


S = TypeVar("S", bound=Source)


class Takers:
    """Those of `sessions` that can be granted something this cycle, the most free first, by queue and task. They are put in
    order only where a second grant is to be made: a large fleet has many sessions, and mostly one at a time is due.
    """

    def __init__(self, sessions: Iterable[Session], now: int) -> None:
        self._sessions = sessions
        self._now = now
        self._heaps: dict[tuple[str, str], list[tuple[int, str, Session]]] = {}

    def __bool__(self) -> bool:
        return any(self._is_able(session) for session in self._sessions)

    def _is_able(self, session: Session) -> bool:
        return session.free() > 0 and session.may_be_granted(self._now)

    @cached_property
    def _able(self) -> list[Session]:
        return [session for session in self._sessions if self._is_able(session)]

    def first(self, queue: str, task: str) -> Session | None:
        """The session that `best` names, without an order of them all."""
        found, least = None, (0, "")
        for session in self._sessions:
            rank = len(session.above) + session.planned - session.offer, session.name
            if rank < least and self._is_able(session) and task in session.tasks and queue in session.queues:
                rank = -session.free_for(queue), session.name
                if rank < least:
                    found, least = session, rank
        return found

    def best(self, queue: str, task: str) -> Session | None:
        """The session with most free slots that reads the queue and knows the task; None if there is none."""
        heap = self._heaps.get((queue, task))
        if heap is None:
            heap = self.anew(queue, task)
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

    def able(self, queue: str, task: str) -> list[Session]:
        """Every session that `best` could name."""
        return [
            session
            for session in self._able
            if task in session.tasks and queue in session.queues and session.free_for(queue) > 0
        ]

    def anew(self, queue: str, task: str) -> list[tuple[int, str, Session]]:
        """A heap of (minus its free slots, name, session), right as long as nothing else is taken."""
        heap = self._heaps[(queue, task)] = [
            (-session.free_for(queue), session.name, session)
            for session in self._able
            if task in session.tasks and queue in session.queues
        ]
        heapq.heapify(heap)
        return heap

    def take(self, queue: str, task: str) -> Session | None:
        """The session that `best` names; one slot of it is spoken for now."""
        session = self.best(queue, task)
        if session is not None:
            session.planned += 1
            heap = self._heaps[(queue, task)]
            heapq.heapreplace(heap, (heap[0][0] + 1, session.name, session))
        return session

    def take_other(self, queue: str, task: str, avoided: str) -> Session | None:
        """As `take`, but session `avoided` only if no other offers."""
        best = self.best(queue, task)
        if best is None or best.name != avoided:
            return self.take(queue, task)
        heap = self._heaps[(queue, task)]
        put_aside = heapq.heappop(heap)
        session = self.take(queue, task)
        heapq.heappush(heap, put_aside)
        return session or self.take(queue, task)


class Plan(Generic[S]):
    """Grants of one cycle for one queue, made one by one until nobody offers or nothing waits."""

    def __init__(
        self, queue: str, sources: Iterable[S], takers: Takers, last_tenant: str, came_back: CameBack
    ) -> None:
        self._came_back = came_back
        self._queue = queue
        self._takers = takers
        self.last_tenant = last_tenant
        self._by_priority: dict[int, dict[str, list[S]]] = {}
        for source in sources:
            if source.head_at() is None:
                continue
            tenants = self._by_priority.setdefault(source.lane.priority, {})
            tenants.setdefault(source.lane.tenant, []).append(source)

    def grants(self) -> Iterator[tuple[S, Session]]:
        """(source, session) one by one: the caller takes the head out of the source before it asks for the next."""
        for priority in sorted(self._by_priority, reverse=True):
            tenants = self._by_priority[priority]
            names = sorted(tenants)
            turn = [name for name in names if name > self.last_tenant]
            turn += [name for name in names if name <= self.last_tenant]
            if len(turn) == 1 and len(tenants[turn[0]]) == 1 and not self._came_back:
                yield from self._alone(turn[0], tenants[turn[0]][0])
                continue
            while turn:
                still: list[str] = []
                for tenant in turn:
                    source = self._next(tenants[tenant])
                    if source is None:
                        continue
                    session = self._take(source)
                    if session is not None:
                        self.last_tenant = tenant
                        still.append(tenant)
                        yield source, session
                turn = still

    def _alone(self, tenant: str, source: S) -> Iterator[tuple[S, Session]]:
        """Nobody else waits at this priority, and nothing came back: the short way for a single grant, and through a burst."""
        task, head_at = source.lane.task, source.head_at
        first = None if head_at() is None else self._takers.first(self._queue, task)
        if first is None:
            return
        first.planned += 1
        self.last_tenant = tenant
        yield source, first
        if head_at() is None:
            return
        heap = self._takers.anew(self._queue, task)
        while heap and heap[0][0] < 0 and head_at() is not None:
            free, name, session = heap[0]
            heapq.heapreplace(heap, (free + 1, name, session))
            session.planned += 1
            self.last_tenant = tenant
            yield source, session

    def _take(self, source: S) -> Session | None:
        """Who gets the head of `source`."""
        task = source.lane.task
        avoided = self._came_back.session_of(source.head_key()) if self._came_back else ""
        if avoided:
            return self._takers.take_other(self._queue, task, avoided)
        return self._takers.take(self._queue, task)

    def _next(self, sources: list[S]) -> S | None:
        """Where a tenant's earliest row lies that somebody can take."""
        if len(sources) == 1:
            return sources[0] if sources[0].head_at() is not None else None
        best: S | None = None
        best_at = 0
        for source in sources:
            at = source.head_at()
            if at is None or self._takers.best(self._queue, source.lane.task) is None:
                continue
            if best is None or at < best_at:
                best, best_at = source, at
        return best


Row = tuple[str, str, int, str]
"""(tenant, execution id, attempt, session) of a grant."""
Permit = tuple[str, int]
"""(name of the limit, permit)."""
NO_PERMITS: Final[Mapping[int, list[Permit]]] = MappingProxyType({})


def granted_event(
    rows: list[Row], permits: Mapping[int, list[Permit]] = NO_PERMITS
) -> facts.ExecutionsGranted:
    """Grants of what was queued, at least one, as columns; `permits` by the row that runs under them."""
    tenant, executions, attempts, session = map(list, zip(*rows, strict=True))
    tenants, sessions, limits = Names(), Names(), Names()
    bound = [(row, name, permit) for row, held in permits.items() for name, permit in held]
    return facts.ExecutionsGranted(
        tenant=tenants.column(tenant),
        executions=executions,
        attempts=attempts,
        session=sessions.column(session),
        tenants=tenants.texts,
        sessions=sessions.texts,
        permits=[],
        permit_row=[row for row, _, _ in bound],
        permit_limit=limits.column([name for _, name, _ in bound]),
        permit_ids=[permit for _, _, permit in bound],
        limits=limits.texts,
    )
