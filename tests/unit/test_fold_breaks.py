"""A fact that does not fit the state halts the partition: fold never guesses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minutebook.domain import events as facts
from minutebook.domain.events import Event
from minutebook.domain.fold import fold
from minutebook.domain.transitions import LEGAL, closed_status, require
from minutebook.errors import BrokenFrameError
from minutebook.log.apply import fold_events
from tests.simulation.log_maker import T0, LogMaker, execution_of, failure, submit, success

A, B, C = (execution_of(job, T0) for job in "abc")
ONE = {"tenants": ["acme"], "tenant": [0]}


@pytest.fixture
def maker() -> LogMaker:
    """`a` runs, `b` is queued, `c` waits for its retry, `d` is over, `e` is not due."""
    made = LogMaker()
    made.open()
    made.command(submit("a"), submit("c"), submit("d"))
    made.due("w1.1")
    _, second, third = made.running()
    made.report(failure(second))
    made.report(success([third]))
    made.command(submit("b"))
    made.due()
    made.command(submit("e", delay_ms=60_000))
    return made


def granted(execution: str) -> Event:
    return facts.ExecutionsGranted(["acme"], [0], [execution], [1], ["w1.1"], [0], [])


def succeeded(execution: str, token: int) -> Event:
    return facts.AttemptsSucceeded(["acme"], [0], [execution], [token], [0], [0])


def failed(execution: str, token: int) -> Event:
    return facts.AttemptFailed("acme", execution, 1, token, "w1.1", "E", "", False, T0, 0, 0)


def returned(execution: str, token: int) -> Event:
    return facts.GrantsReturned(["acme"], "withdrawn", [0], [execution], [token], ["w1.1"], [0], [-1])


def lost(execution: str, token: int) -> Event:
    return facts.AttemptsLost(["acme"], "lease_over", [0], [execution], [token], ["w1.1"], [0], [True])


def stopped(execution: str, token: int) -> Event:
    return facts.AttemptCancelled("acme", execution, 1, token, "")


def dead(execution: str) -> Event:
    return facts.ExecutionDead("acme", execution, 1, 0, 1, T0, T0, T0, "permanent", "E", "")


def queued(execution: str, scheduled_at: int, next_at: int) -> Event:
    return facts.ExecutionsQueued(
        ["acme"],
        ["default"],
        ["t"],
        [0],
        [0],
        [0],
        [execution],
        [1],
        [scheduled_at],
        [T0],
        [next_at],
        [1],
        [5],
    )


ENDS: list[Callable[[str, int], Event]] = [succeeded, failed, returned, lost, stopped]


def broken(maker: LogMaker, event: Event) -> None:
    with pytest.raises(BrokenFrameError):
        fold(maker.book, event, (maker.reader.position + 1) << 16, maker.clock.now())
    maker.book.discard()


@pytest.mark.parametrize("end", ENDS)
def test_an_attempt_ends_only_under_its_own_token(maker: LogMaker, end: Callable[[str, int], Event]) -> None:
    (held,) = maker.running()
    broken(maker, end(A, held.token - 1))
    broken(maker, end(A, -1))
    fold(maker.book, end(A, held.token), (maker.reader.position + 1) << 16, maker.clock.now())


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("execution", [B, C, execution_of("d", T0), "nothing:1"])
def test_what_does_not_run_cannot_end(
    maker: LogMaker, end: Callable[[str, int], Event], execution: str
) -> None:
    broken(maker, end(execution, -1))
    broken(maker, end(execution, maker.running()[0].token))


@pytest.mark.parametrize("execution", [A, C, execution_of("d", T0), "nothing:1"])
def test_what_is_not_queued_cannot_be_granted(maker: LogMaker, execution: str) -> None:
    """It is decided once: a second grant of a running one is no frame of ours."""
    broken(maker, granted(execution))


@pytest.mark.parametrize("execution", [A, B, C])
def test_what_did_not_fail_cannot_be_given_up(maker: LogMaker, execution: str) -> None:
    broken(maker, dead(execution))


@pytest.mark.parametrize(
    "event",
    [
        queued("e:1", T0, -1),
        queued("nothing:1", T0, -1),
        queued(A, T0, -2),
        queued(B, T0, -2),
        queued("nothing:1", T0, -2),
    ],
)
def test_only_a_jobs_next_instant_or_what_waits_comes_due(maker: LogMaker, event: Event) -> None:
    broken(maker, event)


@pytest.mark.parametrize(
    "event",
    [
        facts.JobCancelled("acme", "nothing", "c", "", "", T0, [], [], []),
        facts.JobCancelled("acme", "b", "c", "", "", T0, [A], [], []),
        facts.JobCancelled("acme", "b", "c", "", "", T0, [], [B], [1]),
        facts.ExecutionRequested("acme", "nothing", "c", "", "", T0, "nothing:rc"),
        facts.ExecutionsSkipped("acme", "nothing", "misfire", T0, T0, 1, -1),
        facts.LogOpened("log-2", 1, 0, 1_000, 1),
        facts.OwnershipTaken("x", 1, 0, 0),
        facts.OwnershipTaken("x", 3, 0, 0),
    ],
    ids=lambda event: type(event).__name__,
)
def test_other_facts_that_fit_nothing_break_too(maker: LogMaker, event: Event) -> None:
    broken(maker, event)


# -- the table


def test_what_is_not_in_the_table_is_an_error() -> None:
    statuses = {"", "scheduled", "queued", "running", "succeeded", "failed", "lost", "cancelled"}
    named = {event for _, event in LEGAL}
    for before in statuses:
        for event in named:
            for becomes in statuses:
                if becomes in LEGAL.get((before, event), ()):
                    require(before, event, becomes, b"x")
                else:
                    with pytest.raises(BrokenFrameError):
                        require(before, event, becomes, b"x")


@pytest.mark.parametrize("final", ["succeeded", "cancelled"])
def test_nothing_follows_an_outcome(final: str) -> None:
    assert not [pair for pair in LEGAL if pair[0] == final]


@pytest.mark.parametrize(
    ("status", "next_at", "open_count", "outcome", "closed"),
    [
        ("active", 5, 0, "succeeded", None),
        ("active", -1, 1, "succeeded", None),
        ("active", -1, 0, "succeeded", "completed"),
        ("active", -1, 0, "dead", "dead"),
        ("active", -1, 0, "", "completed"),
        ("cancelled", -1, 1, "", None),
        ("cancelled", -1, 0, "dead", "cancelled"),
    ],
)
def test_a_job_closes_when_nothing_is_left(
    status: str, next_at: int, open_count: int, outcome: str, closed: str | None
) -> None:
    assert closed_status(status, next_at, open_count, outcome) == closed


def test_whatever_a_fold_meets_in_a_frame_halts_the_partition(maker: LogMaker) -> None:
    """Columns of unequal length raise ValueError deep inside; the owner must see a broken frame, not a stray fault."""
    token = maker.running()[0].token
    broken = facts.JobCancelled("acme", "a", "c9", "", "", T0, [], [A, "a:2"], [token])
    with pytest.raises(BrokenFrameError, match="ValueError"):
        fold_events(maker.book, maker.made([broken], T0))
