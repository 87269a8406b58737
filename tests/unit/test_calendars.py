"""Calendars from the command to every partition, and what they leave of the instants of jobs."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import FAMILIES, Book
from minutebook.domain.calendars import DAY_LAST, RANGES_MAX, merged
from minutebook.domain.commands import DeclareCalendar, DeleteCalendar
from minutebook.domain.events import Event
from minutebook.domain.outputs import ToPartition, outputs
from minutebook.domain.plans import next_at, plan_of
from minutebook.domain.records import CalendarFact, Mail
from minutebook.domain.state import NONE_AT, Calendar, Spec
from minutebook.domain.subjects import key_of
from minutebook.domain.timing import Timing
from minutebook.store.memory import MemoryRows
from minutebook.wire import codec, topics
from tests.simulation.desk import Desk
from tests.simulation.folds import viewed
from tests.simulation.log_maker import T0, LogMaker, cancel, edit, pause, resume, submit

TODAY = T0 // keys.DAY_MS
DAY_MS = keys.DAY_MS
NOON = "0 12 * * *"
Ranges = list[tuple[int, int]]


@pytest.fixture
def maker() -> LogMaker:
    made = LogMaker()
    made.open()
    return made


def declare(name: str, ranges: Ranges, command_id: str = "k1", **more: Any) -> DeclareCalendar:
    about = {"tenant": "acme", "actor": "me", "issued_at": T0, "command_id": command_id}
    first, last = [first for first, _ in ranges], [last for _, last in ranges]
    return DeclareCalendar(**({"name": name, "first_days": first, "last_days": last} | about | more))


def delete(name: str, command_id: str = "d1") -> DeleteCalendar:
    return DeleteCalendar(tenant="acme", name=name, command_id=command_id, issued_at=T0, reason="over")


def copied(*fact: Any) -> facts.CalendarCopied:
    return facts.CalendarCopied("acme", *fact)


def refusal(events: list[Event]) -> tuple[str, str]:
    (event,) = events
    assert isinstance(event, facts.CommandRejected), event
    assert event.detail
    return event.reason, event.field


def next_of(maker: LogMaker, job_id: str) -> int:
    """The next instant of an open job; owner and view agree on it."""
    job = maker.book.jobs.get(keys.job_row("acme", job_id))
    assert job is not None
    found = viewed(maker.records)[0].job("acme", job_id)
    assert found is not None
    assert found[1].next_at == job.next_at
    return job.next_at


def noon(day: int) -> int:
    return day * DAY_MS + DAY_MS // 2


# -- at home


def test_a_calendar_is_declared_sorted_and_merged_at_its_home(maker: LogMaker) -> None:
    command = declare("holidays", [(30, 30), (10, 12), (13, 13), (11, 11)], reason="2026")
    fact = ("acme", "holidays", 1, [10, 30], [13, 30], False)
    assert maker.command(command, stamp=T0 + 5) == [
        facts.CalendarDeclared(*fact, "k1", "me", "2026", T0 + 5),
        facts.CalendarCopied(*fact),
    ]
    assert maker.book.known_calendars.get("acme", "holidays") == Calendar(1, [10, 30], [13, 30])
    assert maker.book.known_calendars.get("blue", "holidays") is None


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ([(1, 1)], [(1, 1)]),
        ([(1, 5), (2, 3)], [(1, 5)]),
        ([(1, 2), (3, 4)], [(1, 4)]),
        ([(1, 2), (4, 4)], [(1, 2), (4, 4)]),
        ([(9, 9), (1, 1), (9, 12), (1, 1)], [(1, 1), (9, 12)]),
    ],
)
def test_ranges_are_sorted_and_merged(given: Ranges, found: Ranges) -> None:
    assert merged(given) == found


def test_a_calendar_declared_alike_stays_and_differently_changes(maker: LogMaker) -> None:
    maker.command(declare("c", [(10, 12)]))
    assert maker.command(declare("c", [(10, 10), (11, 12)], "k2")) == [
        facts.CommandAnswered("acme", "calendar:c", "k2", "exists", "DeclareCalendar", "me")
    ]
    assert maker.command(declare("c", [(10, 13)], "k3"))[1] == copied("c", 2, [10], [13], False)


def test_a_deleted_calendar_comes_back_as_a_later_version(maker: LogMaker) -> None:
    maker.command(declare("c", [(10, 12)]))
    assert maker.command(delete("c"))[1] == copied("c", 2, [], [], True)
    assert maker.book.known_calendars.get("acme", "c") is None
    assert maker.command(delete("c", "d2")) == [
        facts.CommandAnswered("acme", "calendar:c", "d2", "exists", "DeleteCalendar", "", "over")
    ]
    assert maker.command(declare("c", [(10, 12)], "k2"))[1] == copied("c", 3, [10], [12], False)


def test_only_a_calendar_that_was_declared_is_deleted(maker: LogMaker) -> None:
    assert refusal(maker.command(delete("c"))) == ("not_found", "name")


def test_the_same_command_again_changes_nothing(maker: LogMaker) -> None:
    maker.command(declare("c", [(10, 12)]))
    assert maker.command(declare("c", [(10, 12)])) == []


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"first_days": [], "last_days": []}, "dates"),
        ({"first_days": [5], "last_days": [4]}, "dates"),
        ({"first_days": [-1], "last_days": [4]}, "dates"),
        ({"first_days": [5], "last_days": [DAY_LAST + 1]}, "dates"),
        ({"first_days": [2 * n for n in range(RANGES_MAX + 1)]} | {"last_days": [2 * n for n in range(RANGES_MAX + 1)]}, "dates"),
        ({"first_days": [5], "last_days": []}, "last_days"),
        ({"tenant": "a b"}, "tenant"),
        ({"name": "a b"}, "name"),
        ({"name": ""}, "name"),
        ({"command_id": ""}, "command_id"),
    ],
    ids=lambda wrong: str(wrong)[:40],
)  # fmt: skip
def test_a_senseless_calendar_is_refused(maker: LogMaker, wrong: dict[str, Any], field: str) -> None:
    assert refusal(maker.command(declare(**({"name": "c", "ranges": [(1, 1)]} | wrong)))) == (
        "invalid",
        field,
    )
    assert maker.book.known_calendars.get("acme", "c") is None


def test_as_much_as_is_allowed_is_taken(maker: LogMaker) -> None:
    ranges = [(2 * n, 2 * n) for n in range(RANGES_MAX - 1)] + [(DAY_LAST, DAY_LAST)]
    assert maker.command(declare("c", ranges))[1] == copied(
        "c", 1, *map(list, zip(*ranges, strict=True)), False
    )
    # More of them are fine where they lie in a row.
    maker.command(declare("d", [(n, n) for n in range(5_000)], "k2"))
    assert maker.book.known_calendars.get("acme", "d") == Calendar(1, [0], [4_999])


# -- at every partition


def test_all_partitions_but_the_home_get_mail(maker: LogMaker) -> None:
    events = maker.command(declare("c", [(10, 12)]))
    found = outputs(maker.book, [(event, (7 << 16) + row) for row, event in enumerate(events)], 1, 3, T0)
    fact = CalendarFact("acme", "c", 1, [10], [12], False)
    assert found == [ToPartition(other, Mail(1, 7, 0, fact)) for other in (0, 2)]


def test_a_calendar_that_came_by_mail_is_known_and_mail_that_comes_again_changes_nothing() -> None:
    desk = Desk()
    mail = Mail(3, 5, 0, CalendarFact("acme", "c", 2, [10], [12], False))
    for _ in range(2):
        desk.inputs[topics.MAIL].add(codec.encode(mail), desk.now)
    assert desk.cycle() == [facts.MailTaken(3, 5, 0), copied("c", 2, [10], [12], False)]
    assert desk.book.known_calendars.get("acme", "c") == Calendar(2, [10], [12])


@pytest.mark.parametrize("version", [1, 2])
def test_a_copy_of_a_version_that_is_not_newer_changes_nothing(maker: LogMaker, version: int) -> None:
    maker.add(copied("c", 2, [10], [12], False))
    maker.add(copied("c", version, [1], [1], False))
    assert maker.book.known_calendars.get("acme", "c") == Calendar(2, [10], [12])
    known = viewed(maker.records)[0].calendar("acme", "c")
    assert known is not None
    assert (known.version, known.first_days) == (2, [10])


def test_a_command_on_a_calendar_goes_to_its_home() -> None:
    command = declare("c", [(1, 1)])
    home = topics.partition_of(key_of(command), 4)
    for partition in range(4):
        desk = Desk(partition, 4)
        desk.inputs[topics.COMMANDS].add(codec.encode(command), desk.now, b"calendar:acme:c")
        found = [type(event) for event in desk.cycle()]
        expected = [facts.CalendarDeclared, facts.CalendarCopied]
        assert found == (expected if partition == home else [facts.CommandForwarded])


# -- what is left of the instants of a job


@pytest.mark.parametrize("field", ["exclude", "include"])
def test_a_job_with_an_unknown_calendar_is_refused(maker: LogMaker, field: str) -> None:
    job = submit("a", cron=NOON, timing=Timing(**{field: ["c"]}))
    assert refusal(maker.command(job)) == ("unknown_calendar", f"calendars/{field}")
    maker.command(declare("c", [(1, 1)], tenant="blue"))
    again = submit("a", cron=NOON, timing=Timing(**{field: ["c"]}))
    assert refusal(maker.command(again)) == ("unknown_calendar", f"calendars/{field}")
    maker.command(declare("c", [(1, 1)], "k2"))
    maker.command(delete("c"))
    last = submit("a", cron=NOON, timing=Timing(**{field: ["c"]}))
    assert refusal(maker.command(last)) == ("unknown_calendar", f"calendars/{field}")


def test_a_job_that_its_calendars_leave_no_instant_is_refused(maker: LogMaker) -> None:
    maker.command(declare("past", [(1, TODAY - 1)]))
    job = submit("a", cron=NOON, timing=Timing(include=["past"]))
    assert refusal(maker.command(job)) == ("invalid", "calendars")


@pytest.mark.parametrize(
    ("timing", "expected"),
    [
        (Timing(exclude=["next3"]), [4, 5, 6]),
        (Timing(include=["next3"]), [1, 2, 3]),
        (Timing(include=["next3"], exclude=["second"]), [1, 3]),
        (Timing(include=["second", "fifth"]), [2, 5]),
        (Timing(exclude=["second", "fifth"]), [1, 3, 4]),
        (Timing(include=["next3", "fifth"], exclude=["second"]), [1, 3, 5]),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("rule", [{"cron": NOON}, {"every_ms": DAY_MS}], ids=str)
def test_instants_fall_on_allowed_dates_alone(
    maker: LogMaker, rule: dict[str, Any], timing: Timing, expected: list[int]
) -> None:
    maker.command(declare("next3", [(TODAY + 1, TODAY + 3)], "k1"))
    maker.command(declare("second", [(TODAY + 2, TODAY + 2)], "k2"))
    maker.command(declare("fifth", [(TODAY + 5, TODAY + 5)], "k3"))
    maker.command(submit("a", timing=timing, **rule))
    spec = maker.book.specs.get(keys.spec_row(keys.job_row("acme", "a"), 1))
    assert spec is not None
    after, found = T0, []
    for _ in expected:
        after = next_at(maker.book, "acme", "a", spec, after)
        found.append(after // DAY_MS - TODAY)
    assert found == expected
    if len(expected) == 2:
        assert next_at(maker.book, "acme", "a", spec, after) == NONE_AT


@pytest.mark.parametrize(
    ("zone", "instant"),
    [
        ("UTC", "2025-12-25T12:00:00"),
        ("Pacific/Kiritimati", "2025-12-24T12:00:00"),  # 02:00 on the 25th there
        ("Pacific/Pago_Pago", "2025-12-26T10:00:00"),  # 23:00 on the 25th there
    ],
)
def test_dates_are_those_of_the_jobs_zone(zone: str, instant: str) -> None:
    book = Book(MemoryRows(FAMILIES))
    christmas = (date(2025, 12, 25) - date(1970, 1, 1)).days
    book.known_calendars.put("acme", "c", Calendar(1, [christmas], [christmas]))
    at = int(datetime.fromisoformat(instant).replace(tzinfo=UTC).timestamp() * 1_000)
    for timing, is_allowed in ((Timing(include=["c"]), True), (Timing(exclude=["c"]), False)):
        spec = Spec("t", "q", 5, b"", "0 * * * *", zone, 1_000, "", explicit_timing=timing)
        assert plan_of(book, "acme", "a", spec).allows(at) == is_allowed
        assert (next_at(book, "acme", "a", spec, at - 1) == at) == is_allowed


def test_what_follows_from_a_calendar_follows_its_changes_and_forgets_what_was_void() -> None:
    book = Book(MemoryRows(FAMILIES))
    spec = Spec("t", "q", 5, b"", NOON, "UTC", 1_000, "", explicit_timing=Timing(exclude=["c"]))

    def first() -> int:
        return next_at(book, "acme", "a", spec, T0) // DAY_MS - TODAY

    assert first() == 1
    book.known_calendars.put("acme", "c", Calendar(1, [TODAY + 1], [TODAY + 2]))
    assert first() == 3
    book.discard()
    assert first() == 1
    book.known_calendars.put("acme", "c", Calendar(1, [TODAY + 1], [TODAY + 3]))
    book.commit()
    assert first() == 4
    book.known_calendars.put("acme", "c", Calendar(2, is_deleted=True))
    assert first() == 1
    book.discard()
    assert first() == 4
    # Another tenant's calendar of that name has no say.
    assert next_at(book, "blue", "a", spec, T0) // DAY_MS - TODAY == 1


# -- at its time


def test_an_instant_that_is_off_its_dates_by_then_is_moved(maker: LogMaker) -> None:
    """The calendar changed and the next instant was not computed anew before it came due."""
    maker.command(declare("c", [(1, 1)]))
    maker.command(submit("a", cron=NOON, timing=Timing(exclude=["c"])))
    assert next_of(maker, "a") == noon(TODAY + 1)
    maker.command(declare("c", [(TODAY + 1, TODAY + 2)], "k2"))
    maker.clock.advance(noon(TODAY + 1) - T0)
    (event,) = maker.due()
    assert isinstance(event, facts.JobsRescheduled)
    assert (event.job_ids, event.next_at, event.work) == (["a"], [noon(TODAY + 3)], "")
    assert next_of(maker, "a") == noon(TODAY + 3)
    maker.clock.advance(2 * DAY_MS)
    (queued,) = maker.due()
    assert isinstance(queued, facts.ExecutionsQueued)
    assert queued.scheduled_at == [noon(TODAY + 3)]


def test_missed_instants_are_those_of_allowed_dates(maker: LogMaker) -> None:
    maker.command(declare("c", [(TODAY + 1, TODAY + 1)]))
    maker.command(submit("a", cron="0 */6 * * *", timing=Timing(exclude=["c"])))
    maker.clock.advance(2 * DAY_MS + DAY_MS // 4)
    runs = facts.ExecutionsPlaced | facts.ExecutionsQueued
    found = [at for event in maker.due() if isinstance(event, runs) for at in event.scheduled_at]
    assert found
    assert TODAY + 1 not in {at // DAY_MS for at in found}


def test_a_job_without_an_instant_on_the_new_dates_comes_to_its_end(maker: LogMaker) -> None:
    maker.command(declare("c", [(TODAY, TODAY + 9)]))
    maker.command(submit("a", cron=NOON, timing=Timing(include=["c"])))
    maker.command(declare("c", [(1, 1)], "k2"))
    maker.clock.advance(noon(TODAY + 1) - T0)
    maker.due()
    assert maker.book.jobs.get(keys.job_row("acme", "a")) is None
    found = viewed(maker.records)[0].job("acme", "a")
    assert found is not None
    assert (found[1].status, found[1].next_at) == ("completed", NONE_AT)
    assert not list(maker.book.calendar_jobs.scan(b""))


# -- which jobs depend on a calendar


def test_a_calendar_knows_its_jobs_until_they_are_closed(maker: LogMaker) -> None:
    maker.command(declare("c", [(1, 1)], "k1"), declare("d", [(1, 1)], "k2"))
    maker.command(submit("a", cron=NOON, timing=Timing(exclude=["c", "d"])))
    maker.command(submit("b", cron=NOON, timing=Timing(include=["c"], exclude=["d"], end_at=T0 + 1)))
    maker.command(submit("plain", cron=NOON))
    rows = [keys.calendar_job_row("acme", name, "a") for name in "cd"]
    assert [row for row, _ in maker.book.calendar_jobs.scan(b"")] == rows
    maker.command(cancel("a"))
    assert not list(maker.book.calendar_jobs.scan(b""))


def test_an_edit_takes_a_job_out_of_a_calendar_and_into_another(maker: LogMaker) -> None:
    maker.command(declare("c", [(TODAY + 1, TODAY + 1)], "k1"), declare("d", [(TODAY + 2, TODAY + 3)], "k2"))
    maker.command(submit("a", cron=NOON, timing=Timing(exclude=["c"])))
    assert next_of(maker, "a") == noon(TODAY + 2)
    maker.command(edit("a", cron=NOON, timing=Timing(exclude=["d"])))
    assert next_of(maker, "a") == noon(TODAY + 1)
    assert [row for row, _ in maker.book.calendar_jobs.scan(b"")] == [keys.calendar_job_row("acme", "d", "a")]
    assert list(viewed(maker.records)[0].calendar_jobs("acme", "d")) == ["a"]
    refused = maker.command(edit("a", cron=NOON, timing=Timing(exclude=["e"])))
    assert refusal(refused) == ("unknown_calendar", "calendars/exclude")
    maker.command(edit("a", cron=NOON))
    assert not list(maker.book.calendar_jobs.scan(b""))


@pytest.mark.parametrize(
    ("off", "owed"),
    [([1], []), ([2], [1]), ([1, 2], []), ([0], [1])],
    ids=str,
)
def test_an_edit_owes_only_what_the_calendars_leave_by_then(
    maker: LogMaker, off: list[int], owed: list[int]
) -> None:
    """The instant came due, is not on record yet, and the calendar changed before."""
    maker.command(declare("c", [(1, 1)]))
    maker.command(submit("a", cron=NOON, timing=Timing(exclude=["c"])))
    maker.command(declare("c", [(TODAY + day, TODAY + day) for day in off], "k2"))
    maker.clock.advance(noon(TODAY + 1) + 5_000 - T0)
    events = maker.command(edit("a", cron="30 12 * * *", timing=Timing(exclude=["c"])))
    queued = [
        at for event in events if isinstance(event, facts.ExecutionsQueued) for at in event.scheduled_at
    ]
    assert queued == [noon(TODAY + day) for day in owed]
    half_past = next(TODAY + day for day in (1, 2, 3) if day not in off)
    assert next_of(maker, "a") == noon(half_past) + 1_800_000


def test_an_edit_frees_a_job_that_its_calendars_leave_nothing(maker: LogMaker) -> None:
    maker.command(declare("c", [(TODAY + 1, TODAY + 1)]))
    maker.command(submit("a", cron=NOON, timing=Timing(include=["c"])))
    maker.command(declare("c", [(1, 1)], "k2"))
    maker.clock.advance(noon(TODAY + 1) + 5_000 - T0)
    events = maker.command(edit("a", cron=NOON))
    assert [type(event) for event in events] == [facts.JobEdited]
    assert next_of(maker, "a") == noon(TODAY + 2)


def test_moved_instants_that_are_up_too_come_in_the_same_decision(maker: LogMaker) -> None:
    maker.command(declare("c", [(1, 1)]))
    maker.command(submit("a", cron=NOON, timing=Timing(exclude=["c"])))
    maker.command(declare("c", [(TODAY + 1, TODAY + 1)], "k2"))
    maker.clock.advance(noon(TODAY + 2) - T0)
    moved, queued = maker.due()
    assert isinstance(moved, facts.JobsRescheduled)
    assert isinstance(queued, facts.ExecutionsQueued)
    assert queued.scheduled_at == [noon(TODAY + 2)]
    assert next_of(maker, "a") == noon(TODAY + 3)


def test_what_a_pause_leaves_out_are_instants_of_the_dates_as_they_are_at_its_end(maker: LogMaker) -> None:
    maker.command(declare("c", [(1, 1)]))
    maker.command(submit("a", cron=NOON, timing=Timing(exclude=["c"])))
    maker.command(pause("a"))
    maker.clock.advance(noon(TODAY + 4) - T0)
    maker.command(declare("c", [(TODAY + 1, TODAY + 1), (TODAY + 3, TODAY + 3)], "k2"))
    _, skipped = maker.command(resume("a"))
    assert isinstance(skipped, facts.ExecutionsSkipped)
    assert (skipped.first_at, skipped.last_at, skipped.count) == (noon(TODAY + 2), noon(TODAY + 4), 2)
    assert next_of(maker, "a") == noon(TODAY + 5)


def test_jitter_does_not_make_a_date_another(maker: LogMaker) -> None:
    """The date is that of the instant; it may be due on the day after."""
    maker.command(declare("c", [(TODAY + 2, TODAY + 2)]))
    maker.command(submit("a", cron="59 23 * * *", timing=Timing(exclude=["c"], jitter_ms=DAY_MS // 2)))
    job = maker.book.jobs.get(keys.job_row("acme", "a"))
    assert job is not None
    found = []
    for _ in range(8):
        maker.clock.advance(DAY_MS // 2)
        found += [
            at
            for event in maker.due()
            if isinstance(event, facts.ExecutionsQueued)
            for at in event.scheduled_at
        ]
    assert [at // DAY_MS - TODAY for at in found] == [0, 1, 3]
