"""Weeks under limits on three partitions: the real cycles and their mail, workers whose runs take their time, limits that are
changed and paused, hours without a worker, owners that come anew. What happened is written down as it was made to happen, and
what made each wait follows from that alone.
"""

from __future__ import annotations

import random
from typing import Final, NamedTuple

from minutebook.domain import events as facts
from minutebook.domain.events import Event
from minutebook.history.why import LATE_MS
from minutebook.ids import job_of
from tests.simulation.desk import T0, results
from tests.simulation.office import TENANT, Office

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
PARTITIONS: Final = 3
OFFER: Final = 50
BY_NUMBER: Final = "two"
BY_RATE: Final = "rate"
CONCURRENCY_MAX: Final = 3
RATE_COUNT: Final = 2
RATE_PERIOD_MS: Final = 10 * MINUTE
AROUND_MS: Final = 5 * SECOND
"""What changed so close to a wait's begin may not have been known everywhere."""
FULL, RATED, PAUSED, IDLE, AT_ONCE = (
    "concurrency limit",
    "rate limit",
    "paused limit",
    "no worker",
    "no wait",
)
CAUSES: Final = (FULL, RATED, PAUSED, IDLE, AT_ONCE)
"""What made an execution wait, or that nothing did."""
_EVERY: Final = {BY_NUMBER: (2 * HOUR, 0), BY_RATE: (3 * HOUR, HOUR // 2)}
"""Of a limit's jobs, the time from one instant to the next, and of the first one after midnight."""
_CRONS: Final = {BY_NUMBER: "0 */2 * * *", BY_RATE: "30 */3 * * *"}
_JOBS: Final = 5
"""Of each limit."""
_STEP_MS: Final = 100
_WHILE_ANY_WAITS_MS: Final = MINUTE


class Stretch(NamedTuple):
    """A time in which something held; `value` is a concurrency where it is of a limit's."""

    from_at: int
    to_at: int
    value: int = 0

    def holds(self, at: int) -> bool:
        return self.from_at <= at < self.to_at


class Run(NamedTuple):
    """An execution of a limited job, as it went: -1 = it did not get so far."""

    name: str
    limit: str
    due_at: int
    queued_at: int
    granted_at: int = -1
    ended_at: int = -1

    def runs(self, at: int) -> bool:
        return self.granted_at >= 0 and self.granted_at <= at and (self.ended_at < 0 or at < self.ended_at)


class LimitedWeeks:
    """`days` of it, drawn from `seed`. Afterwards: `runs`, by execution, and what held when."""

    def __init__(self, seed: int, days: int) -> None:
        self._chance = random.Random(seed)
        self.office = Office(PARTITIONS, 2)
        self._end = T0 + days * DAY
        self.runs: dict[str, Run] = {}
        self.paused: dict[str, list[Stretch]] = {BY_NUMBER: [], BY_RATE: []}
        self.concurrency: list[Stretch] = []
        self.idle: list[Stretch] = []
        self._limits: dict[str, str] = {}
        self._ends: dict[str, int] = {}
        """When what runs will have ended."""
        self._plan(days)

    def run(self) -> LimitedWeeks:
        """All of it."""
        office = self.office
        office.declare(BY_NUMBER, concurrency=self.concurrency[0].value)
        office.declare(BY_RATE, rate_count=RATE_COUNT, rate_period_ms=RATE_PERIOD_MS)
        for _ in range(3):
            self._round()
        self._submit()
        while office.now < self._end:
            while self._acts and self._acts[0][0] <= office.now:
                self._act(*self._acts.pop(0)[1:])
            is_quiet = not self._round()
            office.now = self._next_at() if is_quiet else office.now + _STEP_MS
        return self

    # -- the truth

    def instants(self, limit: str) -> list[int]:
        """Of each job of that limit, those that came due."""
        every_ms, first_ms = _EVERY[limit]
        first = self._submitted_at // DAY * DAY + first_ms
        return [at for at in range(first, self._end, every_ms) if at > self._submitted_at]

    def jobs(self, limit: str) -> list[str]:
        """Jobs of that limit."""
        return [job_id for job_id, own in self._limits.items() if own == limit]

    def cause(self, run: Run) -> str:
        """What made it wait, by what was made to happen; empty where two things meet, or it waits to the end."""
        at = run.queued_at
        if run.granted_at < 0 or any(abs(edge - at) < AROUND_MS for edge in self._edges(run.limit)):
            return ""
        if run.granted_at - at <= LATE_MS:
            return AT_ONCE
        if any(stretch.holds(at) for stretch in self.paused[run.limit]):
            return PAUSED
        if any(stretch.holds(at) for stretch in self.idle):
            return IDLE
        if run.limit == BY_NUMBER:
            (bound,) = [stretch.value for stretch in self.concurrency if stretch.holds(at)]
            return FULL if len(self.holders(run)) >= bound else ""
        until = at + LATE_MS
        recent = [one for one in self._under(BY_RATE) if until - RATE_PERIOD_MS < one.granted_at <= until]
        return RATED if len(recent) >= RATE_COUNT else ""

    def holders(self, run: Run) -> set[str]:
        """What ran under its limit while it waited, once those that went before it did."""
        return {one.name for one in self._under(run.limit) if one.runs(run.queued_at + LATE_MS)}

    def _under(self, limit: str) -> list[Run]:
        return [one for one in self.runs.values() if one.limit == limit]

    def _edges(self, limit: str) -> list[int]:
        """When something changed that makes a limit's jobs wait."""
        stretches = (*self.paused[limit], *self.idle)
        return [stretch.from_at for stretch in (*stretches, *self.concurrency)] + [
            stretch.to_at for stretch in stretches
        ]

    # -- what is to come

    def _plan(self, days: int) -> None:
        chance = self._chance
        acts: list[tuple[int, str, str, int]] = []
        at, value = T0, 2
        for day in range(days):
            noon = T0 + day * DAY + chance.randrange(DAY)
            if day % 2:
                self.concurrency.append(Stretch(at, noon, value))
                at, value = noon, chance.randint(1, CONCURRENCY_MAX)
                acts.append((noon, "declare", BY_NUMBER, value))
            limit, ms = chance.choice((BY_NUMBER, BY_RATE)), chance.randint(1, 5) * HOUR
            self.paused[limit].append(Stretch(noon, noon + ms))
            acts.append((noon, "pause", limit, ms))
            begin = T0 + day * DAY + chance.randrange(DAY)
            self.idle.append(Stretch(begin, begin + chance.randint(1, 4) * HOUR))
            acts.append((T0 + day * DAY + chance.randrange(DAY), "restart", "", chance.randrange(PARTITIONS)))
            acts += [(self.idle[-1].to_at, "nothing", "", 0)]
        self.concurrency.append(Stretch(at, self._end, value))
        self._acts = sorted(acts)

    def _submit(self) -> None:
        self._submitted_at = self.office.now
        for limit, cron in _CRONS.items():
            for number in range(_JOBS):
                job_id = f"{limit}-{number}"
                self._limits[job_id] = limit
                self.office.submit(job_id, limit, cron=cron)
        self.office.submit("free", cron="*/50 * * * *")

    def _act(self, what: str, limit: str, value: int) -> None:
        if what == "declare":
            self.office.declare(limit, concurrency=value)
        elif what == "pause":
            self.office.pause(limit, value)
        elif what == "restart":
            self.office.restart(value)

    # -- what happens

    def _round(self) -> bool:
        """Workers, mail, owners; whether anything was decided."""
        office = self.office
        is_idle = any(stretch.holds(office.now) for stretch in self.idle)
        for worker, partition in office.places():
            running = office.running[worker, partition]
            done = [(name, running.pop(name)) for name in sorted(running) if self._ends[name] <= office.now]
            office.desks[partition].now = office.now
            office.workers[worker][partition].pulse(
                0 if is_idle else OFFER,
                held=sorted(running.values()),
                succeeded=results(done, TENANT) if done else None,
            )
        office.deliver_all()
        decided = False
        for partition in range(PARTITIONS):
            if self._chance.random() < 0.005:
                office.cycle(partition, is_void=True)
            events = office.cycle(partition)
            decided |= bool(events)
            for event in events:
                self._note(event)
        return decided

    def _note(self, event: Event) -> None:
        now = self.office.now
        match event:
            case facts.ExecutionsQueued():
                for name, due_at in zip(event.executions, event.due_at, strict=True):
                    if job_of(name) in self._limits:
                        self.runs[name] = Run(name, self._limits[job_of(name)], due_at, now)
            case facts.ExecutionsGranted() | facts.ExecutionsDueGranted():
                for name in event.executions:
                    long_ms = self._chance.choice((5 * SECOND, 3 * MINUTE, 25 * MINUTE))
                    self._ends[name] = now + long_ms
                    if name in self.runs:
                        self.runs[name] = self.runs[name]._replace(granted_at=now)
            case facts.AttemptsSucceeded():
                for name in event.executions:
                    if name in self.runs:
                        self.runs[name] = self.runs[name]._replace(ended_at=now)
            case _:
                pass

    def _next_at(self) -> int:
        now = self.office.now
        cores = [desk.core for desk in self.office.desks]
        found = [core.due.next_due_at() for core in cores] + [core.next_at() for core in cores]
        found += [at for at in self._ends.values() if at > now]
        found += [self._acts[0][0]] if self._acts else []
        if any(run.granted_at < 0 for run in self.runs.values()):
            found.append(now + _WHILE_ANY_WAITS_MS)
        return max(min((at for at in found if at is not None), default=self._end), now + 1)
