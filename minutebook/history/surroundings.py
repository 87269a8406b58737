"""What was around a job in its partition: owners, queues, limits and who held their permits, sessions of workers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from minutebook.domain import events as facts
from minutebook.domain.state import NONE_AT
from minutebook.wire.frames import Frame, placed


class Fact(NamedTuple):
    """Where the partition's log says something: offset of the frame, number of the event in it, row of the event."""

    offset: int
    event: int
    row: int = 0

    def event_id(self, partition: int) -> str:
        """Place as text, as steps have it."""
        return f"{partition}.{self.offset}.{self.event}.{self.row}"


class Ownership(NamedTuple):
    """Who decided from `at` on; `before_at` is the time of the last decision before that."""

    at: int
    before_at: int
    owner: str
    epoch: int
    fact: Fact


class QueueState(NamedTuple):
    """A queue from `at` on."""

    at: int
    is_paused: bool
    is_draining: bool
    fact: Fact


class LimitState(NamedTuple):
    """A limit from `at` on; -1 = not bounded, not paused."""

    at: int
    concurrency: int
    rate_count: int
    rate_period_ms: int
    paused_until: int
    is_deleted: bool
    fact: Fact


class SessionLife(NamedTuple):
    """A worker's session, from its first grant to its end; `ended_at` -1 = it has not ended."""

    session: str
    worker: str
    tasks: tuple[str, ...]
    started_at: int
    ended_at: int
    cause: str
    fact: Fact


class Ask(NamedTuple):
    """From `at` on so many permits were asked for and had not come in."""

    at: int
    awaited: int


class Receipt(NamedTuple):
    """Permits came in."""

    at: int
    fact: Fact


class Stretch(NamedTuple):
    """A time in which something was so, and the fact that made it so."""

    from_at: int
    to_at: int
    fact: Fact


class Holding(NamedTuple):
    """A running attempt that held a permit of a limit; `to_at` -1 = it still does. `fact` is its grant."""

    execution: str
    from_at: int
    to_at: int
    fact: Fact


class Surroundings:
    """Takes the valid frames of one partition in order.

    By limit of the tenant, `asks`: when permits were asked for, and how many had not come in then; `receipts`: when some
    came in.
    """

    def __init__(self, tenant: str) -> None:
        self.ownerships: list[Ownership] = []
        self.queues: dict[str, list[QueueState]] = defaultdict(list)
        self.limits: dict[str, list[LimitState]] = defaultdict(list)
        self.asks: dict[str, list[Ask]] = defaultdict(list)
        self.receipts: dict[str, list[Receipt]] = defaultdict(list)
        self.sessions: dict[str, SessionLife] = {}
        self.holdings: dict[str, list[Holding]] = defaultdict(list)
        """By limit of the tenant: permits that were held, in order of their ends."""
        self._holders: dict[int, tuple[Holding, list[str]]] = {}
        """By token of a running attempt, with the limits."""
        self._tenant = tenant
        self.now = 0
        self.before_at = 0
        """Time of the frame before the one that was taken last."""

    def take(self, frame: Frame) -> None:
        """The next valid frame."""
        self.before_at, self.now = self.now, frame.now
        for index, (event, token) in enumerate(placed(frame)):
            read = _READERS.get(type(event))
            if read is not None:
                read(self, Fact(frame.offset, index), event, token)

    def limit_at(self, name: str, at: int) -> LimitState | None:
        """A limit as it was at `at`; None if there was none."""
        found = None
        for state in self.limits[name]:
            if state.at > at:
                break
            found = state
        return None if found is None or found.is_deleted else found

    def pauses_of(self, queue: str, from_at: int, to_at: int) -> Iterator[Stretch]:
        """Stretches of a time in which a queue was paused."""
        states = self.queues[queue]
        ends = [*(state.at for state in states[1:]), self.now]
        for state, end in zip(states, ends, strict=False):
            if state.is_paused and state.at < to_at and end > from_at:
                yield Stretch(max(state.at, from_at), min(end, to_at), state.fact)

    def holders_at(self, limit: str, at: int) -> list[Holding]:
        """What ran in this partition under a permit of a limit at `at`, by the names of executions."""
        ended = [item for item in self.holdings[limit] if item.from_at <= at < item.to_at]
        running = [held for held, limits in self._holders.values() if limit in limits and held.from_at <= at]
        return sorted([*ended, *running])

    def first_ask(self, limit: str, at: int) -> int | None:
        """When permits were awaited from `at` on; None if never."""
        before = [ask for ask in self.asks[limit] if ask.at <= at]
        if before and before[-1].awaited:
            return at
        return next((ask.at for ask in self.asks[limit] if ask.at > at and ask.awaited), None)

    def sessions_at(self, task: str, at: int) -> list[SessionLife]:
        """Sessions that knew a task and had been granted something before `at`, and had not ended."""
        return [
            life
            for life in self.sessions.values()
            if task in life.tasks
            and life.started_at <= at
            and (life.ended_at == NONE_AT or life.ended_at > at)
        ]

    def ownership_between(self, from_at: int, to_at: int) -> Ownership | None:
        """The last hand-over in a time, its ends included; None if there was none."""
        found = [one for one in self.ownerships if from_at <= one.at <= to_at]
        return found[-1] if found else None

    # -- events

    def _owned(self, fact: Fact, event: facts.OwnershipTaken, token: int) -> None:
        self.ownerships.append(Ownership(self.now, self.before_at, event.owner, event.epoch, fact))

    def _queue(self, fact: Fact, event: facts.QueueCopied, token: int) -> None:
        state = QueueState(self.now, event.is_paused, event.is_draining, fact)
        self.queues[event.name].append(state)

    def _limit(self, fact: Fact, event: facts.LimitCopied, token: int) -> None:
        if event.tenant == self._tenant:
            state = LimitState(
                self.now,
                event.concurrency,
                event.rate_count,
                event.rate_period_ms,
                event.paused_until,
                event.is_deleted,
                fact,
            )
            self.limits[event.name].append(state)
            self.asks[event.name].append(Ask(self.now, 0))  # what was asked of an older version is void

    def _asked(self, fact: Fact, event: facts.PermitsAsked, token: int) -> None:
        if event.tenant == self._tenant:
            self._note_ask(event.limit, event.count)

    def _note_ask(self, limit: str, more: int) -> None:
        """So many more permits are awaited."""
        awaited = self.asks[limit][-1].awaited if self.asks[limit] else 0
        self.asks[limit].append(Ask(self.now, max(0, awaited + more)))

    def _received(self, fact: Fact, event: facts.PermitsReceived, token: int) -> None:
        if event.tenant == self._tenant:
            self.receipts[event.limit].append(Receipt(self.now, fact))
            self._note_ask(event.limit, -len(event.permits))

    def _started(self, fact: Fact, event: facts.SessionStarted, token: int) -> None:
        self.sessions[event.session] = SessionLife(
            event.session, event.worker, tuple(event.tasks), self.now, NONE_AT, "", fact
        )

    def _session_ended(self, fact: Fact, event: facts.SessionEnded, token: int) -> None:
        life = self.sessions.get(event.session)
        if life is not None:
            self.sessions[event.session] = life._replace(ended_at=self.now, cause=event.cause)

    def _granted(self, fact: Fact, event: facts.ExecutionsGranted, token: int) -> None:
        for row, limit in zip(event.permit_row, event.permit_limit, strict=True):
            if event.tenants[event.tenant[row]] == self._tenant:
                holding = Holding(event.executions[row], self.now, NONE_AT, fact._replace(row=row))
                self._holders.setdefault(token + row, (holding, []))[1].append(event.limits[limit])

    def _ended(self, fact: Fact, event: Any, token: int) -> None:
        for ended in event.tokens if hasattr(event, "tokens") else (event.token,):
            held = self._holders.pop(ended, None)
            if held is not None:
                holding, limits = held
                for limit in limits:
                    self.holdings[limit].append(holding._replace(to_at=self.now))


_READERS: Final[dict[type, Any]] = {
    facts.OwnershipTaken: Surroundings._owned,
    facts.QueueCopied: Surroundings._queue,
    facts.LimitCopied: Surroundings._limit,
    facts.PermitsAsked: Surroundings._asked,
    facts.PermitsReceived: Surroundings._received,
    facts.SessionStarted: Surroundings._started,
    facts.SessionEnded: Surroundings._session_ended,
    facts.ExecutionsGranted: Surroundings._granted,
    facts.AttemptsSucceeded: Surroundings._ended,
    facts.AttemptFailed: Surroundings._ended,
    facts.AttemptsLost: Surroundings._ended,
    facts.GrantsReturned: Surroundings._ended,
    facts.AttemptSnoozed: Surroundings._ended,
    facts.AttemptCancelled: Surroundings._ended,
}
