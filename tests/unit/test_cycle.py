"""What a cycle decides with what waits: what is due and taken is recorded once, starts go before results, nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.grants import Takers
from minutebook.domain.timing import Timing
from minutebook.errors import BrokenFrameError
from minutebook.log.draft import Draft
from minutebook.log.port import RawRecord
from minutebook.wire import topics
from minutebook.wire.frames import FRAME_ROWS_MAX
from streams.cycle import RESULTS_WAIT_MS
from streams.due_set import HOLD_MS, MOVING_MS
from streams.granting import BURST_MS, BURST_ROWS
from streams.taken import Redo
from tests.simulation.desk import T0, Desk, Hand, results, rows

DUE = facts.ExecutionsDueGranted
QUEUED = facts.ExecutionsQueued
GRANTED = facts.ExecutionsGranted
ENDED = facts.AttemptsSucceeded


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def hand(desk: Desk) -> Hand:
    """A worker that offers nothing yet."""
    made = Hand(desk)
    made.pulse(0, held=[])
    desk.cycle()
    return made


def jobs(count: int, prefix: str = "j") -> list[str]:
    return [f"{prefix}{number:04}" for number in range(count)]


def names(ids: list[str], at: int = T0) -> list[str]:
    return [f"{job_id}:{at}" for job_id in ids]


def start(desk: Desk, hand: Hand, count: int, offer: int) -> list[str]:
    """Jobs due a second from T0, and an offer for some of them; ids of their executions."""
    ids = jobs(count)
    desk.submit(*ids, after_ms=1_000)
    hand.pulse(offer)
    desk.cycle()
    return names(ids, T0 + 1_000)


# -- the due set


def test_what_nobody_offers_for_is_queued_at_its_second(desk: Desk) -> None:
    desk.submit("a", after_ms=1_000)
    assert rows(desk.cycle(), QUEUED) == []
    assert rows(desk.cycle(999), QUEUED) == []
    assert rows(desk.cycle(1), QUEUED) == [f"a:{T0 + 1_000}"]


def test_while_a_worker_takes_the_rest_waits_and_is_recorded_once(desk: Desk, hand: Hand) -> None:
    expected = start(desk, hand, 5, offer=2)
    events = desk.cycle(1_000)
    assert rows(events, DUE) == expected[:2]
    assert rows(events, QUEUED) == []
    done = hand.take()
    hand.pulse(2, succeeded=results(done))
    events = desk.cycle(10)
    assert rows(events, DUE) == expected[2:4]
    assert rows(events, QUEUED) + rows(events, GRANTED) == []


def test_what_waits_too_long_is_queued(desk: Desk, hand: Hand) -> None:
    expected = start(desk, hand, 5, offer=1)
    assert rows(desk.cycle(1_000), DUE) == expected[:1]
    assert desk.cycle(MOVING_MS) == []
    assert rows(desk.cycle(1), QUEUED) == expected[1:]


def test_a_slow_worker_does_not_keep_the_rest_off_the_record(desk: Desk, hand: Hand) -> None:
    expected = start(desk, hand, 9, offer=1)
    queued: list[str] = []
    granted = rows(desk.cycle(1_000), DUE)
    for _ in range(HOLD_MS // 1_000):
        hand.take()
        hand.pulse(1)
        events = desk.cycle(1_000)
        granted += rows(events, DUE)
        queued += rows(events, QUEUED)
    assert len(granted) == 1 + HOLD_MS // 1_000
    assert sorted(granted + queued) == expected


def test_each_tenant_has_its_turn_among_what_waits(desk: Desk, hand: Hand) -> None:
    desk.submit(*jobs(4, "a"), tenant="a", after_ms=1_000)
    desk.submit("b0", tenant="b", after_ms=1_000)
    hand.pulse(2)
    desk.cycle()
    assert rows(desk.cycle(1_000), DUE) == [f"a0000:{T0 + 1_000}", f"b0:{T0 + 1_000}"]


def test_what_was_queued_before_goes_first(desk: Desk, hand: Hand) -> None:
    desk.submit("old")
    desk.cycle()
    assert rows(desk.cycle(1), QUEUED) == [f"old:{T0}"]
    desk.submit("new", after_ms=99)
    desk.cycle()
    hand.pulse(1)
    events = desk.cycle(100)
    assert (rows(events, GRANTED), rows(events, DUE)) == ([f"old:{T0}"], [])


def test_a_job_cancelled_while_it_waits_is_not_started(desk: Desk, hand: Hand) -> None:
    expected = start(desk, hand, 3, offer=1)
    desk.cycle(1_000)
    done = hand.take()
    desk.cancel("j0001")
    hand.pulse(2, succeeded=results(done))
    assert rows(desk.cycle(10), DUE) == [expected[2]]
    assert desk.core.due.held.first_key() is None


def test_a_job_cancelled_in_an_earlier_frame_is_not_started(desk: Desk, hand: Hand) -> None:
    expected = start(desk, hand, 3, offer=1)
    desk.cycle(1_000)
    done = hand.take()
    desk.cancel("j0001")
    desk.cycle(1)
    hand.pulse(2, succeeded=results(done))
    assert rows(desk.cycle(10), DUE) == [expected[2]]


def test_a_job_cancelled_in_the_frame_that_would_queue_it_is_not_queued(desk: Desk, hand: Hand) -> None:
    expected = start(desk, hand, 3, offer=1)
    desk.cycle(1_000)
    desk.cancel("j0001")
    assert rows(desk.cycle(MOVING_MS + 1), QUEUED) == [expected[2]]


def test_after_a_restart_what_waited_is_due_again(desk: Desk, hand: Hand) -> None:
    expected = start(desk, hand, 3, offer=1)
    assert rows(desk.cycle(1_000), DUE) == expected[:1]
    hand.pulse(1, succeeded=results(hand.take()))
    assert rows(desk.cycle(500), DUE) == expected[1:2]
    desk.open()
    assert rows(desk.cycle(1), QUEUED) == expected[2:]


def test_after_a_void_frame_the_same_is_decided_again(desk: Desk, hand: Hand) -> None:
    expected = start(desk, hand, 5, offer=2)
    assert rows(desk.void(1_000), DUE) == expected[:2]
    assert rows(desk.cycle(1), DUE) == expected[:2]
    assert len(desk.core.due.held) == 3


def test_what_is_counted_as_queued_includes_what_waits(desk: Desk, hand: Hand) -> None:
    start(desk, hand, 5, offer=2)
    desk.cycle(1_000)
    session = desk.sessions.get(hand.name)
    assert session is not None
    assert sum(desk.core.granting.queued_for(session)) == 3


def test_a_row_that_cannot_be_decided_is_passed_over_and_tried_again_after_a_restart(
    desk: Desk, hand: Hand
) -> None:
    desk.submit("bad", "good", after_ms=1_000)
    desk.cycle()
    spec = keys.spec_row(keys.job_row("acme", "bad"), 1)
    kept = desk.book.specs.get(spec)
    assert kept is not None
    desk.book.specs.delete(spec)
    desk.book.commit()
    with pytest.raises(Redo):
        desk.cycle(1_000)
    assert rows(desk.cycle(), QUEUED) == [f"good:{T0 + 1_000}"]
    desk.submit("later")
    assert rows(desk.cycle(500), QUEUED) == []
    assert rows(desk.cycle(1), QUEUED) == [f"later:{T0 + 1_000}"]
    desk.book.specs.put(spec, kept)
    desk.book.commit()
    desk.open()
    assert rows(desk.cycle(1), QUEUED) == [f"bad:{T0 + 1_000}"]


def test_schedules_that_fell_far_behind_do_not_make_a_frame_too_large(desk: Desk) -> None:
    """What they make up for comes due 20 a second of each, not all at once."""
    ids = jobs(100)
    desk.submit(*ids, cron="0 * * * * *", timing=Timing(end_at=desk.now + 3 * 3_600_000))
    desk.cycle()
    desk.now += 4 * 3_600_000
    found: list[int] = []
    for _ in range(60):
        found.append(len(rows(desk.cycle(100), QUEUED)))
    assert sum(found) == 100 * len(ids)
    assert max(found) <= 3 * len(ids)


def test_a_frame_has_no_more_rows_than_tokens(desk: Desk) -> None:
    draft = Draft(desk.book, 5, desk.now)
    draft.rows = FRAME_ROWS_MAX
    assert draft.room() == 0
    with pytest.raises(BrokenFrameError, match="rows"):
        draft.add(facts.OutputRefused(1, "Inbox", "too large"))


def test_a_session_that_holds_more_than_a_frame_is_ended_in_several(
    desk: Desk, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.reports.TAKEN_ROWS_MAX", 10)
    expected = start(desk, hand, 25, offer=25)
    assert rows(desk.cycle(1_000), DUE) == expected
    desk.sessions.evidence = desk.now + 60_000
    found = [desk.cycle(1) for _ in range(4)]
    assert [len(rows(events, facts.AttemptsLost)) for events in found] == [10, 10, 5, 0]
    assert [any(isinstance(event, facts.SessionEnded) for event in events) for events in found] == [
        False,
        False,
        True,
        False,
    ]


# -- reading ahead


def test_a_job_cancelled_after_it_was_read_ahead_does_not_come_due(desk: Desk, hand: Hand) -> None:
    start(desk, hand, 2, offer=2)
    while desk.core.due.read_ahead(desk.now):
        pass
    desk.cancel("j0000")
    desk.cycle()
    assert desk.core.due.ahead() == 1
    assert rows(desk.cycle(1_000), DUE) == [f"j0001:{T0 + 1_000}"]
    assert desk.core.due.ahead() == 0


def test_a_schedule_read_ahead_but_late_runs_what_it_missed(desk: Desk) -> None:
    minute = (T0 // 60_000 + 1) * 60_000
    desk.submit("c", cron="* * * * *")
    desk.cycle()
    assert desk.core.due.read_ahead(desk.now)
    desk.now = minute + 60_000
    assert rows(desk.cycle(), QUEUED) == [f"c:{minute}", f"c:{minute + 60_000}"]


# -- starts before results


def burst(desk: Desk, hand: Hand) -> list[tuple[str, int]]:
    """A burst: twice as much is due as the worker took; its grants."""
    start(desk, hand, 3 * BURST_ROWS, offer=BURST_ROWS)
    assert len(rows(desk.cycle(1_000), DUE)) == BURST_ROWS
    return hand.take()


def test_in_a_burst_starts_go_before_results(desk: Desk, hand: Hand) -> None:
    done = burst(desk, hand)
    hand.pulse(BURST_ROWS, succeeded=results(done))
    events = desk.cycle(10)
    assert len(rows(events, DUE)) == BURST_ROWS
    assert rows(events, ENDED) == []
    assert [part.offset for part in desk.last.slices if part.topic == topics.REPORTS] == [2], "what was heard"
    assert not desk.core.has_news()
    assert rows(desk.cycle(BURST_MS + 1), ENDED) == [name for name, _ in done]


def test_results_wait_no_longer_than_they_may(desk: Desk, hand: Hand) -> None:
    done = burst(desk, hand)
    hand.pulse(0, succeeded=results(done))
    desk.burst.until = desk.now + 2 * RESULTS_WAIT_MS
    assert rows(desk.cycle(RESULTS_WAIT_MS - 1), ENDED) == []
    assert rows(desk.cycle(1), ENDED) == [name for name, _ in done]


def test_results_that_waited_survive_a_void_frame(desk: Desk, hand: Hand) -> None:
    done = burst(desk, hand)
    hand.pulse(0, succeeded=results(done))
    desk.cycle(10)
    assert rows(desk.void(BURST_MS), ENDED) == [name for name, _ in done]
    assert rows(desk.cycle(1), ENDED) == [name for name, _ in done]
    session = desk.sessions.get(hand.name)
    assert session is not None
    assert not session.is_void


def test_outside_of_a_burst_results_are_decided_at_once(desk: Desk, hand: Hand) -> None:
    start(desk, hand, 2, offer=1)
    desk.cycle(1_000)
    done = hand.take()
    hand.pulse(0, succeeded=results(done))
    assert rows(desk.cycle(1), ENDED) == [name for name, _ in done]


def test_grants_made_after_a_full_pulse_are_not_missing_in_it(desk: Desk, hand: Hand) -> None:
    """Its offer is heard at once, its list compared later: by what the session had seen when it wrote it."""
    done = burst(desk, hand)
    for _ in range(3):
        hand.pulse(BURST_ROWS // 2, held=[token for _, token in done])
        desk.cycle(10)
        done += hand.take()
    hand.pulse(0)
    events = desk.cycle(BURST_MS + 1)
    assert [event for event in events if isinstance(event, facts.AttemptsLost | facts.GrantsReturned)] == []
    session = desk.sessions.get(hand.name)
    assert session is not None
    assert len(session.running) == len(done)


def test_results_that_wait_do_not_make_a_session_look_silent(desk: Desk, hand: Hand) -> None:
    done = burst(desk, hand)
    session = desk.sessions.get(hand.name)
    assert session is not None
    session.sent_at.update(dict.fromkeys({token >> 16 for _, token in done}, desk.now))
    hand.pulse(BURST_ROWS, succeeded=results(done))
    desk.burst.until = desk.now + RESULTS_WAIT_MS
    desk.cycle(10)
    assert not set(session.unacknowledged) & {token for _, token in done}


def test_long_runs_listed_as_held_do_not_make_a_session_look_silent(desk: Desk, hand: Hand) -> None:
    done = burst(desk, hand)
    session = desk.sessions.get(hand.name)
    assert session is not None
    for _ in range(15):
        session.sent_at.update(dict.fromkeys({token >> 16 for token in session.unacknowledged}, desk.now))
        desk.burst.until = desk.now + RESULTS_WAIT_MS
        hand.pulse(5, held=[token for _, token in done])
        assert len(rows(desk.cycle(60), DUE)) == 5
        done += hand.take()
    assert session.listed >= {token for _, token in done[:-5]}


def test_what_is_handed_back_does_not_wait_for_the_end_of_a_burst(desk: Desk, hand: Hand) -> None:
    done = burst(desk, hand)
    desk.burst.until = desk.now + RESULTS_WAIT_MS
    hand.pulse(0, succeeded=results(done[:1]))
    assert desk.cycle(10) == []
    hand.pulse(0, handed_back=done[1:2])
    events = desk.cycle(10)
    assert rows(events, facts.GrantsReturned) == [done[1][0]]
    assert rows(events, ENDED) == [done[0][0]], "in the order of the topic"


def test_one_full_pulse_counts_once_after_a_void_frame_too(desk: Desk, hand: Hand) -> None:
    done = burst(desk, hand)
    hand.pulse(0, held=[token for _, token in done[1:]])
    desk.cycle(10)
    assert desk.void(BURST_MS) == []
    events = desk.cycle(1)
    assert not any(isinstance(event, facts.AttemptsLost | facts.GrantsReturned) for event in events)


def test_a_report_of_an_unknown_session_does_not_void_the_offer_that_follows(desk: Desk, hand: Hand) -> None:
    burst(desk, hand)
    other = Hand(desk, "x.0")
    other.pulse(5)
    other.pulse(5, held=[])
    assert len(rows(desk.cycle(10), DUE)) == 5
    desk.cycle(BURST_MS + 1)
    session = desk.sessions.get("x.0")
    assert session is not None
    assert not session.is_void


def test_a_worker_that_joins_in_a_burst_is_heard_at_once(desk: Desk, hand: Hand) -> None:
    burst(desk, hand)
    other = Hand(desk, "x.0")
    other.pulse(5, held=[])
    events = desk.cycle(10)
    assert len(rows(events, DUE)) == 5
    assert {name for event in events if isinstance(event, DUE) for name in event.sessions} == {"x.0"}


def test_a_burst_elsewhere_in_the_process_makes_results_wait_here(desk: Desk, hand: Hand) -> None:
    start(desk, hand, 1, offer=1)
    desk.cycle(1_000)
    done = hand.take()
    desk.burst.until = desk.now + 100
    hand.pulse(1, succeeded=results(done))
    assert desk.cycle(10) == []
    assert not desk.core.has_news()
    assert rows(desk.cycle(100), ENDED) == [name for name, _ in done]


# -- idle pulses


def last_report(desk: Desk) -> RawRecord:
    return desk.inputs[topics.REPORTS].waiting[-1]


def test_an_idle_pulse_is_no_news_and_counts_as_much(desk: Desk, hand: Hand) -> None:
    hand.pulse(4, held=[])
    assert desk.core.is_news(last_report(desk))
    desk.cycle()
    desk.now += 5_000
    hand.pulse(4, held=[])
    assert not desk.core.is_news(last_report(desk))
    desk.cycle()
    session = desk.sessions.get(hand.name)
    assert session is not None
    assert (session.stamp, session.sequence, session.offer) == (desk.now, 3, 4)


def test_what_an_idle_pulse_repeats_must_be_the_last_word(desk: Desk, hand: Hand) -> None:
    for offer in (4, 0):
        hand.pulse(offer, held=[])
        desk.cycle()
    hand.pulse(4, held=[])
    assert desk.core.is_news(last_report(desk))


def test_an_offer_that_came_back_is_news(desk: Desk, hand: Hand) -> None:
    """Between the two full pulses a slot was offered elsewhere."""
    hand.pulse(4, held=[])
    desk.cycle()
    hand.pulse(3)
    desk.cycle()
    hand.pulse(4, held=[])
    assert desk.core.is_news(last_report(desk))


def test_an_idle_pulse_without_which_its_session_could_not_be_granted_anything_is_news(
    desk: Desk, hand: Hand
) -> None:
    """The first offers nothing as long as it is void, the other has not been heard for almost two pulses."""
    session = desk.sessions.get(hand.name)
    assert session is not None
    for after_ms, is_void, is_news in ((3_000, False, False), (3_000, True, True), (5_600, False, True)):
        desk.now += after_ms
        session.is_void = is_void
        hand.pulse(0, held=[])
        assert desk.core.is_news(last_report(desk)) == is_news
        desk.cycle()
        assert not session.is_void


def test_while_something_waits_for_a_grant_each_pulse_is_news(desk: Desk, hand: Hand) -> None:
    desk.submit("a", after_ms=1_000)
    hand.pulse(0, held=[])
    assert not desk.core.is_news(last_report(desk))
    desk.cycle()
    desk.cycle(1_000)
    hand.pulse(0, held=[])
    assert desk.core.is_news(last_report(desk))


def test_a_fresh_owner_takes_each_pulse_for_news_until_it_has_read_all(desk: Desk, hand: Hand) -> None:
    hand.pulse(0, held=[])
    desk.core.can_grant = False
    assert desk.core.is_news(last_report(desk))


def test_a_pulse_heard_ahead_of_results_may_be_an_idle_one(desk: Desk, hand: Hand) -> None:
    desk.submit("a", after_ms=1_000)
    desk.cycle(1_000)
    hand.pulse(0, held=[])
    desk.cycle(100)
    hand.pulse(1, held=[])
    assert rows(desk.cycle(100), GRANTED) == [f"a:{T0 + 1_000}"]


def test_a_task_that_nobody_knows_is_asked_for_once_however_many_tenants_wait_for_it(
    desk: Desk, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each tenant has a lane, and each question goes to every session."""
    for number in range(50):
        desk.submit("j", task="of.nobody", tenant=f"t{number}")
    desk.cycle()
    desk.cycle(10)
    hand.pulse(5)
    desk.cycle(10)
    asked: list[tuple[str, str]] = []
    first = Takers.first

    def counted(self: Takers, queue: str, task: str) -> Any:
        asked.append((queue, task))
        return first(self, queue, task)

    monkeypatch.setattr(Takers, "first", counted)
    assert desk.core.granting.has_waiting()
    assert not desk.core.granting.has_grantable(desk.now)
    assert asked == [("default", "of.nobody")]
