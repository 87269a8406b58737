"""What people have complained about of schedules elsewhere when nobody was there, somebody paused, or a clock was wrong."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.due import due_of
from minutebook.domain.events import Event
from minutebook.domain.timing import Timing
from tests.simulation.folds import folded
from tests.simulation.log_maker import T0, LogMaker, pause, resume, submit

DAY = keys.DAY_MS
HOUR = 3_600_000
MONTH = Timing(misfire_window_ms=30 * DAY)


def instant(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000)


@pytest.fixture
def maker() -> LogMaker:
    made = LogMaker()
    made.open()
    return made


def until(maker: LogMaker, at: int) -> list[Event]:
    """Nobody decides before that instant; what is decided then."""
    maker.clock.advance(at - maker.clock.now())
    return maker.due()


def told(events: list[Event]) -> list[tuple[str, int, int]]:
    """(what became of them, first instant, how many) of each stretch of instants."""
    found: list[tuple[str, int, int]] = []
    for event in events:
        match event:
            case facts.ExecutionsSkipped():
                found.append((event.reason, event.first_at, event.count))
            case facts.ExecutionsQueued():
                found.append(("runs", event.scheduled_at[0], len(event.scheduled_at)))
            case facts.ExecutionsPlaced():
                found.append(("made up for", event.scheduled_at[0], len(event.scheduled_at)))
    return found


YEAR = instant("2026-01-01")


@pytest.mark.parametrize(
    ("back_at", "timing", "became"),
    [
        ("2026-01-01T06:00", None, "runs"),
        ("2026-01-03", None, "misfire"),
        ("2026-01-03", MONTH, "runs"),
        ("2026-01-03", Timing(misfire="latest", misfire_window_ms=30 * DAY), "runs"),
        ("2026-01-01T00:00:59", Timing(misfire="none"), "runs"),
        ("2026-01-01T06:00", Timing(misfire="none"), "misfire"),
    ],
)
def test_a_yearly_job_is_not_lost_to_an_outage_over_its_instant(
    maker: LogMaker, back_at: str, timing: Timing | None, became: str
) -> None:
    maker.command(submit("a", cron="@yearly", timing=timing))
    assert told(until(maker, instant(back_at))) == [(became, YEAR, 1)]
    job = maker.book.jobs.get(keys.job_row("acme", "a"))
    assert job is not None
    assert job.next_at == instant("2027-01-01")


def test_a_month_of_pause_does_not_come_at_once_when_it_ends(maker: LogMaker) -> None:
    maker.command(submit("a", cron="@daily"), pause("a"))
    assert until(maker, T0 + 31 * DAY) == []
    first_at = (T0 // DAY + 1) * DAY
    assert told(maker.command(resume("a", issued_at=maker.clock.now()))) == [("paused", first_at, 31)]
    assert maker.due() == []
    assert told(until(maker, first_at + 31 * DAY)) == [("runs", first_at + 31 * DAY, 1)]


def test_a_month_of_pause_is_made_up_for_when_it_is_asked_for(maker: LogMaker) -> None:
    maker.command(submit("a", cron="@daily", timing=MONTH), pause("a"))
    until(maker, T0 + 31 * DAY)
    maker.command(resume("a", issued_at=maker.clock.now(), is_caught_up=True))
    first_at = (T0 // DAY + 1) * DAY
    assert told(maker.due()) == [("misfire", first_at, 1), ("made up for", first_at + DAY, 30)]


def test_a_clock_set_back_runs_nothing_twice(maker: LogMaker) -> None:
    maker.command(submit("a", cron="0 * * * *"))
    hour = (T0 // HOUR + 1) * HOUR
    assert told(until(maker, hour)) == [("runs", hour, 1)]
    next_owner = folded(maker.records)
    (row,) = [key for key, _ in next_owner.scan("index", b"", None)]
    assert keys.index_parts(row)[0] == hour + HOUR
    assert due_of(
        maker.book, keys.index_row(hour, keys.JOB, keys.job_row("acme", "a")), hour - 30 * 60_000
    ) == ([], [])


def test_a_command_that_a_broker_stamped_in_the_past_loses_no_instant(maker: LogMaker) -> None:
    maker.command(submit("a", cron="0 * * * *"), stamp=T0 - 5 * HOUR)
    hour = (T0 // HOUR + 1) * HOUR
    assert told(maker.due()) == [("made up for", hour - 5 * HOUR, 5)]
