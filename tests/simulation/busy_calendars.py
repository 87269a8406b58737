"""Calendars in a busy log: declared, deleted and mailed, jobs that use them, and next instants computed anew."""

from __future__ import annotations

import random
from typing import Any

from minutebook.domain import keys
from minutebook.domain.commands import DeclareCalendar, DeleteCalendar
from minutebook.domain.events import CalendarCopied, MailTaken
from minutebook.domain.rescheduling import advance, zone_data_changed
from minutebook.domain.timing import Timing
from tests.simulation.log_maker import LogMaker

NAMES = ("c1", "c2")
TENANTS = ("acme", "blue")


class BusyCalendars:
    """Takes random steps on a log; every step appends one record."""

    def __init__(self, maker: LogMaker, chance: random.Random) -> None:
        self._maker = maker
        self._random = chance

    def timing(self, tenant: str) -> dict[str, Any]:
        """Fields of a cron job of that tenant that depends on calendars, where it has some."""
        known = [name for name in NAMES if self._maker.book.known_calendars.get(tenant, name) is not None]
        if not known or self._random.random() < 0.4:
            return {}
        names = self._random.sample(known, self._random.randint(1, len(known)))
        kind = self._random.choice(("exclude", "exclude", "include"))
        return {"timing": Timing(**{kind: names})}

    def step(self) -> None:
        """A calendar changes, or a piece of what follows from a change."""
        self._random.choice((self._declare, self._delete, self._mail, self._advance, self._advance))()

    def zone_data(self) -> None:
        """Another owner's zone data."""
        self._maker.add(*zone_data_changed(self._maker.book, "2001a"))

    def _declare(self) -> None:
        first, last = self._days()
        self._maker.command(DeclareCalendar(**self._about(), first_days=first, last_days=last))

    def _delete(self) -> None:
        self._maker.command(DeleteCalendar(**self._about()))

    def _mail(self) -> None:
        sender, version = self._maker.reader.position, self._random.randint(1, 9)
        first, last = self._days()
        fact = CalendarCopied("acme", self._random.choice(NAMES), version, first, last, version == 9)
        self._maker.add(MailTaken(3, sender, 0), fact)

    def _advance(self) -> None:
        with self._maker.frame() as draft:
            for work, reached in list(self._maker.book.reschedulings.scan(b"")):
                draft.add(advance(self._maker.book, work, reached, draft.now))

    def _about(self) -> dict[str, Any]:
        return {
            "tenant": self._random.choice(TENANTS),
            "name": self._random.choice(NAMES),
            "command_id": f"k{len(self._maker.records)}",
            "issued_at": self._maker.clock.now(),
        }

    def _days(self) -> tuple[list[int], list[int]]:
        """One to three ranges from some days ago to some days ahead, in order and apart."""
        day = self._maker.clock.now() // keys.DAY_MS - self._random.randint(0, 3)
        first, last = [], []
        for _ in range(self._random.randint(1, 3)):
            first.append(day)
            last.append(day + self._random.randint(0, 2))
            day = last[-1] + self._random.randint(2, 40)
        return first, last
