"""Purging: what the owner keeps of a purged job, what it answers about it, and that the view shows nothing of it."""

from __future__ import annotations

import pytest

from minutebook.domain import events as facts
from minutebook.domain import keys, view_lists, view_rows
from minutebook.domain.commands import Command, RedriveExecution
from minutebook.domain.view_lists import Filter, span_of
from minutebook.store.memory import MemoryRows
from tests.simulation.folds import viewed
from tests.simulation.log_maker import (
    SESSION,
    LogMaker,
    cancel,
    edit,
    failure,
    pause,
    purge,
    resume,
    run_now,
    submit,
    success,
)
from tests.unit.test_changes import answered, refused

ANY_TIME = span_of(0, view_lists.LAST_AT, is_ascending=True)


@pytest.fixture
def maker() -> LogMaker:
    made = LogMaker()
    made.open()
    return made


def about(maker: LogMaker) -> dict[str, int]:
    return {"issued_at": maker.clock.now()}


def completed(maker: LogMaker, job_id: str = "a", **more: object) -> None:
    """A job that ran once, by its time and once more at once, and is closed."""
    maker.command(submit(job_id, delay_ms=5, **more, **about(maker)), run_now(job_id, **about(maker)))
    maker.clock.advance(10)
    maker.due(SESSION)
    maker.report(success(maker.running()))


def given_up(maker: LogMaker, job_id: str = "a", **more: object) -> str:
    """A job whose one execution is dead; its id."""
    maker.command(submit(job_id, delay_ms=5, **more, **about(maker)))
    maker.clock.advance(10)
    maker.due(SESSION)
    (held,) = maker.running()
    maker.report(failure(held, is_permanent=True))
    return keys.names(held.key)[1]


def test_a_closed_job_is_purged(maker: LogMaker) -> None:
    completed(maker)
    stamp = maker.clock.now()
    (event,) = maker.command(purge("a", command_id="p", actor="me", reason="asked to", **about(maker)))
    assert event == facts.JobPurged("acme", "a", "p", "me", "asked to", stamp)


@pytest.mark.parametrize("is_paused", [False, True])
def test_a_job_that_is_not_closed_is_not_purged(maker: LogMaker, is_paused: bool) -> None:
    maker.command(submit("a", cron="0 0 * * *"))
    if is_paused:
        maker.command(pause("a"))
    assert refused(maker.command(purge("a"))) == ("not_closed", "id")
    assert refused(maker.command(purge("nothing"))) == ("not_found", "id")


def test_a_job_whose_dead_execution_runs_again_is_not_purged(maker: LogMaker) -> None:
    name = given_up(maker)
    redriven = RedriveExecution(
        tenant="acme", job_id="a", command_id="r", execution=name, **about(maker), reason="", payload=None
    )
    maker.command(redriven)
    assert refused(maker.command(purge("a", **about(maker)))) == ("not_closed", "id")


def test_a_purged_job_is_not_there_but_its_id_is_taken(maker: LogMaker) -> None:
    name = given_up(maker)
    maker.command(purge("a", **about(maker)))
    assert answered(maker.command(purge("a", **about(maker)))) == "purged"
    redriven = RedriveExecution(
        tenant="acme", job_id="a", command_id="r", execution=name, **about(maker), reason="", payload=None
    )
    changes: list[Command] = [make("a", **about(maker)) for make in (cancel, pause, resume, run_now)]
    for command in (*changes, edit("a", None, **about(maker)), redriven):
        assert refused(maker.command(command)) == ("not_found", "id")
    same_body = submit("a", delay_ms=5, **about(maker))
    assert refused(maker.command(same_body)) == ("id_exists", "id")


def test_the_id_is_given_out_again_once_it_is_forgotten(maker: LogMaker) -> None:
    completed(maker)
    maker.command(purge("a", **about(maker)))
    maker.clock.advance(10 * keys.DAY_MS)
    maker.add(*(facts.DayForgotten(day) for day in maker.book.cursor.days))
    (event,) = maker.command(submit("a", delay_ms=5, **about(maker)))
    assert isinstance(event, facts.JobSubmitted)


def test_the_owner_forgets_what_it_had(maker: LogMaker) -> None:
    given_up(maker, payload=b'"secret"')
    given_up(maker, "ab")
    maker.command(purge("a", **about(maker)))
    kept = [
        (family, key, value)
        for family in ("closed", "shelf", "dead", "skips", "specs", "jobs")
        for key, value in maker.rows.scan(family, b"", None)
        if b"acme\0a:" in key or b"acme\0a\0" in key or key.endswith(b"acme\0a")
    ]
    assert [family for family, _, _ in kept] == ["closed"]
    assert b"secret" not in kept[0][2]
    assert len(list(maker.rows.scan("dead", b"", None))) == 1


def rows_about(rows: MemoryRows, job: bytes) -> set[str]:
    """Families that still know a job, but for what was answered, and that it was to go one day."""
    return {
        family
        for family in view_rows.FAMILIES
        if family not in ("commands", "audit", "expiries")
        for key, _ in rows.scan(family, b"", None)
        if job in key
    }


@pytest.mark.parametrize("drain_every", [1, 1_000])
@pytest.mark.parametrize("close", [completed, given_up])
def test_the_view_shows_nothing_of_it(maker: LogMaker, close, drain_every: int) -> None:  # type: ignore[no-untyped-def]  # either of two
    for job_id in ("job-a", "job-b"):
        close(maker, job_id, tags=["x"])
    before = viewed(maker.records, drain_every)[1]
    assert {"jobs", "executions", "job_index", "execution_index"} <= rows_about(before, b"job-a")
    maker.command(purge("job-a", **about(maker)))
    view, rows = viewed(maker.records, drain_every)
    assert view.job("acme", "job-a") is None
    assert rows_about(rows, b"job-a") == set()
    assert [name for _, name, _ in view.executions("acme", "job-a")] == []
    listed = [view_lists.jobs(view, "acme", wanted, ANY_TIME) for wanted in (Filter(), Filter(tag="x"))]
    assert [len(list(found)) for found in listed] == [1, 1]
    assert sum(view_lists.counts_by_status(view, "job_counts", "acme").values()) == 1
    runs = len(list(view_lists.executions(view, "acme", Filter(), ANY_TIME)))
    assert sum(view_lists.counts_by_status(view, "execution_totals", "acme").values()) == runs


@pytest.mark.parametrize("drain_every", [1, 1_000])
def test_a_new_job_under_an_old_id_takes_its_place(maker: LogMaker, drain_every: int) -> None:
    given_up(maker, tags=["old"], late="run")
    maker.clock.advance(10 * keys.DAY_MS)
    maker.add(*(facts.DayForgotten(day) for day in maker.book.cursor.days))
    maker.command(submit("a", task="u", cron="0 0 * * *", tags=["new"], **about(maker)))
    view, rows = viewed(maker.records, drain_every)
    assert list(view.executions("acme", "a")) == []
    assert list(view.dead("acme")) == []
    assert [
        len(list(view_lists.jobs(view, "acme", Filter(tag=tag), ANY_TIME))) for tag in ("old", "new")
    ] == [
        0,
        1,
    ]
    assert view_lists.counts_by_status(view, "job_counts", "acme") == {"active": 1}
    assert view_lists.counts_by_status(view, "execution_totals", "acme") == {}
    assert list(rows.scan("execution_index", b"", None)) == []
