"""Discarding: what the owner answers about a dead execution that needs no attention any more, and what the view shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minutebook.domain import book as state
from minutebook.domain import events as facts
from minutebook.domain import keys, view_index, view_lists
from minutebook.domain.commands import DiscardExecution, RedriveExecution
from minutebook.domain.fold import fold
from minutebook.domain.state import Execution
from minutebook.domain.view_lists import Filter
from minutebook.errors import BrokenFrameError
from tests.simulation.desks import Desks, jobs
from tests.simulation.folds import folded, viewed
from tests.simulation.log_maker import SESSION, LogMaker, failure, submit
from tests.unit.test_changes import answered, refused


@pytest.fixture
def maker() -> LogMaker:
    made = LogMaker()
    made.open()
    return made


def given_up(maker: LogMaker) -> str:
    """A job whose one execution is dead; its id."""
    maker.command(submit("a", delay_ms=5, issued_at=maker.clock.now()))
    maker.clock.advance(10)
    maker.due(SESSION)
    (held,) = maker.running()
    maker.report(failure(held, is_permanent=True))
    return keys.names(held.key)[1]


def discard(maker: LogMaker, name: str, command_id: str = "d") -> DiscardExecution:
    return DiscardExecution(
        tenant="acme",
        job_id="a",
        command_id=command_id,
        issued_at=maker.clock.now(),
        actor="anna",
        reason="sent by hand",
        execution=name,
    )


def redrive(maker: LogMaker, name: str) -> RedriveExecution:
    return RedriveExecution(
        tenant="acme", job_id="a", command_id="r", issued_at=maker.clock.now(), execution=name
    )


def test_a_dead_execution_is_discarded_by_whom_and_why(maker: LogMaker) -> None:
    name = given_up(maker)
    (event,) = maker.command(discard(maker, name))
    assert isinstance(event, facts.ExecutionDiscarded)
    assert (event.execution, event.actor, event.reason, event.operation) == (
        name,
        "anna",
        "sent by hand",
        "",
    )


def test_a_discarded_execution_is_redriven_no_more(maker: LogMaker) -> None:
    name = given_up(maker)
    maker.command(discard(maker, name))
    assert refused(maker.command(redrive(maker, name)))[0] == "discarded"


def test_a_second_discard_changes_nothing(maker: LogMaker) -> None:
    name = given_up(maker)
    maker.command(discard(maker, name))
    assert answered(maker.command(discard(maker, name, "d2"))) == "discarded"
    assert maker.command(discard(maker, name)) == []


def test_only_a_dead_execution_is_discarded(maker: LogMaker) -> None:
    maker.command(submit("a", delay_ms=5, issued_at=maker.clock.now()))
    maker.clock.advance(10)
    maker.due(SESSION)
    name = keys.names(maker.running()[0].key)[1]
    assert refused(maker.command(discard(maker, name)))[0] == "not_dead"
    assert refused(maker.command(discard(maker, "a:1", "d2")))[0] == "not_dead"


def test_a_redriven_execution_is_not_dead_until_it_dies_again(maker: LogMaker) -> None:
    name = given_up(maker)
    maker.command(redrive(maker, name))
    assert refused(maker.command(discard(maker, name)))[0] == "not_dead"
    maker.clock.advance(10)
    maker.due(SESSION)
    (held,) = maker.running()
    maker.report(failure(held, is_permanent=True))
    (event,) = maker.command(discard(maker, name, "d2"))
    assert isinstance(event, facts.ExecutionDiscarded)


@pytest.mark.parametrize("command", [discard, redrive])
def test_what_is_open_again_is_not_dead_though_its_death_is_remembered(
    maker: LogMaker, command: Callable[[LogMaker, str], DiscardExecution | RedriveExecution]
) -> None:
    """A key that was forgotten may ask for an execution of the same id again, days later."""
    name = given_up(maker)
    key = keys.execution_row("acme", name)
    dead = maker.book.remembered(maker.book.dead, key)
    assert dead is not None
    open_again = {field: getattr(dead, field) for field in Execution.__struct_fields__} | {"status": "queued"}
    maker.book.executions.put(key, Execution(**open_again))
    assert refused(maker.command(command(maker, name)))[0] == "not_dead"


def test_a_discard_of_what_is_not_dead_breaks_the_fold(maker: LogMaker) -> None:
    name = given_up(maker)
    (event,) = maker.command(discard(maker, name))
    with pytest.raises(BrokenFrameError, match="cannot be discarded"):
        fold(maker.book, event, 0, maker.clock.now())


def test_the_view_keeps_it_and_counts_it_no_more(maker: LogMaker) -> None:
    name = given_up(maker)
    maker.command(discard(maker, name))
    view, _ = viewed(maker.records)
    row = view.execution("acme", name)
    assert row is not None
    assert row.discard is not None
    assert (row.outcome, row.last.status, row.discard.actor, row.discard.reason) == (
        "dead",
        "failed",
        "anna",
        "sent by hand",
    )
    assert list(view.dead("acme")) == []
    assert view_lists.counts_by_status(view, view_index.EXECUTION_TOTALS, "acme") == {"failed": 1}
    assert view_lists.discarded(view, "acme") == 1
    whenever = view_lists.span_of(0, view_lists.LAST_AT, is_ascending=True)
    for wanted in (Filter(), Filter(status="failed"), Filter(error_type=row.last.error_type)):
        assert len(list(view_lists.executions(view, "acme", wanted, whenever))) == 1, wanted


def test_all_that_fit_are_discarded_and_a_redrive_of_all_finds_none() -> None:
    desks = Desks()
    names = desks.dead(*jobs(12))
    desks.cycle(1)
    desks.start(kind="discard")
    ended = desks.until_ended()
    assert (ended.matched, ended.done, ended.refused) == (12, 12, 0)
    found = [event for _, _, event in desks.log(facts.ExecutionDiscarded)]
    assert sorted(event.execution for event in found) == names  # type: ignore[union-attr]
    assert {event.operation for event in found} == {"op"}  # type: ignore[union-attr]
    desks.start("again", kind="redrive")
    redriven = desks.until_ended()
    assert (redriven.matched, redriven.done, redriven.refused) == (0, 0, 0)
    for desk in desks.desks:
        assert state.digest(folded(desk.records)) == state.digest(desk.rows)
