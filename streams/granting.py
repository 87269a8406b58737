"""Grants: what waits, due or queued, goes to sessions that offer; and how much waits for whom."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Set
from typing import Final

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.due import due_granted_event
from minutebook.domain.grants import Permit, Plan, Row, Takers, granted_event
from minutebook.domain.keys import Lane
from minutebook.domain.offers import Session
from minutebook.domain.outputs import GRANT_PAYLOAD_BYTES_MAX
from minutebook.log.draft import Draft
from streams.due_rows import DueRows
from streams.due_set import DueLane, Held
from streams.lanes import Lanes, QueuedLane
from streams.permits import LimitedLane, Permits
from streams.process import Burst
from streams.sessions import Sessions
from streams.taken import Taken

GRANT_ROWS_MAX: Final = 8_000
BURST_ROWS: Final = 64
"""So many grants in one frame, and more waits: a burst."""
BURST_MS: Final = 200

_Source = DueLane | QueuedLane | LimitedLane


class _Made:
    """Grants of a cycle: of what is due and not on record, and of what is queued on record."""

    def __init__(self) -> None:
        self.due: list[tuple[Held, Session]] = []
        self.queued: list[Row] = []
        self.queued_sessions: list[Session] = []
        self.permits: dict[int, list[Permit]] = {}
        """By the place in `queued` of what runs under them."""
        self.rows = 0
        self.payload_bytes = 0

    def take_due(self, held: Held, session: Session) -> None:
        """What was due goes to a session."""
        self.due.append((held, session))
        self.payload_bytes += held.due.payload_bytes
        self.rows += 1


class Granting:
    """Makes the grants of one partition. What waits on one of `open_queues` is claimed, never granted to an offer."""

    def __init__(
        self,
        book: Book,
        due: DueRows,
        lanes: Lanes,
        open_queues: Set[str],
        sessions: Sessions,
        permits: Permits,
        burst: Burst,
    ) -> None:
        self._book = book
        self._permits = permits
        self._due = due
        self._open_queues = open_queues
        self._sessions = sessions
        self._burst = burst
        self._last_tenant: dict[str, str] = defaultdict(str)
        self.lanes = lanes

    def grant(self, draft: Draft, taken: Taken) -> None:
        """Record everything that can be granted now."""
        if not self.has_waiting() or not draft.room():
            return
        self._sessions.has_plans = True
        takers = Takers(self._sessions, draft.now)
        if not takers:
            return
        queues = self._sources(draft.now)
        limited = [source for found in queues.values() for source in found if isinstance(source, LimitedLane)]
        if limited:
            self._permits.ask(limited, takers, draft)
        made, rows_max = _Made(), min(GRANT_ROWS_MAX, draft.room())
        for queue, sources in queues.items():
            plan = Plan(queue, sources, takers, self._last_tenant[queue], self._sessions.came_back)
            for source, session in plan.grants():
                if isinstance(source, DueLane):
                    source.granted_at = draft.now
                    made.take_due(source.pop(), session)
                else:
                    self._grant_queued(source, session, taken, made)
                if made.rows >= rows_max or made.payload_bytes > GRANT_PAYLOAD_BYTES_MAX:
                    break
            self._last_tenant[queue] = plan.last_tenant
        if made.rows >= BURST_ROWS and self.has_waiting():
            self._burst.until = draft.now + BURST_MS
        self._record_grants(draft, made, taken)

    def _sources(self, now: int) -> dict[str, list[_Source]]:
        """Where something waits for a grant, by queue. What is due and has met a limit meanwhile is queued first."""
        found: dict[str, list[_Source]] = defaultdict(list)
        for due in self._due.held:
            if not self._book.limits_of(due.lane.tenant, due.lane.limit):
                found[due.lane.queue].append(due)
        for queue, lanes in self.lanes.by_queue.items():
            found[queue] += self._permits.gated(lanes.values(), now)
        for queue in self._open_queues:
            found.pop(queue, None)
        return {queue: sources for queue, sources in found.items() if not self._book.is_paused(queue)}

    def _grant_queued(
        self, source: QueuedLane | LimitedLane, session: Session, taken: Taken, made: _Made
    ) -> None:
        lane = source.queued if isinstance(source, LimitedLane) else source
        row = lane.pop()
        taken.queued.append(row)
        key = lane.execution_key(row)
        execution = self._book.executions.get(key)
        if execution is None or execution.status != "queued":
            return
        spec = self._book.specs.get(keys.spec_row(key[: key.rindex(b":")], execution.version))
        made.payload_bytes += 0 if spec is None else len(spec.payload)
        if isinstance(source, LimitedLane):
            made.permits[len(made.queued)] = self._permits.use(lane.lane.tenant, source.names)
        name = row[lane.name_at :].decode()
        made.queued.append((lane.lane.tenant, name, execution.attempt, session.name))
        made.queued_sessions.append(session)
        made.rows += 1

    def _record_grants(self, draft: Draft, made: _Made, taken: Taken) -> None:
        taken.due.extend([held.key for held, _ in made.due])
        if gone := self._due.changed():
            made.due = [(held, session) for held, session in made.due if held.key not in gone]
        self.start_sessions(draft, [session for _, session in made.due] + made.queued_sessions)
        if made.due:
            rows, names = [held.due for held, _ in made.due], [session.name for _, session in made.due]
            draft.add(due_granted_event(rows, names))
        if made.queued:
            draft.add(granted_event(made.queued, made.permits))
            self._permits.used()

    def start_sessions(self, draft: Draft, sessions: list[Session]) -> None:
        """A session's first grant is preceded by who it is."""
        for session in {session.name: session for session in sessions}.values():
            if self._book.sessions.get(session.name.encode()) is None:
                tasks = sorted(session.tasks)
                draft.add(
                    facts.SessionStarted(
                        session.name, session.worker, tasks, session.lease_ms, session.pulse_ms
                    )
                )

    def queued_for(self, session: Session) -> list[int]:
        """How much waits that the session could run, by priority; what is made up for counts to the lowest one."""
        found = [0] * 10
        for queue in session.queues.keys() - self._open_queues:
            if self._book.is_paused(queue):
                continue
            for prefix, queued in self.lanes.by_queue.get(queue, {}).items():
                if queued.lane.task in session.tasks:
                    waiting = self._book.counts.get(prefix) or 0
                    found[max(0, queued.lane.priority)] += self._permits.could_start(queued.lane, waiting)
        for due in self._due.held:
            is_its = due.lane.task in session.tasks and due.lane.queue in session.queues
            if is_its and not self._book.is_paused(due.lane.queue):
                found[max(0, due.lane.priority)] += len(due.rows)
        return found

    def waiting(self) -> Counter[tuple[str, str]]:
        """How much is due and does not run, by queue and by what it waits for: worker, permit or paused_queue."""
        found: Counter[tuple[str, str]] = Counter()
        for queue, lanes in self.lanes.by_queue.items():
            for prefix, queued in lanes.items():
                self._count_waiting(found, queue, queued.lane, self._book.counts.get(prefix) or 0)
        for due in self._due.held:
            self._count_waiting(found, due.lane.queue, due.lane, len(due.rows))
        return found

    def _count_waiting(self, found: Counter[tuple[str, str]], queue: str, lane: Lane, count: int) -> None:
        if self._book.is_paused(queue):
            found[queue, "paused_queue"] += count
            return
        could = self._permits.could_start(lane, count)
        found[queue, "worker"] += could
        found[queue, "permit"] += count - could

    def oldest_at(self) -> int | None:
        """When the oldest of what waits was due, ms, but for paused queues; None if nothing does."""
        heads = [due.head_at() for due in self._due.held if not self._book.is_paused(due.lane.queue)]
        for queue, lanes in self.lanes.by_queue.items():
            if not self._book.is_paused(queue):
                heads += [queued.head_at() for queued in lanes.values()]
        return min((at for at in heads if at is not None), default=None)

    def has_waiting(self) -> bool:
        """Whether anything waits for a grant at all."""
        return bool(self._due.held) or self.lanes.has_any(self._open_queues)

    def has_grantable(self, now: int) -> bool:
        """Whether something that waits could be granted at once."""
        if not self.has_waiting():
            return False
        takers = Takers(self._sessions, now)
        if not takers:
            return False
        wanted = {
            (queue, source.lane.task)
            for queue, sources in self._sources(now).items()
            for source in sources
            if source.head_at() is not None
        }
        return any(takers.first(queue, task) is not None for queue, task in wanted)
