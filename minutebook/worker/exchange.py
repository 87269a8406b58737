"""All that is said between a worker and the owners: inbox records to orders, ends of attempts to reports.

Owns the slots, the sessions and the marks. Pure: no I/O and no thread; times (seconds, monotonic) are arguments. Nothing at
or below the last token seen from a partition is ever started.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from minutebook.domain.records import FullPulse, Granted, Inbox, Pulse, QueueOffer, Report
from minutebook.domain.workers import QUIET, RESUME, STOP
from minutebook.worker.lease import BrokerTime
from minutebook.worker.offers import Offers
from minutebook.worker.outcomes import Verdict
from minutebook.worker.progress import Noted
from minutebook.worker.run import Ended, Orders, Run, Stop, StopReason, runs_of
from minutebook.worker.session import Session


class Profile(NamedTuple):
    """What a worker says of itself in full pulses."""

    worker_id: str
    name: str
    version: str
    tasks: frozenset[str]
    queues: tuple[str, ...]
    slots: int
    lease_ms: int
    pulse_ms: int


class Exchange:
    """State of one worker toward all partitions. `first` breaks ties between partitions."""

    def __init__(self, profile: Profile, partitions: int, first: int = 0) -> None:
        self.is_leaving = False
        self.takes_nothing = False
        """Whether it was asked to take no more grants."""
        self.is_stop_asked = False
        self.drained = 0
        self.handed_back = 0
        self._profile = profile
        self._offers = Offers(profile.slots, partitions, first)
        self._broker = BrokerTime()
        self._sessions = [
            Session(profile.worker_id, number, profile.lease_ms / 1_000, profile.pulse_ms / 1_000)
            for number in range(partitions)
        ]
        self._tasks = sorted(profile.tasks)
        self._queues = [QueueOffer(name) for name in profile.queues]

    # -- what happened

    def take(self, inbox: Iterable[Inbox], now: float) -> Orders:
        """Records for this worker, in the order of the inbox. Those of another session are passed over."""
        orders = Orders([], [])
        for record in inbox:
            if not 0 <= record.partition < len(self._sessions):
                continue
            session = self._sessions[record.partition]
            if record.session != session.name:
                continue
            if record.is_session_over:
                self._restart(session, orders)
                continue
            orders.stops.extend(
                Stop((session.partition, token), StopReason.CANCELLED)
                for token in record.cancelled
                if token in session.running
            )
            if record.granted is not None:
                self._take_granted(session, record, record.granted, orders, now)
            self._offers.told(session.partition, record.queued, now)
            self._obey(record.asked)
        return orders

    def _obey(self, asked: str) -> None:
        """What people ask of the worker; every partition hears at once that it obeys. It is said again until it does."""
        if asked == STOP:
            self.is_stop_asked = True
        elif asked in (QUIET, RESUME) and self.takes_nothing != (asked == QUIET):
            self.takes_nothing = asked == QUIET
            self._speak_up()

    def _speak_up(self) -> None:
        for session in self._sessions:
            session.speak_up()

    def progressed(self, items: Iterable[Noted]) -> None:
        """How far attempts are."""
        for item in items:
            self._sessions[item.run.partition].progressed(item)

    def ended(self, ends: Iterable[Ended]) -> None:
        """Attempts that ended, and slots that they left."""
        freed: Counter[int] = Counter()
        for end in ends:
            partition = end.run.partition
            if end.frees_slot:
                freed[partition] += 1
            if self._sessions[partition].ended(end) and self.is_leaving:
                self._count(end)
        for partition, count in freed.items():
            self._offers.freed(partition, count)

    def acknowledged(self, partition: int, report: Report, stamp: int, sent_at: float, now: float) -> None:
        """The broker has `report`, sent at `sent_at`, and stamped it `stamp` (ms)."""
        self._broker.learn(stamp, sent_at, now)
        self._sessions[partition].acknowledged(report.session, sent_at)

    def leave(self) -> None:
        """From now on nothing is started; every partition hears of it at once."""
        self.is_leaving = True
        self._speak_up()

    def tick(self, now: float) -> Orders:
        """What the time alone brings about: leases end, slots move."""
        orders = Orders([], [])
        for session in self._sessions:
            if session.running and now >= session.lease.ends_at:
                _stop(session.drop_running(), orders)
        self._offers.tick(now)
        return orders

    # -- what follows

    @property
    def is_quiet(self) -> bool:
        """Whether no slot is taken and everything is reported and acknowledged."""
        return self._offers.free == self._offers.slots and all(session.is_quiet for session in self._sessions)

    @property
    def slots(self) -> tuple[int, int]:
        """Busy and free ones."""
        return self._offers.slots - self._offers.free, self._offers.free

    def reports(self, now: float) -> list[tuple[int, Report]]:
        """Reports that must go now, with their partitions; they count as on their way."""
        return [
            (session.partition, self._report(session, now))
            for session in self._sessions
            if self._due_at(session) <= now
        ]

    def next_at(self) -> float:
        """When `tick` or `reports` has something to do again."""
        leases = (session.lease.ends_at for session in self._sessions if session.running)
        reports = (self._due_at(session) for session in self._sessions)
        return min(self._offers.tick_at, min(leases, default=math.inf), min(reports))

    # -- inside

    @property
    def _is_taking(self) -> bool:
        return not (self.is_leaving or self.takes_nothing)

    def _take_granted(
        self, session: Session, record: Inbox, granted: Granted, orders: Orders, now: float
    ) -> None:
        """The mark moves when the record is read whole. What cannot start at once is handed back at once."""
        start_by = self._broker.local(record.start_by)
        is_open = self._is_taking and now < min(session.lease.ends_at, start_by)
        fresh = [
            run
            for run in runs_of(record, granted, session.number, start_by)
            if run.token > session.last_token
        ]
        known = [run for run in fresh if run.task in self._profile.tasks]
        started = known[: max(0, self._offers.free)] if is_open else []
        returned = known[len(started) :] + [run for run in fresh if run.task not in self._profile.tasks]
        session.took(started, now)
        session.hand_back(returned)
        session.last_token = max((run.token for run in fresh), default=session.last_token)
        orders.starts.extend(started)
        self._offers.took(session.partition, len(started), len(returned), now)
        if self.is_leaving:
            self.handed_back += len(returned)

    def _restart(self, session: Session, orders: Orders) -> None:
        _stop(session.restart(), orders)
        self._offers.ended(session.partition)

    def _count(self, end: Ended) -> None:
        if end.outcome is Verdict.HANDED_BACK:
            self.handed_back += 1
        else:
            self.drained += 1

    def _due_at(self, session: Session) -> float:
        if session.is_in_flight:
            return math.inf
        if not self._is_taking:
            return session.due_at(is_scarce=True)
        is_scarce = self._offers.is_scarce(session.partition)
        return min(session.due_at(is_scarce=is_scarce), self._offers.pulse_at(session.partition))

    def _report(self, session: Session, now: float) -> Report:
        offer = self._offers.offer(session.partition) if self._is_taking else 0
        full = self._full(session) if session.is_full_due(now) else None
        self._offers.sent(session.partition, offer, now)
        pulse = Pulse(offer, session.last_token, self.is_leaving, self.takes_nothing)
        return session.report(pulse, full, now)

    def _full(self, session: Session) -> FullPulse:
        it = self._profile
        return FullPulse(
            worker=it.name,
            version=it.version,
            tasks=self._tasks,
            queues=self._queues,
            lease_ms=it.lease_ms,
            pulse_ms=it.pulse_ms,
            held=session.held(),
        )


def is_whole(record: Inbox) -> bool:
    """Whether the columns of its grants have equal length."""
    it = record.granted
    if it is None:
        return True
    columns = (it.rows, it.tenant, it.executions, it.attempts, it.task, it.queue, it.scheduled_at, it.due_at)
    sparse = (it.max_attempts, it.deadlines_at, it.details, it.traceparents)
    rows = len(it.payloads)
    return all(len(column) == rows for column in (*columns, it.timeout_ms)) and all(
        len(column) in (0, rows) for column in sparse
    )


def _stop(runs: list[Run], orders: Orders) -> None:
    orders.stops.extend(Stop(run.key, StopReason.LOST) for run in runs)
