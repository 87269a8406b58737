"""An instant that comes up while others of its job are open: it runs beside them, is skipped, held, or takes their place."""

from __future__ import annotations

from typing import Any

import pytest

from minutebook.domain import book as state
from minutebook.domain import events as facts
from minutebook.domain import keys, overlap
from minutebook.domain.commands import CancelExecution, RedriveExecution
from minutebook.domain.events import Event
from minutebook.domain.outputs import ToSession, outputs
from minutebook.domain.overlap import HELD_MAX, Turns, turns
from minutebook.domain.policy import Policy
from minutebook.domain.records import Failed
from minutebook.domain.state import Job
from minutebook.domain.timing import CHOICES, Timing
from tests.simulation.desk import Desk, Hand, results, rows
from tests.simulation.folds import folded, viewed
from tests.simulation.log_maker import T0, LogMaker, edit, execution_of, failure, run_now, submit, success

MINUTE_MS = 60_000
NEXT = (T0 // MINUTE_MS + 1) * MINUTE_MS
ROW = keys.job_row("acme", "a")
WAITING = ["skip", "queue_one", "queue_all"]


def at(number: int) -> int:
    """The instant of that number, from 0."""
    return NEXT + number * MINUTE_MS


def name(number: int) -> str:
    return execution_of("a", at(number))


# -- the table


@pytest.mark.parametrize(
    ("policy", "count", "is_busy", "held", "expected"),
    [
        ("allow", 3, True, 0, Turns(3, 0, 0)),
        ("allow", 3, False, 0, Turns(3, 0, 0)),
        ("skip", 1, False, 0, Turns(1, 0, 0)),
        ("skip", 1, True, 0, Turns(0, 0, 1)),
        ("skip", 3, False, 0, Turns(1, 0, 2)),
        ("queue_one", 1, False, 0, Turns(1, 0, 0)),
        ("queue_one", 1, True, 0, Turns(0, 1, 0)),
        ("queue_one", 1, True, 1, Turns(0, 0, 1)),
        ("queue_one", 4, False, 0, Turns(1, 1, 2)),
        ("queue_one", 4, True, 5, Turns(0, 0, 4)),
        ("queue_all", 1, True, HELD_MAX - 1, Turns(0, 1, 0)),
        ("queue_all", 1, True, HELD_MAX, Turns(0, 0, 1)),
        ("queue_all", 200, False, 0, Turns(1, HELD_MAX, 99)),
        ("queue_all", 5, True, HELD_MAX - 2, Turns(0, 2, 3)),
        ("cancel_running", 1, False, 0, Turns(1, 0, 0, True)),
        ("cancel_running", 1, True, 0, Turns(0, 1, 0, True)),
        ("cancel_running", 4, False, 0, Turns(1, 0, 3, True)),
        ("cancel_running", 4, True, 0, Turns(0, 1, 3, True)),
    ],
)
def test_turns(policy: str, count: int, is_busy: bool, held: int, expected: Turns) -> None:
    assert turns(policy, count, is_busy=is_busy, held=held) == expected


@pytest.mark.parametrize("policy", CHOICES["overlap"])
@pytest.mark.parametrize("is_busy", [False, True])
def test_no_instants_have_no_turns(policy: str, is_busy: bool) -> None:
    assert turns(policy, 0, is_busy=is_busy, held=0)[:3] == (0, 0, 0)


# -- one job each minute


def made(overlap: str, timing: dict[str, Any] | None = None, **more: Any) -> LogMaker:
    """Job `a` under that policy; its first instant runs."""
    maker = LogMaker()
    maker.open()
    maker.command(submit("a", cron="* * * * *", timing=Timing(overlap=overlap, **(timing or {})), **more))
    maker.clock.advance(NEXT - T0)
    maker.due("w1.1")
    return maker


def job_of(maker: LogMaker) -> Job:
    found = maker.book.jobs.get(ROW)
    assert found is not None
    return found


def minute(maker: LogMaker, session: str = "") -> list[Event]:
    """The next instant is up."""
    maker.clock.advance(job_of(maker).next_at - maker.clock.now())
    return maker.due(session)


def skipped(events: list[Event]) -> list[tuple[str, int, int]]:
    return [
        (event.reason, event.first_at, event.count)
        for event in events
        if isinstance(event, facts.ExecutionsSkipped)
    ]


def held(events: list[Event]) -> list[int]:
    return [
        one
        for event in events
        if isinstance(event, facts.ExecutionsPlaced)
        for one in event.scheduled_at
        if event.cause == "overlap"
    ]


def came(events: list[Event]) -> list[int]:
    """Instants that come due."""
    kinds = facts.ExecutionsQueued | facts.ExecutionsDueGranted
    return [one for event in events if isinstance(event, kinds) for one in event.scheduled_at]


def status_of(maker: LogMaker) -> dict[int, str]:
    """Status of each open execution, by instant; a held one shows as `held`."""
    return {
        row.scheduled_at: "held" if row.is_held else row.status for _, row in maker.book.executions_of(ROW)
    }


def test_allow_runs_beside() -> None:
    maker = made("allow")
    assert came(minute(maker, "w1.1")) == [at(1)]
    assert status_of(maker) == {at(0): "running", at(1): "running"}


@pytest.mark.parametrize("policy", CHOICES["overlap"])
def test_where_nothing_is_open_it_runs(policy: str) -> None:
    maker = made(policy)
    maker.report(success(maker.running()))
    assert came(minute(maker, "w1.1")) == [at(1)]
    assert status_of(maker) == {at(1): "running"}
    assert job_of(maker).runs == 2


def _queued(maker: LogMaker) -> None:
    maker.withdraw(maker.running())


def _retrying(maker: LogMaker) -> None:
    maker.report(failure(maker.running()[0], retry_after_ms=3_600_000))


def _lost(maker: LogMaker) -> None:
    maker.lose(maker.running())


def _asked_to_stop(maker: LogMaker) -> None:
    _cancel(maker, 0)


def _run_now(maker: LogMaker) -> None:
    maker.report(success(maker.running()))
    maker.command(run_now("a"), stamp=maker.clock.now())


def _redriven(maker: LogMaker) -> None:
    maker.report(failure(maker.running()[0], is_permanent=True))
    command = RedriveExecution(
        tenant="acme", job_id="a", command_id="r", issued_at=maker.clock.now(), execution=name(0)
    )
    maker.command(command)


def _cancel(maker: LogMaker, number: int) -> None:
    command = CancelExecution(
        tenant="acme",
        job_id="a",
        command_id=f"x{number}",
        issued_at=maker.clock.now(),
        execution=name(number),
    )
    maker.command(command)


OPEN = [lambda maker: None, _queued, _retrying, _lost, _asked_to_stop, _run_now, _redriven]
OPEN_NAMES = ["running", "queued", "retrying", "lost", "asked to stop", "run-now", "redriven"]


@pytest.mark.parametrize("policy", WAITING)
@pytest.mark.parametrize("become", OPEN, ids=OPEN_NAMES)
def test_whatever_is_open_counts(policy: str, become: Any) -> None:
    maker = made(policy)
    become(maker)
    before = job_of(maker).runs
    events = minute(maker)
    if policy == "skip":
        assert (skipped(events), held(events)) == ([("overlap", at(1), 1)], [])
        assert job_of(maker).runs == before
    else:
        assert (skipped(events), held(events)) == ([], [at(1)])
        assert job_of(maker).runs == before + 1
    assert at(1) not in came(events)
    assert job_of(maker).next_at == at(2)


@pytest.mark.parametrize(("policy", "most"), [("skip", 0), ("queue_one", 1), ("queue_all", 100)])
def test_so_many_are_held_and_the_others_are_skipped(policy: str, most: int) -> None:
    maker = made(policy)
    for number in range(1, 104):
        events = minute(maker)
        if number <= most:
            assert (held(events), skipped(events)) == ([at(number)], [])
        else:
            assert (held(events), skipped(events)) == ([], [("overlap", at(number), 1)])
    assert job_of(maker).held == [name(number) for number in range(1, most + 1)]
    maker.report(success(maker.running()))
    assert len(job_of(maker).held) == max(0, most - 1)
    assert held(minute(maker)) == ([at(104)] if most > 1 else ([at(104)] if most == 1 else []))


def test_run_now_is_never_held_or_skipped() -> None:
    maker = made("queue_all")
    minute(maker)
    maker.clock.advance(5)
    maker.command(run_now("a"), stamp=maker.clock.now())
    maker.due("w1.1")
    assert sorted(status_of(maker).values()) == ["held", "running", "running"]


def test_held_ones_do_not_wait_for_the_one_instant_that_their_job_has_since_an_edit() -> None:
    """It counts as open from the start, but nothing of it runs before it comes; and it may be skipped."""
    maker = made("queue_all")
    minute(maker)
    minute(maker)
    now = maker.clock.now()
    wanted = edit("a", run_at=now + 3_600_000, issued_at=now, command_id="e")
    assert [type(event) for event in maker.command(wanted, stamp=now)] == [facts.JobEdited]
    maker.report(success(maker.running()))
    assert status_of(maker) == {at(1): "scheduled", at(2): "held"}
    maker.due("w1.1")
    maker.report(success(maker.running()))
    assert status_of(maker) == {at(2): "scheduled"}


# -- cancel_running


def test_the_one_that_runs_is_asked_to_stop_and_the_new_one_comes_after_it() -> None:
    maker = made("cancel_running")
    (running,) = maker.running()
    cancelled, placed = minute(maker)
    assert cancelled == facts.ExecutionCancelled(
        "acme", "a", "", "", "overlap", maker.clock.now(), name(0), running.token
    )
    assert isinstance(placed, facts.ExecutionsPlaced)
    assert status_of(maker) == {at(0): "running", at(1): "held"}
    token = (maker.reader.position << 16) + 0
    sent = outputs(maker.book, [(cancelled, token)], 0, 1, maker.clock.now())
    assert [output.record.cancelled for output in sent if isinstance(output, ToSession)] == [[running.token]]
    maker.report(failure(maker.running()[0]))
    assert came(maker.due("w1.1")) == [at(1)]
    assert status_of(maker) == {at(1): "running"}


def test_success_of_one_that_was_asked_to_stop_counts() -> None:
    maker = made("cancel_running")
    minute(maker)
    maker.report(success(maker.running()))
    assert came(maker.due()) == [at(1)]
    view, _ = viewed(maker.records)
    outcomes = [row.outcome for _, _, row in view.executions("acme", "a")]
    assert outcomes == ["succeeded", ""]


@pytest.mark.parametrize("become", [_queued, _retrying, _run_now, _redriven])
def test_what_waits_is_cancelled_and_the_new_one_runs_at_once(become: Any) -> None:
    maker = made("cancel_running")
    become(maker)
    events = minute(maker)
    assert sum(isinstance(event, facts.ExecutionCancelled) for event in events) == 1
    assert came(events)[-1:] == [at(1)]
    assert status_of(maker) == {at(1): "queued"}


def test_of_very_many_a_bounded_number_is_cancelled_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may come from before an edit, when the job let them run beside one another."""
    monkeypatch.setattr(overlap, "CLEARED_MAX", 2)
    maker = made("allow")
    for _ in range(3):
        minute(maker)
    maker.command(
        edit("a", cron="* * * * *", timing=Timing(overlap="cancel_running"), issued_at=maker.clock.now())
    )
    cancelled = [event for event in minute(maker) if isinstance(event, facts.ExecutionCancelled)]
    assert len(cancelled) == 2
    assert len(status_of(maker)) == 3
    assert status_of(maker)[at(4)] == "held"
    minute(maker)
    assert status_of(maker) == {at(0): "running", at(5): "held"}
    maker.report(success(maker.running()))
    assert came(maker.due()) == [at(5)]


def test_a_held_one_gives_way_to_the_next() -> None:
    maker = made("cancel_running")
    minute(maker)
    events = minute(maker)
    assert [(one.execution, one.reason) for one in events if isinstance(one, facts.ExecutionExpired)] == [
        (name(1), "overlap")
    ]
    assert not any(isinstance(event, facts.ExecutionCancelled) for event in events), "it was asked before"
    assert status_of(maker) == {at(0): "running", at(2): "held"}
    view, _ = viewed(maker.records)
    row = view.execution("acme", name(1))
    assert row is not None
    assert (row.outcome, row.last.status, row.last.error_type) == ("skipped", "skipped", "overlap")


def test_a_retry_that_comes_due_beside_the_instant_gives_way() -> None:
    """Both are up in one cycle: the retry was read before the instant."""
    maker = made("cancel_running")
    maker.report(failure(maker.running()[0], retry_after_ms=MINUTE_MS - 1))
    events = minute(maker)
    assert came(events) == [at(0), at(1)]
    assert status_of(maker) == {at(1): "queued"}


@pytest.mark.parametrize("does_come", [False, True])
def test_a_job_that_now_fires_once_lets_go_what_is_held(does_come: bool) -> None:
    """Its one instant is no execution yet: nothing waits for it, and what is held must not be forgotten when it is
    skipped."""
    maker = made("queue_all")
    minute(maker)
    now = maker.clock.now()
    maker.command(edit("a", run_at=now + MINUTE_MS, issued_at=now, timing=Timing(misfire="none")), stamp=now)
    if not does_come:
        maker.report(success(maker.running()))
        assert came(maker.due("w1.1")) == [at(1)]
    maker.clock.advance(2 * MINUTE_MS + 1)
    assert skipped(maker.due("w1.1")) == [("misfire", now + MINUTE_MS, 1)]
    maker.report(success(maker.running()))
    if does_come:
        assert came(maker.due("w1.1")) == [at(1)]
        maker.report(success(maker.running()))
    assert maker.book.jobs.get(ROW) is None


# -- after an outage


def outage(policy: str, minutes: int, *, is_busy: bool, **timing: Any) -> tuple[LogMaker, list[Event]]:
    maker = made(policy, timing=timing)
    if not is_busy:
        maker.report(success(maker.running()))
    maker.clock.advance(minutes * MINUTE_MS)
    return maker, maker.due()


@pytest.mark.parametrize(
    ("policy", "is_busy", "ran", "holds", "skips"),
    [
        ("skip", False, [1], [], [("overlap", 2, 9)]),
        ("skip", True, [], [], [("overlap", 1, 10)]),
        ("queue_one", False, [1], [2], [("overlap", 3, 8)]),
        ("queue_one", True, [], [1], [("overlap", 2, 9)]),
        ("queue_all", False, [1], list(range(2, 11)), []),
        ("queue_all", True, [], list(range(1, 11)), []),
        ("cancel_running", False, [10], [], [("overlap", 1, 9)]),
        ("cancel_running", True, [], [10], [("overlap", 1, 9)]),
    ],
)
def test_missed_instants_take_their_turns(
    policy: str, is_busy: bool, ran: list[int], holds: list[int], skips: list[tuple[str, int, int]]
) -> None:
    maker, events = outage(policy, 10, is_busy=is_busy)
    assert came(events) == [at(number) for number in ran]
    assert held(events) == [at(number) for number in holds]
    assert skipped(events) == [(reason, at(first), count) for reason, first, count in skips]
    job = job_of(maker)
    assert (job.next_at, job.held) == (at(11), [name(number) for number in holds])
    assert state.digest(folded(maker.records)) == state.digest(maker.rows)


def test_what_runs_by_its_turn_is_live() -> None:
    """One at a time floods nobody."""
    _, events = outage("queue_one", 10, is_busy=False)
    assert [event.priorities for event in events if isinstance(event, facts.ExecutionsQueued)] == [[5]]


def test_of_more_than_can_be_held_the_latest_are_skipped() -> None:
    maker, events = outage("queue_all", 150, is_busy=False, misfire_max=120)
    assert came(events) == [at(31)]
    assert held(events) == [at(number) for number in range(32, 132)]
    assert skipped(events) == [("misfire", at(1), 30), ("overlap", at(132), 19)]
    assert job_of(maker).next_at == at(151)


@pytest.mark.parametrize("policy", ["skip", "queue_one", "queue_all", "cancel_running"])
def test_the_latest_alone_takes_one_turn(policy: str) -> None:
    _, events = outage(policy, 10, is_busy=False, misfire="latest")
    assert (came(events), held(events)) == ([at(10)], [])
    assert skipped(events) == [("misfire", at(1), 9)]


def test_max_runs_counts_what_is_held() -> None:
    maker, events = outage("queue_all", 10, is_busy=False, max_runs=4)
    assert (came(events), held(events), skipped(events)) == ([at(1)], [at(2), at(3)], [])
    job = job_of(maker)
    assert (job.runs, job.next_at) == (4, -1)
    for _ in range(3):
        maker.due("w1.1")
        maker.grant("w1.1")
        maker.report(success(maker.running()))
    assert maker.book.jobs.get(ROW) is None


def test_what_is_behind_its_deadline_takes_no_turn() -> None:
    maker = made("queue_all", policy=Policy(start_deadline_ms=150_000))
    maker.report(success(maker.running()))
    maker.clock.advance(10 * MINUTE_MS)
    events = maker.due()
    assert skipped(events) == [("start_deadline", at(1), 7)]
    assert (came(events), held(events)) == ([at(8)], [at(9), at(10)])


def test_nothing_is_cancelled_for_what_does_not_run() -> None:
    """The instant is behind its deadline: what runs goes on."""
    maker = made("cancel_running", policy=Policy(start_deadline_ms=1_000))
    maker.clock.advance(MINUTE_MS + 30_000)
    events = maker.due()
    assert skipped(events) == [("start_deadline", at(1), 1)]
    assert status_of(maker) == {at(0): "running"}


# -- on the owner's desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def hand(desk: Desk) -> Hand:
    found = Hand(desk)
    found.pulse(0, held=[])
    desk.cycle()
    return found


def start(desk: Desk, hand: Hand, overlap: str, **more: Any) -> list[tuple[str, int]]:
    """Job `a` under that policy; its first instant runs."""
    desk.submit("a", cron="* * * * *", timing=Timing(overlap=overlap), **more)
    desk.cycle()
    desk.cycle(NEXT - desk.now)
    hand.pulse(5, held=[])
    desk.cycle(1)
    return hand.take()


def taken(desk: Desk, hand: Hand) -> list[tuple[str, int]]:
    """What the next cycles grant."""
    found: list[tuple[str, int]] = []
    for _ in range(3):
        desk.cycle(1)
        found += hand.take()
    return found


def status_at(desk: Desk) -> dict[int, str]:
    return {row.scheduled_at: row.status for _, row in desk.book.executions_of(ROW)}


@pytest.mark.parametrize("policy", ["skip", "queue_one", "queue_all", "cancel_running"])
def test_an_instant_that_depends_on_others_is_on_record_at_once(desk: Desk, hand: Hand, policy: str) -> None:
    hand.pulse(5, held=[])
    desk.submit("a", cron="* * * * *", timing=Timing(overlap=policy))
    desk.cycle()
    assert rows(desk.cycle(NEXT - desk.now), facts.ExecutionsQueued) == [name(0)]
    assert len(desk.core.due.held) == 0


@pytest.mark.parametrize("policy", WAITING)
def test_what_was_read_ahead_is_looked_at_again_at_its_time(desk: Desk, hand: Hand, policy: str) -> None:
    """Nothing was open when it was read."""
    grants = start(desk, hand, policy)
    hand.pulse(5, succeeded=results(grants))
    desk.cycle(10)
    desk.core.due.read_ahead(desk.now)
    run = run_now("a", issued_at=desk.now)
    desk.command(run)
    desk.cycle(10)
    desk.cycle(10)
    events = desk.cycle(at(1) - desk.now)
    assert name(1) not in rows(events, facts.ExecutionsQueued)
    assert held(events) == ([] if policy == "skip" else [at(1)])


def test_a_retry_that_waits_off_the_record_gives_way(desk: Desk, hand: Hand) -> None:
    grants = start(desk, hand, "cancel_running")
    ((execution, token),) = grants
    hand.say(
        failed=[Failed("acme", execution, token, "E", "no", False, retry_after_ms=at(1) - desk.now - 20)]
    )
    desk.cycle(10)
    desk.submit("other", after_ms=0)
    hand.pulse(1)
    desk.cycle(at(1) - 100 - desk.now)
    desk.cycle(95)
    events = desk.cycle(at(1) - desk.now)
    assert any(isinstance(event, facts.ExecutionCancelled) for event in events)
    assert name(1) in rows(events, facts.ExecutionsQueued)
    hand.pulse(9)
    assert name(0) not in [one for one, _ in taken(desk, hand)]
    assert status_at(desk) == {at(1): "running"}


def test_a_retry_that_is_on_record_at_once_gives_way(desk: Desk, hand: Hand) -> None:
    """Read a moment before the instant, in the same cycle."""
    ((execution, token),) = start(desk, hand, "cancel_running", policy=Policy(deadline_ms=3_600_000))
    after_ms = at(1) - desk.now - 20
    hand.say(failed=[Failed("acme", execution, token, "E", "no", False, retry_after_ms=after_ms)])
    desk.cycle(10)
    events = desk.cycle(at(1) - desk.now)
    assert rows(events, facts.ExecutionsQueued) == [name(0), name(1)]
    assert status_at(desk) == {at(1): "queued"}


def test_a_fresh_owner_goes_on_with_what_is_held(desk: Desk, hand: Hand) -> None:
    grants = start(desk, hand, "queue_all")
    for number in (1, 2):
        assert held(desk.cycle(at(number) - desk.now)) == [at(number)]
    ran = [name(0)]
    for _ in range(2):
        desk.open()
        hand.pulse(5, held=[token for _, token in grants])
        desk.cycle(1)
        hand.pulse(5, succeeded=results(grants))
        grants = taken(desk, hand)
        ran += [one for one, _ in grants]
    assert ran == [name(0), name(1), name(2)]
    assert state.digest(folded(desk.records)) == state.digest(desk.rows)


def test_a_void_frame_leaves_what_is_held_as_it_was(desk: Desk, hand: Hand) -> None:
    grants = start(desk, hand, "queue_one")
    assert held(desk.void(at(1) - desk.now)) == [at(1)]
    assert held(desk.cycle()) == [at(1)]
    hand.pulse(5, succeeded=results(grants))
    desk.void(1)
    hand.pulse(5)
    assert [one for one, _ in taken(desk, hand)] == [name(1)]


def test_one_that_does_not_stop_is_ended_and_the_next_one_runs(desk: Desk, hand: Hand) -> None:
    """30 s after it was asked to."""
    grants = start(desk, hand, "cancel_running")
    desk.cycle(at(1) - desk.now)
    for _ in range(40):
        desk.tick()
        hand.pulse(5, held=[token for _, token in grants])
        desk.cycle(1_000)
        if name(1) in (ran := [one for one, _ in hand.take()]):
            break
    assert ran == [name(1)]
    assert 30_000 <= desk.now - at(1) <= 36_000
