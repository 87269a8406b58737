"""Open queues: what is published, what again, and what a claim gets. Time is by hand, the rules are those of an owner."""

from __future__ import annotations

import pytest

from minutebook.domain import events as facts
from minutebook.domain.claims import CLAIMS_MAX, REFUSALS
from minutebook.domain.commands import PauseQueue, ResumeQueue
from minutebook.domain.records import Claim, ClaimAnswer, DueRecord, Failed
from streams import open_queues
from streams.open_queues import AGAIN_IDLE_MS, AGAIN_PASSED_MS
from streams.taken import Redo
from tests.simulation.desk import T0, TASK, Desk, Hand, results, rows

QUEUED = facts.ExecutionsQueued
GRANTED = facts.ExecutionsGranted


@pytest.fixture
def desk() -> Desk:
    """A desk that has the open queue `o`."""
    made = Desk()
    made.declare("o", is_open=True)
    made.cycle()
    return made


@pytest.fixture
def hand(desk: Desk) -> Hand:
    """A consumer that pulses."""
    made = Hand(desk)
    made.pulse(0, held=[], queues=())
    desk.cycle()
    return made


def due(desk: Desk, *jobs: str, **fields: object) -> list[str]:
    """Jobs of the open queue that came due and are queued; ids of their executions."""
    desk.submit(*jobs, queue="o", **fields)  # type: ignore[arg-type]  # fields of the command
    desk.cycle()
    return rows(desk.cycle(1), QUEUED)


def claim(execution: str, attempt: int = 1, tenant: str = "acme") -> Claim:
    return Claim(tenant, execution, attempt)


def answers(desk: Desk, session: str = "w.0") -> list[ClaimAnswer]:
    return [answer for inbox in desk.replies if inbox.session == session for answer in inbox.answers]


def codes(desk: Desk, session: str = "w.0") -> list[str]:
    """What each claim came to: its token as text, or the code of its refusal."""
    return [
        answer.refusal.partition(":")[0] if answer.token is None else str(answer.token)
        for answer in answers(desk, session)
    ]


def names(records: list[DueRecord]) -> list[str]:
    return [record.execution for record in records]


def take(desk: Desk, hand: Hand, execution: str, attempt: int = 1) -> int:
    """Claim and be granted; the token, which the next full pulse holds."""
    hand.pulse(0, claims=[claim(execution, attempt)])
    assert rows(desk.cycle(1), GRANTED) == [execution]
    (answer,) = answers(desk)
    assert answer.token is not None
    hand.last_token = answer.token
    return answer.token


# -- what is published


def test_what_comes_due_on_an_open_queue_is_queued_at_once_and_published(desk: Desk) -> None:
    other = Hand(desk, "sdk.0")
    other.pulse(5, held=[], queues=("o", "default"))
    desk.submit("a", queue="o", payload=b'{"n":1}', after_ms=1_000)
    desk.cycle()
    assert desk.publish("o") == []
    assert rows(desk.cycle(1_000), QUEUED) == [f"a:{T0 + 1_000}"]
    assert len(desk.core.due.held) == 0
    (record,) = desk.publish("o")
    assert record == DueRecord(
        "acme", f"a:{T0 + 1_000}", 1, "a", TASK, "o", b'{"n":1}', T0 + 1_000, T0 + 1_000, 0
    )


def test_no_offer_is_granted_what_waits_on_an_open_queue(desk: Desk) -> None:
    sdk = Hand(desk, "sdk.0")
    sdk.pulse(5, held=[], queues=("o", "default"))
    due(desk, "a")
    sdk.pulse(5)
    assert rows(desk.cycle(1), GRANTED) == []
    session = desk.sessions.get("sdk.0")
    assert session is not None
    assert sum(desk.core.granting.queued_for(session)) == 0
    assert not desk.core.granting.has_waiting()
    assert not desk.core.granting.has_grantable(desk.now)
    desk.submit("b")
    desk.cycle()
    assert rows(desk.cycle(1), facts.ExecutionsDueGranted) == [f"b:{T0 + 2}"], "ordinary queues go on"


def test_only_so_many_are_published_and_unclaimed(
    desk: Desk, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_queues, "EMIT_WINDOW", 3)
    executions = due(desk, *"abcde")
    assert names(desk.publish("o")) == executions[:3]
    assert not desk.core.open_queues.has_fresh("o")
    assert desk.publish("o") == []
    take(desk, hand, executions[1])
    assert names(desk.publish("o")) == executions[3:4]


def test_priority_then_tenants_in_turn_decide_what_is_published_first(desk: Desk) -> None:
    desk.submit("a1", "a2", "a3", tenant="a", queue="o")
    desk.submit("b1", tenant="b", queue="o")
    desk.cycle()
    desk.cycle(1)
    assert [record.job_id for record in desk.publish("o")] == ["a1", "b1", "a2", "a3"]


def test_after_a_restart_what_is_still_queued_is_published_again(desk: Desk, hand: Hand) -> None:
    executions = due(desk, "a", "b")
    first = desk.publish("o")
    take(desk, hand, executions[0])
    desk.open()
    assert desk.publish("o") == first[1:]


def test_a_cancelled_execution_is_not_published(desk: Desk) -> None:
    due(desk, "a", "b")
    desk.cancel("a")
    desk.cycle(1)
    assert [record.job_id for record in desk.publish("o")] == ["b"]


def test_a_queue_that_is_opened_later_publishes_what_is_queued(desk: Desk) -> None:
    desk.declare("late", is_open=False)
    desk.cycle()
    desk.submit("a", queue="late")
    desk.cycle()
    desk.cycle(1)
    desk.declare("late", is_open=True)
    desk.cycle()
    assert [record.job_id for record in desk.publish("late")] == ["a"]


def test_a_queue_that_is_closed_is_granted_to_offers_again(desk: Desk, hand: Hand) -> None:
    executions = due(desk, "a", "b")
    desk.publish("o")
    taken = take(desk, hand, executions[0])
    desk.declare("o", is_open=False)
    sdk = Hand(desk, "sdk.0")
    sdk.pulse(5, held=[], queues=("o",))
    desk.cycle(1)
    assert rows(desk.cycle(1), GRANTED) == executions[1:]
    hand.pulse(0, held=[taken], claims=[claim(executions[1])])
    desk.cycle(1)
    assert codes(desk) == ["not_open_queue"]


def test_what_comes_due_just_after_a_queue_was_opened_is_queued_at_once(desk: Desk) -> None:
    sdk = Hand(desk, "sdk.0")
    sdk.pulse(1, held=[], queues=("late",))
    desk.declare("late", is_open=False)
    desk.cycle()
    desk.submit("a", queue="late", after_ms=1)
    desk.submit("b", queue="late", after_ms=100)
    desk.cycle()
    assert rows(desk.cycle(1), facts.ExecutionsDueGranted) == [f"a:{T0 + 1}"], "the lane is moving"
    desk.declare("late", is_open=True)
    desk.cycle()
    assert rows(desk.cycle(99), QUEUED) == [f"b:{T0 + 100}"]


# -- what is published again


def test_unclaimed_is_published_again_after_a_minute_then_two(desk: Desk) -> None:
    (execution,) = due(desk, "a")
    first = desk.publish("o")
    found: list[int] = []
    for second in range(1, 200):
        desk.now += 1_000
        again = desk.publish("o")
        assert again in ([], first), "the same execution, the same attempt"
        found += [second] if again else []
    assert found == [AGAIN_IDLE_MS // 1_000, 3 * AGAIN_IDLE_MS // 1_000]
    assert desk.book.execution(f"acme\0{execution}".encode()).attempt == 1  # type: ignore[union-attr]


def test_unclaimed_is_published_again_soon_while_later_ones_are_claimed(desk: Desk, hand: Hand) -> None:
    executions = due(desk, "a", "b")
    desk.publish("o")
    take(desk, hand, executions[1])
    desk.now += AGAIN_PASSED_MS - 2
    assert desk.publish("o") == []
    desk.now += 1
    assert names(desk.publish("o")) == executions[:1]


def test_repeats_are_one_in_a_hundred_or_one_a_second(desk: Desk, hand: Hand) -> None:
    executions = due(desk, *(f"j{number:03}" for number in range(300)))
    assert len(desk.publish("o")) == 300
    take(desk, hand, executions[-1])
    desk.now += AGAIN_PASSED_MS
    assert names(desk.publish("o")) == executions[:4], "1 % of 300, and one"
    for second in range(10):
        desk.now += 1_000
        assert names(desk.publish("o")) == executions[4 + second : 5 + second]


def test_what_is_on_its_way_is_not_published_again(desk: Desk) -> None:
    due(desk, "a")
    (hint,) = desk.core.open_queues.take("o", desk.now, 10)
    desk.now += 10 * AGAIN_IDLE_MS
    assert desk.publish("o") == []
    desk.core.open_queues.sent("o", hint.key, desk.now)
    desk.now += AGAIN_IDLE_MS
    assert names(desk.publish("o")) == [hint.record.execution]


def test_what_comes_back_is_published_at_once_as_the_attempt_that_it_is(desk: Desk, hand: Hand) -> None:
    (execution,) = due(desk, "a")
    desk.publish("o")
    token = take(desk, hand, execution)
    hand.pulse(0, handed_back=[(execution, token)])
    desk.cycle(1)
    assert [(record.execution, record.attempt) for record in desk.publish("o")] == [(execution, 1)]
    token = take(desk, hand, execution)
    desk.sessions.evidence = desk.now + 60_000
    assert rows(desk.cycle(1), facts.AttemptsLost) == [execution]
    assert [(record.execution, record.attempt) for record in desk.publish("o")] == [(execution, 2)]


def test_what_is_taken_and_given_back_in_one_frame_is_published_at_once(desk: Desk, hand: Hand) -> None:
    (execution,) = due(desk, "a")
    desk.publish("o")
    token = (desk.reader.position + 1) << 16
    hand.pulse(0, claims=[claim(execution)])
    hand.pulse(0, handed_back=[(execution, token + 1)])
    events = desk.cycle(1)
    assert rows(events, GRANTED) == rows(events, facts.GrantsReturned) == [execution]
    assert names(desk.publish("o")) == [execution]


def test_a_retry_is_published_when_it_comes_due(desk: Desk, hand: Hand) -> None:
    (execution,) = due(desk, "a")
    desk.publish("o")
    token = take(desk, hand, execution)
    hand.pulse(0, failed=[Failed("acme", execution, token, "OSError", "no", False)])
    desk.cycle(1)
    assert desk.publish("o") == []
    hand.pulse(0, held=[], claims=[claim(execution, 2)])
    desk.cycle(1)
    assert codes(desk) == ["not_queued"]
    desk.cycle(2_000)
    assert [(record.execution, record.attempt) for record in desk.publish("o")] == [(execution, 2)]


# -- claims


def test_a_claim_is_granted_once_and_answered_with_its_token(desk: Desk, hand: Hand) -> None:
    (execution,) = due(desk, "a", payload=b"[7]")
    hand.pulse(0, claims=[claim(execution)])
    events = desk.cycle(1)
    assert rows(events, GRANTED) == [execution]
    assert [event.session for event in events if isinstance(event, facts.SessionStarted)] == ["w.0"]
    ((granted, token),) = hand.take()
    assert (granted, codes(desk)) == (execution, [str(token)])
    (output,) = desk.grants()
    assert output.record.granted is not None
    assert output.record.granted.payloads == [b"[7]"]
    hand.pulse(0, held=[token], succeeded=results([(execution, token)]))
    assert rows(desk.cycle(1), facts.AttemptsSucceeded) == [execution]


@pytest.mark.row("W4")
def test_a_claim_sent_again_gets_the_same_token_while_its_attempt_runs(desk: Desk, hand: Hand) -> None:
    (execution,) = due(desk, "a")
    token = take(desk, hand, execution)
    hand.pulse(0, claims=[claim(execution), claim(execution)])
    assert desk.cycle(1) == []
    assert codes(desk) == [str(token)] * 2
    hand.pulse(0, succeeded=results([(execution, token)]))
    desk.cycle(1)
    hand.pulse(0, claims=[claim(execution)])
    assert desk.cycle(1) == []
    assert codes(desk) == ["unknown"]


@pytest.mark.row("K15")
def test_a_claim_of_an_attempt_that_is_over_changes_nothing_for_the_one_that_runs(
    desk: Desk, hand: Hand
) -> None:
    (execution,) = due(desk, "a")
    first = take(desk, hand, execution)
    hand.pulse(0, failed=[Failed("acme", execution, first, "OSError", "no", False)])
    desk.cycle(1)
    desk.cycle(2_000)
    hand.pulse(0, claims=[claim(execution, 2)])
    desk.cycle(1)
    ((_, second),) = hand.take()
    other = Hand(desk, "x.0")
    other.pulse(0, held=[], claims=[claim(execution, 1)])
    hand.pulse(0, claims=[claim(execution, 1)])
    assert desk.cycle(1) == []
    assert codes(desk) == codes(desk, "x.0") == ["other_attempt"]
    hand.pulse(0, succeeded=results([(execution, second)]))
    assert rows(desk.cycle(1), facts.AttemptsSucceeded) == [execution]


def test_of_two_claims_the_first_in_the_log_wins(desk: Desk, hand: Hand) -> None:
    (execution,) = due(desk, "a")
    other = Hand(desk, "x.0")
    other.pulse(0, held=[], claims=[claim(execution)])
    hand.pulse(0, claims=[claim(execution)])
    assert rows(desk.cycle(1), GRANTED) == [execution]
    assert [code.isdecimal() for code in codes(desk, "x.0")] == [True]
    assert codes(desk) == ["not_queued"]


def test_one_report_may_claim_the_same_twice_and_is_granted_it_once(desk: Desk, hand: Hand) -> None:
    executions = due(desk, "a", "b")
    hand.pulse(0, claims=[claim(executions[1]), claim(executions[0]), claim(executions[1])])
    assert rows(desk.cycle(1), GRANTED) == [executions[1], executions[0]]
    first, second, third = codes(desk)
    assert (first, int(second)) == (third, int(first) + 1)


def test_claims_that_cannot_be_granted_say_why(desk: Desk, hand: Hand) -> None:
    (execution,) = due(desk, "a")
    desk.submit("plain")
    desk.cycle()
    desk.cycle(1)
    plain = f"plain:{T0 + 1}"
    wanted = [claim(execution, 2), claim(execution, 0), claim("b:1"), claim("nonsense"), claim(plain)]
    hand.pulse(0, claims=[*wanted, claim(execution, tenant="other")])
    assert rows(desk.cycle(1), GRANTED) == []
    assert codes(desk) == [
        "other_attempt",
        "other_attempt",
        "unknown",
        "unknown",
        "not_open_queue",
        "unknown",
    ]
    assert all(
        answer.refusal == f"{code}: {REFUSALS[code]}"
        for answer, code in zip(answers(desk), codes(desk), strict=True)
    )


def test_a_session_without_a_full_pulse_is_told_to_send_one(desk: Desk) -> None:
    (execution,) = due(desk, "a")
    hand = Hand(desk, "new.0")
    hand.pulse(0, claims=[claim(execution)])
    assert desk.cycle(1) == []
    assert codes(desk, "new.0") == ["no_session"]
    hand.pulse(0, held=[], claims=[claim(execution)])
    assert rows(desk.cycle(1), GRANTED) == [execution]


def test_a_session_that_the_owner_knows_from_its_store_alone_must_send_a_full_pulse(
    desk: Desk, hand: Hand
) -> None:
    first, second = due(desk, "a", "b")
    take(desk, hand, first)
    desk.open()
    hand.pulse(0, claims=[claim(second)])
    assert desk.cycle(1) == []
    assert codes(desk) == ["no_session"]


def test_a_session_that_leaves_or_was_silent_is_granted_nothing(desk: Desk, hand: Hand) -> None:
    (execution,) = due(desk, "a")
    hand.pulse(0, claims=[claim(execution)])
    desk.cycle(6_000)
    assert codes(desk) == ["later"], "the claim lay there for two pulse intervals"
    hand.pulse(0, is_leaving=True, claims=[claim(execution)])
    desk.cycle(1)
    assert codes(desk) == ["leaving"]


def test_nothing_is_granted_before_all_reports_are_read(desk: Desk, hand: Hand) -> None:
    (execution,) = due(desk, "a")
    desk.core.can_grant = False
    hand.pulse(0, claims=[claim(execution)])
    assert desk.cycle(1) == []
    assert codes(desk) == ["later"]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_an_old_report_sent_again_claims_nothing(desk: Desk, hand: Hand, is_restarted: bool) -> None:
    (execution,) = due(desk, "a")
    token = take(desk, hand, execution)
    hand.pulse(0, handed_back=[(execution, token)])
    desk.cycle(1)
    if is_restarted:
        desk.open()
    hand.pulse(0, held=[])
    again = Hand(desk)
    again._sequence = 1
    again.pulse(0, claims=[claim(execution)])
    assert desk.cycle(1) == []
    assert answers(desk) == []


def test_claims_survive_a_void_frame(desk: Desk, hand: Hand) -> None:
    (execution,) = due(desk, "a")
    hand.pulse(0, claims=[claim(execution)])
    assert rows(desk.void(1), GRANTED) == [execution]
    assert rows(desk.cycle(1), GRANTED) == [execution]
    assert [code.isdecimal() for code in codes(desk)] == [True]


def test_a_claim_is_answered_after_a_decision_that_failed_beside_it(desk: Desk, hand: Hand) -> None:
    (execution,) = due(desk, "a")
    broken, _ = due(desk, "b", "c")
    spec = b"acme\0b\0\0\0\0\1"
    kept = desk.book.specs.get(spec)
    assert kept is not None
    desk.book.specs.delete(spec)
    desk.book.commit()
    hand.pulse(0, claims=[claim(execution)])
    hand.pulse(0, claims=[claim(broken)])
    with pytest.raises(Redo):
        desk.cycle(1)
    assert rows(desk.cycle(1), GRANTED) == [execution]
    assert [code.isdecimal() for code in codes(desk)] == [True]


@pytest.mark.row("W16")
def test_too_many_claims_or_names_that_are_none_are_refused_on_record(desk: Desk, hand: Hand) -> None:
    for claims in ([claim("a:1")] * (CLAIMS_MAX + 1), [claim("x" * 257)], [claim("a:1", tenant="a b")]):
        hand.pulse(0, claims=claims)
        (refusal,) = desk.cycle(1)
        assert isinstance(refusal, facts.ReportRefused)
        assert "claim" in refusal.reason
        assert answers(desk) == []


def test_a_frame_grants_so_many_bytes_of_payload_to_claims(
    desk: Desk, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.claims.GRANT_PAYLOAD_BYTES_MAX", 10)
    executions = due(desk, *"abc", payload=b"123456")
    hand.pulse(0, claims=[claim(name) for name in executions])
    assert rows(desk.cycle(1), GRANTED) == executions[:2]
    assert codes(desk)[2] == "later"
    hand.pulse(0, claims=[claim(executions[2])])
    assert rows(desk.cycle(1), GRANTED) == executions[2:]


def test_in_a_burst_claims_do_not_wait(desk: Desk, hand: Hand) -> None:
    (execution,) = due(desk, "a")
    desk.burst.until = desk.now + 100
    hand.pulse(0, claims=[claim(execution)])
    assert rows(desk.cycle(1), GRANTED) == [execution]


def test_a_grant_that_the_claimer_never_held_is_withdrawn_and_published_again(desk: Desk, hand: Hand) -> None:
    (execution,) = due(desk, "a")
    desk.publish("o")
    token = take(desk, hand, execution)
    session = desk.sessions.get("w.0")
    assert session is not None
    session.sent_at[token >> 16] = desk.now
    desk.sessions.evidence = desk.now + 2_001
    (event,) = desk.cycle(2_001)
    assert isinstance(event, facts.GrantsReturned)
    assert [(record.execution, record.attempt) for record in desk.publish("o")] == [(execution, 1)]
    hand.pulse(0, claims=[claim(execution)])
    desk.cycle(1)
    assert int(codes(desk)[0]) > token


def test_nothing_of_a_paused_open_queue_is_published_or_granted(desk: Desk, hand: Hand) -> None:
    desk.command(PauseQueue(name="o", command_id="p1", issued_at=desk.now))
    desk.cycle()
    (execution,) = due(desk, "a")
    assert desk.publish("o") == []
    hand.pulse(0, claims=[claim(execution)])
    desk.cycle()
    assert codes(desk) == ["paused_queue"]
    desk.command(ResumeQueue(name="o", command_id="p2", issued_at=desk.now))
    desk.cycle()
    assert names(desk.publish("o")) == [execution]
    assert take(desk, hand, execution) >= 0
