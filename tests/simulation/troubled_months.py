"""Months of one partition in which everything goes wrong but limits, and the truth of each instant: how it fared by the judge's
account, and which troubles it met by what was made to happen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from minutebook.domain import events as facts
from minutebook.domain.commands import SubmitJob
from minutebook.domain.events import Event
from minutebook.history.why import LATE_MS
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader, Taken
from minutebook.schedule import zone
from minutebook.wire.frames import Frame
from tests.simulation.year.account import Account
from tests.simulation.year.crew import Crew
from tests.simulation.year.judge import Judge
from tests.simulation.year.run import Year
from tests.simulation.year.schedules import HOUR

DAYS, JOBS = 24, 90
DAYS_WITH_CLOCK_CHANGES, FEW_JOBS = 95, 60
LONG: Final = (0, 7)
"""Seeds whose months reach over the nights in March in which clocks change."""
RAN: Final = ("run", "made up for", "held")
SKIPPED: Final = ("misfire", "overlap", "paused")
_OF_FATES: Final = {
    "run": "no trouble",
    "made up for": "misfire",
    "misfire": "misfire",
    "held": "overlap",
    "overlap": "overlap",
    "paused": "pause",
}
TROUBLES: Final = ("misfire", "overlap", "pause", "hand-over", "loss", "clock set back", "edit")
"""Those of every seed; `LONG` ones have a DST night too."""
DST_NIGHT: Final = "DST night"
_NIGHT_MS: Final = 3 * HOUR

Key = tuple[str, str]


class ToldAccount(Account):
    """An account that writes down how each instant fared."""

    def __init__(self, *args: Any) -> None:
        self.fates: dict[int, str] = {}
        self.zones: dict[int, str] = {}
        """Of each instant, the zone of the schedule that it is of."""
        self.came: dict[int, tuple[int, int]] = {}
        """Of each that ran in its turn: when it was due, and when it came."""
        self.edits: list[int] = []
        super().__init__(*args)

    def _account(self, through: int, how: str) -> None:
        before = self._next
        super()._account(through, how)
        for at in self.instants[before : self._next]:
            self.fates[at] = how
            self.zones[at] = self._command.zone

    def ran(self, scheduled_at: int, due_at: int, now: int) -> Iterator[str]:
        """As an account."""
        self.came[scheduled_at] = due_at, now
        return super().ran(scheduled_at, due_at, now)

    def edited(self, command: SubmitJob, stamp: int, next_at: int, now: int) -> Iterator[str]:
        """As an account."""
        self.edits.append(stamp)
        return super().edited(command, stamp, next_at, now)

    def version_at(self, at: int) -> int:
        """The number of the version that was in force."""
        later = (number for number, stamp in enumerate(self.edits, 1) if stamp > at)
        return next(later, len(self.edits) + 1)


class TruthfulJudge(Judge):
    """A judge that writes down how each execution ended."""

    account_type: type[Account] = ToldAccount

    def __init__(self) -> None:
        super().__init__()
        self.ends: dict[Key, str] = {}

    def _end(self, key: Key, outcome: str, *statuses: str) -> None:
        self.ends[key] = outcome
        super()._end(key, outcome, *statuses)

    def frame(self, now: int, placed: Iterable[tuple[Event, int]]) -> None:
        """As a judge."""
        placed = list(placed)
        super().frame(now, placed)
        for event, _ in placed:
            if isinstance(event, facts.AttemptsSucceeded):
                for tenant, name in zip(event.tenant, event.executions, strict=True):
                    self.ends[event.tenants[tenant], name] = "ran"


class TroubledMonths(Year):
    """Months whose records are kept, with a judge that writes down the truth."""

    def __init__(self, seed: int) -> None:
        self.truth = TruthfulJudge()
        jobs, days = (FEW_JOBS, DAYS_WITH_CLOCK_CHANGES) if seed in LONG else (JOBS, DAYS)
        super().__init__(seed, jobs=jobs, days=days, judge=self.truth)
        self._kept: list[RawRecord] = []
        self._is_handed_over = False
        self._decided_at = self.desk.now
        self.silences: list[tuple[int, int]] = []
        """From the last decision of an owner to the first one of the next."""
        self.twice: list[tuple[int, int]] = []
        """Times that the broker's clock passed twice."""
        self.lost: set[Key] = set()
        """Executions that ran at workers when those died."""

    # -- what happens

    def _hand_over(self) -> None:
        self._kept += self.desk.records
        super()._hand_over()
        self._is_handed_over = True

    def _decide(self) -> None:
        if self._is_handed_over:
            self._is_handed_over = False
            self.silences.append((self._decided_at, self.desk.now))
            self.desk.add(facts.OwnershipTaken("o", self.desk.book.cursor.epoch + 1, 0, 0))
        super()._decide()
        self._decided_at = self.desk.now

    def _set_back(self, at: int, by_ms: int) -> None:
        self.twice.append((self.desk.now - by_ms, self.desk.now))
        super()._set_back(at, by_ms)

    def _die(self, crew: Crew) -> None:
        self.lost |= {(run.tenant, run.execution) for run in crew.running}
        super()._die(crew)

    # -- afterwards

    def valid(self) -> list[Frame]:
        """All valid frames."""
        reader, found = FrameReader(), []
        for record in self._kept + self.desk.records:
            taken = reader.take(record)
            if isinstance(taken, Taken):
                found.append(taken.frame)
        return found

    def account(self, subject: Key) -> ToldAccount:
        """The account of a job."""
        account = self.judge.accounts[subject]
        assert isinstance(account, ToldAccount)
        return account

    def instants(self) -> dict[str, list[tuple[Key, int]]]:
        """Instants that became executions or were skipped, by the trouble that they met; one may have met several."""
        found: dict[str, list[tuple[Key, int]]] = defaultdict(list)
        for subject in self.judge.accounts:
            for at, fate in self.account(subject).fates.items():
                if fate in _OF_FATES:
                    for trouble in (_OF_FATES[fate], *self._met(subject, at, fate)):
                        found[trouble].append((subject, at))
        return found

    def _met(self, subject: Key, at: int, fate: str) -> Iterator[str]:
        account = self.account(subject)
        if self.waited_for_an_owner(subject, at, fate):
            yield "hand-over"
        if self.was_lost(subject, at, fate):
            yield "loss"
        if any(first <= at <= last for first, last in self.twice):
            yield "clock set back"
        if account.version_at(at) > 1:
            yield "edit"
        there = zone(account.zones[at])
        before, after = (
            datetime.fromtimestamp((at + ms) / 1_000, UTC).astimezone(there).utcoffset()
            for ms in (-_NIGHT_MS, _NIGHT_MS)
        )
        if before != after:
            yield DST_NIGHT

    def waited_for_an_owner(self, subject: Key, at: int, fate: str) -> bool:
        """Whether it was due while the partition changed hands, and was late, or missed, for that."""
        if fate == "misfire":
            return any(last < at < until for last, until in self.silences)
        due_at, now = self.account(subject).came.get(at, (at, at))
        is_late = fate == "run" and now - due_at > LATE_MS
        return is_late and any(last < due_at < until for last, until in self.silences)

    def was_lost(self, subject: Key, at: int, fate: str) -> bool:
        """Whether a worker died with it, and nobody had cancelled it when that was seen."""
        key = subject[0], f"{subject[1]}:{at}"
        return fate in RAN and key in self.lost and self.truth.ends[key] != "cancelled"
