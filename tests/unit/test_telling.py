"""What sessions are told of the work that waits: with grants, and without one where nobody offers. And who merely returns."""

from __future__ import annotations

import pytest

from minutebook.domain.offers import RETURN_PAUSE_MS, RETURNS_FREE
from minutebook.domain.policy import PRIORITY
from streams.telling import LOOK_EVERY_MS, TELL_EVERY_MS
from tests.simulation.desk import Desk, Hand, results


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def hand(desk: Desk) -> Hand:
    """A worker that offers nothing."""
    made = Hand(desk)
    made.pulse(0, held=[])
    desk.cycle()
    return made


def told(desk: Desk) -> dict[str, list[int]]:
    """Counts that the last cycle sent without a grant, by session."""
    return {record.session: record.queued for record in desk.replies if record.queued}


def counts(count: int) -> list[int]:
    """So much of the usual priority."""
    return [count if priority == PRIORITY else 0 for priority in range(10)]


def come_due(desk: Desk, *jobs: str, **fields: object) -> None:
    desk.submit(*jobs, **fields)
    desk.cycle()
    desk.cycle(1)


def settle(desk: Desk, hand: Hand) -> list[tuple[str, int]]:
    """Take what came in, then grant what came back with it; what the worker got."""
    desk.cycle(5)
    found = hand.take()
    desk.cycle(5)
    return found + hand.take()


def test_session_without_an_offer_is_told_what_waits(desk: Desk, hand: Hand) -> None:
    come_due(desk, "a", "b")
    assert told(desk) == {hand.name: counts(2)}
    [record] = desk.replies
    assert (record.partition, record.granted, record.cancelled, record.is_session_over) == (
        0,
        None,
        [],
        False,
    )


def test_nothing_is_told_while_nothing_waits(desk: Desk, hand: Hand) -> None:
    desk.cycle(TELL_EVERY_MS)
    assert desk.replies == []


def test_a_session_is_told_once_a_second_at_most(desk: Desk, hand: Hand) -> None:
    come_due(desk, "a")
    assert told(desk)
    desk.cycle(TELL_EVERY_MS - 1)
    assert not told(desk)
    desk.cycle(LOOK_EVERY_MS)
    assert told(desk)


def test_grants_tell_too_and_nothing_is_told_beside_them(desk: Desk, hand: Hand) -> None:
    hand.pulse(1)
    come_due(desk, "a", "b", "c")
    [output] = desk.grants()
    assert output.record.queued == counts(2)
    assert not told(desk)
    desk.cycle(TELL_EVERY_MS - 1)
    assert not told(desk)


def test_a_session_that_offers_is_not_told(desk: Desk, hand: Hand) -> None:
    other = Hand(desk, "v.0")
    other.pulse(5, held=[])
    desk.submit("a", task="unknown")
    desk.cycle()
    desk.cycle(1)
    assert not told(desk)


def test_a_session_is_told_only_of_what_it_could_run(desk: Desk, hand: Hand) -> None:
    come_due(desk, "a", task="unknown")
    assert not told(desk)
    desk.submit("b", queue="elsewhere")
    desk.cycle()
    desk.cycle(TELL_EVERY_MS)
    assert not told(desk)


def test_a_session_is_told_once_that_nothing_waits_any_more(desk: Desk, hand: Hand) -> None:
    come_due(desk, "a")
    Hand(desk, "v.0").pulse(1, held=[])
    desk.cycle(TELL_EVERY_MS)
    assert desk.grants()
    assert told(desk) == {hand.name: counts(0)}
    desk.cycle(TELL_EVERY_MS)
    assert not told(desk)


def test_a_session_that_fell_silent_is_not_told(desk: Desk, hand: Hand) -> None:
    desk.cycle(6_000)
    come_due(desk, "a")
    assert not told(desk)


def test_sessions_alike_share_one_count(desk: Desk, hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        Hand(desk, f"v{number}.0").pulse(0, held=[])
    counted: list[str] = []
    count = desk.core.granting.queued_for
    monkeypatch.setattr(
        desk.core.granting, "queued_for", lambda session: counted.append(session.name) or count(session)
    )
    come_due(desk, "a")
    assert len(told(desk)) == 21
    assert len(counted) == 1


def test_nobody_is_told_before_all_reports_are_read(desk: Desk, hand: Hand) -> None:
    desk.core.can_grant = False
    come_due(desk, "a")
    assert not told(desk)


def test_what_came_back_goes_to_another_session(desk: Desk, hand: Hand) -> None:
    hand.pulse(9)
    come_due(desk, "a")
    [grant] = hand.take()
    other = Hand(desk, "x.0")
    other.pulse(1, held=[])
    hand.pulse(9, handed_back=[grant])
    assert [name for name, _ in settle(desk, other)] == [grant[0]]


def test_what_came_back_goes_to_the_same_session_if_no_other_offers(desk: Desk, hand: Hand) -> None:
    hand.pulse(9)
    come_due(desk, "a")
    [grant] = hand.take()
    hand.pulse(9, handed_back=[grant])
    assert [name for name, _ in settle(desk, hand)] == [grant[0]]


def test_what_is_granted_again_is_forgotten_as_having_come_back(desk: Desk, hand: Hand) -> None:
    hand.pulse(1)
    come_due(desk, "a")
    [grant] = hand.take()
    hand.pulse(0, handed_back=[grant])
    desk.cycle(10)
    assert desk.sessions.came_back
    hand.pulse(1)
    desk.cycle(10)
    assert hand.take()
    assert not desk.sessions.came_back


def return_often(desk: Desk, hand: Hand, rounds: int) -> int:
    """The session offers one slot and returns what it gets; how often it got something in so many rounds of 10 ms."""
    got = 0
    back: list[tuple[str, int]] = []
    for _ in range(rounds):
        hand.pulse(1, handed_back=back)
        back = settle(desk, hand)
        got += len(back)
    return got


def test_a_session_that_only_returns_what_it_gets_is_given_less_and_less(desk: Desk, hand: Hand) -> None:
    come_due(desk, "a")
    assert return_often(desk, hand, RETURNS_FREE) == RETURNS_FREE
    assert return_often(desk, hand, 1_000) < 15


def test_a_session_that_ends_one_may_return_some_again(desk: Desk, hand: Hand) -> None:
    come_due(desk, "a", "b", "c")
    return_often(desk, hand, RETURNS_FREE + 1)
    hand.pulse(1)
    desk.cycle(RETURN_PAUSE_MS)
    hand.pulse(1, succeeded=results(hand.take()))
    back = settle(desk, hand)
    hand.pulse(0, handed_back=back)
    settle(desk, hand)
    assert return_often(desk, hand, RETURNS_FREE - 1) == RETURNS_FREE - 1
