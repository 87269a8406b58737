"""Bulk operations, decided by whole cycles of several owners: what is meant, how fast, what is told, how it ends."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from minutebook.domain import book as state
from minutebook.domain import events as facts
from minutebook.domain import keys, operation_steps, operations
from minutebook.domain.commands import RedriveExecution, RunJobNow
from minutebook.domain.events import Event
from minutebook.domain.operation import OperationFact, OperationFilter, Share
from minutebook.domain.operation_steps import KINDS, advance
from minutebook.errors import BrokenFrameError
from minutebook.log.draft import Draft
from minutebook.wire import topics
from streams.taken import Redo
from tests.simulation.desk import T0, Desk, Hand
from tests.simulation.desks import Desks, jobs
from tests.simulation.folds import folded

NAMES = jobs(20)


@pytest.fixture
def desks() -> Desks:
    return Desks()


def of(events: list[Event], kind: type[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


# -- all of it


def test_everything_that_is_meant_is_redriven_once_and_counted(desks: Desks) -> None:
    names = desks.dead(*NAMES)
    desks.cycle(1)
    desks.start()
    ended = desks.until_ended()
    assert (ended.matched, ended.done, ended.refused, ended.is_cancelled) == (20, 20, 0, False)
    assert sorted(desks.redriven()) == names
    assert {partition for partition, _, _ in desks.log(facts.ExecutionRedriven)} == {0, 1, 2}
    for desk in desks.desks:
        assert not list(desk.book.shares.scan(b""))
        assert not list(desk.book.operations.scan(b""))
        assert state.digest(folded(desk.records)) == state.digest(desk.rows)


def test_all_executions_of_one_job_are_redriven() -> None:
    desks = Desks(1)
    desks.submit("a")
    for number in range(3):
        desks.desks[0].command(
            RunJobNow(tenant="acme", job_id="a", command_id=f"c{number}", issued_at=desks.now)
        )
    names = sorted([f"a:{T0}", *(f"a:rc{number}" for number in range(3))])
    for _ in range(3):
        desks.cycle()
    for name in names:
        desks.give_up(name)
    desks.cycle(1)
    desks.start()
    assert desks.until_ended().done == 4
    assert sorted(desks.redriven()) == names


def test_each_redrive_says_for_which_operation_by_whom_and_why(desks: Desks) -> None:
    desks.dead("a")
    desks.cycle(1)
    desks.start()
    desks.until_ended()
    ((_, _, event),) = desks.log(facts.ExecutionRedriven)
    assert (event.operation, event.actor, event.reason) == ("op", "anna", "fixed")  # type: ignore[union-attr]


def test_a_redriven_execution_runs_again(desks: Desks) -> None:
    (name,) = desks.dead("a")
    desks.cycle(1)
    desks.start()
    desks.until_ended()
    desks.cycle()
    desk = desks.desk_of("acme/a")
    execution = desk.book.execution(keys.execution_row("acme", name))
    assert execution is not None
    assert (execution.status, execution.attempt, execution.generation) == ("queued", 2, 1)


def test_what_is_given_up_after_the_start_is_not_meant(desks: Desks) -> None:
    """What fails again is not redriven a second time, however long the operation goes on."""
    names = desks.dead(*NAMES)
    desks.cycle(1)
    desks.start(rate_per_s=3)
    desks.cycle()
    desks.dead(*jobs(20, "late"))
    again = set()
    for _ in range(200):
        events = desks.cycle(50)
        for event in of(events, facts.ExecutionsQueued):
            for name in event.executions:
                again.add(name)
                desks.give_up(name)
    assert len(desks.ended()) == 1
    assert again == set(names)
    assert sorted(desks.redriven()) == names


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ({}, "abcdef"),
        ({"task": "t"}, "abcde"),
        ({"task": "u"}, "f"),
        ({"queue": "mail"}, "e"),
        ({"error_type": "Timeout"}, "b"),
        ({"cause": "losses"}, "c"),
        ({"job_prefix": "d"}, "d"),
        ({"job_prefix": "x"}, ""),
        ({"task": "t", "cause": "losses"}, "c"),
        ({"task": "u", "cause": "losses"}, ""),
        ({"until_at": T0 + 1_000}, "abcd"),
        ({"from_at": T0 + 1_000}, "ef"),
        ({"from_at": T0 + 1_000, "until_at": T0 + 2_000}, "e"),
        ({"from_at": T0 + 2_000}, "f"),
        ({"from_at": T0 + 2_001}, ""),
    ],
)
def test_filter_says_what_is_meant(wanted: dict[str, Any], meant: str) -> None:
    desks = Desks()
    desks.know_queue("mail")
    desks.dead("a")
    desks.dead("b", error_type="Timeout")
    desks.dead("c", cause="losses")
    desks.dead("d")
    desks.cycle(1_000)
    desks.dead("e", queue="mail")
    desks.cycle(1_000)
    desks.dead("f", task="u")
    desks.cycle(1)
    desks.start(**wanted)
    ended = desks.until_ended()
    assert sorted(name[0] for name in desks.redriven()) == list(meant)
    assert ended.matched == len(meant)


def test_other_tenants_keep_their_dead(desks: Desks) -> None:
    desks.dead(*NAMES, tenant="acme2")
    desks.dead(*NAMES, tenant="acm")
    (name,) = desks.dead("a")
    desks.cycle(1)
    desks.start()
    assert desks.until_ended().matched == 1
    assert desks.redriven() == [name]


# -- how fast


def test_rate_is_kept_over_all_partitions(desks: Desks) -> None:
    desks.dead(*jobs(60))
    desks.cycle(1)
    desks.start(rate_per_s=10)
    desks.until_ended(cycles=4_000, after_ms=7)
    times = sorted(at for _, at, _ in desks.log(facts.ExecutionRedriven))
    assert len(times) == 60
    gaps = [after - before for before, after in pairwise(times[1:])]
    assert min(gaps) >= 100 - 2 * 7, "one after the other, but for the length of a cycle"


def test_time_in_which_nothing_could_be_done_is_made_up_for_by_a_second_at_most(desks: Desks) -> None:
    desks.dead(*jobs(90))
    desks.cycle(1)
    desks.start(rate_per_s=9)
    desks.cycle(1)
    desks.cycle(1)
    desks.cycle(60_000)
    assert 3 <= len(desks.redriven()) <= 3 * (3 + 1)


def test_a_step_does_a_bounded_number_and_looks_at_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation_steps, "LOOKED_AT_MAX", 7)
    monkeypatch.setattr(operation_steps, "DONE_MAX", 3)
    desks = Desks(1)
    desks.dead(*jobs(25), error_type="Other")
    desks.dead(*jobs(20, "k"))
    desks.cycle(1)
    looked = 0
    walk = desks.desks[0].book.dead.walk

    def counting(start: bytes, end: bytes) -> Any:
        nonlocal looked
        for found in walk(start, end):
            looked += 1
            yield found

    monkeypatch.setattr(desks.desks[0].book.dead, "walk", counting)
    desks.start(error_type="E")
    for _ in range(60):
        looked = 0
        events = desks.cycle(100)
        assert looked <= 7
        assert len(of(events, facts.ExecutionRedriven)) <= 3
    (ended,) = desks.ended()
    assert ended.done == 20


@pytest.mark.parametrize("limit", ["", "shared"])
def test_nothing_is_added_while_enough_of_its_kind_waits(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation_steps, "WAITING_MAX", 5)
    desks = Desks(1)
    desks.dead(*jobs(30), limit=limit)
    desks.cycle(1)
    desks.start(rate_per_s=50)
    for _ in range(100):
        desks.cycle(100)
    few = len(desks.redriven())
    assert 5 <= few < 30
    hand = Hand(desks.desks[0], lease_ms=600_000)
    hand.pulse(30, held=[])
    desks.until_ended(cycles=600)
    assert len(desks.redriven()) == 30


def test_live_work_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """While something could be granted, or much is granted, the operation waits."""
    desks = Desks(1)
    desk = desks.desks[0]
    desks.dead("a")
    desks.cycle(1)
    desks.start()
    desks.cycle(1)
    monkeypatch.setattr(desk.core.granting, "has_grantable", lambda now: True)
    for _ in range(20):
        assert desks.cycle(500) == []
    assert desk.core.operating.wait_s(desk.now) > 0
    monkeypatch.undo()
    desk.burst.until = desk.now + 10_000
    assert desks.cycle(500) == []
    desk.burst.until = 0
    assert desks.until_ended().done == 1


def test_idle_owner_knows_when_there_is_something_to_do() -> None:
    desks = Desks(1)
    desk = desks.desks[0]
    desks.dead("a", "b")
    desks.cycle(1)
    assert desk.core.operating.wait_s(desk.now) > 60
    desks.start(rate_per_s=1)
    desks.cycle(1)
    assert desk.core.operating.wait_s(desk.now) <= 0.001
    while not desks.redriven():
        desks.cycle(1)
    assert 0.9 < desk.core.operating.wait_s(desk.now) <= 1
    desks.until_ended()
    assert desk.core.operating.wait_s(desk.now) > 60


# -- how it ends


def test_cancelled_operation_stops_in_every_partition_and_says_what_was_done(desks: Desks) -> None:
    desks.dead(*jobs(60))
    desks.cycle(1)
    desks.start(rate_per_s=10)
    for _ in range(20):
        desks.cycle(100)
    desks.cancel()
    desks.cycle()
    desks.cycle()
    done = len(desks.redriven())
    assert 0 < done < 60
    ended = desks.until_ended()
    assert (ended.is_cancelled, ended.done, ended.matched) == (True, done, 60)
    assert len(desks.redriven()) == done
    ((_, _, cancelled),) = desks.log(facts.OperationCancelled)
    assert (cancelled.actor, cancelled.fact.is_cancelled) == ("ben", True)  # type: ignore[union-attr]


def test_partition_that_has_finished_keeps_its_counts_when_the_rest_is_cancelled(desks: Desks) -> None:
    """Mail of the one that has finished comes first: were it to tell anew, the home would believe that."""
    first, last = [desk for desk in desks.desks if desk is not desks.home()]
    few = [name for name in jobs(60) if desks.desk_of(f"acme/{name}") is first][:2]
    many = [name for name in jobs(60) if desks.desk_of(f"acme/{name}") is last]
    desks.dead(*few, *many)
    desks.cycle(1)
    desks.start(rate_per_s=3)
    for _ in range(30):
        desks.cycle(100)
    assert sum(1 for desk in desks.desks if list(desk.book.shares.scan(b""))) == 1
    desks.cancel()
    for desk in (desks.home(), first, first, desks.home()):
        desks.one(desk)
    assert desks.until_ended().done == len(desks.redriven()) > len(few)


def test_operation_without_a_match_ends_by_itself(desks: Desks) -> None:
    desks.start()
    ended = desks.until_ended()
    assert (ended.matched, ended.done) == (0, 0)


def test_home_is_told_seldom(desks: Desks) -> None:
    desks.dead(*jobs(200))
    desks.cycle(1)
    desks.start(rate_per_s=60)
    desks.until_ended(cycles=4_000, after_ms=20)
    for partition in range(3):
        told = [at for _, at, event in desks.log(facts.OperationCounted) if event.partition == partition]  # type: ignore[union-attr]
        assert len(told) >= 3
        gaps = [after - before for before, after in pairwise(told[2:-1])]
        assert all(gap >= 1_000 for gap in gaps)


def test_mail_that_comes_twice_changes_nothing(desks: Desks) -> None:
    desks.dead(*NAMES)
    desks.cycle(1)
    desks.start()
    for _ in range(30):
        desks.cycle(100)
        for desk in desks.desks:
            for record in list(desk.inputs[topics.MAIL].waiting):
                desk.inputs[topics.MAIL].add(record.value or b"", record.stamp)
    assert len(desks.ended()) == 1
    assert len(desks.redriven()) == len(set(desks.redriven())) == 20


def test_count_after_the_end_changes_nothing(desks: Desks) -> None:
    desks.start()
    desks.until_ended()
    home = desks.home()
    count = operations.count_of(next(event for _, _, event in desks.log(facts.OperationAdvanced)))  # type: ignore[arg-type]
    assert operations.counted(home.book, 1, count) == []


def test_what_is_redriven_by_hand_meanwhile_is_neither_done_nor_left(desks: Desks) -> None:
    desks = Desks(1)
    names = desks.dead("a", "b")
    desks.cycle(1)
    desks.start(rate_per_s=1)
    while not desks.redriven():
        desks.cycle(1)
    (left,) = set(names) - set(desks.redriven())
    desks.desks[0].command(
        RedriveExecution(
            tenant="acme",
            job_id=left[0],
            command_id="by-hand",
            issued_at=desks.now,
            execution=left,
        )
    )
    ended = desks.until_ended()
    assert (ended.matched, ended.done) == (1, 1)
    assert sorted(desks.redriven()) == names


def test_what_cannot_be_redriven_is_refused_on_record_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    desks = Desks(1)
    desk = desks.desks[0]
    desks.dead("a", "b")
    desks.cycle(1)
    (closed,) = [key for key, _ in desk.book.closed.scan(b"") if key.endswith(b"\0a")]
    desk.rows.write({"closed": {closed: None}}, [])
    desk.open()
    desks.start()
    ended = desks.until_ended()
    assert (ended.matched, ended.done, ended.refused) == (2, 1, 1)
    ((_, _, refused),) = desks.log(facts.CommandRejected)
    assert (refused.reason, refused.job_id) == ("not_found", "a")  # type: ignore[union-attr]


def test_share_that_cannot_be_decided_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    desks = Desks(1)
    desk = desks.desks[0]
    names = desks.dead("a", "b")
    desks.cycle(1)
    desks.start("bad", job_prefix="a")
    desks.start("good", job_prefix="b")
    good = KINDS["redrive"].act

    def act(book: Any, fact: OperationFact, row: bytes, now: int) -> list[Event]:
        if fact.operation == "bad":
            raise ZeroDivisionError
        return good(book, fact, row, now)

    monkeypatch.setitem(KINDS, "redrive", KINDS["redrive"]._replace(act=act))
    failed = 0
    for _ in range(20):
        try:
            desks.cycle(100)
        except Redo:
            failed += 1
    assert failed == 1
    assert desks.redriven() == [names[1]]
    assert desk.core.operating.wait_s(desk.now) > 60
    monkeypatch.undo()
    desk.open()
    desks.until_ended()
    assert sorted(desks.redriven()) == names


def test_every_kind_that_is_taken_has_its_row() -> None:
    assert set(operations.KINDS) == set(KINDS)


# -- folds


@pytest.mark.parametrize(
    "event",
    [
        facts.OperationAdvanced("acme", "op", 0, 0, 0, 0, 0, b"", 0, False, False),
        facts.OperationCounted("acme", "op", 0, 0, 0, 0, False),
        facts.OperationEnded("acme", "op", 0, 0, 0, False),
    ],
)
def test_event_of_an_operation_that_is_not_there_breaks(event: Event) -> None:
    desk = Desk()
    with pytest.raises(BrokenFrameError, match="op"):
        Draft(desk.book, 1, desk.now).add(event)


def test_nothing_begins_before_the_owners_clock_has_passed_the_commands_stamp() -> None:
    """Else what is given up meanwhile would be older than the operation, and nobody would look there again."""
    desk = Desk()
    fact = OperationFact("acme", "op", "redrive", OperationFilter(), 0, "", "", T0 + 700, 0)
    share = Share(fact, fact.accepted_at)
    assert list(advance(desk.book, share, T0 + 700)) == []
    assert list(advance(desk.book, share, T0 + 701)) != []
