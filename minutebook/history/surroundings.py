"""What was around a job in its partition: owners, queues, limits and who held their permits, sessions of workers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from minutebook.domain import events as facts
from minutebook.domain.state import NONE_AT
from minutebook.wire.frames import Frame, placed


class Ownership(NamedTuple):
    """Who decided from `at` on; `before_at` is the time of the last decision before that."""

    at: int
    before_at: int
    owner: str
    epoch: int
    offset: int


class QueueState(NamedTuple):
    """A queue from `at` on."""

    at: int
    is_paused: bool
    is_draining: bool
    offset: int


class LimitState(NamedTuple):
    """A limit from `at` on; -1 = not bounded, not paused."""

    at: int
    concurrency: int
    rate_count: int
    rate_period_ms: int
    paused_until: int
    is_deleted: bool
    offset: int


class SessionLife(NamedTuple):
    """A worker's session, from its first grant to its end; `ended_at` -1 = it has not ended."""

    session: str
    worker: str
    tasks: tuple[str, ...]
    started_at: int
    ended_at: int
    cause: str


class Holding(NamedTuple):
    """A running attempt that held a permit of a limit; `to_at` -1 = it still does."""

    execution: str
    from_at: int
    to_at: int


class Surroundings:
    """Takes the valid frames of one partition in order. `permits_at`: by limit, when permits of it came in."""

    def __init__(self, tenant: str) -> None:
        self.ownerships: list[Ownership] = []
        self.queues: dict[str, list[QueueState]] = defaultdict(list)
        self.limits: dict[str, list[LimitState]] = defaultdict(list)
        self.permits_at: dict[str, list[int]] = defaultdict(list)
        self.sessions: dict[str, SessionLife] = {}
        self.holdings: dict[str, list[Holding]] = defaultdict(list)
        """By limit of the tenant: permits that were held, in order of their ends."""
        self._holders: dict[int, tuple[str, int, list[str]]] = {}
        """By token of a running attempt: execution, since when, the limits."""
        self._tenant = tenant
        self.now = 0
        self.before_at = 0
        """Time of the frame before the one that was taken last."""

    def take(self, frame: Frame) -> None:
        """The next valid frame."""
        self.before_at, self.now = self.now, frame.now
        for event, token in placed(frame):
            read = _READERS.get(type(event))
            if read is not None:
                read(self, frame, event, token)

    def limit_at(self, name: str, at: int) -> LimitState | None:
        """A limit as it was at `at`; None if there was none."""
        found = None
        for state in self.limits[name]:
            if state.at > at:
                break
            found = state
        return None if found is None or found.is_deleted else found

    def pauses_of(self, queue: str, from_at: int, to_at: int) -> Iterator[tuple[int, int]]:
        """Stretches of a time in which a queue was paused."""
        states = self.queues[queue]
        ends = [*(state.at for state in states[1:]), self.now]
        for state, end in zip(states, ends, strict=False):
            if state.is_paused and state.at < to_at and end > from_at:
                yield max(state.at, from_at), min(end, to_at)

    def holders_at(self, limit: str, at: int) -> list[str]:
        """Executions of this partition that ran under a permit of a limit at `at`."""
        ended = [item.execution for item in self.holdings[limit] if item.from_at <= at < item.to_at]
        running = [name for name, since, limits in self._holders.values() if limit in limits and since <= at]
        return sorted({*ended, *running})

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

    def _owned(self, frame: Frame, event: facts.OwnershipTaken, token: int) -> None:
        self.ownerships.append(Ownership(frame.now, self.before_at, event.owner, event.epoch, frame.offset))

    def _queue(self, frame: Frame, event: facts.QueueCopied, token: int) -> None:
        state = QueueState(frame.now, event.is_paused, event.is_draining, frame.offset)
        self.queues[event.name].append(state)

    def _limit(self, frame: Frame, event: facts.LimitCopied, token: int) -> None:
        if event.tenant == self._tenant:
            state = LimitState(
                frame.now,
                event.concurrency,
                event.rate_count,
                event.rate_period_ms,
                event.paused_until,
                event.is_deleted,
                frame.offset,
            )
            self.limits[event.name].append(state)

    def _received(self, frame: Frame, event: facts.PermitsReceived, token: int) -> None:
        if event.tenant == self._tenant:
            self.permits_at[event.limit].append(frame.now)

    def _started(self, frame: Frame, event: facts.SessionStarted, token: int) -> None:
        self.sessions[event.session] = SessionLife(
            event.session, event.worker, tuple(event.tasks), frame.now, NONE_AT, ""
        )

    def _session_ended(self, frame: Frame, event: facts.SessionEnded, token: int) -> None:
        life = self.sessions.get(event.session)
        if life is not None:
            self.sessions[event.session] = life._replace(ended_at=frame.now, cause=event.cause)

    def _granted(self, frame: Frame, event: facts.ExecutionsGranted, token: int) -> None:
        for row, limit in zip(event.permit_row, event.permit_limit, strict=True):
            if event.tenants[event.tenant[row]] == self._tenant:
                held = self._holders.setdefault(token + row, (event.executions[row], frame.now, []))
                held[2].append(event.limits[limit])

    def _ended(self, frame: Frame, event: Any, token: int) -> None:
        for ended in event.tokens if hasattr(event, "tokens") else (event.token,):
            held = self._holders.pop(ended, None)
            if held is not None:
                execution, since, limits = held
                for limit in limits:
                    self.holdings[limit].append(Holding(execution, since, frame.now))


_READERS: Final[dict[type, Any]] = {
    facts.OwnershipTaken: Surroundings._owned,
    facts.QueueCopied: Surroundings._queue,
    facts.LimitCopied: Surroundings._limit,
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
