"""Backfills, decided by whole cycles of several owners: which past instants run, once, and what becomes of the others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from minutebook import ids
from minutebook.domain import backfill, keys, operation_steps
from minutebook.domain import book as state
from minutebook.domain import events as facts
from minutebook.domain.commands import EditJob, PauseJob, ResumeJob, SubmitJob
from minutebook.domain.events import Event
from minutebook.domain.policy import Policy
from minutebook.domain.state import UNCHANGED, Job
from minutebook.domain.timing import Timing
from minutebook.log.draft import Draft
from minutebook.schedule import Cron
from tests.simulation.desk import T0, Desk, Hand, results
from tests.simulation.desks import TENANT, Desks
from tests.simulation.folds import folded

HOUR = 3_600_000
DAY = 24 * HOUR
LAST = T0 - T0 % HOUR
"""The last full hour."""


@pytest.fixture
def desks() -> Desks:
    return Desks()


def hours(first: int, last: int) -> list[int]:
    """Full hours, counted from the last one before T0."""
    return [LAST + number * HOUR for number in range(first, last + 1)]


def fill(desks: Desks, from_at: int, until_at: int, job: str = "a", **given: Any) -> None:
    desks.start(kind="backfill", job_id=job, from_at=from_at, until_at=until_at, **given)


def filled(desks: Desks) -> list[int]:
    """Instants that were placed by a backfill, as often as they were."""
    placed = [event for _, _, event in desks.log(facts.ExecutionsPlaced)]
    return [at for event in placed if event.cause == "backfill" for at in event.scheduled_at]  # type: ignore[union-attr]


def job_of(desks: Desks, job: str = "a") -> Job:
    found = desks.desk_of(ids.job_key(TENANT, job)).book.jobs.get(keys.job_row(TENANT, job))
    assert found is not None
    return found


def hourly(desks: Desks, job: str = "a", **fields: Any) -> None:
    """A job that is created at T0."""
    desks.submit(job, **({"cron": "@hourly"} | fields))
    desks.cycle()


def keep(desk: Desk, *events: Event) -> None:
    """A frame of these events."""
    draft = Draft(desk.book, desk.reader.position + 1, desk.now)
    for event in events:
        draft.add(event)
    desk.keep(draft, desk.core)


def skip(desks: Desks, instants: Sequence[int], reason: str = "paused", job: str = "a") -> None:
    """The instants were skipped on record, and it is an hour later than the last of them."""
    after = instants[-1] + HOUR
    desks.wait(max(0, after - 1 - desks.now))
    desk = desks.desk_of(ids.job_key(TENANT, job))
    count = len(instants)
    keep(desk, facts.ExecutionsSkipped(TENANT, job, reason, instants[0], instants[-1], count, after))


def come(desks: Desks, count: int) -> None:
    """So many instants of the jobs come due and are queued, one an hour."""
    for _ in range(count):
        desks.wait(HOUR)
        for _ in range(3):
            desks.cycle()


def check_folds(desks: Desks) -> None:
    for desk in desks.desks:
        assert state.digest(folded(desk.records)) == state.digest(desk.rows)


def figures(ended: facts.OperationEnded) -> tuple[int, int, int]:
    return ended.matched, ended.done, ended.refused


# -- which of them


def test_instants_before_the_job_was_created_run(desks: Desks) -> None:
    hourly(desks)
    before = job_of(desks)
    desks.cycle(1)
    fill(desks, LAST - 4 * HOUR, LAST + 1)
    assert figures(desks.until_ended()) == (5, 5, 0)
    assert filled(desks) == hours(-4, 0)
    after = job_of(desks)
    assert (after.next_at, after.runs, after.open) == (before.next_at, before.runs, 5)
    check_folds(desks)


def test_each_execution_has_the_id_of_its_instant_and_is_due_when_it_is_placed(desks: Desks) -> None:
    hourly(desks)
    desks.cycle(1)
    fill(desks, LAST, LAST + 1)
    desks.until_ended()
    ((_, at, event),) = desks.log(facts.ExecutionsPlaced)
    assert (event.due_at, event.place_at, event.next_at) == ([at], [at], UNCHANGED)  # type: ignore[union-attr]
    assert (event.cause, event.operation, event.version) == ("backfill", "op", 1)  # type: ignore[union-attr]
    desks.cycle()
    book = desks.desk_of(f"{TENANT}/a").book
    execution = book.execution(keys.execution_row(TENANT, ids.execution_id("a", LAST)))
    assert execution is not None
    assert (execution.status, execution.scheduled_at, execution.is_catch_up) == ("queued", LAST, True)


@pytest.mark.parametrize(
    ("first", "last", "meant", "refused"),
    [
        (3, 6, hours(3, 6), 0),
        (4, 5, hours(4, 5), 0),
        (1, 8, hours(3, 6), 4),
        (5, 8, hours(5, 6), 2),
        (-1, 3, [*hours(-1, 0), *hours(3, 3)], 2),
        (1, 2, [], 2),
        (7, 8, [], 2),
    ],
)
def test_instants_of_a_skipped_range_run_and_those_around_it_do_not(
    first: int, last: int, meant: list[int], refused: int, desks: Desks
) -> None:
    """Hours 1 and 2 ran, 3 to 6 were skipped, 7 and 8 ran."""
    hourly(desks)
    come(desks, 2)
    skip(desks, hours(3, 6))
    come(desks, 2)
    desks.cycle(1)
    fill(desks, LAST + first * HOUR, LAST + last * HOUR + 1)
    assert figures(desks.until_ended()) == (last - first + 1, len(meant), refused)
    assert filled(desks) == meant
    check_folds(desks)


def test_ranges_skipped_on_several_days_are_found(desks: Desks) -> None:
    hourly(desks)
    skip(desks, hours(1, 3), "misfire")
    come(desks, 1)
    skip(desks, hours(5, 40), "paused")
    skip(desks, hours(41, 41), "overlap")
    skip(desks, hours(42, 42), "overlap")
    come(desks, 2)
    desks.cycle(1)
    fill(desks, LAST + HOUR, LAST + 44 * HOUR + 1)
    assert figures(desks.until_ended()) == (44, 41, 3)
    assert filled(desks) == [*hours(1, 3), *hours(5, 42)]


def test_range_skipped_in_the_same_cycle_counts(desks: Desks) -> None:
    """What is pending in the owner's memory is as good as what is stored."""
    desks = Desks(1)
    hourly(desks)
    desks.wait(2 * HOUR)
    book = desks.desks[0].book
    draft = Draft(book, desks.desks[0].reader.position + 1, desks.now)
    first, last = hours(1, 2)
    draft.add(facts.ExecutionsSkipped(TENANT, "a", "paused", first, last, 2, last + HOUR))
    row = keys.job_row(TENANT, "a")
    job = book.jobs.get(row)
    assert job is not None
    never_ran = backfill._NeverRan(book, row, job)
    assert [at for at in hours(0, 3) if at in never_ran] == hours(0, 2)


def test_what_was_skipped_too_long_ago_is_refused(desks: Desks) -> None:
    hourly(desks, timing=Timing(misfire="none"))
    skip(desks, hours(1, 6))
    desks.wait(9 * DAY)
    desks.cycle()
    desks.cycle(1)
    fill(desks, LAST, LAST + 6 * HOUR + 1)
    assert figures(desks.until_ended()) == (7, 1, 6)
    assert filled(desks) == hours(0, 0)
    kept = [keys.instant_of(key) for desk in desks.desks for key, _ in desk.book.skips.scan(b"")]
    assert kept
    assert min(kept) > LAST + 6 * HOUR


def test_what_is_not_decided_yet_is_refused(desks: Desks) -> None:
    """Instants from the job's next one on may still run by themselves: those of a pause that goes on."""
    hourly(desks)
    desk = desks.desk_of(f"{TENANT}/a")
    keep(desk, facts.JobPaused(TENANT, "a", "p", "", "", desks.now, "command"))
    desks.wait(5 * HOUR)
    fill(desks, LAST - HOUR, LAST + 4 * HOUR)
    assert figures(desks.until_ended()) == (5, 2, 3)
    assert filled(desks) == hours(-1, 0)


def test_job_that_is_paused_is_filled_all_the_same() -> None:
    """What it skipped in an earlier pause runs; what belongs to the pause that goes on waits for its end."""
    desks = Desks(1)
    desk = desks.desks[0]
    hand = Hand(desk, lease_ms=600_000_000)
    hourly(desks)
    tell(desks, PauseJob, "p1")
    tell(desks, ResumeJob, "r1", after_ms=3 * HOUR)
    come(desks, 1)
    tell(desks, PauseJob, "p2")
    desks.wait(2 * HOUR)
    fill(desks, LAST - HOUR, desks.now)
    assert figures(desks.until_ended()) == (8, 5, 3)
    assert filled(desks) == [*hours(-1, 0), *hours(1, 3)]
    hand.pulse(9, held=[])
    assert set(run(desks, hand)) >= {ids.execution_id("a", at) for at in hours(-1, 3)}
    tell(desks, ResumeJob, "r2")
    desks.cycle(1)
    fill(desks, LAST - HOUR, desks.now, operation="again")
    assert figures(desks.until_ended()) == (8, 2, 6)
    check_folds(desks)


def tell(desks: Desks, kind: type[PauseJob | ResumeJob], command_id: str, after_ms: int = 0) -> None:
    """A command about the job, and a cycle that decides it."""
    desks.wait(after_ms)
    desk = desks.desk_of(f"{TENANT}/a")
    desk.command(kind(tenant=TENANT, job_id="a", command_id=command_id, issued_at=desk.now))
    desks.cycle()


def test_instants_are_those_of_the_schedule_as_it_is_since_the_last_edit(desks: Desks) -> None:
    """Hours 1 and 2 ran, 3 to 5 fell into a pause; then every half hour. What ran under the old schedule does not again."""
    hourly(desks)
    come(desks, 2)
    tell(desks, PauseJob, "p")
    tell(desks, ResumeJob, "r", after_ms=3 * HOUR)
    desk = desks.desk_of(f"{TENANT}/a")
    wanted = SubmitJob(
        tenant=TENANT,
        job_id="a",
        command_id="e",
        issued_at=desk.now,
        task="u",
        payload=b"2",
        cron="*/30 * * * *",
    )
    desk.command(EditJob(tenant=TENANT, job_id="a", command_id="e", issued_at=desk.now, job=wanted))
    desks.cycle()
    desks.cycle(1)
    fill(desks, LAST - HOUR, desks.now)
    ended = desks.until_ended()
    halves = [LAST + number * HOUR // 2 for number in range(-2, 11)]
    never_ran = [at for at in halves if at <= T0 or LAST + 3 * HOUR <= at <= LAST + 5 * HOUR]
    assert filled(desks) == never_ran
    assert figures(ended) == (13, len(never_ran), 13 - len(never_ran))
    assert {event.version for _, _, event in desks.log(facts.ExecutionsPlaced)} == {2}  # type: ignore[union-attr]
    check_folds(desks)


def test_dates_that_a_calendar_leaves_out_have_no_instants(desks: Desks) -> None:
    day = (T0 - 3 * DAY) // DAY
    for desk in desks.desks:
        keep(desk, facts.CalendarCopied(TENANT, "closed", 1, [day], [day], False))
    hourly(desks, cron="0 12 * * *", timing=Timing(exclude=["closed"]))
    desks.cycle(1)
    fill(desks, T0 - 5 * DAY, T0)
    noons = [number * DAY + DAY // 2 for number in range(day - 2, day + 4)]
    meant = [at for at in noons if T0 - 5 * DAY <= at < T0 and at // DAY != day]
    assert figures(desks.until_ended()) == (len(meant), len(meant), 0)
    assert filled(desks) == meant


# -- once


def test_repeated_backfill_runs_nothing(desks: Desks) -> None:
    hourly(desks)
    skip(desks, hours(1, 6))
    desks.cycle(1)
    fill(desks, LAST - 2 * HOUR, LAST + 6 * HOUR + 1)
    assert figures(desks.until_ended()) == (9, 9, 0)
    desks.cycle(1)
    fill(desks, LAST - 2 * HOUR, LAST + 6 * HOUR + 1, operation="again")
    assert figures(desks.until_ended()) == (9, 0, 9)
    assert len(filled(desks)) == 9


def test_instant_runs_once_also_after_its_execution_has_ended() -> None:
    desks = Desks(1)
    hand = Hand(desks.desks[0], lease_ms=600_000)
    hourly(desks)
    desks.cycle(1)
    fill(desks, LAST, LAST + 1)
    desks.until_ended()
    hand.pulse(5, held=[])
    run(desks, hand)
    assert job_of(desks).open == 0
    desks.cycle(1)
    fill(desks, LAST, LAST + 1, operation="again")
    assert figures(desks.until_ended()) == (1, 0, 1)


def run(desks: Desks, hand: Hand, cycles: int = 4, after_ms: int = 0) -> list[str]:
    """The executions that are granted within so many cycles; each succeeds at once."""
    ran = []
    for _ in range(cycles):
        desks.cycle(after_ms)
        grants = hand.take()
        hand.pulse(5, succeeded=results(grants))
        ran += [name for name, _ in grants]
    return ran


def test_cancelled_backfill_goes_on_where_it_stopped_when_it_is_started_again(desks: Desks) -> None:
    hourly(desks)
    desks.cycle(1)
    fill(desks, LAST - 59 * HOUR, LAST + 1, rate_per_s=20)
    for _ in range(10):
        desks.cycle(100)
    desks.cancel()
    ended = desks.until_ended()
    assert ended.is_cancelled
    assert 0 < ended.done < 60
    desks.cycle(1)
    fill(desks, LAST - 59 * HOUR, LAST + 1, operation="again")
    assert figures(desks.until_ended()) == (60, 60 - ended.done, ended.done)
    assert filled(desks) == hours(-59, 0)
    check_folds(desks)


def test_fresh_owner_goes_on_from_what_is_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """After every step the owner dies, and frames turn out void in between."""
    monkeypatch.setattr(operation_steps, "DONE_MAX", 7)
    monkeypatch.setattr(operation_steps, "LOOKED_AT_MAX", 9)
    desks = Desks()
    hourly(desks)
    skip(desks, hours(1, 6))
    come(desks, 4)
    desks.cycle(1)
    fill(desks, LAST - 49 * HOUR, LAST + 10 * HOUR + 1)
    for _ in range(200):
        for desk in desks.desks:
            desk.void()
            desk.open()
        if any(isinstance(event, facts.OperationEnded) for event in desks.cycle(100)):
            break
    (ended,) = desks.ended()
    assert figures(ended) == (60, 56, 4)
    assert filled(desks) == hours(-49, 6)
    check_folds(desks)


# -- schedules


def test_instants_follow_the_rules_for_clock_changes(desks: Desks) -> None:
    """A week with the gap and one with the fold of Europe/Berlin."""
    desks.wait(1_764_000_000_000 - T0)
    hourly(desks, cron="30 2 * * *", zone="Europe/Berlin")
    desks.cycle(1)
    rule = Cron("30 2 * * *", "Europe/Berlin")
    for number, start in enumerate((1_743_033_600_000, 1_761_350_400_000)):
        before = len(filled(desks))
        fill(desks, start, start + 7 * DAY, operation=f"op{number}")
        assert desks.until_ended().done == 7
        found = filled(desks)[before:]
        assert found == rule_instants(rule, start, start + 7 * DAY)


def rule_instants(rule: Cron, start: int, end: int) -> list[int]:
    first, last = (datetime.fromtimestamp(at / 1000, UTC) for at in (start, end))
    return [round(at.timestamp() * 1000) for at in rule.between(first, last)]


def test_interval_has_instants_from_its_start(desks: Desks) -> None:
    start_at = T0 - 10 * HOUR + 5
    hourly(desks, cron=None, every_ms=HOUR, timing=Timing(start_at=start_at))
    desks.cycle(1)
    fill(desks, T0 - 20 * HOUR, T0)
    assert figures(desks.until_ended()) == (10, 10, 0)
    assert filled(desks) == [start_at + number * HOUR for number in range(10)]


def test_interval_without_a_start_has_none_before_it_was_created(desks: Desks) -> None:
    hourly(desks, cron=None, every_ms=HOUR)
    desks.cycle(1)
    fill(desks, T0 - 20 * HOUR, T0)
    assert figures(desks.until_ended()) == (0, 0, 0)


# -- how many at once


def test_rate_is_kept(desks: Desks) -> None:
    hourly(desks)
    desks.cycle(1)
    fill(desks, LAST - 20 * HOUR, LAST + 1, rate_per_s=30)
    desks.until_ended(after_ms=10)
    times = [at for _, at, event in desks.log(facts.ExecutionsPlaced) for _ in event.scheduled_at]  # type: ignore[union-attr]
    assert len(times) == 21
    assert times[-1] - times[0] >= 1_900, "10 a second: the part of one partition of three"


def test_step_places_and_looks_at_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation_steps, "DONE_MAX", 4)
    desks = Desks(1)
    hourly(desks)
    desks.cycle(1)
    fill(desks, LAST - 19 * HOUR, LAST + 1)
    desks.until_ended()
    sizes = [len(event.scheduled_at) for _, _, event in desks.log(facts.ExecutionsPlaced)]  # type: ignore[union-attr]
    assert sizes == [4, 4, 4, 4, 4]


def test_nothing_is_added_while_enough_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation_steps, "WAITING_MAX", 5)
    monkeypatch.setattr(operation_steps, "DONE_MAX", 2)
    desks = Desks(1)
    hourly(desks)
    desks.cycle(1)
    fill(desks, LAST - 29 * HOUR, LAST + 1)
    for _ in range(50):
        desks.cycle(100)
    assert 5 <= len(filled(desks)) < 10
    Hand(desks.desks[0], lease_ms=600_000).pulse(100, held=[])
    desks.until_ended()
    assert len(filled(desks)) == 30


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "queue_all", "cancel_running"])
def test_executions_that_must_not_overlap_run_one_after_the_other(overlap: str) -> None:
    desks = Desks(1)
    hand = Hand(desks.desks[0], lease_ms=600_000)
    hourly(desks, timing=Timing(overlap=overlap))
    desks.cycle(1)
    fill(desks, LAST - 3 * HOUR, LAST + 1)
    hand.pulse(5, held=[])
    ran: list[str] = []
    for _ in range(60):
        ran += run(desks, hand, 1, 100)
        assert job_of(desks).open <= 1
    assert ran == [ids.execution_id("a", at) for at in hours(-3, 0)]
    assert figures(desks.ended()[0]) == (4, 4, 0)


# -- what cannot be filled


def refusals(desks: Desks) -> list[tuple[str, str, str]]:
    return [
        (event.job_id, event.reason, event.field)  # type: ignore[union-attr]
        for _, _, event in desks.log(facts.CommandRejected)
    ]


def test_job_that_is_closed_is_refused_and_says_why(desks: Desks) -> None:
    hourly(desks)
    desks.desk_of(f"{TENANT}/a").cancel("a")
    desks.cycle(1)
    fill(desks, LAST - HOUR, LAST + 1)
    assert figures(desks.until_ended()) == (0, 0, 0)
    assert refusals(desks) == [("a", "job_closed", "filter/job_id")]


def test_job_that_is_closed_midway_has_all_that_is_left_refused(desks: Desks) -> None:
    hourly(desks)
    desks.cycle(1)
    fill(desks, LAST - 59 * HOUR, LAST + 1, rate_per_s=20)
    for _ in range(10):
        desks.cycle(100)
    done = len(filled(desks))
    desks.desk_of(f"{TENANT}/a").cancel("a")
    assert figures(desks.until_ended()) == (60, done, 60 - done)
    assert 0 < done < 60
    assert refusals(desks) == [("a", "job_closed", "filter/job_id")]
    check_folds(desks)


@pytest.mark.parametrize("has_ended", [True, False])
def test_job_without_an_instant_left_is_refused_also_while_it_still_runs(has_ended: bool) -> None:
    """What is open keeps a job that was cancelled, or whose schedule has ended."""
    desks = Desks(1)
    desk = desks.desks[0]
    hourly(desks, timing=Timing(end_at=LAST + HOUR + 1 if has_ended else None))
    desks.wait(HOUR)
    Hand(desk, lease_ms=600_000_000).pulse(1, held=[])
    for _ in range(3):
        desks.cycle()
    if not has_ended:
        desk.cancel("a")
        desks.cycle()
    assert job_of(desks).open == 1
    desks.cycle(1)
    fill(desks, LAST - HOUR, LAST + 1)
    assert figures(desks.until_ended()) == (0, 0, 0)
    assert refusals(desks) == [("a", "job_closed", "filter/job_id")]


def test_job_that_fires_once_is_refused(desks: Desks) -> None:
    desks.submit("a", after_ms=HOUR)
    desks.cycle(1)
    fill(desks, LAST - HOUR, LAST + 1)
    assert figures(desks.until_ended()) == (0, 0, 0)
    assert refusals(desks) == [("a", "invalid", "filter/job_id")]


def test_job_that_is_not_there_has_nothing_to_fill(desks: Desks) -> None:
    fill(desks, LAST - HOUR, LAST + 1)
    assert figures(desks.until_ended()) == (0, 0, 0)
    assert refusals(desks) == []


def test_too_many_instants_are_refused(desks: Desks) -> None:
    hourly(desks, cron="* * * * * *")
    desks.cycle(1)
    fill(desks, T0 - 100_001_000, T0 - 1)
    assert figures(desks.until_ended()) == (0, 0, 0)
    assert refusals(desks) == [("a", "invalid", "filter/until")]


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"job_id": ""}, "filter/job_id"),
        ({"job_id": "a b"}, "filter/job_id"),
        ({"from_at": -1}, "filter/from"),
        ({"until_at": -1}, "filter/until"),
        ({"until_at": LAST - HOUR}, "filter/until"),
        ({"until_at": T0 + 1}, "filter/until"),
        ({"from_at": T0 - 366 * DAY - 1, "until_at": T0}, "filter/until"),
        ({"task": "t"}, "filter/task"),
        ({"queue": "q"}, "filter/queue"),
        ({"error_type": "E"}, "filter/error_type"),
        ({"cause": "losses"}, "filter/cause"),
        ({"job_prefix": "a"}, "filter/job_prefix"),
    ],
)
def test_filter_that_is_none_is_refused(wanted: dict[str, Any], field: str, desks: Desks) -> None:
    given: dict[str, Any] = {"job_id": "a", "from_at": LAST - HOUR, "until_at": LAST} | wanted
    desks.start(kind="backfill", **given)
    desks.cycle()
    ((_, _, refused),) = desks.log(facts.CommandRejected)
    assert (refused.reason, refused.field) == ("invalid", field)  # type: ignore[union-attr]


def test_redrive_of_one_job_is_refused(desks: Desks) -> None:
    desks.start(job_id="a")
    desks.cycle()
    ((_, _, refused),) = desks.log(facts.CommandRejected)
    assert (refused.reason, refused.field) == ("invalid", "filter/job_id")  # type: ignore[union-attr]


# -- beside live work


def test_deadlines_count_from_when_an_instant_is_filled(desks: Desks) -> None:
    desks = Desks(1)
    hand = Hand(desks.desks[0], lease_ms=600_000)
    hourly(desks, policy=Policy(start_deadline_ms=HOUR, deadline_ms=2 * HOUR))
    desks.cycle(1)
    fill(desks, LAST - 5 * HOUR, LAST - 4 * HOUR)
    desks.until_ended()
    hand.pulse(5, held=[])
    assert run(desks, hand) == [ids.execution_id("a", LAST - 5 * HOUR)]
    desks.cycle(1)
    fill(desks, LAST - 4 * HOUR, LAST - 3 * HOUR, operation="again")
    desks.until_ended()
    desks.desks[0].open()
    expired = [event for event in desks.cycle(HOUR) if isinstance(event, facts.ExecutionExpired)]
    assert [event.reason for event in expired] == ["start_deadline"]


def test_what_is_filled_is_forgotten_when_the_job_closes(desks: Desks) -> None:
    hourly(desks, "a")
    hourly(desks, "ab")
    desks.cycle(1)
    for job in ("a", "ab"):
        fill(desks, LAST - 5 * HOUR, LAST + 1, job=job, operation=job)
        desks.until_ended()
    desks.desk_of(f"{TENANT}/a").cancel("a")
    desks.cycle()
    left = [key for desk in desks.desks for key, _ in desk.book.filled.scan(b"")]
    assert len(left) == 6
    assert all(key.startswith(keys.job_row(TENANT, "ab") + b":") for key in left)
    check_folds(desks)
