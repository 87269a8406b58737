"""Random steps of permits on a log that is both the home of its limits and the partition that uses them."""

from __future__ import annotations

import random

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.events import Event
from minutebook.domain.grants import granted_event
from minutebook.domain.permit_folds import home_of, stock_of
from minutebook.domain.permits import ASKED_MAX, grantable, useless
from tests.simulation.log_maker import LogMaker

TENANT = "acme"
NAMES = ("", "k1", "k2")
SESSION = "w1.1"


class BusyPermits:
    """Each step takes permits a part of their way, if any are there."""

    def __init__(self, maker: LogMaker, chance: random.Random) -> None:
        self._maker = maker
        self._chance = chance
        self._on_the_way: list[tuple[int, Event]] = []
        """Mail with the offset of the frame that it follows from."""

    def step(self) -> None:
        """A stretch or several, of permits of any limit."""
        name = self._chance.choice(NAMES)
        for stretch in (self._ask, self._grant, self._arrive, self._start, self._release, self._arrive):
            if self._chance.random() < 0.7:
                self._maker.add(*stretch(name))

    def _ask(self, name: str) -> list[Event]:
        limit = self._maker.book.limit(TENANT, name)
        if limit is None:
            return []
        count, priority = self._chance.randint(0, 3), self._chance.randint(0, 9)
        return [
            facts.PermitsAsked(TENANT, name, limit.version, 0, count, priority),
            facts.PermitsDemanded(TENANT, name, limit.version, 0, count, priority),
        ]

    def _grant(self, name: str) -> list[Event]:
        book, now = self._maker.book, self._maker.clock.now()
        limit = book.limit(TENANT, name)
        partitions = grantable(home_of(book, keys.limit_row(TENANT, name)), limit, now, ASKED_MAX)
        if limit is None or not partitions:
            return []
        first = (self._maker.reader.position + 1) << 16
        permits = list(range(first, first + len(partitions)))
        self._send(facts.PermitsReceived(TENANT, name, limit.version, permits))
        return [facts.PermitsGranted(TENANT, name, limit.version, partitions)]

    def _arrive(self, name: str) -> list[Event]:
        if not self._on_the_way:
            return []
        frame, event = self._on_the_way.pop(0)
        return [facts.MailTaken(0, frame, 0), event]

    def _send(self, event: Event) -> None:
        self._on_the_way.append((self._maker.reader.position + 1, event))

    def _start(self, name: str) -> list[Event]:
        """What is queued and names the limit runs under its permits."""
        book = self._maker.book
        free = [permit for permit, _ in stock_of(book, keys.limit_row(TENANT, name)).free]
        queued = [keys.queued_parts(key) for key, _ in book.queued.scan(b"")]
        waiting = [execution for lane, execution in queued if (lane.tenant, lane.limit) == (TENANT, name)]
        rows = [
            (TENANT, execution, self._maker.execution(TENANT, execution).attempt, SESSION)
            for execution, _ in zip(waiting, free, strict=False)
        ]
        if not rows:
            return []
        return [granted_event(rows, {row: [(name, permit)] for row, permit in enumerate(free[: len(rows)])})]

    def _release(self, name: str) -> list[Event]:
        book, row = self._maker.book, keys.limit_row(TENANT, name)
        waiting = self._chance.randint(0, 5)
        gone = useless(stock_of(book, row), book.limit(TENANT, name), waiting, self._maker.clock.now())
        if not gone:
            return []
        self._send(facts.PermitsReturned(TENANT, name, gone))
        return [facts.PermitsReleased(TENANT, name, 0, gone)]
