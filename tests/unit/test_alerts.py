"""Alerts: raised with their cause, one an hour for a job and kind, with what was left out; tasks that nobody knows."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from minutebook import ids
from minutebook.domain import alerts
from minutebook.domain import events as facts
from minutebook.domain.alerts import QUIET_MS
from minutebook.domain.book import FAMILIES, Book
from minutebook.domain.commands import PauseQueue, SubmitJob
from minutebook.domain.events import Event
from minutebook.domain.fold import fold
from minutebook.domain.outputs import ToAlerts, outputs
from minutebook.domain.policy import Policy
from minutebook.domain.records import Failed
from minutebook.domain.submit import fingerprint
from minutebook.store.memory import MemoryRows
from minutebook.wire.frames import decode_frame, placed
from streams.unknown_tasks import LOOK_EVERY_MS, UNKNOWN_AFTER_MS
from tests.simulation.desk import T0, Desk, Hand
from tests.unit.test_rules_of_attempts import evidence

DAY_MS = 86_400_000
URL = "https://hooks.example/a"


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def hand(desk: Desk) -> Hand:
    made = Hand(desk, lease_ms=600_000)
    made.pulse(0, held=[])
    desk.cycle()
    return made


def raised(events: list[Event]) -> list[facts.AlertRaised]:
    return [event for event in events if isinstance(event, facts.AlertRaised)]


def run(desk: Desk, hand: Hand, *jobs: str, **fields: object) -> list[tuple[str, int]]:
    """Jobs that are due now and granted: (execution, token) of each."""
    desk.submit(*jobs, **fields)
    desk.cycle()
    return grant(desk, hand, len(jobs))


def grant(desk: Desk, hand: Hand, offer: int = 1, after_ms: int = 0) -> list[tuple[str, int]]:
    """What is due `after_ms` later and granted to the hand."""
    desk.cycle(after_ms)
    hand.pulse(offer)
    desk.cycle()
    return hand.take()


def fail(desk: Desk, hand: Hand, granted: list[tuple[str, int]]) -> list[Event]:
    """These fail for good; what is decided on it."""
    say_failed(hand, granted)
    return desk.cycle()


def say_failed(hand: Hand, granted: list[tuple[str, int]], message: str = "no\ngood") -> None:
    assert granted
    hand.say(failed=[Failed("acme", name, token, "Boom", message, True) for name, token in granted])


def die(desk: Desk, hand: Hand, *jobs: str, **fields: object) -> list[Event]:
    """Jobs due now whose one attempt fails for good; the frame that says so."""
    return fail(desk, hand, run(desk, hand, *jobs, **fields))


def test_dead_execution_raises_an_alert_beside_it(desk: Desk, hand: Hand) -> None:
    events = die(desk, hand, "a", notify=URL)
    assert [type(event).__name__ for event in events] == ["AttemptFailed", "ExecutionDead", "AlertRaised"]
    assert raised(events) == [
        facts.AlertRaised(
            tenant="acme",
            kind="execution_dead",
            job_id="a",
            execution=f"a:{T0}",
            task="t",
            queue="default",
            at=T0,
            text=f"a:{T0} was given up at attempt 1 (permanent): Boom: no\ngood",
            notify=URL,
            left_out=0,
            details=b'{"attempt":1,"cause":"permanent","error_type":"Boom","generation":0}',
        )
    ]


def test_alert_is_an_output_of_its_frame_with_an_id_that_stays(desk: Desk, hand: Hand) -> None:
    die(desk, hand, "a", notify=URL)
    frame = decode_frame(desk.records[-1].value)
    sent = [
        output
        for now in (desk.now, desk.now + DAY_MS)  # sent, and sent again by a later owner
        for output in outputs(desk.book, placed(frame), 0, 1, now)
        if isinstance(output, ToAlerts)
    ]
    assert sent[0] == sent[1]
    assert (sent[0].offset, sent[0].record.notify, sent[0].record.at) == (frame.offset, URL, T0)
    assert sent[0].record.id == ids.alert_id("acme", "execution_dead", "a", 0, T0)


def test_other_origin_has_another_id() -> None:
    origins = [
        ("acme", "execution_dead", "a", 0, T0),
        ("other", "execution_dead", "a", 0, T0),
        ("acme", "attempt_stuck", "a", 0, T0),
        ("acme", "execution_dead", "b", 0, T0),
        ("acme", "execution_dead", "a", 1, T0),
        ("acme", "execution_dead", "a", 0, T0 + 1),
    ]
    assert len({ids.alert_id(*origin) for origin in origins}) == len(origins)


def test_hour_has_one_alert_of_a_job_and_the_next_counts_what_was_left_out(desk: Desk, hand: Hand) -> None:
    desk.submit("a", cron="* * * * *")
    desk.cycle()
    frames = [fail(desk, hand, grant(desk, hand, after_ms=60_000)) for _ in range(125)]
    told = [(alert.at, alert.left_out) for frame in frames for alert in raised(frame)]
    assert [left_out for _, left_out in told] == [0, 59, 59]
    assert [later - earlier for (earlier, _), (later, _) in pairwise(told)] == [QUIET_MS] * 2


def test_other_job_and_other_kind_have_alerts_of_their_own(desk: Desk, hand: Hand) -> None:
    assert [alert.job_id for alert in raised(die(desk, hand, "a", "b"))] == ["a", "b"]
    granted = run(desk, hand, "c", timeout_ms=600_000, policy=Policy(stuck_after_ms=10_000))
    assert [alert.kind for alert in raised(evidence(desk, hand, 10_000))] == ["attempt_stuck"]
    assert [alert.kind for alert in raised(fail(desk, hand, granted))] == ["execution_dead"]


def test_stuck_attempt_says_for_how_long(desk: Desk, hand: Hand) -> None:
    run(desk, hand, "a", timeout_ms=600_000, notify=URL, policy=Policy(stuck_after_ms=10_000))
    (alert,) = raised(evidence(desk, hand, 10_000))
    assert (alert.kind, alert.job_id, alert.notify) == ("attempt_stuck", "a", URL)
    assert msgspec.json.decode(alert.details) == {"attempt": 1, "silent_ms": alert.at - T0}
    assert alert.text == f"attempt 1 of a:{T0} has shown no progress for {(alert.at - T0) // 1_000} s"


def test_frame_that_turns_out_void_counts_nothing(desk: Desk, hand: Hand) -> None:
    say_failed(hand, run(desk, hand, "a"))
    assert len(raised(desk.void())) == 1
    assert [alert.left_out for alert in raised(desk.cycle())] == [0]


def test_new_owner_knows_what_the_hour_has_had(desk: Desk, hand: Hand) -> None:
    desk.submit("a", cron="* * * * *")
    desk.cycle()
    assert len(raised(fail(desk, hand, grant(desk, hand, after_ms=60_000)))) == 1
    desk.open()
    again = Hand(desk, "v.0", lease_ms=600_000)
    again.pulse(0, held=[])
    assert raised(fail(desk, again, grant(desk, again, after_ms=60_000))) == []
    assert [row.causes for _, row in desk.book.alerts.scan(b"")] == [1]


def test_day_takes_what_was_counted_with_it(desk: Desk, hand: Hand) -> None:
    die(desk, hand, "a")
    assert list(desk.book.alerts.scan(b""))
    desk.cycle(10 * DAY_MS)
    assert list(desk.book.alerts.scan(b"")) == []


def test_row_moves_to_the_day_of_its_last_cause(desk: Desk, hand: Hand) -> None:
    desk.submit("a", cron="0 * * * *")
    desk.cycle()
    for _ in range(30):
        fail(desk, hand, grant(desk, hand, after_ms=QUIET_MS))
    assert len(list(desk.book.alerts.scan(b""))) == 1


def test_long_error_is_cut_in_the_text(desk: Desk, hand: Hand) -> None:
    say_failed(hand, run(desk, hand, "a"), "x" * 8_000)
    (alert,) = raised(desk.cycle())
    assert len(alert.text) == alerts.TEXT_CHARS_MAX


def test_log_folds_to_the_same_counts(desk: Desk, hand: Hand) -> None:
    die(desk, hand, "a", "b")
    book = Book(MemoryRows(FAMILIES))
    for record in desk.records:
        frame = decode_frame(record.value)
        for event, token in placed(frame):
            fold(book, event, token, frame.now)
    found = list(book.alerts.scan(b""))
    assert len(found) == 2
    assert found == list(desk.book.alerts.scan(b""))


def test_notify_is_part_of_what_a_job_is() -> None:
    plain = SubmitJob(tenant="a", job_id="b", command_id="c", issued_at=0, task="t", payload=b"1")
    named = msgspec.structs.replace(plain, notify=URL)
    assert fingerprint(plain) != fingerprint(named)


def test_notify_that_is_no_url_is_refused_with_its_remedy(desk: Desk) -> None:
    desk.submit("a", notify="ftp://a.com/")
    (rejected,) = [event for event in desk.cycle() if isinstance(event, facts.CommandRejected)]
    assert (rejected.reason, rejected.field, rejected.detail) == (
        "invalid",
        "notify",
        "must begin with https://",
    )


# -- tasks that nobody knows


def wait(desk: Desk, ms: int) -> list[facts.AlertRaised]:
    """Cycles every ten seconds for so long; the alerts of all of them."""
    return [alert for _ in range(0, ms, LOOK_EVERY_MS) for alert in raised(desk.cycle(LOOK_EVERY_MS))]


def test_task_that_nobody_knows_is_told_after_ten_minutes_and_every_hour(desk: Desk) -> None:
    desk.submit("a", "b", task="unknown")
    desk.cycle()
    assert wait(desk, 2 * LOOK_EVERY_MS) == [], "the second look finds them queued"
    assert wait(desk, UNKNOWN_AFTER_MS - LOOK_EVERY_MS) == []
    (alert,) = wait(desk, LOOK_EVERY_MS)
    assert (alert.tenant, alert.kind, alert.job_id, alert.execution) == ("acme", "task_unknown", "", "")
    assert (alert.task, alert.queue, alert.notify) == ("unknown", "default", "")
    assert msgspec.json.decode(alert.details) == {"waiting": 2, "waited_ms": UNKNOWN_AFTER_MS}
    assert alert.text == "no worker has offered to run unknown from queue default for 10 minutes; 2 wait"
    assert wait(desk, QUIET_MS - LOOK_EVERY_MS) == []
    assert len(wait(desk, LOOK_EVERY_MS)) == 1, "it still waits"


def test_task_that_waits_over_midnight_is_told_once_an_hour(desk: Desk) -> None:
    desk.submit("a", task="unknown")
    desk.cycle()
    told = [alert.at for _ in range(60) for alert in raised(desk.cycle(QUIET_MS // 2))]
    assert told[-1] - told[0] > DAY_MS
    assert {later - earlier for earlier, later in pairwise(told)} == {QUIET_MS}
    assert len(list(desk.book.alerts.scan(b""))) == 1


def test_worker_that_comes_starts_the_ten_minutes_anew(desk: Desk) -> None:
    desk.submit("a")
    desk.cycle()
    wait(desk, UNKNOWN_AFTER_MS)
    hand = Hand(desk, lease_ms=600_000)
    hand.pulse(0, held=[])
    assert wait(desk, 2 * LOOK_EVERY_MS) == [], "it is known, though nobody has a slot"


def test_worker_that_reads_other_queues_does_not_count(desk: Desk) -> None:
    desk.declare("other", is_open=False)
    desk.submit("a")
    hand = Hand(desk, lease_ms=600_000)
    hand.pulse(1, held=[], queues=["other"])
    desk.cycle()
    assert len(wait(desk, UNKNOWN_AFTER_MS + 3 * LOOK_EVERY_MS)) == 1


def test_tenants_and_tasks_have_alerts_of_their_own(desk: Desk) -> None:
    desk.submit("a", task="x")
    desk.submit("a", task="x", tenant="other")
    desk.submit("b", task="y")
    desk.cycle()
    told = wait(desk, UNKNOWN_AFTER_MS + 3 * LOOK_EVERY_MS)
    assert sorted((alert.tenant, alert.task) for alert in told) == [
        ("acme", "x"),
        ("acme", "y"),
        ("other", "x"),
    ]


def test_paused_and_open_queues_wait_for_something_else(desk: Desk) -> None:
    desk.declare("open", is_open=True)
    desk.cycle()
    desk.submit("a", task="x")
    desk.submit("b", task="x", queue="open")
    desk.command(PauseQueue(name="default", command_id="p", issued_at=desk.now))
    desk.cycle()
    assert wait(desk, 2 * UNKNOWN_AFTER_MS) == []


def test_owner_that_has_not_heard_its_workers_yet_says_nothing(desk: Desk) -> None:
    desk.submit("a", task="x")
    desk.cycle()
    desk.core.can_grant = False
    assert wait(desk, 2 * UNKNOWN_AFTER_MS) == []
