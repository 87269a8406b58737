"""A year of one partition under a clock of its own: the real cycles of a `Desk`, workers in memory, a judge that reads along."""

from __future__ import annotations

import random
from collections import Counter, deque
from typing import Final

import msgspec

from minutebook.domain import events as facts
from minutebook.domain.book import FAMILIES, Book, digest
from minutebook.log.apply import take
from minutebook.log.draft import Draft
from minutebook.log.reader import FrameReader
from minutebook.store.memory import MemoryRows
from minutebook.wire import codec, topics
from tests.simulation.desk import Desk
from tests.simulation.year.crew import LEASE_MS, Crew
from tests.simulation.year.judge import Judge
from tests.simulation.year.schedules import DAY, HOUR, START
from tests.simulation.year.story import TASK, Act, Death, HandOver, Idle, Outage, SetBack, story

READ_AHEAD: Final = 0.2
VOID: Final = 0.003
CYCLES_MAX: Final = 200
"""That the owner needs at one moment, however much is due."""
SETTLE_MS: Final = HOUR
"""After the year, for what still runs."""


class Year:
    """`days` of the year, with `jobs` schedules, drawn from `seed`."""

    def __init__(self, seed: int, jobs: int, days: int = 365, judge: Judge | None = None) -> None:
        self._chance = random.Random(seed)
        self._end = START + days * DAY
        self._acts = deque(story(seed, jobs, self._end))
        self.judge = judge or Judge()
        self.desk = Desk()
        self.desk.now = START
        self._copy = MemoryRows(FAMILIES)
        self._reader = FrameReader()
        self.crews = [Crew(f"w{number}", TASK, random.Random(seed + number)) for number in range(2)]
        self._by_session = {crew.session: crew for crew in self.crews}
        self._dead: set[str] = set()
        """Sessions that died and are not over yet."""
        self._tick_at = START
        self._out_until = START
        self._idle_until = START
        self.rejections: Counter[tuple[str, str, str]] = Counter()
        self.cycles = 0
        self.frames = 0

    def run(self) -> None:
        """All of it. The judge knows what was found."""
        self._go_on(self._end)
        self.judge.year_over()
        self._settle()
        self._hand_over()
        self.judge.finish()

    # -- time

    def _go_on(self, until: int) -> None:
        while (at := self._next_at()) < until:
            self.desk.now = max(self.desk.now, at)
            while self._acts and self._acts[0].at <= self.desk.now:
                self._happen(self._acts.popleft())
            if self.desk.now >= self._out_until:
                self._decide()
        self.desk.now = until

    def _settle(self) -> None:
        """What still runs ends at once."""
        for crew in self.crews:
            crew.is_in_a_hurry = True
        while self.judge.open and self.desk.now < self._end + SETTLE_MS:
            self.desk.now += 1_000
            self._decide()

    def _next_at(self) -> int:
        """When something happens next; never now."""
        core = self.desk.core
        own = [core.due.next_due_at(), core.next_at(), self._tick_at if self._dead else None]
        if self.desk.inputs[topics.COMMANDS].waiting:
            own.append(self.desk.now)
        found = [max(at, self._out_until) for at in own if at is not None]
        found += [self._acts[0].at] if self._acts else []
        return max(min(found, default=self._end), self.desk.now + 1)

    # -- what happens

    def _happen(self, act: Act) -> None:
        match act.what:
            case Outage(until_at):
                self._out_until = max(self._out_until, until_at)
            case HandOver():
                self._hand_over()
            case SetBack(by_ms):
                self._set_back(act.at, by_ms)
            case Idle(until_at):
                self._idle_until = until_at
                self._hear_anew()
            case Death():
                self._die(self._chance.choice(self.crews))
            case command:
                self.judge.sent(command, self.desk.now)
                self.desk.command(command)

    def _set_back(self, at: int, by_ms: int) -> None:
        """What would come next is stamped before what there is; the owner's clock stands still meanwhile."""
        later = [act for act in self._acts if act.at < at + by_ms and isinstance(act.what, msgspec.Struct)]
        self._acts = deque(act for act in self._acts if act not in later)
        for act in later:
            assert isinstance(act.what, msgspec.Struct)
            stamp = act.at - by_ms
            self.judge.sent(act.what, stamp)
            self.desk.inputs[topics.COMMANDS].add(codec.encode(act.what), stamp)

    def _die(self, crew: Crew) -> None:
        del self._by_session[crew.session]
        self._dead.add(crew.die())
        self._by_session[crew.session] = crew
        self._tick_at = self.desk.now + LEASE_MS + 1

    def _tick(self) -> None:
        """The owner's mark, after which whoever is silent is over; the living have spoken before."""
        self._tick_at = self.desk.now + LEASE_MS + 1
        self._hear_anew()
        self._report()
        self.desk.tick()

    def _hear_anew(self) -> None:
        for crew in self.crews:
            crew.hear_anew()

    def _hand_over(self) -> None:
        """A fresh owner folds the frames, and comes to the same state."""
        book = Book(self._copy)
        for record in self.desk.records:
            take(book, self._reader, record)
            book.commit()
        self.desk.records.clear()
        assert digest(self._copy) == digest(self.desk.rows), "a fresh owner knows something else"
        self.desk.open()
        for session in self.desk.sessions:
            session.stamp = self.desk.now  # whoever runs something has a full lease from here
        self._hear_anew()

    # -- cycles

    def _decide(self) -> None:
        """Cycles until nothing is left to do at this moment."""
        if self._idle_until and self.desk.now >= self._idle_until:
            self._idle_until = 0
            self._hear_anew()
        self._report()
        if self._dead and self.desk.now >= self._tick_at:
            self._tick()
        for _ in range(CYCLES_MAX):
            self._cycle()
            due_at = self.desk.core.due.next_due_at()
            if (due_at is None or due_at > self.desk.now) and not self.desk.inputs[topics.COMMANDS].waiting:
                self.judge.nothing_due(self.desk.now)
                break
            self.desk.now += 2
        else:
            raise AssertionError("the owner does not come to rest")
        self._dead = {name for name in self._dead if self.desk.sessions.get(name) is not None}
        if self._chance.random() < READ_AHEAD:
            self.desk.core.due.read_ahead(self.desk.now)

    def _report(self) -> None:
        for crew in self.crews:
            report = crew.report(self.desk.now, is_idle=self.desk.now < self._idle_until)
            if report is not None:
                self.desk.report(report)

    def _cycle(self) -> None:
        desk = self.desk
        if self._chance.random() < VOID:
            desk.void()
        self.cycles += 1
        draft, _ = desk.core.decide(desk.reader.position + 1, desk.now)
        if draft.events:
            self.frames += 1
            desk.keep(draft, desk.core)
            self._follow(draft)
            self.judge.frame(draft.now, draft.placed)
        else:
            desk.sessions.plan_over()
        desk.core.replies(desk.now)

    def _follow(self, draft: Draft) -> None:
        """What the workers hear of a frame."""
        for event, token in draft.placed:
            match event:
                case facts.ExecutionsDueGranted() | facts.ExecutionsGranted():
                    self._granted(event, token)
                case facts.JobCancelled():
                    self._stop(event.tokens)
                case facts.ExecutionCancelled() if event.token >= 0:
                    self._stop([event.token])
                case facts.CommandRejected():
                    self.rejections[event.command, event.reason, f"{event.field}: {event.detail}"] += 1
                case _:
                    pass

    def _granted(self, event: facts.ExecutionsDueGranted | facts.ExecutionsGranted, token: int) -> None:
        crews = [self._by_session.get(name) for name in event.sessions]
        rows = zip(event.session, event.tenant, event.executions, strict=True)
        for number, (session, tenant, execution) in enumerate(rows, token):
            crew = crews[session]
            if crew is not None:
                crew.granted(number, event.tenants[tenant], execution, self.desk.now)

    def _stop(self, tokens: list[int]) -> None:
        for crew in self.crews:
            crew.stop(tokens)
