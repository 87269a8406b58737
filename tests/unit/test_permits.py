"""Permits: who gets one and when, who gives one back and when, and what a partition does with them."""

from __future__ import annotations

import pytest

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import FAMILIES, Book
from minutebook.domain.events import Event
from minutebook.domain.fold import fold
from minutebook.domain.outputs import START_WITHIN_MS
from minutebook.domain.permit_folds import home_of, stock_of
from minutebook.domain.permits import UNUSED_MS, grantable, grantable_at, lacking, useless
from minutebook.domain.records import Claim
from minutebook.domain.state import Home, Limit, Stock
from minutebook.errors import BrokenFrameError
from minutebook.store.memory import MemoryRows
from tests.simulation.desk import T0, Desk, Hand, results, rows
from tests.simulation.office import TENANT, Office

NOW = T0
ROW = keys.limit_row(TENANT, "k")
QUEUED, GRANTED, DUE = facts.ExecutionsQueued, facts.ExecutionsGranted, facts.ExecutionsDueGranted


# -- the limit's home


def home(
    *demands: tuple[int, int, int], in_use: int = 0, turn: int = -1, recent: tuple[int, ...] = ()
) -> Home:
    """A home of version 1, where (partition, permits, priority) are demanded."""
    return Home(1, in_use, list(demands), [(at, 1) for at in recent], turn)


@pytest.mark.parametrize(
    ("limit", "found", "expected"),
    [
        (Limit(1, 3), home((0, 9, 5)), [0, 0, 0]),
        (Limit(1, 3), home((0, 9, 5), in_use=2), [0]),
        (Limit(1, 3), home((0, 9, 5), in_use=3), []),
        (Limit(1, 1), home((0, 9, 5), in_use=3), []),
        (Limit(1), home((0, 2, 5), in_use=300), [0, 0]),
        (Limit(1, 9), home((0, 2, 5), (1, 1, 5), (2, 3, 5)), [0, 1, 2, 0, 2, 2]),
        (Limit(1, 9), home((0, 2, 5), (1, 1, 5), (2, 3, 5), turn=0), [1, 2, 0, 2, 0, 2]),
        (Limit(1, 4), home((0, 2, 5), (1, 1, 9), (2, 3, 7)), [1, 2, 2, 2]),
        (Limit(2, 9), home((0, 2, 5)), []),
        (None, home((0, 2, 5)), []),
        (Limit(1, 9, paused_until=NOW + 1), home((0, 2, 5)), []),
        (Limit(1, 9, paused_until=NOW), home((0, 2, 5)), [0, 0]),
        (Limit(1, -1, 3, 1_000), home((0, 9, 5)), [0, 0, 0]),
        (Limit(1, -1, 3, 1_000), home((0, 9, 5), recent=(NOW - 1_000, NOW - 999, NOW)), [0]),
        (Limit(1, 1, 3, 1_000), home((0, 9, 5)), [0]),
    ],
)
def test_a_home_grants_what_the_limit_lets(limit: Limit | None, found: Home, expected: list[int]) -> None:
    assert grantable(found, limit, NOW, 1_000) == expected


def test_a_home_grants_no_more_than_a_frame_holds() -> None:
    assert grantable(home((0, 9, 5)), Limit(1), NOW, 2) == [0, 0]


@pytest.mark.parametrize(
    ("limit", "found", "expected"),
    [
        (Limit(1, 3), home((0, 9, 5), in_use=3), None),
        (Limit(1, 3, paused_until=NOW + 70), home((0, 9, 5)), NOW + 70),
        (Limit(1, 3, paused_until=NOW + 70), home(), None),
        (Limit(1, -1, 2, 1_000), home((0, 9, 5), recent=(NOW - 300, NOW - 200)), NOW + 700),
        (Limit(1, -1, 1, 1_000), home((0, 9, 5), recent=(NOW - 300, NOW - 200)), NOW + 800),
        (Limit(1, -1, 3, 1_000), home((0, 9, 5), recent=(NOW - 300, NOW - 200)), None),
    ],
)
def test_a_home_knows_when_time_alone_lets_it_grant(limit: Limit, found: Home, expected: int | None) -> None:
    assert grantable_at(found, limit, NOW) == expected
    if expected is not None:
        assert grantable(found, limit, expected - 1, 9) == []
        assert grantable(found, limit, expected, 9)


# -- the partition that asks


@pytest.mark.parametrize(
    ("stock", "limit", "wanted", "expected"),
    [
        (Stock(), Limit(1, 5), 3, 3),
        (Stock(), Limit(1, 2), 3, 2),
        (Stock(1, 2), Limit(1, 5), 3, 1),
        (Stock(1, 5), Limit(1, 5), 30, 0),
        (Stock(1, 5), Limit(2, 5), 3, 3),
        (Stock(1, 0, 5, [(7, NOW)]), Limit(1, 5), 3, 2),
        (Stock(1, 9), Limit(1, 5), 3, 0),
        (Stock(), Limit(1), 70_000, 4_096),
    ],
)
def test_a_partition_asks_for_what_it_lacks(stock: Stock, limit: Limit, wanted: int, expected: int) -> None:
    assert lacking(stock, limit, wanted) == expected


OLD = NOW - UNUSED_MS


@pytest.mark.parametrize(
    ("stock", "limit", "waiting", "expected"),
    [
        (Stock(spent=[3, 4]), Limit(1), 9, [3, 4]),
        (Stock(free=[(3, NOW), (4, NOW)]), Limit(1), 2, []),
        (Stock(free=[(3, NOW), (4, NOW)]), Limit(1), 1, [4]),
        (Stock(free=[(3, OLD), (4, OLD + 1)]), Limit(1), 9, [3]),
        (Stock(free=[(3, NOW)], spent=[4]), None, 9, [4, 3]),
        (Stock(free=[(3, NOW)]), Limit(1, paused_until=NOW + 1), 9, [3]),
    ],
)
def test_a_partition_gives_back_what_is_of_no_use(
    stock: Stock, limit: Limit | None, waiting: int, expected: list[int]
) -> None:
    assert useless(stock, limit, waiting, NOW) == expected


# -- facts that do not fit


@pytest.fixture
def book() -> Book:
    """The home of limit `k` with permit 1 out, at this very partition and free."""
    made = Book(MemoryRows(FAMILIES))
    fold(made, facts.LimitCopied(TENANT, "k", 1, 5, -1, -1, -1, False), 0, NOW)
    fold(made, facts.PermitsGranted(TENANT, "k", 1, [0]), 1, NOW)
    fold(made, facts.PermitsReceived(TENANT, "k", 1, [1]), 2, NOW)
    return made


@pytest.mark.parametrize(
    "event",
    [
        facts.PermitsReleased(TENANT, "k", 0, [2]),
        facts.PermitsReleased(TENANT, "k", 0, [1, 1]),
        facts.PermitsReleased(TENANT, "", 0, [1]),
        facts.PermitsReturned(TENANT, "k", [2]),
        facts.PermitsReturned(TENANT, "", [1]),
        GRANTED([TENANT], [0], ["x:1"], [1], ["w.0"], [0], [], ["k"], [0], [0], [1]),
    ],
)
def test_a_permit_is_where_the_facts_have_left_it(book: Book, event: Event) -> None:
    with pytest.raises(BrokenFrameError):
        fold(book, event, 9, NOW)


def test_a_permit_that_came_back_cannot_come_back_again(book: Book) -> None:
    fold(book, facts.PermitsReturned(TENANT, "k", [1]), 3, NOW)
    assert home_of(book, ROW).in_use == 0
    with pytest.raises(BrokenFrameError):
        fold(book, facts.PermitsReturned(TENANT, "k", [1]), 4, NOW)


def test_a_changed_limit_forgets_what_was_asked_of_it_before(book: Book) -> None:
    fold(book, facts.PermitsAsked(TENANT, "k", 1, 0, 4, 5), 3, NOW)
    fold(book, facts.PermitsDemanded(TENANT, "k", 1, 3, 4, 5), 3, NOW)
    fold(book, facts.PermitsAsked(TENANT, "k", 2, 0, 1, 7), 4, NOW)
    fold(book, facts.PermitsDemanded(TENANT, "k", 2, 1, 1, 7), 4, NOW)
    assert stock_of(book, ROW) == Stock(2, 1, 7, [(1, NOW)])
    assert home_of(book, ROW).demands == [(1, 1, 7)]
    fold(book, facts.PermitsReceived(TENANT, "k", 1, [2]), 5, NOW)
    assert stock_of(book, ROW).asked == 1, "that was asked of the limit as it is now"


# -- one partition that is home to its own limits


@pytest.fixture
def office() -> Office:
    """One partition, one worker that has said who it is, a limit `k` of two."""
    made = Office(1, 1)
    made.declare("k", concurrency=2)
    made.pulse(0, 0, 0, is_full=True)
    made.cycle(0)
    return made


@pytest.fixture
def desk(office: Office) -> Desk:
    return office.desks[0]


def started(office: Office, cycles: int = 8) -> list[str]:
    """What starts within some cycles, with all mail delivered; the jobs."""
    found: list[str] = []
    for _ in range(cycles):
        office.deliver_all()
        events = office.cycle(0)
        found += [name.partition(":")[0] for name in (*rows(events, GRANTED), *rows(events, DUE))]
    return found


def test_what_is_made_up_for_gets_permits_behind_live_work(office: Office, desk: Desk) -> None:
    office.submit("old", limit="k", cron="0 0 1 1 *")
    office.submit("a", limit="k")
    office.submit("b", limit="k")
    office.cycle(0)
    at = [T0 - 2, T0 - 1]
    desk.add(facts.ExecutionsPlaced(TENANT, "old", "backfill", 1, at, at, at, -2))
    office.cycle(0)
    office.pulse(0, 0, 9)
    assert sorted(started(office)) == ["a", "b"]
    office.pulse(0, 0, 9, ended=2)
    assert started(office) == ["old", "old"]


def test_no_more_start_than_the_limit_lets_and_the_next_follow(office: Office) -> None:
    for number in range(5):
        office.submit(f"j{number}", "k")
    office.pulse(0, 0, 9)
    assert started(office) == ["j0", "j1"]
    office.pulse(0, 0, 9, ended=1)
    assert started(office) == ["j2"]
    office.pulse(0, 0, 9, ended=2)
    assert started(office) == ["j3", "j4"]


def test_nothing_is_asked_for_while_nobody_offers(office: Office) -> None:
    office.submit("a", "k")
    assert started(office) == []
    assert [event for _, _, event in office.events if isinstance(event, facts.PermitsAsked)] == []
    office.pulse(0, 0, 1)
    assert started(office) == ["a"]


def test_what_needs_no_permit_passes_by(office: Office) -> None:
    for number in range(3):
        office.submit(f"k{number}", "k", priority=9)
    office.submit("free")
    office.pulse(0, 0, 9)
    assert sorted(started(office)) == ["free", "k0", "k1"]


def test_a_limit_that_is_not_there_bounds_nothing(office: Office) -> None:
    for number in range(3):
        office.submit(f"j{number}", "unknown")
    office.pulse(0, 0, 9)
    assert started(office) == ["j0", "j1", "j2"]
    assert [event for _, _, event in office.events if isinstance(event, QUEUED)] == [], "not even queued"


def test_what_is_due_when_its_limit_is_declared_waits_for_a_permit(office: Office, desk: Desk) -> None:
    office.pulse(0, 0, 1)
    for number in range(3):
        office.submit(f"j{number}", "late")
    assert started(office) == ["j0"]
    assert len(desk.core.due.held) == 2
    office.declare("late", concurrency=1)
    office.pulse(0, 0, 9)
    office.now += 10_000
    office.pulse(0, 0, 9)
    assert started(office) == ["j1"]


def test_key_and_tenant_both_bound(office: Office) -> None:
    office.declare("", concurrency=3)
    for number in range(4):
        office.submit(f"k{number}", "k")
        office.submit(f"n{number}")
    office.pulse(0, 0, 20)
    first = started(office)
    assert len(first) == 3
    assert sum(name.startswith("k") for name in first) <= 2
    office.pulse(0, 0, 20, ended=3)
    assert len(started(office)) == 3


def test_permits_of_a_key_go_back_while_the_tenant_has_none(office: Office, desk: Desk) -> None:
    """Nobody keeps the one for long while it waits for the other: the key's permits may be of use elsewhere."""
    office.declare("", concurrency=1)
    office.submit("first")
    office.pulse(0, 0, 9)
    assert started(office) == ["first"]
    office.submit("a", "k")
    office.pulse(0, 0, 9)
    assert started(office) == []
    assert len(stock_of(desk.book, ROW).free) == 1
    assert desk.core.next_at() == office.now + UNUSED_MS
    office.now += UNUSED_MS
    office.cycle(0)
    assert stock_of(desk.book, ROW).free == []
    office.pulse(0, 0, 9, ended=1)
    assert started(office) == ["a"]


def test_a_paused_limit_starts_nothing_until_the_pause_is_over(office: Office, desk: Desk) -> None:
    office.pause("k", 5_000)
    office.submit("a", "k")
    office.pulse(0, 0, 1)
    assert started(office) == []
    assert desk.core.next_at() == T0 + 5_000
    office.now += 4_999
    office.pulse(0, 0, 1)
    assert started(office) == []
    office.now += 1
    assert started(office) == ["a"]


def test_permits_that_come_in_a_pause_start_nothing_and_go_back(office: Office, desk: Desk) -> None:
    office.submit("a", "k")
    office.pulse(0, 0, 1)
    while not asks(office):
        office.cycle(0)
    office.deliver_all()
    assert any(isinstance(event, facts.PermitsGranted) for event in office.cycle(0))
    office.pause("k", 5_000)
    assert started(office) == []
    assert stock_of(desk.book, ROW).free == []
    assert home_of(desk.book, ROW).in_use == 0


def asks(office: Office) -> list[tuple[str, int, int]]:
    """(limit, permits, priority) of what was asked for."""
    return [
        (event.limit, event.count, event.priority)
        for _, _, event in office.events
        if isinstance(event, facts.PermitsAsked)
    ]


def test_the_tenants_permit_is_asked_for_when_the_keys_is_here(office: Office) -> None:
    office.declare("", concurrency=9)
    office.submit("a", "k")
    office.pulse(0, 0, 1)
    for _ in range(4):
        office.cycle(0)
    assert asks(office) == [("k", 1, 5)]
    assert started(office) == ["a"]
    assert asks(office) == [("k", 1, 5), ("", 1, 5)]


def test_a_higher_priority_that_waits_is_told_to_the_home(office: Office, desk: Desk) -> None:
    office.declare("k", concurrency=1)
    office.submit("first", "k")
    office.pulse(0, 0, 9)
    assert started(office) == ["first"]
    office.submit("low", "k", priority=2)
    office.pulse(0, 0, 9)
    assert started(office) == []
    office.submit("high", "k", priority=8)
    office.pulse(0, 0, 9)
    assert started(office) == []
    assert asks(office)[1:] == [("k", 1, 2), ("k", 0, 8)]
    assert home_of(desk.book, ROW).demands == [(0, 1, 8)]
    office.pulse(0, 0, 9, ended=1)
    assert started(office) == ["high"]


def test_a_rate_starts_so_many_in_any_period(office: Office, desk: Desk) -> None:
    office.declare("k", rate_count=2, rate_period_ms=1_000)
    for number in range(5):
        office.submit(f"j{number}", "k")
    office.pulse(0, 0, 9)
    assert started(office) == ["j0", "j1"]
    assert desk.core.next_at() == T0 + 1_000
    office.now += 999
    office.pulse(0, 0, 9)
    assert started(office) == []
    office.now += 1
    assert started(office) == ["j2", "j3"]


def test_a_deleted_limit_frees_what_waited(office: Office, desk: Desk) -> None:
    for number in range(4):
        office.submit(f"j{number}", "k")
    office.pulse(0, 0, 9)
    assert started(office) == ["j0", "j1"]
    office.delete("k")
    office.pulse(0, 0, 9)
    assert started(office) == ["j2", "j3"]
    office.settle(slots=0, cycles=4)
    assert home_of(desk.book, ROW).in_use == 0


@pytest.mark.parametrize("end", ["failed", "lost", "cancelled", "handed back"])
def test_however_an_attempt_ends_its_permit_is_free_for_the_next(
    office: Office, desk: Desk, end: str
) -> None:
    office.declare("k", concurrency=1)
    office.submit("a", "k")
    office.submit("b", "k")
    office.pulse(0, 0, 1)
    assert started(office) == ["a"]
    match end:
        case "failed":
            desk.cancel("a")
            office.pulse(0, 0, 1)
            office.cycle(0)
            office.pulse(0, 0, 1, ended=1)
        case "lost":
            office.lose(0, 0)
            office.cycle(0)
        case "cancelled":
            desk.cancel("a")
            office.pulse(0, 0, 1, ended=1)
        case _:
            office.pulse(0, 0, 0, back=1)
            desk.cancel("a")
    office.cycle(0)
    office.settle(slots=1, cycles=12)
    assert stock_of(desk.book, ROW) == Stock()
    assert home_of(desk.book, ROW).in_use == 0
    assert list(desk.book.jobs.scan(b"")) == []


def test_a_permit_stays_with_what_is_handed_back(office: Office, desk: Desk) -> None:
    office.declare("k", concurrency=1)
    office.submit("a", "k")
    office.pulse(0, 0, 1)
    assert started(office) == ["a"]
    (before,) = [event.permit_ids for _, _, event in office.events if isinstance(event, GRANTED)]
    office.pulse(0, 0, 1, back=1)
    office.cycle(0)
    office.cycle(0)
    after = [event.permit_ids for _, _, event in office.events if isinstance(event, GRANTED)][1:]
    assert after == [before]


def test_waiting_work_is_told_only_as_far_as_permits_may_come(office: Office, desk: Desk) -> None:
    for number in range(9):
        office.submit(f"j{number}", "k")
    office.cycle(0)
    office.cycle(0)
    session = desk.sessions.get("w0.0")
    assert session is not None
    assert sum(desk.core.granting.queued_for(session)) == 2, "nothing is asked for: as many as the limit's"
    office.pulse(0, 0, 9)
    started(office)
    office.pulse(0, 0, 9)
    office.cycle(0)
    assert sum(desk.core.granting.queued_for(session)) == 0, (
        "what is asked for does not come: it is out elsewhere"
    )


def test_what_a_void_frame_gave_back_is_given_back_again(office: Office, desk: Desk) -> None:
    office.submit("a", "k")
    office.pulse(0, 0, 1)
    assert started(office) == ["a"]
    office.pulse(0, 0, 0, ended=1)
    assert any(isinstance(event, facts.PermitsReleased) for event in office.cycle(0, is_void=True))
    assert any(isinstance(event, facts.PermitsReleased) for event in office.cycle(0))


def test_permits_that_a_void_frame_would_have_given_back_are_not_forgotten(
    office: Office, desk: Desk
) -> None:
    office.declare("", concurrency=1)
    office.submit("first")
    office.pulse(0, 0, 9)
    assert started(office) == ["first"]
    office.submit("a", "k")
    office.pulse(0, 0, 9)
    assert started(office) == []
    office.now += UNUSED_MS
    office.cycle(0, is_void=True)
    office.cycle(0)
    assert stock_of(desk.book, ROW).free == []


def test_an_empty_lane_of_a_limit_is_forgotten(office: Office, desk: Desk) -> None:
    """There may be a limit for each customer, and most of them rest."""
    lanes = desk.core.granting.lanes.by_queue
    office.submit("a", "k")
    for _ in range(2):
        office.cycle(0)
    assert [lane.lane.limit for lane in lanes["default"].values()] == ["k"]
    office.pulse(0, 0, 1)
    assert started(office) == ["a"]
    assert list(lanes["default"].values()) == []


# -- grants that nobody acknowledges


def unacknowledged(office: Office, desk: Desk, limit: str) -> int:
    """One grant whose inbox record the broker has; the token."""
    office.submit("a", limit)
    office.pulse(0, 0, 1)
    assert started(office) == ["a"]
    session = desk.sessions.get("w0.0")
    assert session is not None
    (token,) = session.unacknowledged
    session.sent_at[token >> 16] = office.now
    return token


def test_under_a_limit_a_grant_is_not_taken_back_for_silence_alone(office: Office, desk: Desk) -> None:
    unacknowledged(office, desk, "k")
    desk.sessions.evidence = office.now + 9_000
    office.now += 9_000
    assert rows(office.cycle(0), facts.GrantsReturned) == []


def test_after_a_restart_it_is_still_known_to_run_under_a_permit(office: Office, desk: Desk) -> None:
    token = unacknowledged(office, desk, "k")
    office.restart(0)
    session = desk.sessions.get("w0.0")
    assert session is not None
    assert session.permitted == {token}


def test_without_one_it_is(office: Office, desk: Desk) -> None:
    unacknowledged(office, desk, "")
    desk.sessions.evidence = office.now + 9_000
    office.now += 9_000
    assert rows(office.cycle(0), facts.GrantsReturned) == [f"a:{T0}"]


@pytest.mark.parametrize(("seen", "is_back"), [(False, True), (True, False)])
def test_a_pulse_a_lease_after_start_by_takes_it_back_if_it_has_not_seen_it(
    office: Office, desk: Desk, *, seen: bool, is_back: bool
) -> None:
    """Whoever wrote that pulse has not started it, and never will."""
    token = unacknowledged(office, desk, "k")
    session = desk.sessions.get("w0.0")
    assert session is not None
    hand = office.workers[0][0]
    hand.last_token = token if seen else -1
    over_at = office.now + START_WITHIN_MS + 2 * session.lease_ms
    assert session.next_withdrawal_at() == over_at
    for _ in range(3):
        office.now += 8_000
        hand.pulse(0)
        desk.now = office.now
        desk.sessions.evidence = min(office.now, over_at)
        assert rows(office.cycle(0), facts.GrantsReturned) == []
    desk.sessions.evidence = over_at + 1
    assert rows(office.cycle(0), facts.GrantsReturned) == ([f"a:{T0}"] if is_back else [])


def test_an_output_refused_for_good_gives_its_grant_back_under_a_limit_too(
    office: Office, desk: Desk
) -> None:
    """The broker has refused the record: nobody can ever start it."""
    token = unacknowledged(office, desk, "k")
    session = desk.sessions.get("w0.0")
    assert session is not None
    session.sent_at[token >> 16] = 0
    desk.sessions.evidence = office.now
    assert rows(office.cycle(0), facts.GrantsReturned) == [f"a:{T0}"]


# -- open queues


def test_a_claim_under_a_limit_is_granted_with_a_permit_alone(office: Office, desk: Desk) -> None:
    office.declare("k", concurrency=1)
    desk.declare("o", is_open=True)
    office.cycle(0)
    office.submit("a", "k", queue="o")
    office.submit("b", "k", queue="o")
    office.cycle(0)
    office.cycle(0)
    hand = Hand(desk, "c.0")
    claims = [Claim(TENANT, f"{job}:{T0}", 1) for job in "ab"]

    def answers() -> list[str]:
        hand.pulse(0, held=[token for _, token in held], queues=(), claims=claims)
        office.deliver_all()
        office.cycle(0)
        held.extend(hand.take())
        return [
            answer.refusal.partition(":")[0]
            for inbox in desk.replies
            for answer in inbox.answers
            if answer.token is None
        ]

    held: list[tuple[str, int]] = []
    assert answers() == ["no_permit", "no_permit"]
    for _ in range(2):
        office.deliver_all()
        office.cycle(0)
    assert answers() == ["no_permit"]
    assert [name for name, _ in held] == [f"a:{T0}"]
    claims.pop(0)
    hand.pulse(0, succeeded=results([held.pop()]))
    office.cycle(0)
    for _ in range(4):
        answers()
    assert [name for name, _ in held] == [f"b:{T0}"]
