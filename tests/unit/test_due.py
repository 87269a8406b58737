"""What comes due: once and never early, retries, run-nows, and what a schedule missed."""

from __future__ import annotations

import pytest

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.due import due_of
from minutebook.domain.events import Event
from minutebook.domain.state import NONE_AT, UNCHANGED
from minutebook.ids import Instant
from minutebook.schedule import next_instant, parse_cron
from tests.simulation.log_maker import T0, LogMaker, cancel, execution_of, failure, run_now, submit

MINUTE_MS = 60_000
DAY_MS = keys.DAY_MS
NEXT_MINUTE = (T0 // MINUTE_MS + 1) * MINUTE_MS


@pytest.fixture
def maker() -> LogMaker:
    made = LogMaker()
    made.open()
    return made


def only(events: list[Event]) -> facts.ExecutionsQueued:
    (event,) = events
    assert isinstance(event, facts.ExecutionsQueued), event
    return event


def job_of(maker: LogMaker, job_id: str):  # type: ignore[no-untyped-def]  # its row
    return maker.book.jobs.get(keys.job_row("acme", job_id))


def test_nothing_comes_due_a_millisecond_early(maker: LogMaker) -> None:
    maker.command(submit("a", run_at=T0 + 1_000))
    maker.clock.advance(999)
    assert maker.due() == []
    maker.clock.advance(1)
    assert only(maker.due()).executions == [execution_of("a", T0 + 1_000)]
    assert maker.due() == []


def test_a_due_job_is_queued_with_all_that_grants_need(maker: LogMaker) -> None:
    maker.command(submit("a", run_at=T0 + 10, task="t"), submit("b", run_at=T0 + 5, tenant="blue", task="u"))
    maker.clock.advance(10)
    assert maker.due() == [
        facts.ExecutionsQueued(
            tenants=["blue", "acme"],
            queues=["default"],
            tasks=["u", "t"],
            tenant=[0, 1],
            queue=[0, 0],
            task=[0, 1],
            executions=[execution_of("b", T0 + 5), execution_of("a", T0 + 10)],
            versions=[1, 1],
            scheduled_at=[T0 + 5, T0 + 10],
            due_at=[T0 + 5, T0 + 10],
            next_at=[NONE_AT, NONE_AT],
            attempts=[1, 1],
            priorities=[5, 5],
        )
    ]


def test_what_is_due_and_offered_for_is_granted_in_one_event(maker: LogMaker) -> None:
    maker.command(submit("a"))
    started, granted = maker.due("w1.1")
    assert started == facts.SessionStarted("w1.1", "name of w1.1", ["t"], 10_000, 3_000)
    assert isinstance(granted, facts.ExecutionsDueGranted)
    assert (granted.sessions, granted.session) == (["w1.1"], [0])
    (held,) = maker.running("w1.1")
    assert held.token == (maker.reader.position << 16) + 1  # its row: the second of the frame


def test_a_job_in_the_past_is_due_at_once_and_keeps_its_instant(maker: LogMaker) -> None:
    maker.command(submit("a", run_at=T0 - 3_600_000))
    event = only(maker.due())
    assert (event.scheduled_at, event.due_at) == ([T0 - 3_600_000], [T0 - 3_600_000])
    assert maker.book.cursor.now >= T0


def test_a_one_off_runs_however_late_it_is(maker: LogMaker) -> None:
    maker.command(submit("a", run_at=T0 + 1_000))
    maker.clock.advance(30 * DAY_MS)
    assert only(maker.due()).executions == [execution_of("a", T0 + 1_000)]


def test_a_cron_names_its_next_instant(maker: LogMaker) -> None:
    maker.command(submit("a", cron="* * * * *"))
    maker.clock.advance(NEXT_MINUTE - T0)
    event = only(maker.due())
    assert (event.scheduled_at, event.next_at) == ([NEXT_MINUTE], [NEXT_MINUTE + MINUTE_MS])
    assert job_of(maker, "a").next_at == NEXT_MINUTE + MINUTE_MS


@pytest.mark.row("C16")
def test_a_hashed_cron_has_an_instant_of_its_job(maker: LogMaker) -> None:
    for name in ("a", "b"):
        maker.command(submit(name, cron="H H * * *"))
    rules = {name: parse_cron("H H * * *", f"acme/{name}") for name in ("a", "b")}
    first = {name: next_instant(rule, "UTC", Instant(T0)) for name, rule in rules.items()}
    assert first == {name: job_of(maker, name).next_at for name in ("a", "b")}
    assert first["a"] != first["b"]
    maker.clock.advance(DAY_MS)
    event = only(maker.due())
    assert sorted(event.scheduled_at) == sorted(at for at in first.values() if at is not None)
    assert event.next_at == [at + DAY_MS for at in event.scheduled_at]


def test_missed_instants_of_a_hashed_cron_are_those_of_its_job(maker: LogMaker) -> None:
    maker.command(submit("a", cron="H */2 * * *"))
    first = job_of(maker, "a").next_at
    maker.clock.advance(DAY_MS)
    (event,) = maker.due()
    assert isinstance(event, facts.ExecutionsPlaced)
    assert event.scheduled_at == [first + n * 2 * 60 * MINUTE_MS for n in range(12)]


def test_seconds_of_a_cron_are_kept(maker: LogMaker) -> None:
    maker.command(submit("a", cron="*/20 * * * * *"))
    maker.clock.advance(MINUTE_MS)
    event = only(maker.due())
    assert event.scheduled_at == [T0 - T0 % 20_000 + n * 20_000 for n in (1, 2, 3)]


def test_a_retry_comes_due_at_its_time_with_its_attempt(maker: LogMaker) -> None:
    maker.command(submit("a"))
    maker.due("w1.1")
    (failed,) = maker.report(failure(maker.running()[0], retry_after_ms=700))
    assert isinstance(failed, facts.AttemptFailed)
    assert failed.retry_at == T0 + 700
    maker.clock.advance(699)
    assert maker.due() == []
    maker.clock.advance(1)
    event = only(maker.due())
    assert (event.executions, event.attempts) == ([execution_of("a", T0)], [2])
    assert (event.scheduled_at, event.due_at, event.next_at) == ([T0], [T0 + 700], [UNCHANGED])


def test_a_row_taken_back_in_the_same_cycle_is_nothing(maker: LogMaker) -> None:
    maker.command(submit("a"), submit("b"))
    maker.command(run_now("a"))
    rows = [key for key, _ in maker.book.index.scan(b"")]
    maker.command(cancel("a"), cancel("b"))
    assert [due_of(maker.book, key, maker.clock.now()) for key in rows] == [([], [])] * 3


def test_rows_that_are_due_stand_at_the_frames_time_at_the_earliest(maker: LogMaker) -> None:
    """What is already past is placed at `now`, so that it never falls behind the low-water mark of the index."""
    maker.command(submit("a", run_at=T0 + 60_000))
    maker.clock.advance(60_000)
    maker.due()
    maker.command(submit("late", run_at=T0), submit("cron", cron="* * * * *"), stamp=T0)
    for key, _ in maker.book.index.scan(b""):
        assert keys.index_parts(key)[0] >= maker.book.cursor.index_low
    assert maker.book.cursor.index_low == T0 + 60_000
    assert sorted(only(maker.due()).executions) == [f"cron:{NEXT_MINUTE}", execution_of("late", T0)]
