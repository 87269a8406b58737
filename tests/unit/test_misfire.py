"""What a schedule missed while nobody decided: what runs all the same, what is skipped, each instant accounted for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.events import Event
from minutebook.domain.missed import GRACE_MS
from minutebook.domain.policy import Policy
from minutebook.domain.state import NONE_AT, Job
from minutebook.domain.timing import Timing
from minutebook.schedule import parse_cron
from minutebook.schedule.plan import Plan
from tests.simulation.desk import Desk
from tests.simulation.log_maker import T0, LogMaker, execution_of, run_now, submit, success

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, keys.DAY_MS
NEXT_MINUTE = (T0 // MINUTE_MS + 1) * MINUTE_MS
NEXT_HOUR = (T0 // HOUR_MS + 1) * HOUR_MS


@pytest.fixture
def maker() -> LogMaker:
    made = LogMaker()
    made.open()
    return made


def job_of(maker: LogMaker) -> Job | None:
    return maker.book.jobs.get(keys.job_row("acme", "a"))


def absent(maker: LogMaker, until: int) -> list[Event]:
    """Nobody decides until then; what is on record of what was missed."""
    maker.clock.advance(until - maker.clock.now())
    return maker.due()


def runs(events: list[Event]) -> list[int]:
    """Instants that come due now."""
    return [at for event in events if isinstance(event, facts.ExecutionsQueued) for at in event.scheduled_at]


def made_up(events: list[Event]) -> list[int]:
    """Instants that are made up for behind all live work."""
    return [
        at
        for event in events
        if isinstance(event, facts.ExecutionsPlaced)
        for at in event.scheduled_at
        if event.cause == "misfire"
    ]


def skipped(events: list[Event]) -> list[tuple[str, int, int, int]]:
    """(reason, first, last, count) of each stretch."""
    return [
        (event.reason, event.first_at, event.last_at, event.count)
        for event in events
        if isinstance(event, facts.ExecutionsSkipped)
    ]


# -- one instant, late


@pytest.mark.parametrize("misfire", ["all", "latest", "none"])
@pytest.mark.parametrize("late_ms", [0, 1, GRACE_MS])
def test_an_instant_up_to_a_minute_late_runs(maker: LogMaker, misfire: str, late_ms: int) -> None:
    maker.command(submit("a", cron="0 * * * *", timing=Timing(misfire=misfire, misfire_window_ms=1)))
    events = absent(maker, NEXT_HOUR + late_ms)
    assert (runs(events), skipped(events)) == ([NEXT_HOUR], [])


@pytest.mark.parametrize(
    ("misfire", "late_ms", "does_run"),
    [
        ("all", GRACE_MS + 1, True),
        ("all", 30 * MINUTE_MS, True),
        ("all", 30 * MINUTE_MS + 1, False),
        ("latest", GRACE_MS + 1, True),
        ("latest", 30 * MINUTE_MS, True),
        ("latest", 30 * MINUTE_MS + 1, False),
        ("none", GRACE_MS + 1, False),
    ],
)
def test_a_missed_instant_runs_by_its_policy(
    maker: LogMaker, misfire: str, late_ms: int, does_run: bool
) -> None:
    timing = Timing(misfire=misfire, misfire_window_ms=30 * MINUTE_MS)
    maker.command(submit("a", cron="0 * * * *", timing=timing))
    events = absent(maker, NEXT_HOUR + late_ms)
    assert runs(events) == ([NEXT_HOUR] if does_run else [])
    assert skipped(events) == ([] if does_run else [("misfire", NEXT_HOUR, NEXT_HOUR, 1)])
    assert made_up(events) == [], "alone it holds up nothing"
    job = job_of(maker)
    assert job is not None
    assert (job.next_at, job.runs) == (NEXT_HOUR + HOUR_MS, int(does_run))


@pytest.mark.parametrize(
    ("misfire", "late_ms", "does_run"),
    [
        ("all", 400 * DAY_MS, True),
        ("latest", 400 * DAY_MS, True),
        ("none", GRACE_MS, True),
        ("none", GRACE_MS + 1, False),
    ],
)
def test_a_job_that_fires_once_runs_however_late_unless_told_otherwise(
    maker: LogMaker, misfire: str, late_ms: int, does_run: bool
) -> None:
    timing = Timing(misfire=misfire, misfire_window_ms=1)
    maker.command(submit("a", run_at=T0 + 1_000, timing=timing))
    events = absent(maker, T0 + 1_000 + late_ms)
    assert runs(events) == ([T0 + 1_000] if does_run else [])
    assert skipped(events) == ([] if does_run else [("misfire", T0 + 1_000, T0 + 1_000, 1)])
    assert (job_of(maker) is None) == (not does_run)


# -- many


def test_each_of_a_day_runs_made_up_for_one_after_the_other(maker: LogMaker) -> None:
    maker.command(submit("a", cron="*/30 * * * *"))
    job = job_of(maker)
    assert job is not None
    (event,) = absent(maker, T0 + DAY_MS)
    assert isinstance(event, facts.ExecutionsPlaced)
    assert event.scheduled_at == event.due_at == [job.next_at + n * 30 * MINUTE_MS for n in range(48)]
    assert event.place_at == [T0 + DAY_MS + n * 50 for n in range(48)]
    assert event.next_at == event.scheduled_at[-1] + 30 * MINUTE_MS > maker.clock.now()


def test_live_instants_are_not_held_up_by_those_made_up_for(maker: LogMaker) -> None:
    timing = Timing(misfire_max=2_000, misfire_window_ms=2 * DAY_MS)
    maker.command(submit("a", cron="* * * * *", timing=timing))
    absent(maker, NEXT_MINUTE + 2_000 * MINUTE_MS - 1)
    live = NEXT_MINUTE + 2_000 * MINUTE_MS
    maker.clock.advance(1)
    event = maker.due()[-1]
    assert isinstance(event, facts.ExecutionsQueued)
    priorities = dict(zip(event.scheduled_at, event.priorities, strict=True))
    assert priorities == {NEXT_MINUTE: -1, live: 5}, "at its time, while the others have only begun"
    maker.clock.advance(1_999 * 50)
    assert len(runs(maker.due())) == 1_998 + 1, "20 a second; the next live one has come up meanwhile"


def test_the_latest_hundred_run_and_the_others_are_skipped_on_record(maker: LogMaker) -> None:
    maker.command(submit("a", cron="* * * * *"))
    events = absent(maker, NEXT_MINUTE + 249 * MINUTE_MS)
    first, second, third = events
    assert first == facts.ExecutionsSkipped(
        "acme",
        "a",
        "misfire",
        NEXT_MINUTE,
        NEXT_MINUTE + 149 * MINUTE_MS,
        150,
        NEXT_MINUTE + 150 * MINUTE_MS,
    )
    assert isinstance(second, facts.ExecutionsPlaced)
    assert second.scheduled_at == [NEXT_MINUTE + n * MINUTE_MS for n in range(150, 248)]
    assert isinstance(third, facts.ExecutionsQueued)
    assert third.scheduled_at == [NEXT_MINUTE + n * MINUTE_MS for n in (248, 249)], "not a minute late"
    assert (second.next_at, third.next_at) == (
        third.scheduled_at[0],
        [third.scheduled_at[1], NEXT_MINUTE + 250 * MINUTE_MS],
    )
    job = job_of(maker)
    assert job is not None
    assert (job.runs, job.open) == (100, 100)


def test_instants_older_than_the_window_are_skipped(maker: LogMaker) -> None:
    maker.command(submit("a", cron="0 * * * *"))
    events = absent(maker, NEXT_HOUR + 40 * HOUR_MS)
    assert skipped(events) == [("misfire", NEXT_HOUR, NEXT_HOUR + 15 * HOUR_MS, 16)]
    ran = made_up(events) + runs(events)
    assert ran == [NEXT_HOUR + n * HOUR_MS for n in range(16, 41)], "the one just a day old counts"


def test_nothing_within_the_window_is_nothing_to_run(maker: LogMaker) -> None:
    maker.command(submit("a", cron="0 * * * *", timing=Timing(misfire_window_ms=10 * MINUTE_MS)))
    events = absent(maker, NEXT_HOUR + 5 * HOUR_MS + 11 * MINUTE_MS)
    assert (runs(events), made_up(events)) == ([], [])
    assert skipped(events) == [("misfire", NEXT_HOUR, NEXT_HOUR + 5 * HOUR_MS, 6)]
    job = job_of(maker)
    assert job is not None
    assert job.next_at == NEXT_HOUR + 6 * HOUR_MS


@pytest.mark.parametrize("late_ms", [0, 10 * MINUTE_MS])
def test_of_many_only_the_latest_runs(maker: LogMaker, late_ms: int) -> None:
    maker.command(submit("a", cron="0 * * * *", timing=Timing(misfire="latest")))
    events = absent(maker, NEXT_HOUR + 9 * HOUR_MS + late_ms)
    assert runs(events) == [NEXT_HOUR + 9 * HOUR_MS]
    assert skipped(events) == [("misfire", NEXT_HOUR, NEXT_HOUR + 8 * HOUR_MS, 9)]


def test_the_latest_runs_within_its_window_only(maker: LogMaker) -> None:
    timing = Timing(misfire="latest", misfire_window_ms=10 * MINUTE_MS)
    maker.command(submit("a", cron="0 * * * *", timing=timing))
    events = absent(maker, NEXT_HOUR + 9 * HOUR_MS + 10 * MINUTE_MS + 1)
    assert runs(events) == []
    assert skipped(events) == [("misfire", NEXT_HOUR, NEXT_HOUR + 9 * HOUR_MS, 10)]


def test_none_runs_what_came_within_the_last_minute(maker: LogMaker) -> None:
    maker.command(submit("a", cron="*/20 * * * * *", timing=Timing(misfire="none")))
    first = T0 - T0 % 20_000 + 20_000
    events = absent(maker, first + 100 * 20_000)
    assert runs(events) == [first + n * 20_000 for n in (97, 98, 99, 100)], "just a minute late counts"
    assert made_up(events) == []
    assert skipped(events) == [("misfire", first, first + 96 * 20_000, 97)]


def test_a_short_stall_of_a_fast_schedule_is_no_catching_up(maker: LogMaker) -> None:
    """What is not a minute late stands with all live work, or a hiccup would put it behind everything."""
    maker.command(submit("a", cron="* * * * * *"))
    first = T0 - T0 % SECOND_MS + SECOND_MS
    events = absent(maker, first + 3 * SECOND_MS)
    assert runs(events) == [first + n * SECOND_MS for n in range(4)]
    assert (made_up(events), skipped(events)) == ([], [])


@pytest.mark.parametrize("misfire", ["all", "latest", "none"])
def test_deadlines_hold_for_what_is_made_up_for(maker: LogMaker, misfire: str) -> None:
    policy = Policy(start_deadline_ms=150_000)
    maker.command(submit("a", cron="* * * * *", policy=policy, timing=Timing(misfire=misfire)))
    now = NEXT_MINUTE + 9 * MINUTE_MS + 20_000
    events = absent(maker, now)
    ran = made_up(events) + runs(events)
    assert ran == [
        NEXT_MINUTE + n * MINUTE_MS for n in {"all": (7, 8, 9), "latest": (9,), "none": (9,)}[misfire]
    ]
    assert sum(count for _, _, _, count in skipped(events)) + len(ran) == 10
    reasons = {"all": ["start_deadline"], "latest": ["misfire"], "none": ["misfire"]}
    assert [reason for reason, _, _, _ in skipped(events)] == reasons[misfire]


def test_two_reasons_are_two_stretches_in_order(maker: LogMaker) -> None:
    policy = Policy(start_deadline_ms=150_000)
    maker.command(submit("a", cron="* * * * *", policy=policy, timing=Timing(misfire_max=5)))
    events = absent(maker, NEXT_MINUTE + 9 * MINUTE_MS)
    assert skipped(events) == [
        ("misfire", NEXT_MINUTE, NEXT_MINUTE + 4 * MINUTE_MS, 5),
        ("start_deadline", NEXT_MINUTE + 5 * MINUTE_MS, NEXT_MINUTE + 6 * MINUTE_MS, 2),
    ]
    nexts = [event.next_at for event in events[:-1]]  # type: ignore[union-attr]
    assert nexts == [NEXT_MINUTE + n * MINUTE_MS for n in (5, 7, 8)], "each names where the next one begins"


def test_a_schedule_that_ended_meanwhile_has_no_next_instant(maker: LogMaker) -> None:
    timing = Timing(end_at=NEXT_HOUR + 3 * HOUR_MS)
    maker.command(submit("a", cron="0 * * * *", timing=timing))
    events = absent(maker, NEXT_HOUR + 9 * HOUR_MS)
    assert made_up(events) == [NEXT_HOUR + n * HOUR_MS for n in range(3)]
    job = job_of(maker)
    assert job is not None
    assert (job.next_at, job.open) == (NONE_AT, 3)
    maker.clock.advance(1_000)
    maker.due("w1.1")
    maker.report(success(maker.running()))
    assert job_of(maker) is None


def test_a_schedule_that_ended_meanwhile_and_runs_nothing_is_closed(maker: LogMaker) -> None:
    timing = Timing(end_at=NEXT_HOUR + 3 * HOUR_MS, misfire="none")
    maker.command(submit("a", cron="0 * * * *", timing=timing))
    events = absent(maker, NEXT_HOUR + 9 * HOUR_MS)
    assert skipped(events) == [("misfire", NEXT_HOUR, NEXT_HOUR + 2 * HOUR_MS, 3)]
    assert job_of(maker) is None


@pytest.mark.parametrize(
    ("zone", "from_at"),
    [("Europe/Berlin", 1_774_000_000_000), ("America/New_York", 1_793_000_000_000), ("UTC", T0)],
)
def test_counts_are_exact_across_clock_changes(zone: str, from_at: int) -> None:
    """A day on which 02:30 is twice, one on which it is not: as many as there are, not as days went by."""
    maker = LogMaker(now=from_at)
    maker.open()
    maker.command(submit("a", cron="*/15 1-3 * * *", zone=zone, issued_at=from_at))
    job = job_of(maker)
    assert job is not None
    plan = Plan(parse_cron("*/15 1-3 * * *"), zone)
    until = from_at + 300 * DAY_MS
    instants = list(plan.each(job.next_at - 1, until))
    events = absent(maker, until)
    kept = [at for at in instants[-100:] if until - at <= DAY_MS]
    assert made_up(events) + runs(events) == kept
    dropped = instants[: len(instants) - len(kept)]
    assert skipped(events) == [("misfire", dropped[0], dropped[-1], len(dropped))]


def test_an_instant_on_record_counts_whatever_the_rule_says_by_now(maker: LogMaker) -> None:
    """Time zones change; what was promised is accounted for."""
    maker.command(submit("a", cron="0 * * * *"))
    (event,) = [one for one in maker.last.events if isinstance(one, facts.JobSubmitted)]
    odd = T0 + 7 * MINUTE_MS
    maker.add(replace(event, job_id="b", next_at=odd))
    events = [one for one in absent(maker, NEXT_HOUR + 30 * HOUR_MS) if getattr(one, "job_id", "") == "b"]
    assert skipped(events) == [("misfire", odd, NEXT_HOUR + 5 * HOUR_MS, 7)]


# -- ten years of seconds


class Asked:
    """How often plans were asked for an instant or a count."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        for name in ("next", "previous", "count"):
            monkeypatch.setattr(Plan, name, self._counted(getattr(Plan, name)))

    def _counted(self, method):  # type: ignore[no-untyped-def]  # any method
        def counted(*args: object) -> object:
            self.times += 1
            return method(*args)

        return counted


@pytest.mark.parametrize("misfire", ["all", "latest", "none"])
@pytest.mark.parametrize("when", [{"cron": "* * * * * *"}, {"every_ms": 1_000}], ids=["cron", "every"])
def test_ten_years_of_seconds_cost_no_walk_through_them(
    maker: LogMaker, monkeypatch: pytest.MonkeyPatch, misfire: str, when: dict[str, object]
) -> None:
    maker.command(submit("a", timing=Timing(misfire=misfire), **when))
    job = job_of(maker)
    assert job is not None
    asked = Asked(monkeypatch)
    ten_years_ms = 3_652 * DAY_MS
    events = absent(maker, job.next_at + ten_years_ms)
    kept = {"all": 100, "latest": 1, "none": 61}[misfire]
    assert len(runs(events)) + len(made_up(events)) == kept
    ((reason, first, last, count),) = skipped(events)
    assert (reason, first, count) == ("misfire", job.next_at, 3_652 * 86_400 + 1 - kept)
    assert last == job.next_at + ten_years_ms - kept * SECOND_MS
    assert asked.times <= 2 * kept + 70


def test_catching_up_of_many_jobs_fits_into_frames() -> None:
    desk = Desk()
    timing = Timing(misfire_max=10_000, misfire_window_ms=30 * DAY_MS)
    desk.submit(*(f"j{n}" for n in range(8)), cron="* * * * *", timing=timing)
    desk.cycle()
    desk.now += 10 * DAY_MS
    placed = []
    while events := desk.cycle():
        placed += [len(event.scheduled_at) for event in events if isinstance(event, facts.ExecutionsPlaced)]
        if len(placed) == 8:
            break
    assert placed == [9_999] * 8


# -- max_runs


def ran(maker: LogMaker) -> Iterator[int]:
    """Instants as they come due and succeed, until the job is closed."""
    while (job := job_of(maker)) is not None and job.indexed_at != NONE_AT:
        maker.clock.advance(max(0, job.indexed_at - maker.clock.now()))
        maker.due("w1.1")
        yield from (held.execution.scheduled_at for held in maker.running())
        maker.report(success(maker.running()))


def test_a_job_ends_after_so_many_runs(maker: LogMaker) -> None:
    maker.command(submit("a", cron="* * * * *", timing=Timing(max_runs=3)))
    assert list(ran(maker)) == [NEXT_MINUTE + n * MINUTE_MS for n in range(3)]
    assert job_of(maker) is None


def test_run_now_and_what_is_skipped_are_no_runs(maker: LogMaker) -> None:
    maker.command(submit("a", cron="* * * * *", timing=Timing(max_runs=2, misfire="none")))
    maker.command(run_now("a"))
    absent(maker, NEXT_MINUTE + 5 * MINUTE_MS - 1)
    job = job_of(maker)
    assert job is not None
    assert (job.runs, job.next_at) == (1, NEXT_MINUTE + 5 * MINUTE_MS)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_of_what_is_made_up_for_as_many_run_as_are_left(maker: LogMaker, most: int) -> None:
    """In order, as they would have run: after the last there is no instant, so nothing is skipped there."""
    maker.command(submit("a", cron="0 * * * *", timing=Timing(max_runs=most)))
    events = absent(maker, NEXT_HOUR + 9 * HOUR_MS)
    assert made_up(events) + runs(events) == [NEXT_HOUR + n * HOUR_MS for n in range(most)]
    assert skipped(events) == []
    job = job_of(maker)
    assert job is not None
    assert (job.next_at, job.runs, job.open) == (NONE_AT, most, most)


def test_the_last_run_may_be_the_latest_of_many(maker: LogMaker) -> None:
    maker.command(submit("a", cron="0 * * * *", timing=Timing(max_runs=1, misfire="latest")))
    events = absent(maker, NEXT_HOUR + 9 * HOUR_MS)
    assert runs(events) == [NEXT_HOUR + 9 * HOUR_MS]
    job = job_of(maker)
    assert job is not None
    assert job.next_at == NONE_AT
    assert events[-1].next_at == [NONE_AT]  # type: ignore[union-attr]


def test_names_of_executions_are_those_of_their_instants(maker: LogMaker) -> None:
    maker.command(submit("a", cron="0 * * * *"))
    events = absent(maker, NEXT_HOUR + 2 * HOUR_MS)
    assert {keys.names(key)[1] for key, _ in maker.book.executions_of(keys.job_row("acme", "a"))} == {
        execution_of("a", at) for at in made_up(events) + runs(events)
    }
