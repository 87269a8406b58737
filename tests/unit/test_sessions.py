"""When leases and grants are looked at: on every new mark, and not more often."""

from __future__ import annotations

import pytest

from minutebook.domain import events as facts
from minutebook.domain.offers import WITHDRAW_MS
from streams.sessions import DEADLINE_KEPT_MS
from tests.simulation.desk import T0, Desk, Hand, rows

LEASE_MS = 10_000


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def hand(desk: Desk) -> Hand:
    """A worker that holds one run."""
    made = Hand(desk)
    made.pulse(1, held=[])
    desk.submit("a")
    desk.cycle()
    desk.cycle(1)
    assert made.take()
    made.pulse(0, held=[made.last_token])
    desk.cycle()
    return made


def test_a_lease_that_is_over_by_a_mark_ends_in_that_cycle(desk: Desk, hand: Hand) -> None:
    desk.sessions.evidence = desk.now + LEASE_MS
    assert rows(desk.cycle(LEASE_MS), facts.AttemptsLost) == []
    desk.sessions.evidence += 1
    assert rows(desk.cycle(1), facts.AttemptsLost) == [f"a:{T0}"]


def test_a_void_frame_does_not_lose_the_end_of_a_lease(desk: Desk, hand: Hand) -> None:
    desk.sessions.evidence = desk.now + LEASE_MS + 1
    assert rows(desk.void(LEASE_MS), facts.AttemptsLost) == [f"a:{T0}"]
    assert rows(desk.cycle(1), facts.AttemptsLost) == [f"a:{T0}"]


def test_sessions_are_looked_at_once_for_each_mark(
    desk: Desk, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    over = desk.sessions.over
    monkeypatch.setattr(desk.sessions, "over", lambda: looks.append(desk.now) or over())
    for mark in (1, 1, 1, 2, 2):
        desk.sessions.evidence = T0 + mark
        desk.cycle(1)
    assert len(looks) == 2


def test_the_earliest_deadline_is_kept_for_a_moment(desk: Desk, hand: Hand) -> None:
    end = desk.now + LEASE_MS
    assert desk.sessions.next_deadline(desk.now) == end
    desk.now += DEADLINE_KEPT_MS - 1
    hand.pulse(0, held=[hand.last_token])
    desk.cycle()
    assert desk.sessions.next_deadline(desk.now) == end
    assert desk.sessions.next_deadline(desk.now + 1) == end + DEADLINE_KEPT_MS - 1


def test_a_deadline_that_has_passed_is_not_kept(desk: Desk, hand: Hand) -> None:
    end = desk.now + LEASE_MS
    assert desk.sessions.next_deadline(end - 1) == end
    desk.now = end
    hand.pulse(0, held=[hand.last_token])
    desk.cycle()
    assert desk.sessions.next_deadline(end) == end + LEASE_MS


def test_a_grant_that_nobody_acknowledged_is_a_deadline(desk: Desk, hand: Hand) -> None:
    session = desk.sessions.get(hand.name)
    assert session is not None
    hand.pulse(1, held=[hand.last_token])
    desk.submit("b")
    desk.cycle()
    desk.cycle(1)
    [(_, token)] = hand.take()
    lease_end = session.lease_end()
    assert (
        desk.sessions.next_deadline(lease_end) == lease_end
    )  # the broker has not acknowledged the inbox record yet
    session.sent_at[token >> 16] = desk.now
    assert desk.sessions.next_deadline(lease_end) == desk.now + WITHDRAW_MS
