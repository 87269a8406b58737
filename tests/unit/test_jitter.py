"""Instants that are due a little later than they are scheduled: the same delay always, in order, and never late for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.events import Event
from minutebook.domain.jitter import due_at
from minutebook.domain.policy import Policy
from minutebook.domain.state import Job
from minutebook.domain.timing import Timing
from tests.simulation.log_maker import T0, LogMaker, submit

SECOND_MS, MINUTE_MS, HOUR_MS = 1_000, 60_000, 3_600_000
NEXT = (T0 // MINUTE_MS + 1) * MINUTE_MS


@pytest.fixture
def maker() -> LogMaker:
    made = LogMaker()
    made.open()
    return made


def job_of(maker: LogMaker) -> Job:
    found = maker.book.jobs.get(keys.job_row("acme", "a"))
    assert found is not None
    return found


def came(events: list[Event]) -> list[tuple[int, int]]:
    """(scheduled at, due at) of what comes due."""
    return [
        pair
        for event in events
        if isinstance(event, facts.ExecutionsQueued)
        for pair in zip(event.scheduled_at, event.due_at, strict=True)
    ]


@pytest.mark.parametrize(
    ("tenant", "job_id", "at", "jitter_ms", "delay_ms"),
    [
        ("acme", "a", NEXT, 0, 0),
        ("acme", "a", NEXT, 60_000, 55_938),
        ("acme", "b", NEXT, 60_000, 52_890),
        ("blue", "a", NEXT, 60_000, 18_824),
        ("acme", "a", NEXT + MINUTE_MS, 60_000, 17_794),
        ("acme", "a", NEXT, 86_400_000, 74_392_625),
    ],
)
def test_the_delay_is_the_same_for_ever(
    tenant: str, job_id: str, at: int, jitter_ms: int, delay_ms: int
) -> None:
    """Logs are folded anew in years: what is here must not change."""
    assert due_at(tenant, job_id, at, jitter_ms) - at == delay_ms


def test_delays_are_spread_over_all_of_it() -> None:
    delays = [due_at("acme", f"job-{n}", NEXT, 9_999) - NEXT for n in range(10_000)]
    buckets = Counter(delay // 1_000 for delay in delays)
    assert sorted(buckets) == list(range(10))
    assert all(900 < count < 1_100 for count in buckets.values())
    assert {due_at("acme", f"job-{n}", NEXT, 1) - NEXT for n in range(100)} == {0, 1}


def test_it_comes_due_at_its_delay_and_not_before(maker: LogMaker) -> None:
    maker.command(submit("a", cron="0 * * * *", timing=Timing(jitter_ms=10 * MINUTE_MS)))
    first = job_of(maker).next_at
    due = due_at("acme", "a", first, 10 * MINUTE_MS)
    assert first < due == job_of(maker).indexed_at
    maker.clock.advance(due - T0 - 1)
    assert maker.due() == []
    maker.clock.advance(1)
    assert came(maker.due()) == [(first, due)]
    following = due_at("acme", "a", first + HOUR_MS, 10 * MINUTE_MS)
    assert (job_of(maker).next_at, job_of(maker).indexed_at) == (first + HOUR_MS, following)


def test_a_job_that_fires_once_has_a_delay_too(maker: LogMaker) -> None:
    maker.command(submit("a", run_at=T0 + 1_000, timing=Timing(jitter_ms=MINUTE_MS)))
    due = due_at("acme", "a", T0 + 1_000, MINUTE_MS)
    maker.clock.advance(due - T0 - 1)
    assert maker.due() == []
    maker.clock.advance(1)
    assert came(maker.due()) == [(T0 + 1_000, due)]


def promptly(maker: LogMaker, count: int) -> Iterator[tuple[int, int, int]]:
    """(scheduled at, due at, came at) of what comes due where an owner is always there."""
    for _ in range(count):
        maker.clock.advance(job_of(maker).indexed_at - maker.clock.now())
        events = maker.due()
        assert not any(
            isinstance(event, facts.ExecutionsSkipped | facts.ExecutionsPlaced) for event in events
        )
        for scheduled_at, due in came(events):
            yield scheduled_at, due, maker.clock.now()


@pytest.mark.parametrize("misfire", ["all", "latest", "none"])
@pytest.mark.parametrize("jitter_ms", [500, 30_000, HOUR_MS])
def test_instants_come_in_order_each_within_its_own_time(
    maker: LogMaker, misfire: str, jitter_ms: int
) -> None:
    """Also where several are due before the one that is first: it holds them up, and they are not late for it."""
    maker.command(submit("a", cron="* * * * *", timing=Timing(jitter_ms=jitter_ms, misfire=misfire)))
    found = list(promptly(maker, 200))
    assert [scheduled_at for scheduled_at, _, _ in found] == [NEXT + n * MINUTE_MS for n in range(200)]
    for scheduled_at, due, came_at in found:
        assert scheduled_at <= due <= came_at <= scheduled_at + jitter_ms
    assert any(due < came_at for _, due, came_at in found) == (jitter_ms > MINUTE_MS)


@pytest.mark.parametrize(("late_ms", "does_run"), [(0, True), (60_000, True), (60_001, False)])
def test_an_instant_is_late_from_the_end_of_its_time(maker: LogMaker, late_ms: int, does_run: bool) -> None:
    timing = Timing(jitter_ms=10 * MINUTE_MS, misfire="none")
    maker.command(submit("a", cron="0 * * * *", timing=timing))
    first = job_of(maker).next_at
    maker.clock.advance(first + 10 * MINUTE_MS + late_ms - T0)
    events = maker.due()
    assert [at for at, _ in came(events)] == ([first] if does_run else [])


@pytest.mark.parametrize(("late_ms", "does_run"), [(60_000, True), (60_001, False)])
def test_so_is_that_of_a_job_that_fires_once(maker: LogMaker, late_ms: int, does_run: bool) -> None:
    timing = Timing(jitter_ms=10 * MINUTE_MS, misfire="none")
    maker.command(submit("a", run_at=NEXT, timing=timing))
    maker.clock.advance(NEXT + 10 * MINUTE_MS + late_ms - T0)
    assert len(came(maker.due())) == does_run


def test_after_an_outage_what_may_still_be_due_comes_one_by_one(maker: LogMaker) -> None:
    jitter_ms = 5 * MINUTE_MS
    maker.command(submit("a", cron="* * * * *", timing=Timing(jitter_ms=jitter_ms, misfire_max=10)))
    now = NEXT + 60 * MINUTE_MS + 1
    maker.clock.advance(now - T0)
    skipped, placed, *rest = maker.due()
    assert isinstance(skipped, facts.ExecutionsSkipped)
    assert isinstance(placed, facts.ExecutionsPlaced)
    assert (skipped.first_at, skipped.count) == (NEXT, 46)
    missed = [*placed.scheduled_at, *(at for at, _ in came(rest))]
    assert missed == [NEXT + n * MINUTE_MS for n in range(46, 56)], "up to now less the jitter"
    assert placed.due_at == [due_at("acme", "a", at, jitter_ms) for at in placed.scheduled_at]
    following = [at for at, _, _ in promptly(maker, 5) if at not in missed]
    assert following == [NEXT + n * MINUTE_MS for n in range(56, 61)]


def test_deadlines_count_from_when_it_is_due(maker: LogMaker) -> None:
    policy = Policy(start_deadline_ms=2_000)
    maker.command(submit("a", cron="0 * * * *", policy=policy, timing=Timing(jitter_ms=10 * MINUTE_MS)))
    first, due = job_of(maker).next_at, job_of(maker).indexed_at
    maker.clock.advance(due + 1_999 - T0)
    assert came(maker.due()) == [(first, due)]
    maker.clock.advance(1)
    (expired,) = maker.due()
    assert isinstance(expired, facts.ExecutionExpired)
    second = job_of(maker).indexed_at
    maker.clock.advance(second + 2_000 - maker.clock.now())
    (skipped,) = maker.due()
    assert isinstance(skipped, facts.ExecutionsSkipped)
    assert (skipped.reason, skipped.first_at) == ("start_deadline", first + HOUR_MS)
