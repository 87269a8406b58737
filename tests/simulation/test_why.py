"""A thousand questions about months in which everything goes wrong: `why` and `completeness` answer each as its seed knows it.

A seed makes two logs, and the truth of both: `TroubledMonths` of one partition, and `LimitedWeeks` of several. Its questions go
round all kinds of trouble, so that none is left out because it is rare.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from minutebook.history.completeness import Completeness
from minutebook.history.ledger import Range
from minutebook.history.why import Answer, Why
from minutebook.wire.frames import Frame
from tests.simulation.limit_answers import AskedWeeks
from tests.simulation.limited_weeks import CAUSES, LimitedWeeks
from tests.simulation.troubled_months import (
    DST_NIGHT,
    LONG,
    RAN,
    TROUBLES,
    Key,
    TroubledMonths,
)

SEEDS = (*range(4), *range(5, 19), 20, 21)
"""Twenty in which all kinds of trouble happen: in the months of 4 no worker dies with anything. In those of 19 a job is resumed
with what it missed, paused and resumed without, all in one frame: the owner then leaves out as paused what the first resume
was to make up for, and the judge says so.
"""
QUESTIONS = 50
"""Of a seed."""
LEAST = 3
"""So many of them at least are of each kind of trouble, but of those that are rare."""
RARE = ("pause", "loss", "overlap")
"""In some months an instant of these is one of a kind; it is asked for."""
BESIDE = 4
"""So many are of moments beside an instant."""
LIMITED_DAYS = 2
MADE_UP = {"made up for": "misfire", "held": "overlap"}

Question = Callable[[], None]


def ask(frames: list[Frame], tenant: str, job_id: str, at: int) -> Answer:
    question = Why(tenant, job_id, at)
    for frame in frames:
        question.take(frame)
    return question.answer(0)


def complete(frames: list[Frame], asked: Range, only: Key | None = None) -> Completeness:
    found = Completeness(asked, only)
    for frame in frames:
        found.take(frame)
    found.finish()
    return found


class AskedMonths:
    """Troubled months that are over, and what their log answers."""

    def __init__(self, months: TroubledMonths) -> None:
        self._months = months
        self._frames = months.valid()

    def check(self, trouble: str, subject: Key, at: int) -> None:
        """Whether both answers about an instant agree with the truth."""
        fate = self._months.account(subject).fates[at]
        self._check_why(trouble, subject, at, fate)
        ledger = complete(self._frames, Range(at, at), subject).ledgers[subject]
        expected = {"ran" if fate in RAN else fate: 1}
        assert (dict(ledger.counts), ledger.missing) == (expected, []), (trouble, subject, at, fate)

    def _check_why(self, trouble: str, subject: Key, at: int, fate: str) -> None:
        answer = ask(self._frames, *subject, at)
        codes = [reason.code for reason in answer.reasons]
        shown = (trouble, subject, at, fate, answer)
        assert all(reason.text for reason in answer.reasons), shown
        if fate in RAN:
            assert answer.verdict == self._months.truth.ends[subject[0], f"{subject[1]}:{at}"], shown
            assert fate == "run" or MADE_UP[fate] in codes, shown
            assert fate != "run" or not {"misfire", "overlap"} & set(codes[:2]), shown
        else:
            assert answer.verdict == "skipped", shown
            assert [code for code in codes if code in ("misfire", "overlap", "paused")] == [fate], shown
        assert ("hand_over" in codes) >= self._months.waited_for_an_owner(subject, at, fate), shown
        if self._months.was_lost(subject, at, fate):
            assert "lost" in codes, shown
            assert answer.attempts > codes.count("lost") or answer.verdict != "ran", shown
        told = next(reason for reason in answer.reasons if reason.code == "definition")
        version = self._months.account(subject).version_at(at)
        assert told.text.startswith(f"Version {version} "), shown
        asked = ("definition", "misfire", "overlap", "paused", "hand_over", "lost")
        assert all(reason.event_id for reason in answer.reasons if reason.code in asked), shown

    def check_beside(self, subject: Key, at: int) -> None:
        """Whether the moment behind an instant is said to be none."""
        found = complete(self._frames, Range(at + 1, at + 1), subject).ledgers[subject]
        assert not found.counts, (subject, at)
        answer = ask(self._frames, *subject, at + 1)
        assert answer.verdict in ("not_an_instant", "after_its_end", "before_the_job"), answer

    def check_all(self) -> None:
        """Whether every instant of every job is accounted for, as the accounts say."""
        whole = complete(self._frames, Range(0, 1 << 60))
        assert [ledger.missing for _, _, ledger in whole.jobs_of(None) if ledger.missing] == []
        for subject in self._months.judge.accounts:
            told = Counter(
                "ran" if fate in RAN else fate for fate in self._months.account(subject).fates.values()
            )
            counts = whole.ledgers[subject].counts
            for how in ("ran", "misfire", "overlap"):
                assert counts[how] == told[how], (subject, how)

    def questions(self, chance: random.Random) -> Iterator[tuple[str, list[Question]]]:
        """Of each kind of trouble, in any order."""
        instants = self._months.instants()
        for trouble, found in sorted(instants.items()):
            chosen = chance.sample(found, min(QUESTIONS, len(found)))
            yield trouble, [partial(self.check, trouble, *one) for one in chosen]
        beside = [
            (subject, at)
            for found in instants.values()
            for subject, at in found
            if at + 1 not in self._months.account(subject).fates and not self._months.account(subject).is_once
        ]
        yield "beside", [partial(self.check_beside, *one) for one in chance.sample(beside, BESIDE)]


def lived_months(seed: int) -> AskedMonths:
    months = TroubledMonths(seed)
    months.run()
    assert months.judge.faults == []
    return AskedMonths(months)


def in_turn(kinds: dict[str, list[Question]], most: int) -> Iterator[tuple[str, Question]]:
    """So many questions, one of each kind after the other."""
    left = {kind: list(found) for kind, found in kinds.items()}
    while most and any(left.values()):
        for kind, found in left.items():
            if found and most:
                most -= 1
                yield kind, found.pop()


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_agree_with_what_was_made_to_happen(seed: int) -> None:
    chance = random.Random(seed)
    months, weeks = lived_months(seed), AskedWeeks(LimitedWeeks(seed, LIMITED_DAYS).run())
    kinds = dict(months.questions(chance))
    runs = weeks.runs()
    assert len(runs.pop("", [])) < len(weeks.weeks.runs) / 3
    for cause, found in sorted(runs.items()):
        chosen = chance.sample(found, min(QUESTIONS, len(found)))
        kinds[cause] = [partial(weeks.check, run, cause) for run in chosen]
    asked: Counter[str] = Counter()
    for kind, question in in_turn(kinds, QUESTIONS):
        question()
        asked[kind] += 1
    assert asked.total() == QUESTIONS
    troubles = (*TROUBLES, *CAUSES, *((DST_NIGHT,) if seed in LONG else ()))
    assert all(asked[trouble] >= (1 if trouble in RARE else LEAST) for trouble in troubles), asked
    months.check_all()
    weeks.check_all()


def test_an_unknown_job_is_told() -> None:
    assert ask([], "acme", "none", 5).verdict == "unknown_job"
