"""A thousand questions about simulated months in which everything goes wrong, answered as the judge knows it."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from minutebook.domain import events as facts
from minutebook.domain.events import Event
from minutebook.history.completeness import Completeness
from minutebook.history.ledger import Range
from minutebook.history.why import Answer, Why
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader, Taken
from minutebook.wire.frames import Frame
from tests.simulation.year import judge as judging
from tests.simulation.year.account import Account
from tests.simulation.year.judge import Judge
from tests.simulation.year.run import Year

SEEDS = range(20)
QUESTIONS = 50
"""Of a seed."""
DAYS, JOBS = 16, 10
DAYS_WITH_CLOCK_CHANGES, FEW_JOBS = 95, 5
LONG = (0, 7)
"""Seeds whose months reach over the nights in March in which clocks change."""
EXECUTED = {"run": "definition", "made up for": "misfire", "held": "overlap"}
SKIPPED = ("misfire", "overlap", "paused")

Key = tuple[str, str]


class ToldAccount(Account):
    """An account that writes down how each instant fared."""

    def __init__(self, *args: Any) -> None:
        self.fates: dict[int, str] = {}
        super().__init__(*args)

    def _account(self, through: int, how: str) -> None:
        before = self._next
        super()._account(through, how)
        for at in self.instants[before : self._next]:
            self.fates[at] = how


class TruthfulJudge(Judge):
    """A judge that writes down how each execution ended."""

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

    def _hand_over(self) -> None:
        self._kept += self.desk.records
        super()._hand_over()

    def valid(self) -> list[Frame]:
        """All valid ones."""
        reader, found = FrameReader(), []
        for record in self._kept + self.desk.records:
            taken = reader.take(record)
            if isinstance(taken, Taken):
                found.append(taken.frame)
        return found


def ask(frames: list[Frame], tenant: str, job_id: str, at: int) -> Answer:
    question = Why(tenant, job_id, at)
    for frame in frames:
        question.take(frame)
    return question.answer(0)


def check(months: TroubledMonths, frames: list[Frame], subject: Key, at: int, fate: str) -> None:
    answer = ask(frames, *subject, at)
    codes = [reason.code for reason in answer.reasons]
    shown = (subject, at, fate, answer)
    if fate in EXECUTED:
        end = months.truth.ends[subject[0], f"{subject[1]}:{at}"]
        assert answer.verdict == end, shown
        assert EXECUTED[fate] in codes, shown
        assert fate != "run" or answer.late_ms is None or answer.attempts >= 1, shown
        assert fate in ("made up for", "held") or not {"misfire", "overlap"} & set(codes[:2]), shown
    else:
        assert fate in SKIPPED, shown
        assert answer.verdict == "skipped", shown
        assert fate in codes, shown
    assert all(reason.text for reason in answer.reasons)
    assert all(reason.event_id for reason in answer.reasons if reason.code in ("definition", *SKIPPED)), shown


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_agree_with_what_was_made_to_happen(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "Account", ToldAccount)
    months = TroubledMonths(seed)
    months.run()
    assert months.judge.faults == []
    frames = months.valid()
    by_fate: dict[str, list[tuple[Key, int]]] = defaultdict(list)
    for subject, account in months.judge.accounts.items():
        assert isinstance(account, ToldAccount)
        for at, fate in account.fates.items():
            if fate in (*EXECUTED, *SKIPPED):
                by_fate[fate].append((subject, at))
    chance = random.Random(seed)
    fates = sorted(by_fate)
    for number in range(QUESTIONS - 5):
        fate = fates[number % len(fates)]
        subject, at = chance.choice(by_fate[fate])
        check(months, frames, subject, at, fate)
    for _ in range(5):
        subject, at = chance.choice(by_fate[chance.choice(fates)])
        account = months.judge.accounts[subject]
        assert isinstance(account, ToldAccount)
        other = at + 1
        if other not in account.fates and not account.is_once:
            answer = ask(frames, *subject, other)
            assert answer.verdict in ("not_an_instant", "after_its_end", "before_the_job"), answer
    complete = Completeness(Range(0, 1 << 60))
    for frame in frames:
        complete.take(frame)
    complete.finish()
    assert [ledger.missing for _, _, ledger in complete.jobs_of(None) if ledger.missing] == []
    for subject, account in months.judge.accounts.items():
        assert isinstance(account, ToldAccount)
        told = sum(fate in EXECUTED for fate in account.fates.values())
        assert complete.ledgers[subject].counts["ran"] == told


def test_an_unknown_job_is_told() -> None:
    assert ask([], "acme", "none", 5).verdict == "unknown_job"
