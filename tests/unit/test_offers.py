"""What a session offers and holds, by its own pulses and the broker's stamps."""

from __future__ import annotations

from itertools import count

import pytest

from minutebook.domain.offers import OFFER_MAX, Session, compare_held, hear
from minutebook.domain.records import FullPulse, Pulse, QueueOffer, Report

_sequence = count()
NAME = "w1.1"


def full(held: list[int] | None = None, **more: object) -> FullPulse:
    fields = {
        "worker": "host",
        "version": "1",
        "tasks": ["t"],
        "queues": [QueueOffer("default")],
        "lease_ms": 10_000,
        "pulse_ms": 3_000,
        "held": held or [],
    }
    return FullPulse(**(fields | more))  # type: ignore[arg-type]  # as the caller says


def session(offer: int = 3, stamp: int = 1_000, **more: object) -> Session:
    """A session just heard for the first time."""
    made = Session(NAME)
    assert hear(made, Report(NAME, 0, Pulse(offer, -1), full(**more)), stamp)  # type: ignore[arg-type]
    return made


def pulse(
    one: Session, sequence: int, offer: int, last_token: int, stamp: int = 1_000, **more: object
) -> bool:
    return hear(one, Report(NAME, sequence, Pulse(offer, last_token, **more)), stamp)  # type: ignore[arg-type]


def test_the_same_pulse_again_counts_once() -> None:
    one = session(5)
    one.take({10: b"k"})
    pulse(one, 1, 5, 10)
    compare_held(one, [10], 10, 1)
    for _ in range(3):
        assert compare_held(one, [], 10, 2).lost == []
    assert compare_held(one, [], 10, 3).lost == [10]


def test_a_full_pulse_renews_what_it_says_and_the_same_one_nothing() -> None:
    one, said = session(), full()
    for pulse in (said, said, full(tasks=["other"]), said):
        one.full(pulse)
        assert one.tasks == frozenset(pulse.tasks)


def test_a_session_nobody_heard_offers_nothing() -> None:
    assert Session(NAME).free() == 0
    assert not Session(NAME).may_be_granted(0)


def test_grants_above_the_last_token_seen_count_against_the_offer() -> None:
    one = session(offer=3)
    one.take({10: b"a"})
    one.take({11: b"b"})
    assert one.free() == 1
    pulse(one, 1, offer=2, last_token=10)
    assert one.free() == 1  # 2 offered above 10, one of them granted: 11


def test_grants_that_ended_unseen_still_count() -> None:
    """The worker's number stands above its last token: what ended meanwhile it could not know of."""
    one = session(offer=2)
    one.take({10: b"a"})
    one.drop(10)
    assert one.free() == 1
    pulse(one, 1, offer=2, last_token=10)
    assert one.free() == 2


def test_planned_grants_count_at_once() -> None:
    one = session(offer=2)
    one.planned = 2
    assert one.free() == 0


def test_an_old_sequence_changes_no_offer() -> None:
    one = session(offer=1)
    assert pulse(one, 5, offer=4, last_token=-1)
    assert not pulse(one, 5, offer=9, last_token=-1)
    assert not pulse(one, 4, offer=9, last_token=-1)
    assert one.free() == 4


def test_the_last_token_seen_never_goes_back() -> None:
    one = session()
    pulse(one, 1, offer=3, last_token=20)
    pulse(one, 2, offer=3, last_token=5)
    assert one.last_token == 20


def test_a_leaving_session_offers_nothing_more() -> None:
    one = session(offer=3)
    pulse(one, 1, offer=3, last_token=-1, is_leaving=True)
    assert one.free() == 0
    pulse(one, 2, offer=3, last_token=-1)
    assert one.free() == 0


@pytest.mark.parametrize(("offer", "free"), [(-5, 0), (OFFER_MAX + 1, OFFER_MAX)])
def test_a_senseless_offer_is_bounded(offer: int, free: int) -> None:
    assert session(offer=offer).free() == free


def test_a_pulse_without_a_full_one_makes_nothing_known() -> None:
    one = Session(NAME)
    pulse(one, 0, offer=3, last_token=-1)
    assert not one.may_be_granted(1_000)


def test_grants_are_made_on_a_young_pulse_only() -> None:
    one = session(stamp=1_000, pulse_ms=500)
    assert one.may_be_granted(1_999)
    assert not one.may_be_granted(2_000)


def test_a_session_that_acknowledges_nothing_gets_no_more() -> None:
    one = session(offer=9, stamp=1_000)
    one.take({7 << 16: b"a"})
    assert one.may_be_granted(1_000)  # the broker has not acknowledged the inbox record yet
    one.sent_at[7] = 1_000
    assert one.may_be_granted(1_499)
    assert not one.may_be_granted(1_500)
    compare_held(one, [7 << 16], one.last_token, next(_sequence))
    assert one.may_be_granted(1_500)


def test_a_lease_counts_from_the_newest_stamp() -> None:
    one = session(stamp=1_000, lease_ms=5_000)
    pulse(one, 1, offer=1, last_token=-1, stamp=4_000)
    assert one.lease_end() == 9_000
    pulse(one, 2, offer=1, last_token=-1, stamp=3_000)
    assert one.lease_end() == 9_000


@pytest.mark.parametrize(("lease_ms", "kept"), [(0, 1_000), (-1, 1_000), (1 << 40, 600_000)])
def test_a_senseless_lease_is_bounded(lease_ms: int, kept: int) -> None:
    assert session(stamp=0, lease_ms=lease_ms).lease_end() == kept


def test_a_queue_has_the_cap_that_the_session_set() -> None:
    one = session(offer=5, queues=[QueueOffer("default", 2), QueueOffer("mail")])
    assert (one.free_for("default"), one.free_for("mail")) == (2, 5)
    one.take({1: b"a"}, {1: "default"})
    assert (one.free_for("default"), one.free_for("mail")) == (1, 4)


# -- held lists


def test_held_acknowledges_a_grant() -> None:
    one = session()
    one.take({10: b"a"})
    assert list(one.unacknowledged) == [10]
    compare_held(one, [10], one.last_token, next(_sequence))
    assert list(one.unacknowledged) == []


def test_only_tokens_that_were_seen_can_be_missing() -> None:
    one = session()
    one.take({10: b"a"})
    for _ in range(5):
        missing = compare_held(one, [], one.last_token, next(_sequence))
        assert (missing.lost, missing.never_taken) == ([], [])


def test_missing_in_two_full_pulses_running_is_gone() -> None:
    one = session()
    one.take({10: b"a"})
    one.take({11: b"b"})
    compare_held(one, [10], one.last_token, next(_sequence))
    pulse(one, 1, offer=3, last_token=11)
    first = compare_held(one, [], one.last_token, next(_sequence))
    assert (first.lost, first.never_taken) == ([], [])
    second = compare_held(one, [], one.last_token, next(_sequence))
    assert (second.lost, second.never_taken) == ([10], [11])


def test_a_token_held_in_between_is_not_gone() -> None:
    one = session()
    one.take({10: b"a"})
    pulse(one, 1, offer=3, last_token=10)
    compare_held(one, [], one.last_token, next(_sequence))
    compare_held(one, [10], one.last_token, next(_sequence))
    assert compare_held(one, [], one.last_token, next(_sequence)).lost == []
    assert compare_held(one, [], one.last_token, next(_sequence)).lost == [10]


def test_a_strange_token_in_held_is_ignored_here() -> None:
    one = session()
    one.take({10: b"a"})
    missing = compare_held(one, [10, 99, 10], one.last_token, next(_sequence))
    assert (missing.lost, missing.never_taken) == ([], [])
    assert list(one.running) == [10]
