"""The judge of limits judged: each kind of breach, planted into a small history, is found; the history without it is clean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from minutebook.domain import events as facts
from tests.crash.joblog import Fact, JobLog
from tests.crash.permit_ledger import PermitLedger, most_at_once
from tests.crash.stack import Sighting
from tests.crash.test_checker import NAME, SESSION, submitted

HOME, USER = 0, 1
PERMIT: Final = 5 << 16
"""Granted by the home's frame at offset 5."""
TOKEN: Final = 7 << 16
"""Granted by the user's frame at offset 7."""
LIMIT: Final = ("t", "")


def declared(concurrency: int = 1, rate_count: int = -1, paused_until: int = -1) -> facts.LimitDeclared:
    return facts.LimitDeclared(*LIMIT, 1, concurrency, rate_count, 1_000, paused_until, False, "c", "", "", 0)


def copied() -> facts.LimitCopied:
    return facts.LimitCopied(*LIMIT, 1, 1, -1, 1_000, -1, False)


def granted(*permits: int) -> facts.ExecutionsGranted:
    rows, zeros = [0] * len(permits), [0] * len(permits)
    return facts.ExecutionsGranted(
        ["t"], [0], [NAME], [1], [SESSION], [0], [], [""] if permits else [], rows, zeros, list(permits)
    )


class History:
    """(partition, offset) -> events of that frame. One permit goes to an attempt and back."""

    def __init__(self) -> None:
        self.frames: dict[tuple[int, int], list[Any]] = {
            (HOME, 4): [declared(), copied()],
            (HOME, 5): [facts.PermitsGranted(*LIMIT, 1, [USER])],
            (HOME, 8): [facts.PermitsReturned(*LIMIT, [PERMIT])],
            (USER, 4): [submitted(), copied()],
            (USER, 6): [facts.PermitsReceived(*LIMIT, 1, [PERMIT])],
            (USER, 7): [granted(PERMIT)],
            (USER, 8): [facts.AttemptsSucceeded(["t"], [0], [NAME], [TOKEN], [0], [0])],
            (USER, 9): [facts.PermitsReleased(*LIMIT, HOME, [PERMIT])],
        }

    def ledger(self) -> PermitLedger:
        log = JobLog(2)
        for (partition, offset), events in sorted(self.frames.items()):
            for event in events:
                fact = Fact(partition, offset, offset * 100, offset << 16, event)
                log.facts.append(fact)
                log.of(type(event)).append(fact)
        return PermitLedger(log)


def too_many(history: History) -> None:
    history.frames[HOME, 5] = [facts.PermitsGranted(*LIMIT, 1, [USER, USER])]


def too_fast(history: History) -> None:
    history.frames[HOME, 4] = [declared(5, rate_count=1)]
    history.frames[HOME, 7] = [facts.PermitsGranted(*LIMIT, 1, [USER])]


def in_a_pause(history: History) -> None:
    history.frames[HOME, 4] = [declared(paused_until=501)]


def to_somebody_else(history: History) -> None:
    history.frames[HOME, 5] = [facts.PermitsGranted(*LIMIT, 1, [HOME])]


def by_somebody_else(history: History) -> None:
    history.frames[USER, 3] = [facts.PermitsGranted(*LIMIT, 1, [USER])]


def come_twice(history: History) -> None:
    history.frames[USER, 7] = [facts.PermitsReceived(*LIMIT, 1, [PERMIT]), granted(PERMIT)]


def started_without(history: History) -> None:
    history.frames[USER, 7] = [granted()]


def started_before_it_came(history: History) -> None:
    history.frames[USER, 5], history.frames[USER, 7] = history.frames[USER, 7], []


def given_back_while_it_runs(history: History) -> None:
    history.frames[USER, 8] = []


def back_without_being_given(history: History) -> None:
    history.frames[USER, 9] = []


BREACHES: dict[Callable[[History], None], str] = {
    too_many: "2 permits of '' are out, its limit is 1",
    too_fast: "2 permits of '' within 1000 ms",
    in_a_pause: "paused or deleted",
    to_somebody_else: "not granted to this partition",
    by_somebody_else: "elsewhere than at the limit's home",
    come_twice: "came twice",
    started_without: "starts under [], needs",
    started_before_it_came: "not free here",
    given_back_while_it_runs: "not here, or in use",
    back_without_being_given: "nobody gave it back",
}


def test_a_clean_history_has_no_complaints() -> None:
    ledger = History().ledger()
    assert ledger.complaints == []
    assert (ledger.out, ledger.used) == ({}, 1)


@pytest.mark.parametrize("breach", BREACHES)
def test_breach_is_found(breach: Callable[[History], None]) -> None:
    history = History()
    breach(history)
    assert any(BREACHES[breach] in complaint for complaint in history.ledger().complaints)


def test_a_permit_that_never_came_back_is_out() -> None:
    history = History()
    del history.frames[HOME, 8]
    assert list(history.ledger().out) == [(*LIMIT, PERMIT)]


@pytest.mark.parametrize(
    ("intervals", "expected"), [([(0, 5), (5, 9)], 1), ([(0, 6), (5, 9)], 2), ([(0, 9), (1, 8), (2, 3)], 3)]
)
def test_how_many_ran_at_once(intervals: list[tuple[int, int]], expected: int) -> None:
    witness = [
        Sighting(moment, "t", NAME, 1, TOKEN, 0, at, 1)
        for interval in intervals
        for moment, at in zip(("start", "end"), interval, strict=True)
    ]
    assert most_at_once(witness) == expected
