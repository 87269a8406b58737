"""A pause, cancel or edit that was acknowledged before an instant wins over its run: whatever is read ahead, whoever is owner."""

from __future__ import annotations

import pytest

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.commands import CancelJob, EditJob, PauseJob, RunJobNow
from minutebook.domain.events import Event
from minutebook.domain.timing import Timing
from tests.simulation.desk import T0, Desk, Hand
from tests.simulation.log_maker import cancel, edit, pause, resume

DUE = facts.ExecutionsDueGranted | facts.ExecutionsQueued


@pytest.fixture
def desk() -> Desk:
    return Desk()


def started(events: list[Event]) -> list[tuple[str, int]]:
    """(execution, version) of what has come due."""
    columns = (event for event in events if isinstance(event, DUE))
    return [pair for event in columns for pair in zip(event.executions, event.versions, strict=True)]


@pytest.mark.parametrize("is_handed_over", [False, True], ids=["same owner", "handed over"])
@pytest.mark.parametrize("has_worker", [False, True], ids=["nobody offers", "a worker offers"])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (pause("a"), []),
        (cancel("a"), []),
        (edit("a", run_at=T0 + 1_000, payload=b"2"), [(f"a:{T0 + 1_000}", 2)]),
        (edit("a", run_at=T0 + 9_000), []),
    ],
    ids=["pause", "cancel", "edit of the payload", "edit of the instant"],
)
def test_a_change_before_the_instant_wins(
    desk: Desk,
    change: PauseJob | CancelJob | EditJob,
    expected: list[tuple[str, int]],
    *,
    has_worker: bool,
    is_handed_over: bool,
) -> None:
    if has_worker:
        Hand(desk).pulse(5, held=[])
    desk.submit("a", after_ms=1_000)
    desk.cycle()
    assert desk.core.due.read_ahead(desk.now)
    assert desk.core.due.ahead() == 1
    desk.now += 999
    desk.command(change)
    assert desk.cycle()
    if is_handed_over:
        desk.open()
    assert started(desk.cycle(1)) + started(desk.cycle(10)) == expected


@pytest.mark.parametrize("has_worker", [False, True], ids=["nobody offers", "a worker offers"])
def test_an_edit_decided_in_the_cycle_of_the_instant_leaves_no_run_of_the_version_before(
    desk: Desk, *, has_worker: bool
) -> None:
    """What is due is read first in a cycle; the edit, stamped before, comes behind it."""
    if has_worker:
        Hand(desk).pulse(5, held=[])
    desk.submit("a", after_ms=1_000)
    desk.cycle(990)
    desk.command(edit("a", run_at=T0 + 1_000, payload=b"2"))
    first = desk.cycle(10)
    assert facts.JobEdited in {type(event) for event in first}
    assert started(first) + started(desk.cycle()) == [(f"a:{T0 + 1_000}", 2)]


def test_a_catch_up_that_was_read_ahead_of_its_time_is_decided_as_a_whole(desk: Desk) -> None:
    """By the clock of an owner that is behind the log, the row of a resumed job is still to come."""
    hand = Hand(desk)
    hand.pulse(5, held=[])
    desk.submit("a", cron="*/10 * * * * *", timing=Timing(misfire="latest"))
    desk.cycle()
    desk.command(pause("a"))
    desk.cycle(1)
    desk.now += 64_999
    desk.command(resume("a", is_caught_up=True))
    desk.cycle()
    desk.core.due.read_ahead(desk.now - 10)
    assert desk.core.due.ahead() == 0
    (skipped,) = desk.cycle(1)
    assert isinstance(skipped, facts.ExecutionsSkipped)
    assert skipped.count == 5
    hand.pulse(5)
    assert started(desk.cycle(1)) == [(f"a:{T0 + 60_000}", 1)]


def test_a_run_now_that_is_open_still_is_not_asked_for_twice(desk: Desk) -> None:
    """The command is forgotten by then; a second execution of that name would take the place of the first."""
    desk.submit("every", cron="0 0 1 1 *")
    desk.cycle()
    name = ids.requested_execution_id("every", "n")

    def again() -> list[str]:
        desk.command(RunJobNow(tenant="acme", job_id="every", command_id="n", issued_at=desk.now))
        found = [type(event).__name__ for event in desk.cycle(1)]
        return [kind for kind in found if kind in ("ExecutionRequested", "CommandAnswered")]

    assert again() == ["ExecutionRequested"]
    assert again() == []
    for _ in range(12):
        desk.cycle(keys.DAY_MS)
    assert again() == ["CommandAnswered"]
    assert desk.book.execution(keys.execution_row("acme", name)) is not None
    job = desk.book.jobs.get(keys.job_row("acme", "every"))
    assert job is not None
    assert job.open == 1
