"""A fleet in memory: the real `Exchange` of each worker against the real `Cycle` of each partition, on a clock of its own.

Records travel for a few milliseconds, drawn from a seed; those of one worker and partition keep their order. Nothing
is lost, and nothing waits for real time.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from math import ceil
from typing import Final

from minutebook.domain import events as facts
from minutebook.domain.records import Inbox, Report
from minutebook.ids import job_key
from minutebook.wire import topics
from minutebook.worker.exchange import Exchange, Profile
from minutebook.worker.outcomes import Verdict
from minutebook.worker.run import Ended, Orders, Run
from streams.owner import BURST_GAP_S, IDLE_MAX_S
from tests.simulation.desk import T0, TASK, Desk

PULSE_MS: Final = 3_000
FRAME_MS: Final = 3
TRAVEL_MS: Final = (1, 8)


class Crew:
    """One worker: its exchange with the owners, and slots whose runs last `run_ms`. A bad one hands everything back."""

    def __init__(self, fleet: Fleet, number: int, slots: int, run_ms: int, *, is_bad: bool = False) -> None:
        self.name = f"w{number:03}"
        profile = Profile(self.name, self.name, "1", frozenset({TASK}), ("default",), slots, 10_000, PULSE_MS)
        self.exchange = Exchange(profile, len(fleet.desks), fleet.chance.randrange(1 << 16))
        self.slots = slots
        self.running = 0
        self.idle_since: int | None = None
        self.is_bad = is_bad
        self._run_ms = run_ms
        self._fleet = fleet
        self._wake_at = -1
        self._arrives_at = 0

    def wake(self) -> None:
        """Do what is due, and come back when something is due again."""
        now = self._now()
        self._obey(self.exchange.tick(now))
        for partition, report in self.exchange.reports(now):
            self._send(partition, report, now)
        at = max(self._fleet.now, T0 + ceil(min(self.exchange.next_at(), now + PULSE_MS) * 1_000)) + 1
        if at != self._wake_at:
            self._wake_at = at
            self._fleet.at(at, lambda: self.wake() if at == self._wake_at else None)

    def deliver(self, record: Inbox) -> None:
        """A record on its way to the inbox; they arrive in order."""
        self._arrives_at = max(self._arrives_at, self._fleet.now + self._fleet.travel())
        self._fleet.at(self._arrives_at, lambda: self._take(record))

    def _take(self, record: Inbox) -> None:
        self._obey(self.exchange.take([record], self._now()))
        self.wake()

    def _obey(self, orders: Orders) -> None:
        assert not orders.stops, "nothing is lost here"
        for run in orders.starts:
            self._fleet.note_start(self, run)
            self._fleet.at(self._fleet.now + self._run_ms, partial(self._end, run))

    def _end(self, run: Run) -> None:
        self._fleet.note_free(self)
        self.exchange.ended([Ended(run, Verdict.HANDED_BACK if self.is_bad else Verdict.SUCCEEDED)])
        self.wake()

    def _send(self, partition: int, report: Report, sent_at: float) -> None:
        fleet = self._fleet
        fleet.reports += 1
        arrives_at = fleet.now + fleet.travel()

        def arrive() -> None:
            fleet.take_report(partition, report)
            fleet.at(
                arrives_at + fleet.travel(),
                lambda: self._acknowledged(partition, report, arrives_at, sent_at),
            )

        fleet.at(arrives_at, arrive)

    def _acknowledged(self, partition: int, report: Report, stamp: int, sent_at: float) -> None:
        self.exchange.acknowledged(partition, report, stamp, sent_at, self._now())
        self.wake()

    def _now(self) -> float:
        return (self._fleet.now - T0) / 1_000


class Fleet:
    """Owners and workers, and what was seen of them."""

    def __init__(self, partitions: int, seed: int = 1) -> None:
        self.now = T0
        self.chance = random.Random(seed)
        self.desks = [Desk(partition, partitions) for partition in range(partitions)]
        self.crews: list[Crew] = []
        self.reports = 0
        self.due: dict[str, int] = {}
        self.started_at: dict[str, int] = {}
        self.succeeded: set[str] = set()
        self.handed_back: Counter[str] = Counter()
        """By worker."""
        self.grants: list[tuple[str, str]] = []
        """(execution, worker)."""
        self.idle_ms_max = 0
        """The longest time for which a worker had a free slot while work waited; bad workers do not count."""
        self._waiting = 0
        self._busy = [False] * partitions
        self._wake_at: list[int] = [-1] * partitions
        self._agenda: list[tuple[int, int, Callable[[], object]]] = []
        self._numbers = count()
        self._names = [self._names_in(partition) for partition in range(partitions)]

    # -- what there is

    def add(self, workers: int, slots: int, run_ms: int, *, is_bad: bool = False) -> list[Crew]:
        """Workers that join now."""
        crews = [
            Crew(self, len(self.crews) + number, slots, run_ms, is_bad=is_bad) for number in range(workers)
        ]
        self.crews += crews
        for crew in crews:
            crew.wake()
        return crews

    def submit(self, jobs: int, partition: int, tenant: str = "acme", after_ms: int = 0) -> list[str]:
        """Jobs of one partition that are due `after_ms` from now; their executions."""
        found = []
        desk = self._desk(partition)
        names = self._names[partition]
        for _ in range(jobs):
            name = next(name for name in names if self._partition(tenant, name) == partition)
            desk.submit(name, tenant=tenant, after_ms=self.now + after_ms - desk.now)
            found.append(f"{name}:{self.now + after_ms}")
        self.due |= dict.fromkeys(found, self.now + after_ms)
        self.at(self.now + after_ms, partial(self._change_waiting, jobs))
        self._poke(partition)
        return found

    def _partition(self, tenant: str, name: str) -> int:
        return topics.partition_of(job_key(tenant, name), len(self.desks))

    def _names_in(self, partition: int) -> Iterator[str]:
        return (f"j{partition}-{number}" for number in count())

    # -- time

    def at(self, at: int, what: Callable[[], object]) -> None:
        """`what` happens at `at`, after what was said before for the same instant."""
        heapq.heappush(self._agenda, (max(at, self.now), next(self._numbers), what))

    def travel(self) -> int:
        """How long a record is on its way, ms."""
        return self.chance.randint(*TRAVEL_MS)

    def run(self, for_ms: int) -> None:
        """Let time pass."""
        until = self.now + for_ms
        while self._agenda and self._agenda[0][0] <= until:
            self._step()
        self.now = until

    def run_until(self, is_so: Callable[[], bool], limit_ms: int) -> None:
        """Let time pass until `is_so`. Fails after `limit_ms`."""
        until = self.now + limit_ms
        while not is_so():
            assert self.now < until, f"{len(self.succeeded)} of {len(self.due)} after {limit_ms} ms"
            self._step()

    def run_to_end(self, limit_ms: int) -> None:
        """Let time pass until every run has succeeded."""
        self.run_until(lambda: len(self.succeeded) == len(self.due), limit_ms)

    def _step(self) -> None:
        self.now, _, what = heapq.heappop(self._agenda)
        what()

    # -- owners

    def take_report(self, partition: int, report: Report) -> None:
        """A report is on `worker-reports`."""
        desk = self._desk(partition)
        desk.report(report)
        if report.handed_back is not None:
            back = len(report.handed_back.executions)
            self.handed_back[report.session.partition(".")[0]] += back
        self._poke(partition)

    def _desk(self, partition: int) -> Desk:
        """The owner's desk, at the present instant."""
        desk = self.desks[partition]
        desk.now = max(desk.now, self.now)
        return desk

    def _poke(self, partition: int) -> None:
        if not self._busy[partition]:
            self._plan(partition, self.now)

    def _plan(self, partition: int, at: int) -> None:
        self._wake_at[partition] = at
        self.at(at, lambda: self._cycle(partition) if self._wake_at[partition] == at else None)

    def _cycle(self, partition: int) -> None:
        """What is decided now is in the log after `FRAME_MS`; then its outputs go out."""
        self._wake_at[partition] = -1
        self._busy[partition] = True
        events = self._desk(partition).cycle()
        for event in events:
            if isinstance(event, facts.AttemptsSucceeded):
                self.succeeded.update(event.executions)
        self.at(self.now + (FRAME_MS if events else 0), lambda: self._framed(partition))

    def _framed(self, partition: int) -> None:
        desk = self.desks[partition]
        self._busy[partition] = False
        by_name = {crew.name: crew for crew in self.crews}
        for output in desk.grants():
            session = desk.sessions.get(output.session)
            if session is not None:
                session.sent_at[output.record.frame] = self.now
            by_name[output.session.partition(".")[0]].deliver(output.record)
        for record in desk.replies:
            by_name[record.session.partition(".")[0]].deliver(record)
        self._plan(partition, self._next_at(desk))

    def _next_at(self, desk: Desk) -> int:
        core = desk.core
        has_inputs = any(feed.waiting for feed in desk.inputs.values())
        is_in_burst = core.is_in_burst(self.now)
        if core.has_news() if is_in_burst else has_inputs:
            return self.now
        if core.granting.has_grantable(self.now):
            return self.now
        idle_ms = round(1_000 * (BURST_GAP_S if has_inputs else IDLE_MAX_S))
        due_at, held_until = core.due.next_due_at(), core.due.held.next_at()
        return min(at for at in (self.now + idle_ms, due_at, held_until) if at is not None)

    # -- the account

    def note_start(self, crew: Crew, run: Run) -> None:
        """A run takes a slot."""
        self.grants.append((run.execution, crew.name))
        crew.running += 1
        assert crew.running <= crew.slots
        if crew.is_bad:
            return
        assert run.execution not in self.started_at, "twice"
        assert self.now >= self.due[run.execution], "early"
        self.started_at[run.execution] = self.now
        self._look(crew)
        self._change_waiting(-1)

    def note_free(self, crew: Crew) -> None:
        """A run leaves its slot."""
        crew.running -= 1
        self._look(crew)

    def hand_backs(self) -> int:
        """Grants that good workers handed back."""
        bad = {crew.name for crew in self.crews if crew.is_bad}
        return sum(back for name, back in self.handed_back.items() if name not in bad)

    def lateness_ms(self, executions: list[str]) -> int:
        """How long after its instant the last of them started."""
        return max(self.started_at[name] - self.due[name] for name in executions)

    def _change_waiting(self, by: int) -> None:
        had_any, self._waiting = self._waiting > 0, self._waiting + by
        if had_any != (self._waiting > 0):
            for crew in self.crews:
                self._look(crew)

    def _look(self, crew: Crew) -> None:
        """Whether the worker has a free slot while work waits, and for how long it had one until now."""
        is_idle = self._waiting > 0 and crew.running < crew.slots and not crew.is_bad
        if is_idle and crew.idle_since is None:
            crew.idle_since = self.now
        elif not is_idle and crew.idle_since is not None:
            self.idle_ms_max = max(self.idle_ms_max, self.now - crew.idle_since)
            crew.idle_since = None
