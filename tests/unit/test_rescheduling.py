"""Next instants computed anew after a change of a calendar or of the zone data, by whole cycles of an owner."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from minutebook.domain import book as state
from minutebook.domain import events as facts
from minutebook.domain import keys, rescheduling
from minutebook.domain.book import Book
from minutebook.domain.calendars import RANGES_MAX
from minutebook.domain.commands import DeclareCalendar, DeleteCalendar
from minutebook.domain.events import Event
from minutebook.domain.fold import fold
from minutebook.domain.rescheduling import TZDATA, advance, zone_data_changed
from minutebook.domain.state import NONE_AT, Cursor, Job, Rescheduling
from minutebook.domain.timing import Timing
from minutebook.errors import BrokenFrameError, ScheduleError
from minutebook.log.draft import Draft
from minutebook.schedule import TZDATA_VERSION
from streams.claiming import claim
from streams.rescheduling import BUSY_GAP_MS, GAP_MS
from streams.taken import Redo
from tests.simulation.desk import T0, Desk
from tests.simulation.folds import folded, viewed
from tests.simulation.log_maker import LogMaker, submit

DAY_MS = keys.DAY_MS
TODAY = T0 // DAY_MS
NOON = "0 12 * * *"
C = Timing(exclude=["c"])


@pytest.fixture
def desk() -> Desk:
    return Desk()


def noon(ahead: int) -> int:
    """That many days from today."""
    return (TODAY + ahead) * DAY_MS + DAY_MS // 2


def declare(desk: Desk, *days: int, name: str = "c", tenant: str = "acme") -> None:
    """These days from today; another command each time."""
    numbers = [TODAY + day for day in days]
    number = len(desk.records)
    desk.command(
        DeclareCalendar(
            tenant=tenant,
            name=name,
            command_id=f"k{number}-{name}",
            issued_at=desk.now,
            first_days=numbers,
            last_days=numbers,
        )
    )


def delete(desk: Desk, name: str = "c") -> None:
    desk.command(
        DeleteCalendar(tenant="acme", name=name, command_id=f"d{len(desk.records)}", issued_at=desk.now)
    )


def job(desk: Desk, job_id: str = "a", tenant: str = "acme") -> Job:
    found = desk.book.jobs.get(keys.job_row(tenant, job_id))
    assert found is not None
    return found


def next_days(desk: Desk, *job_ids: str) -> list[int]:
    """Days from today of the next instants; each has its row of the index, and the view tells the same."""
    view, _ = viewed(desk.records)
    found = []
    for job_id in job_ids:
        known = job(desk, job_id)
        assert (
            desk.book.index.get(keys.index_row(known.indexed_at, keys.JOB, keys.job_row("acme", job_id)))
            == b""
        )
        shown = view.job("acme", job_id)
        assert shown is not None
        assert shown[1].next_at == known.next_at == known.indexed_at
        found.append(known.next_at // DAY_MS - TODAY)
    return found


def settle(desk: Desk) -> list[facts.JobsRescheduled]:
    """Cycles until nothing is left to compute anew; what was moved."""
    found: list[facts.JobsRescheduled] = []
    for _ in range(1_000):
        found += [event for event in desk.cycle(GAP_MS) if isinstance(event, facts.JobsRescheduled)]
        if not desk.core.rescheduler.has_work():
            assert not list(desk.book.reschedulings.scan(b""))
            return found
    raise AssertionError("it never ends")


def prepared(desk: Desk, *days: int, jobs: tuple[str, ...] = ("a",), **fields: Any) -> None:
    """A calendar of these days, and jobs at noon on other days."""
    declare(desk, *days)
    desk.submit(*jobs, **({"cron": NOON, "timing": C} | fields))
    desk.cycle()
    settle(desk)


# -- after a change of a calendar


def test_next_instant_moves_later_and_earlier_with_its_calendar(desk: Desk) -> None:
    prepared(desk, 300)
    assert next_days(desk, "a") == [1]
    declare(desk, 1, 2)
    (moved,) = settle(desk)
    assert (moved.cause, moved.tenants, moved.job_ids, moved.next_at) == (
        "calendar c",
        ["acme"],
        ["a"],
        [noon(3)],
    )
    assert next_days(desk, "a") == [3]
    declare(desk, 1)
    settle(desk)
    assert next_days(desk, "a") == [2]
    delete(desk)
    settle(desk)
    assert next_days(desk, "a") == [1]
    assert state.digest(folded(desk.records)) == state.digest(desk.rows)


def test_job_runs_at_the_instant_that_moved_earlier(desk: Desk) -> None:
    prepared(desk, 1, 2)
    assert next_days(desk, "a") == [3]
    declare(desk, 2)
    settle(desk)
    events = desk.cycle(noon(1) - desk.now)
    assert [event.scheduled_at for event in events if isinstance(event, facts.ExecutionsQueued)] == [
        [noon(1)]
    ]
    assert next_days(desk, "a") == [3]


def test_only_the_jobs_of_that_calendar_and_tenant_are_looked_at(desk: Desk) -> None:
    declare(desk, 300, tenant="blue")
    declare(desk, 300, name="d")
    prepared(desk, 300)
    desk.submit("b", cron=NOON, timing=Timing(exclude=["d"]))
    desk.submit("blues", cron=NOON, timing=C, tenant="blue")
    desk.cycle()
    declare(desk, 1)
    (moved,) = settle(desk)
    assert (moved.tenants, moved.job_ids) == (["acme"], ["a"])
    assert next_days(desk, "a", "b") == [2, 1]
    assert job(desk, "blues", "blue").next_at == noon(1)


def test_a_job_that_stays_where_it_is_is_not_in_the_event(desk: Desk) -> None:
    prepared(desk, 300)
    declare(desk, 200)
    (event,) = settle(desk)
    assert (event.job_ids, event.is_finished) == ([], True)


def test_jobs_submitted_in_the_very_cycle_of_a_change_are_not_missed(desk: Desk) -> None:
    """They lie in no store yet while the change is decided."""
    declare(desk, 300)
    desk.cycle()
    desk.submit("a", cron=NOON, timing=C)
    declare(desk, 1)
    desk.submit("b", cron=NOON, timing=C)
    desk.cycle()
    settle(desk)
    assert next_days(desk, "a", "b") == [2, 2]


def test_a_job_closed_meanwhile_is_left_alone(desk: Desk) -> None:
    prepared(desk, 300, jobs=("a", "b"))
    declare(desk, 1)
    desk.cancel("a")
    desk.cycle()
    (moved,) = settle(desk)
    assert moved.job_ids == ["b"]
    assert desk.book.jobs.get(keys.job_row("acme", "a")) is None


def test_a_cancelled_job_that_has_an_execution_open_is_left_alone(desk: Desk) -> None:
    prepared(desk, 300, cron="* * * * *")
    desk.cycle(60_000)
    row = keys.job_row("acme", "a")
    desk.book.jobs.put(row, replace(job(desk), status="cancelled"))
    desk.book.commit()
    declare(desk, 0)
    assert [event.job_ids for event in settle(desk)] == [[]]


def test_a_paused_job_keeps_out_of_the_index_and_learns_its_next_instant(desk: Desk) -> None:
    prepared(desk, 300)
    row = keys.job_row("acme", "a")
    before = job(desk)
    desk.book.index.delete(keys.index_row(before.indexed_at, keys.JOB, row))
    desk.book.jobs.put(row, replace(before, status="paused", indexed_at=NONE_AT))
    desk.book.commit()
    declare(desk, 1)
    settle(desk)
    assert (job(desk).next_at, job(desk).indexed_at, job(desk).status) == (noon(2), NONE_AT, "paused")
    assert not [key for key, _ in desk.book.index.scan(b"") if keys.index_parts(key)[1] == keys.JOB]


def test_an_instant_that_is_due_is_not_taken_back(desk: Desk) -> None:
    """What is due is decided as such, by the calendar as it is then."""
    prepared(desk, 300)
    declare(desk, 5)
    events = desk.cycle(noon(1) - desk.now)
    assert [event.scheduled_at for event in events if isinstance(event, facts.ExecutionsQueued)] == [
        [noon(1)]
    ]


def freed() -> LogMaker:
    """A log in which days 1 to 3 were left out, until nobody was there any more to compute anew what comes."""
    maker = LogMaker()
    maker.open()
    for number, last in enumerate((3, 300)):
        about = {"tenant": "acme", "name": "c", "command_id": f"k{number}", "issued_at": T0}
        first = TODAY + (1 if last == 3 else last)
        maker.command(DeclareCalendar(first_days=[first], last_days=[TODAY + last], **about))  # type: ignore[arg-type]  # fields of it
        maker.command(submit("a", cron=NOON, timing=C))
        for work, reached in list(maker.book.reschedulings.scan(b""))[: last == 3]:
            maker.add(advance(maker.book, work, reached, maker.clock.now()))
    return maker


def test_instants_that_a_change_adds_are_not_lost_while_nobody_is_there() -> None:
    maker = freed()
    maker.clock.advance(noon(2) + 5_000 - T0)
    ((work, reached),) = maker.book.reschedulings.scan(b"")
    assert advance(maker.book, work, reached, maker.clock.now()).next_at == [noon(1)]


def test_instants_that_a_change_adds_are_not_lost_when_the_next_one_is_due_before_the_jobs_turn() -> None:
    maker = freed()
    maker.clock.advance(noon(4) + 5_000 - T0)
    moved, *others = maker.due()
    assert isinstance(moved, facts.JobsRescheduled)
    assert moved.next_at == [noon(1)]
    placed = [
        event for event in others if isinstance(event, facts.ExecutionsSkipped | facts.ExecutionsPlaced)
    ]
    assert min(
        event.first_at if isinstance(event, facts.ExecutionsSkipped) else event.scheduled_at[0]
        for event in placed
    ) == noon(1)


def test_what_is_due_and_not_on_record_yet_is_left_to_its_time() -> None:
    """In a flood the index is behind."""
    maker = LogMaker()
    maker.open()
    for number, day in enumerate((300, 1)):
        days = [TODAY + day]
        about = {"tenant": "acme", "name": "c", "command_id": f"k{number}", "issued_at": T0}
        maker.command(DeclareCalendar(first_days=days, last_days=days, **about))  # type: ignore[arg-type]  # fields of it
        maker.command(submit("a", cron=NOON, timing=C))
    maker.clock.advance(noon(1) + 5_000 - T0)
    ((work, reached),) = maker.book.reschedulings.scan(b"")
    assert advance(maker.book, work, reached, maker.clock.now()).job_ids == []
    (moved,) = maker.due()
    assert isinstance(moved, facts.JobsRescheduled)
    assert moved.next_at == [noon(2)]


def test_what_was_read_ahead_before_the_change_does_not_count(desk: Desk) -> None:
    prepared(desk, 300)
    desk.now = noon(1) - 5_000
    while desk.core.due.read_ahead(desk.now):
        if desk.core.due.ahead():
            break
    declare(desk, 1, 2)
    desk.cycle()
    events = desk.cycle(noon(1) - desk.now)
    assert not [event for event in events if isinstance(event, facts.ExecutionsQueued)]
    assert next_days(desk, "a") == [3]


def test_an_instant_with_calendars_does_not_wait_off_the_record(desk: Desk) -> None:
    """What follows it may change meanwhile."""
    prepared(desk, 300)
    desk.core.due.held.put = None  # type: ignore[method-assign, assignment]  # to be called by nobody
    events = desk.cycle(noon(1) - desk.now)
    assert [type(event) for event in events] == [facts.ExecutionsQueued]


# -- piece by piece


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rescheduling, "LOOKED_AT_MAX", 4)


JOBS = tuple(f"j{number:02}" for number in range(10))


@pytest.mark.usefixtures("small")
def test_a_step_looks_at_a_bounded_number_and_the_next_goes_on_there(desk: Desk) -> None:
    prepared(desk, 300, jobs=JOBS)
    declare(desk, 1)
    moved = settle(desk)
    assert [event.job_ids for event in moved] == [list(JOBS[:4]), list(JOBS[4:8]), list(JOBS[8:])]
    assert [event.is_finished for event in moved] == [False, False, True]
    assert next_days(desk, *JOBS) == [2] * 10


@pytest.mark.usefixtures("small")
def test_the_next_owner_goes_on_where_the_last_one_was(desk: Desk) -> None:
    prepared(desk, 300, jobs=JOBS)
    declare(desk, 1)
    desk.cycle()
    (first,) = desk.cycle(GAP_MS)
    assert isinstance(first, facts.JobsRescheduled)
    assert state.digest(folded(desk.records)) == state.digest(desk.rows)
    desk.open()
    assert [event.job_ids for event in settle(desk)] == [list(JOBS[4:8]), list(JOBS[8:])]
    assert next_days(desk, *JOBS) == [2] * 10
    assert state.digest(folded(desk.records)) == state.digest(desk.rows)


@pytest.mark.usefixtures("small")
def test_a_void_frame_leaves_the_work_where_it_was(desk: Desk) -> None:
    prepared(desk, 300, jobs=JOBS)
    declare(desk, 1)
    desk.void()
    assert desk.book.known_calendars.get("acme", "c") is not None
    desk.cycle()
    assert [type(event) for event in desk.void(GAP_MS)] == [facts.JobsRescheduled]
    assert next(event.job_ids for event in settle(desk)) == list(JOBS[:4])
    assert next_days(desk, *JOBS) == [2] * 10


@pytest.mark.usefixtures("small")
def test_a_further_change_starts_over(desk: Desk) -> None:
    prepared(desk, 300, jobs=JOBS)
    declare(desk, 1)
    desk.cycle()
    desk.cycle(GAP_MS)
    declare(desk, 1, 2)
    settle(desk)
    assert next_days(desk, *JOBS) == [3] * 10


@pytest.mark.usefixtures("small")
def test_jobs_cancelled_and_added_during_the_work_change_nothing_for_the_rest(desk: Desk) -> None:
    prepared(desk, 300, jobs=JOBS)
    declare(desk, 1)
    desk.cycle()
    desk.cycle(GAP_MS)
    desk.cancel(JOBS[3])
    desk.cancel(JOBS[4])
    desk.submit("j00b", "j05b", cron=NOON, timing=C)
    settle(desk)
    left = [name for name in (*JOBS, "j00b", "j05b") if name not in JOBS[3:5]]
    assert next_days(desk, *left) == [2] * 10


@pytest.mark.usefixtures("small")
def test_live_work_goes_first_but_not_for_ever(desk: Desk) -> None:
    prepared(desk, 300, jobs=JOBS)
    declare(desk, 1)
    desk.cycle(BUSY_GAP_MS)
    desk.burst.until = desk.now + 10 * BUSY_GAP_MS
    assert desk.cycle(GAP_MS) != []
    for _ in range(BUSY_GAP_MS // GAP_MS - 1):
        assert desk.cycle(GAP_MS) == []
    assert [type(event) for event in desk.cycle(GAP_MS)] == [facts.JobsRescheduled]


def test_idle_owner_knows_when_the_next_step_is(desk: Desk) -> None:
    prepared(desk, 300)
    assert desk.core.next_at() is None
    declare(desk, 1)
    desk.cycle()
    at = desk.core.next_at()
    assert at is not None
    assert at <= desk.now + GAP_MS
    settle(desk)
    assert desk.core.next_at() is None


def test_work_that_cannot_be_decided_is_passed_over(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(desk, 300)
    declare(desk, 1)
    desk.cycle()

    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("streams.rescheduling.advance", fails)
    with pytest.raises(Redo):
        desk.cycle(GAP_MS)
    assert desk.cycle(GAP_MS) == []
    monkeypatch.undo()
    desk.open()
    settle(desk)
    assert next_days(desk, "a") == [2]


def test_an_advance_of_what_is_not_under_way_breaks_the_frame(desk: Desk) -> None:
    event = facts.JobsRescheduled("", [], [], [], [], "calendar:acme:c", b"", False)
    with pytest.raises(BrokenFrameError, match="not under way"):
        fold(desk.book, event, 0, T0)


# -- after a change of the zone data


def test_another_version_of_the_zone_data_starts_the_work() -> None:
    book = Desk().book
    assert zone_data_changed(book, TZDATA_VERSION) == []
    started = facts.ReschedulingStarted(TZDATA, f"tzdata {TZDATA_VERSION} to y")
    assert zone_data_changed(book, "y") == [started]
    book.advance(Cursor())
    assert zone_data_changed(book, "y") == []


@pytest.mark.parametrize("tzdata", ["x", TZDATA_VERSION])
def test_an_owner_that_takes_over_with_another_zone_data_starts_the_work(desk: Desk, tzdata: str) -> None:
    desk.book.advance(replace(desk.book.cursor, tzdata=tzdata))
    process = SimpleNamespace(owner_id="other", log_id="log-1", partitions=1)
    draft = Draft(desk.book, desk.reader.position + 1, desk.now)
    claim(draft, desk.book, process, 0, 7)  # type: ignore[arg-type]  # as much of a process as a claim sees
    expected: list[Event] = [facts.OwnershipTaken("other", 2, 7, 0)]
    if tzdata == "x":
        expected.append(facts.ReschedulingStarted(TZDATA, f"tzdata x to {TZDATA_VERSION}"))
    assert draft.events == expected
    desk.book.commit()
    desk.open()
    assert desk.core.rescheduler.has_work() == (tzdata == "x")


def test_the_book_knows_by_which_zone_data_its_last_frame_was_decided() -> None:
    maker = LogMaker()
    maker.open()
    assert maker.book.cursor.tzdata == TZDATA_VERSION
    maker.void(b"junk")
    assert Book(maker.rows).cursor.tzdata == TZDATA_VERSION


@pytest.mark.usefixtures("small")
def test_every_job_that_another_zone_data_moves_is_moved(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instants computed by an older zone data: an hour off."""
    desk.submit(*JOBS, cron=NOON, zone="Europe/Berlin")
    desk.submit("once", after_ms=DAY_MS)
    desk.submit("interval", every_ms=DAY_MS, run_at=None)
    desk.cycle()
    right = [job(desk, name).next_at for name in JOBS]
    for name in JOBS[::2]:
        row, known = keys.job_row("acme", name), job(desk, name)
        desk.book.index.delete(keys.index_row(known.indexed_at, keys.JOB, row))
        moved = known.next_at + 3_600_000
        desk.book.index.put(keys.index_row(moved, keys.JOB, row), b"")
        desk.book.jobs.put(row, replace(known, next_at=moved, indexed_at=moved))
    once, interval = job(desk, "once"), job(desk, "interval")
    (started,) = zone_data_changed(desk.book, "y")
    desk.book.reschedulings.put(TZDATA.encode(), Rescheduling(started.cause, desk.now))
    desk.book.commit()
    desk.open()
    moved_ids = [name for event in settle(desk) for name in event.job_ids]
    assert moved_ids == list(JOBS[::2])
    assert [job(desk, name).next_at for name in JOBS] == right
    assert (job(desk, "once"), job(desk, "interval")) == (once, interval)


def test_a_zone_that_is_gone_leaves_what_was_computed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.submit("a", cron=NOON, zone="Europe/Berlin")
    desk.cycle()
    before = job(desk)

    def gone(*_: object) -> None:
        raise ScheduleError("zone", "not there")

    monkeypatch.setattr("minutebook.domain.plans.next_at", gone)
    desk.book.reschedulings.put(TZDATA.encode(), Rescheduling("tzdata x to y", desk.now))
    desk.book.commit()
    desk.open()
    assert [event.job_ids for event in settle(desk)] == [[]]
    assert job(desk) == before


def test_a_calendar_of_the_largest_size_is_no_trouble(desk: Desk) -> None:
    declare(desk, *range(1, 2 * RANGES_MAX, 2))
    desk.submit("a", cron=NOON, timing=C)
    desk.cycle()
    settle(desk)
    assert next_days(desk, "a") == [2]
