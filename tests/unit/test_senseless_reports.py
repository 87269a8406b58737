"""Reports that are refused whole: nothing in them counts, neither in their turn nor ahead of it nor after a take-over."""

from __future__ import annotations

import pytest

from minutebook.domain import events as facts
from minutebook.domain.offers import TASKS_MAX
from minutebook.domain.records import FullPulse, Pulse, QueueOffer, Report
from minutebook.domain.senseless import HELD_MAX, QUEUES_MAX
from minutebook.log.port import RawRecord
from minutebook.wire import codec
from streams.sessions import Sessions
from streams.window_of_reports import hear_again
from tests.simulation.desk import T0, TASK, Desk, Hand, rows


def report(
    offer: int = 1, last_token: int = -1, tasks: int = 1, queues: int = 1, held: int = 0, session: str = "w.0"
) -> Report:
    """A first report, right unless told otherwise."""
    names = [TASK, *(f"t{number}" for number in range(tasks - 1))]
    offers = [QueueOffer("default"), *(QueueOffer(f"q{number}") for number in range(queues - 1))]
    full = FullPulse("w", "1", names, offers, 10_000, 3_000, list(range(held)))
    return Report(session, 1, Pulse(offer, last_token), full)


SENSELESS = {
    "offer below 0": report(offer=-1),
    "too many tasks": report(tasks=TASKS_MAX + 1),
    "too many queues": report(queues=QUEUES_MAX + 1),
    "too many tokens": report(held=HELD_MAX + 1),
    "token of the next frame": report(last_token=2 << 16),
    "token of no frame": report(last_token=2**63 - 1),
    "session without a number": report(session="w"),
}
AT_LIMIT = {
    "offer of 0": report(offer=0),
    "tasks": report(tasks=TASKS_MAX),
    "queues": report(queues=QUEUES_MAX),
    "last token of the last frame": report(last_token=(2 << 16) - 1),
}


@pytest.fixture
def desk() -> Desk:
    """Its log has two frames, 0 and 1."""
    made = Desk()
    made.submit("a", after_ms=60_000)
    made.cycle()
    assert made.reader.position == 1
    return made


@pytest.mark.parametrize("kind", SENSELESS)
def test_senseless_report_makes_no_session(desk: Desk, kind: str) -> None:
    desk.report(SENSELESS[kind])

    (refused,) = desk.cycle()
    assert isinstance(refused, facts.ReportRefused)
    assert list(desk.sessions) == []


@pytest.mark.parametrize("kind", SENSELESS)
def test_senseless_report_makes_no_session_after_a_take_over_either(desk: Desk, kind: str) -> None:
    sessions = Sessions(desk.book)
    hear_again(sessions, RawRecord(0, T0, None, codec.encode(SENSELESS[kind])), desk.reader.position)

    assert list(sessions) == []


@pytest.mark.parametrize("kind", AT_LIMIT)
def test_report_at_a_limit_makes_a_session(desk: Desk, kind: str) -> None:
    sessions = Sessions(desk.book)
    hear_again(sessions, RawRecord(0, T0, None, codec.encode(AT_LIMIT[kind])), desk.reader.position)
    desk.report(AT_LIMIT[kind])

    assert desk.cycle() == []
    assert [session.name for session in desk.sessions] == [session.name for session in sessions] == ["w.0"]


def test_token_that_was_never_given_gains_no_grants(desk: Desk) -> None:
    """Grants count against an offer above the last token seen: one from the future would make it endless."""
    desk.submit(*(f"j{number}" for number in range(9)))
    desk.cycle()
    desk.cycle()
    hand = Hand(desk)
    hand.last_token = 2**62
    hand.pulse(1, held=[])
    granted: list[str] = []
    for _ in range(9):
        granted += rows(desk.cycle(), facts.ExecutionsGranted)

    assert granted == []
