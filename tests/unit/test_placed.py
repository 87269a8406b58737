"""Instants that become executions at a time that is not theirs: made up for behind all live work, filled in, or held."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minutebook.domain import book as state
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.commands import CancelExecution, RedriveExecution
from minutebook.domain.fold import fold
from minutebook.domain.policy import Policy
from minutebook.domain.records import Claim
from minutebook.domain.state import NONE_AT, UNCHANGED, Execution, Job
from minutebook.errors import BrokenFrameError
from tests.simulation.desk import Desk, Hand, rows
from tests.simulation.folds import folded
from tests.simulation.log_maker import (
    T0,
    LogMaker,
    cancel,
    execution_of,
    failure,
    run_now,
    submit,
    success,
)

MINUTE_MS = 60_000
NEXT = (T0 // MINUTE_MS + 1) * MINUTE_MS
LATER = NEXT + 10 * MINUTE_MS


@pytest.fixture
def maker() -> LogMaker:
    """One job with an instant each minute, the next one at `NEXT`."""
    made = LogMaker()
    made.open()
    made.command(submit("a", cron="* * * * *"))
    return made


def job_of(maker: LogMaker) -> Job:
    found = maker.book.jobs.get(keys.job_row("acme", "a"))
    assert found is not None
    return found


def execution_at(maker: LogMaker, at: int) -> Execution:
    found = maker.execution("acme", execution_of("a", at))
    assert isinstance(found, Execution)
    return found


def placed(
    cause: str, at: list[int], place_at: list[int], next_at: int = UNCHANGED, job_id: str = "a"
) -> facts.ExecutionsPlaced:
    return facts.ExecutionsPlaced("acme", job_id, cause, 1, at, at, place_at, next_at)


def queued_order(maker: LogMaker) -> list[str]:
    return [keys.queued_parts(key)[1] for key, _ in maker.book.queued.scan(b"")]


# -- made up for


def test_what_is_made_up_for_stands_in_the_time_index_and_the_schedule_goes_on(maker: LogMaker) -> None:
    maker.clock.advance(LATER - T0)
    at = [NEXT, NEXT + MINUTE_MS]
    maker.add(placed("misfire", at, [LATER, LATER + 50], LATER + MINUTE_MS))
    job = job_of(maker)
    assert (job.open, job.runs, job.next_at, job.indexed_at) == (2, 2, LATER + MINUTE_MS, LATER + MINUTE_MS)
    assert [execution_at(maker, one).indexed_at for one in at] == [LATER, LATER + 50]
    assert all(execution_at(maker, one).is_catch_up for one in at)
    (event,) = maker.due()
    assert isinstance(event, facts.ExecutionsQueued)
    assert (event.executions, event.priorities, event.next_at) == (
        [execution_of("a", NEXT)],
        [-1],
        [UNCHANGED],
    )
    assert execution_at(maker, NEXT).due_at == NEXT, "its lateness shows"


def test_a_place_already_past_is_the_frames_time(maker: LogMaker) -> None:
    maker.clock.advance(LATER - T0)
    maker.add(placed("backfill", [NEXT - MINUTE_MS], [NEXT - MINUTE_MS]))
    assert execution_at(maker, NEXT - MINUTE_MS).indexed_at == LATER


def test_a_backfill_counts_no_run_and_moves_no_schedule(maker: LogMaker) -> None:
    before = job_of(maker)
    maker.add(placed("backfill", [NEXT - MINUTE_MS], [T0]))
    after = job_of(maker)
    assert (after.open, after.runs, after.next_at) == (1, before.runs, before.next_at)


@pytest.mark.parametrize("priority", [0, 5])
def test_it_waits_behind_everything_live_of_its_queue(maker: LogMaker, priority: int) -> None:
    maker.add(placed("backfill", [NEXT - MINUTE_MS], [T0]))
    maker.due()
    maker.command(submit("live", priority=priority))
    maker.due()
    assert queued_order(maker) == [execution_of("live", T0), execution_of("a", NEXT - MINUTE_MS)]


def test_it_keeps_its_lane_through_hand_backs_and_losses(maker: LogMaker) -> None:
    at = NEXT - MINUTE_MS
    maker.add(placed("backfill", [at], [T0]))
    maker.due("w1.1")
    lane = keys.Lane("default", "t", -1, "acme").prefix()
    for step in (maker.withdraw, maker.lose):
        step(maker.running())
        assert (execution_at(maker, at).is_catch_up, dict(maker.book.counts.scan(b""))) == (True, {lane: 1})
        maker.grant("w1.1")
        assert dict(maker.book.counts.scan(b"")) == {}
    maker.report(failure(maker.running()[0], retry_after_ms=0))
    (event,) = maker.due()
    assert isinstance(event, facts.ExecutionsQueued)
    assert (event.attempts, event.priorities) == ([3], [-1])


def test_one_that_is_redriven_is_live_again(maker: LogMaker) -> None:
    """Somebody asks for it now."""
    at = NEXT - MINUTE_MS
    maker.add(placed("backfill", [at], [T0]))
    maker.due("w1.1")
    maker.report(failure(maker.running()[0], is_permanent=True))
    maker.command(
        RedriveExecution(
            tenant="acme", job_id="a", command_id="r", issued_at=T0, execution=execution_of("a", at)
        )
    )
    assert not execution_at(maker, at).is_catch_up


def test_live_work_is_granted_first() -> None:
    desk = Desk()
    hand = Hand(desk)
    hand.pulse(0, held=[])
    desk.submit("a", cron="* * * * *")
    desk.submit("live", after_ms=1_000)
    desk.cycle()
    desk.add(placed("misfire", [NEXT, NEXT + 1], [desk.now, desk.now], NEXT + MINUTE_MS))
    desk.cycle(1_000)
    desk.cycle()
    assert desk.core.granting.queued_for(next(iter(desk.sessions))) == [2, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    order = []
    for _ in range(3):
        hand.pulse(1)
        desk.cycle(10)
        order += [name for name, _ in hand.take()]
    assert order == [execution_of("live", T0 + 1_000), execution_of("a", NEXT), execution_of("a", NEXT + 1)]


def test_it_is_claimed_on_an_open_queue() -> None:
    desk = Desk()
    hand = Hand(desk)
    desk.declare("open", is_open=True)
    desk.cycle()
    hand.pulse(0, held=[], queues=["open"])
    desk.submit("a", cron="* * * * *", queue="open")
    desk.cycle()
    desk.add(placed("backfill", [NEXT - MINUTE_MS], [desk.now]))
    desk.cycle()
    name = execution_of("a", NEXT - MINUTE_MS)
    assert [record.execution for record in desk.publish("open")] == [name]
    hand.pulse(0, claims=[Claim("acme", name, 1)])
    assert rows(desk.cycle(1), facts.ExecutionsGranted) == [name]


def test_an_instant_that_is_open_cannot_be_placed_again(maker: LogMaker) -> None:
    maker.add(placed("backfill", [NEXT - MINUTE_MS], [T0]))
    with pytest.raises(BrokenFrameError):
        fold(maker.book, placed("backfill", [NEXT - MINUTE_MS], [T0]), 1 << 32, T0)
    with pytest.raises(BrokenFrameError):
        fold(maker.book, placed("backfill", [NEXT], [T0], job_id="nothing"), 1 << 32, T0)


# -- held


@pytest.fixture
def busy(maker: LogMaker) -> LogMaker:
    """The first instant runs, the two after it are held."""
    maker.clock.advance(NEXT - T0)
    maker.due("w1.1")
    at = [NEXT + MINUTE_MS, NEXT + 2 * MINUTE_MS]
    maker.clock.advance(2 * MINUTE_MS)
    maker.add(placed("overlap", at, [NONE_AT, NONE_AT], NEXT + 3 * MINUTE_MS))
    return maker


SECOND, THIRD = NEXT + MINUTE_MS, NEXT + 2 * MINUTE_MS


def indexed(maker: LogMaker) -> dict[int, int]:
    """Place in the time index of each execution that is held or was."""
    found = dict(maker.book.executions_of(keys.job_row("acme", "a")))
    return {row.scheduled_at: row.indexed_at for row in found.values() if row.status == "scheduled"}


def test_what_is_held_has_no_place_and_counts_as_open(busy: LogMaker) -> None:
    job = job_of(busy)
    assert (job.open, job.runs) == (3, 3)
    assert job.held == [execution_of("a", SECOND), execution_of("a", THIRD)]
    assert indexed(busy) == {SECOND: NONE_AT, THIRD: NONE_AT}
    assert not execution_at(busy, SECOND).is_catch_up
    assert busy.due() == []


def _die(maker: LogMaker) -> None:
    maker.report(failure(maker.running()[0], is_permanent=True))


def _lose_all(maker: LogMaker) -> None:
    for _ in range(10):
        maker.lose(maker.running())
        maker.grant("w1.1")


def _cancel_it(maker: LogMaker) -> None:
    _cancel_execution(maker, NEXT)
    maker.report(failure(maker.running()[0]))


def _cancel_execution(maker: LogMaker, at: int) -> None:
    maker.command(
        CancelExecution(
            tenant="acme",
            job_id="a",
            command_id=f"x{at}",
            issued_at=maker.clock.now(),
            execution=execution_of("a", at),
        )
    )


ENDS: list[Callable[[LogMaker], object]] = [
    lambda maker: maker.report(success(maker.running())),
    _die,
    _lose_all,
    _cancel_it,
]


@pytest.mark.parametrize("end", ENDS, ids=["succeeded", "dead", "lost", "cancelled"])
def test_the_first_goes_its_way_when_nothing_else_is_open(
    busy: LogMaker, end: Callable[[LogMaker], object]
) -> None:
    end(busy)
    now = busy.clock.now()
    assert indexed(busy) == {SECOND: now, THIRD: NONE_AT}
    assert job_of(busy).held == [execution_of("a", THIRD)]
    (event,) = busy.due()
    assert isinstance(event, facts.ExecutionsQueued)
    assert (event.executions, event.priorities, event.next_at) == (
        [execution_of("a", SECOND)],
        [5],
        [UNCHANGED],
    )


def test_each_goes_once_one_after_the_other(busy: LogMaker) -> None:
    ran = []
    for _ in range(3):
        ran += [keys.names(held.key)[1] for held in busy.running()]
        busy.report(success(busy.running()))
        busy.due("w1.1")
    assert ran == [execution_of("a", at) for at in (NEXT, SECOND, THIRD)]
    assert (job_of(busy).open, job_of(busy).held) == (0, [])


def test_a_retry_keeps_the_others_waiting(busy: LogMaker) -> None:
    busy.report(failure(busy.running()[0]))
    assert indexed(busy)[SECOND] == NONE_AT


def test_a_run_now_keeps_the_others_waiting(busy: LogMaker) -> None:
    busy.command(run_now("a"), stamp=busy.clock.now())
    busy.report(success(busy.running()))
    assert indexed(busy)[SECOND] == NONE_AT
    busy.due("w1.1")
    busy.report(success(busy.running()))
    assert indexed(busy)[SECOND] == busy.clock.now()


def test_one_that_is_held_is_cancelled_alone(busy: LogMaker) -> None:
    _cancel_execution(busy, SECOND)
    assert (job_of(busy).held, job_of(busy).open) == ([execution_of("a", THIRD)], 2)
    busy.report(success(busy.running()))
    assert indexed(busy) == {THIRD: busy.clock.now()}


def test_a_cancelled_job_holds_nothing(busy: LogMaker) -> None:
    busy.command(cancel("a"), stamp=busy.clock.now())
    assert (job_of(busy).held, job_of(busy).open, indexed(busy)) == ([], 1, {})
    busy.report(failure(busy.running()[0]))
    assert busy.book.jobs.get(keys.job_row("acme", "a")) is None


def test_one_that_is_held_expires_by_its_deadline(maker: LogMaker) -> None:
    maker.command(submit("d", cron="* * * * *", policy=Policy(start_deadline_ms=30_000)))
    maker.clock.advance(NEXT - T0)
    maker.due("w1.1")
    maker.clock.advance(MINUTE_MS)
    maker.add(placed("overlap", [SECOND], [NONE_AT], THIRD, job_id="d"))
    maker.clock.advance(30_000)
    expired = [event for event in maker.due() if isinstance(event, facts.ExecutionExpired)]
    assert [(event.execution, event.reason) for event in expired] == [
        (execution_of("d", SECOND), "start_deadline")
    ]
    job = maker.book.jobs.get(keys.job_row("acme", "d"))
    assert job is not None
    assert (job.held, job.open) == ([], 1)


def test_a_fold_of_the_log_comes_to_the_same_state(busy: LogMaker) -> None:
    for _ in range(2):
        busy.report(success(busy.running()))
        busy.due("w1.1")
        assert state.digest(folded(busy.records)) == state.digest(busy.rows)


def test_one_that_is_held_cannot_come_due(busy: LogMaker) -> None:
    event = facts.ExecutionsQueued(
        ["acme"],
        ["default"],
        ["t"],
        [0],
        [0],
        [0],
        [execution_of("a", SECOND)],
        [1],
        [SECOND],
        [SECOND],
        [UNCHANGED],
        [1],
        [5],
    )
    with pytest.raises(BrokenFrameError):
        fold(busy.book, event, 1 << 32, busy.clock.now())
