"""What a job's policy says of its attempts, decided by whole cycles: deadlines, overruns, snoozes, redrives, pauses."""

from __future__ import annotations

import pytest

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.commands import (
    CancelExecution,
    CancelJob,
    DeclareQueue,
    DrainQueue,
    PauseQueue,
    RedriveExecution,
    ResumeQueue,
    RunJobNow,
)
from minutebook.domain.events import Event
from minutebook.domain.policy import Policy
from minutebook.domain.records import CancelledByTask, Failed, Progress, Snoozed
from streams.overruns import LOOK_EVERY_MS, STOP_GRACE_MS, TIMEOUT_GRACE_MS
from tests.simulation.desk import T0, Desk, Hand, results, rows

A = f"a:{T0}"
QUEUED = facts.ExecutionsQueued


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def hand(desk: Desk) -> Hand:
    """A worker that offers nothing yet, whose lease never ends here."""
    made = Hand(desk, lease_ms=600_000)
    made.pulse(0, held=[])
    desk.cycle()
    return made


def one(events: list[Event], kind: type[Event]) -> Event:
    """The only event of that kind."""
    (found,) = [event for event in events if isinstance(event, kind)]
    return found


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def running(desk: Desk, hand: Hand, **fields: object) -> int:
    """Job `a` due now and granted; its token."""
    desk.submit("a", **fields)
    desk.cycle()
    return granted(desk, hand)


def granted(desk: Desk, hand: Hand) -> int:
    """The token under which `a` runs, once somebody offers; what has a deadline is on record as queued before."""
    hand.pulse(1)
    desk.cycle()
    found = hand.take()
    if not found:
        desk.cycle()
        found = hand.take()
    ((name, token),) = found
    assert name == A
    return token


def report(desk: Desk, hand: Hand, **parts: object) -> list[Event]:
    hand.say(**parts)
    return desk.cycle()


def fail(desk: Desk, hand: Hand, token: int, error_type: str = "Boom", name: str = A) -> list[Event]:
    return report(desk, hand, failed=[Failed("acme", name, token, error_type, "no", False)])


def evidence(desk: Desk, hand: Hand, after_ms: int) -> list[Event]:
    """`after_ms` later the owner looks, marks the time and reads its mark; the worker is heard all along."""
    desk.cycle(after_ms)
    desk.cycle(LOOK_EVERY_MS)
    hand.pulse(0)
    desk.tick()
    return desk.cycle(1)


def execution_of(desk: Desk) -> object:
    return desk.book.execution(keys.execution_row("acme", A))


def index_rows(desk: Desk) -> list[int]:
    """Kinds of the rows of the time index."""
    return [keys.index_parts(key)[1] for key, _ in desk.book.index.scan(b"")]


# -- retries by policy


def test_a_job_says_how_often_it_is_tried(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand, policy=Policy(max_attempts=1))
    events = fail(desk, hand, token)
    assert kinds(events) == ["AttemptFailed", "ExecutionDead", "AlertRaised"]
    assert one(events, facts.ExecutionDead).cause == "attempts"  # type: ignore[union-attr]


def test_an_error_type_is_not_tried_again_where_the_job_says_so(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand, policy=Policy(non_retryable=["Gone"]))
    assert one(fail(desk, hand, token, "Gone"), facts.ExecutionDead).cause == "permanent"  # type: ignore[union-attr]


def test_the_wait_is_the_jobs(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand, policy=Policy(first_ms=70_000, jitter=0.0))
    failed = one(fail(desk, hand, token), facts.AttemptFailed)
    assert failed.retry_at == desk.now + 70_000  # type: ignore[union-attr]


def test_the_grant_says_how_many_attempts_there_are_and_until_when(desk: Desk, hand: Hand) -> None:
    running(desk, hand, policy=Policy(max_attempts=3, deadline_ms=60_000))
    (output,) = desk.grants()
    sent = output.record.granted
    assert sent is not None
    assert (sent.max_attempts, sent.deadlines_at, sent.details) == ([3], [T0 + 60_000], [])


# -- priorities


def test_nine_goes_before_nought(desk: Desk, hand: Hand) -> None:
    desk.submit("low", priority=0)
    desk.submit("mid")
    desk.submit("high", priority=9)
    desk.cycle()
    hand.pulse(1)
    desk.cycle()
    assert [name for name, _ in hand.take()] == [f"high:{T0}"]
    hand.pulse(1)
    desk.cycle()
    assert [name for name, _ in hand.take()] == [f"mid:{T0}"]


# -- deadlines


def test_what_is_not_started_by_its_start_deadline_is_skipped(desk: Desk, hand: Hand) -> None:
    desk.submit("a", policy=Policy(start_deadline_ms=5_000))
    desk.cycle()
    assert rows(desk.cycle(), QUEUED) == [A]
    assert desk.cycle(4_999) == []
    expired = one(desk.cycle(1), facts.ExecutionExpired)
    assert (expired.execution, expired.reason) == (A, "start_deadline")  # type: ignore[union-attr]
    hand.pulse(1)
    desk.cycle()
    assert hand.take() == []
    assert desk.book.jobs.get(keys.job_row("acme", "a")) is None, "a job that fires once is closed with it"
    assert index_rows(desk) == []
    assert list(desk.book.queued.scan(b"")) == []


def test_a_start_deadline_says_nothing_once_it_has_started(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand, policy=Policy(start_deadline_ms=5_000))
    desk.cycle(10_000)
    fail(desk, hand, token)
    events = desk.cycle(60_000)
    assert rows(events, QUEUED) == [A]
    assert desk.cycle(1) == []


def test_no_attempt_follows_that_would_start_after_the_deadline(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand, policy=Policy(deadline_ms=20_000, first_ms=30_000))
    assert one(fail(desk, hand, token), facts.ExecutionDead).cause == "deadline"  # type: ignore[union-attr]


def test_a_retry_that_nobody_took_before_the_deadline_is_dead(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand, policy=Policy(deadline_ms=20_000, first_ms=1_000, jitter=0.0))
    fail(desk, hand, token)
    assert rows(desk.cycle(1_000), QUEUED) == [A]
    dead = one(desk.cycle(19_000), facts.ExecutionDead)
    assert (dead.cause, dead.attempt) == ("deadline", 2)  # type: ignore[union-attr]
    assert index_rows(desk) == []


def test_what_was_never_tried_by_its_deadline_is_skipped(desk: Desk) -> None:
    desk.submit("a", policy=Policy(deadline_ms=20_000))
    desk.cycle()
    desk.cycle()
    expired = one(desk.cycle(20_000), facts.ExecutionExpired)
    assert expired.reason == "deadline"  # type: ignore[union-attr]


def test_what_comes_due_behind_its_deadline_is_skipped_at_once(desk: Desk) -> None:
    """Nobody was there to decide: the instant has passed, and its deadline too."""
    desk.submit("a", after_ms=1_000, policy=Policy(start_deadline_ms=5_000))
    desk.cycle()
    events = desk.cycle(7_000)
    skipped = one(events, facts.ExecutionsSkipped)
    assert (skipped.reason, skipped.count) == ("start_deadline", 1)  # type: ignore[union-attr]
    assert desk.book.jobs.get(keys.job_row("acme", "a")) is None


def test_of_a_schedule_that_fell_behind_the_expired_instants_are_skipped(desk: Desk) -> None:
    desk.submit("a", cron="* * * * *", policy=Policy(start_deadline_ms=150_000))
    desk.cycle()
    events = desk.cycle(10 * 60_000)
    skipped = one(events, facts.ExecutionsSkipped)
    assert skipped.reason == "start_deadline"  # type: ignore[union-attr]
    assert skipped.count == 8  # type: ignore[union-attr]
    assert len(one(events, facts.ExecutionsPlaced).scheduled_at) == 1  # type: ignore[union-attr]
    assert len(rows(events, QUEUED)) == 1


def test_a_grant_that_comes_back_behind_the_deadline_is_not_given_again(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand, policy=Policy(start_deadline_ms=5_000))
    desk.cycle(6_000)
    events = report(desk, hand, handed_back=[(A, token)])
    assert kinds(events) == ["GrantsReturned", "ExecutionExpired"]


def test_a_success_in_time_leaves_no_deadline_behind(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand, policy=Policy(deadline_ms=20_000, start_deadline_ms=1_000))
    assert sorted(index_rows(desk)) == [keys.DEADLINE, keys.START_DEADLINE]
    report(desk, hand, succeeded=results([(A, token)]))
    assert index_rows(desk) == []


# -- the owner ends what its worker does not


def test_the_owner_ends_an_attempt_long_after_its_timeout(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand, timeout_ms=5_000)
    assert evidence(desk, hand, 5_000 + TIMEOUT_GRACE_MS - LOOK_EVERY_MS) == []
    failed = one(evidence(desk, hand, 1), facts.AttemptFailed)
    assert (failed.error_type, failed.token) == ("Timeout", token)  # type: ignore[union-attr]
    assert [record.cancelled for record in desk.replies] == [[token]], "its worker is told to stop it"
    late = report(desk, hand, succeeded=results([(A, token)]))
    assert kinds(late) == ["ReportRefused"]


def test_a_new_owner_knows_when_attempts_started(desk: Desk, hand: Hand) -> None:
    running(desk, hand, timeout_ms=5_000)
    desk.cycle(4_000)
    desk.open()
    hand.pulse(0, held=[hand.last_token])
    desk.cycle()
    failed = one(evidence(desk, hand, 1_000 + TIMEOUT_GRACE_MS), facts.AttemptFailed)
    assert failed.error_type == "Timeout"  # type: ignore[union-attr]


def test_unread_results_count_before_an_overrun(desk: Desk, hand: Hand) -> None:
    """Without evidence of time nothing ends, however late the owner is."""
    token = running(desk, hand, timeout_ms=5_000)
    desk.cycle(60_000)
    assert desk.cycle(LOOK_EVERY_MS) == []
    assert kinds(report(desk, hand, succeeded=results([(A, token)]))) == ["AttemptsSucceeded"]


def test_what_does_not_stop_when_asked_is_cancelled_after_a_grace(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand, timeout_ms=600_000)
    desk.cancel("a")
    desk.cycle()
    assert evidence(desk, hand, STOP_GRACE_MS - LOOK_EVERY_MS) == []
    cancelled = one(evidence(desk, hand, 1), facts.AttemptCancelled)
    assert cancelled.token == token  # type: ignore[union-attr]


def test_without_progress_an_attempt_is_reported_once(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand, timeout_ms=600_000, policy=Policy(stuck_after_ms=10_000))
    desk.cycle(8_000)
    report(desk, hand, progress=[Progress("acme", A, token, 0.5)])
    assert evidence(desk, hand, 8_000) == []
    stuck = one(evidence(desk, hand, 2_000), facts.AttemptStuck)
    assert stuck.token == token  # type: ignore[union-attr]
    assert evidence(desk, hand, 20_000) == [], "told once"
    report(desk, hand, progress=[Progress("acme", A, token, 0.6)])
    assert kinds(evidence(desk, hand, 20_000)) == ["AttemptStuck"], "until it moves again"


def test_without_progress_an_attempt_is_stopped_where_the_job_says_so(desk: Desk, hand: Hand) -> None:
    running(desk, hand, timeout_ms=600_000, policy=Policy(stuck_after_ms=10_000, is_stuck_stopped=True))
    events = evidence(desk, hand, 10_000)
    assert kinds(events) == ["AttemptStuck", "AlertRaised", "AttemptFailed"]
    assert one(events, facts.AttemptFailed).error_type == "Stuck"  # type: ignore[union-attr]


# -- progress, snooze, cancel


def test_the_next_attempt_gets_what_the_last_one_noted(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand)
    report(desk, hand, progress=[Progress("acme", A, token, 0.5, "half", b'{"row":7}')])
    report(desk, hand, progress=[Progress("acme", A, token, 0.6, "more", b"")])
    fail(desk, hand, token)
    desk.cycle(10_000)
    hand.pulse(1)
    desk.cycle()
    (output,) = desk.grants()
    assert output.record.granted is not None
    assert output.record.granted.details == [b'{"row":7}']


def test_progress_with_another_token_is_refused(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand)
    refused = one(report(desk, hand, progress=[Progress("acme", A, token + 1, 0.5)]), facts.ReportRefused)
    assert refused.kind == "progress"  # type: ignore[union-attr]


def test_a_snoozed_attempt_is_followed_by_another_and_not_counted(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand, policy=Policy(max_attempts=1))
    snoozed = one(
        report(desk, hand, snoozed=[Snoozed("acme", A, token, 60_000, reason="busy")]), facts.AttemptSnoozed
    )
    assert snoozed.retry_at == desk.now + 60_000  # type: ignore[union-attr]
    assert report(desk, hand, snoozed=[Snoozed("acme", A, token, 60_000)]) == [], "a repeat says nothing"
    assert rows(desk.cycle(60_000), QUEUED) == [A]
    again = granted(desk, hand)
    execution = execution_of(desk)
    assert (execution.attempt, execution.failures) == (2, 0)  # type: ignore[attr-defined]
    assert kinds(fail(desk, hand, again))[:2] == ["AttemptFailed", "ExecutionDead"], "the first failure"


def test_a_snooze_until_an_instant_is_until_then(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand)
    until = T0 + 3_600_000
    snoozed = one(
        report(desk, hand, snoozed=[Snoozed("acme", A, token, until_at=until)]), facts.AttemptSnoozed
    )
    assert snoozed.retry_at == until  # type: ignore[union-attr]


def test_a_task_cancels_its_execution(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand)
    events = report(desk, hand, cancelled=[CancelledByTask("acme", A, token, "gone")])
    assert one(events, facts.AttemptCancelled).cause == "gone"  # type: ignore[union-attr]
    assert execution_of(desk) is None


def cancel_execution(desk: Desk, command_id: str = "x1", execution: str = A) -> list[Event]:
    desk.command(
        CancelExecution(
            tenant="acme", job_id="a", command_id=command_id, issued_at=desk.now, execution=execution
        )
    )
    return desk.cycle()


def test_one_execution_is_cancelled_while_it_waits(desk: Desk) -> None:
    desk.submit("a", cron="* * * * *")
    desk.cycle()
    (name,) = rows(desk.cycle(60_000), QUEUED)
    assert kinds(cancel_execution(desk, execution=name)) == ["ExecutionCancelled"]
    assert len(rows(desk.cycle(60_000), QUEUED)) == 1, "the schedule goes on"


def test_one_execution_is_asked_to_stop_while_it_runs(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand)
    assert one(cancel_execution(desk), facts.ExecutionCancelled).token == token  # type: ignore[union-attr]
    assert kinds(cancel_execution(desk, "x2")) == ["CommandAnswered"]
    assert kinds(fail(desk, hand, token)) == ["AttemptCancelled"]
    assert one(cancel_execution(desk, "x3"), facts.CommandRejected).reason == "not_open"  # type: ignore[union-attr]


# -- redrive


def redrive(desk: Desk, command_id: str = "r1", payload: bytes | None = None) -> list[Event]:
    desk.command(
        RedriveExecution(
            tenant="acme",
            job_id="a",
            command_id=command_id,
            issued_at=desk.now,
            execution=A,
            payload=payload,
        )
    )
    return desk.cycle()


def dead(desk: Desk, hand: Hand, **fields: object) -> None:
    token = running(desk, hand, policy=Policy(max_attempts=1, deadline_ms=5_000), **fields)
    fail(desk, hand, token)


def test_a_dead_execution_runs_again_under_a_new_generation(desk: Desk, hand: Hand) -> None:
    dead(desk, hand)
    event = one(redrive(desk), facts.ExecutionRedriven)
    assert (event.attempt, event.generation, event.is_edited) == (2, 1, False)  # type: ignore[union-attr]
    token = granted(desk, hand)
    assert kinds(report(desk, hand, succeeded=results([(A, token)]))) == ["AttemptsSucceeded"]
    closed = desk.book.remembered(desk.book.closed, keys.job_row("acme", "a"))
    assert closed is not None
    assert closed.status == "completed"


def test_a_redriven_execution_may_die_again_and_be_redriven_again(desk: Desk, hand: Hand) -> None:
    dead(desk, hand)
    redrive(desk)
    token = granted(desk, hand)
    died = one(fail(desk, hand, token), facts.ExecutionDead)
    assert (died.generation, died.attempt) == (1, 2)  # type: ignore[union-attr]
    assert one(redrive(desk, "r2"), facts.ExecutionRedriven).generation == 2  # type: ignore[union-attr]


def test_a_redrive_may_carry_another_payload(desk: Desk, hand: Hand) -> None:
    dead(desk, hand)
    redrive(desk, payload=b'"other"')
    granted(desk, hand)
    (output,) = desk.grants()
    assert output.record.granted is not None
    assert output.record.granted.payloads == [b'"other"']
    desk.command(RunJobNow(tenant="acme", job_id="a", command_id="n1", issued_at=desk.now))
    assert one(desk.cycle(), facts.CommandRejected).reason == "job_closed"  # type: ignore[union-attr]


def test_an_edited_payload_is_gone_with_its_execution(desk: Desk, hand: Hand) -> None:
    dead(desk, hand)
    redrive(desk, payload=b'"other"')
    token = granted(desk, hand)
    report(desk, hand, succeeded=results([(A, token)]))
    assert list(desk.book.specs.scan(b"")) == []


def test_a_redrive_is_done_once(desk: Desk, hand: Hand) -> None:
    dead(desk, hand)
    redrive(desk)
    assert kinds(redrive(desk)) == ["ExecutionsQueued"], "the same command again says nothing"
    assert one(redrive(desk, "r2"), facts.CommandRejected).reason == "not_dead"  # type: ignore[union-attr]


def test_only_a_dead_execution_is_redriven(desk: Desk, hand: Hand) -> None:
    running(desk, hand)
    refused = one(redrive(desk), facts.CommandRejected)
    assert (refused.reason, refused.field) == ("not_dead", "execution")  # type: ignore[union-attr]


def test_a_redriven_job_can_be_cancelled(desk: Desk, hand: Hand) -> None:
    dead(desk, hand)
    redrive(desk)
    desk.command(CancelJob(tenant="acme", job_id="a", command_id="c1", issued_at=desk.now))
    assert kinds(desk.cycle()) == ["ExecutionsQueued", "JobCancelled"]
    assert execution_of(desk) is None


# -- pauses


def test_nothing_of_a_paused_queue_is_granted(desk: Desk, hand: Hand) -> None:
    desk.command(PauseQueue(name="default", command_id="p1", issued_at=desk.now))
    desk.cycle()
    hand.pulse(1)
    desk.submit("a")
    desk.cycle()
    desk.cycle(1)
    assert hand.take() == []
    assert desk.book.counts.get(keys.Lane("default", "t", 5, "acme").prefix()) == 1, "it is queued, on record"
    desk.command(ResumeQueue(name="default", command_id="p2", issued_at=desk.now))
    desk.cycle()
    assert [name for name, _ in hand.take()] == [A]


def test_a_pause_stops_grants_and_not_what_is_granted(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand)
    desk.command(PauseQueue(name="default", command_id="p1", issued_at=desk.now))
    desk.cycle()
    assert kinds(report(desk, hand, succeeded=results([(A, token)]))) == ["AttemptsSucceeded"]


def test_a_draining_queue_takes_no_new_job_and_runs_what_it_has(desk: Desk, hand: Hand) -> None:
    desk.submit("a")
    desk.cycle()
    desk.command(DrainQueue(name="default", command_id="p1", issued_at=desk.now, reason="moved"))
    assert one(desk.cycle(), facts.QueueDeclared).reason == "moved"  # type: ignore[union-attr]
    desk.submit("b")
    assert one(desk.cycle(), facts.CommandRejected).reason == "queue_draining"  # type: ignore[union-attr]
    hand.pulse(1)
    desk.cycle()
    assert [name for name, _ in hand.take()] == [A]
    desk.command(ResumeQueue(name="default", command_id="p2", issued_at=desk.now))
    desk.submit("b", again="-2")
    assert "JobSubmitted" in kinds(desk.cycle())


def test_a_queue_paused_and_drained_is_declared_again_as_both(desk: Desk) -> None:
    desk.command(PauseQueue(name="default", command_id="p1", issued_at=desk.now))
    desk.command(DrainQueue(name="default", command_id="p2", issued_at=desk.now))
    desk.command(DeclareQueue(name="default", command_id="p3", issued_at=desk.now, tenants=["acme"]))
    desk.cycle()
    queue = desk.book.queue("default")
    assert queue is not None
    assert (queue.version, queue.tenants, queue.is_paused, queue.is_draining) == (3, ["acme"], True, True)


def test_a_repeat_of_a_submission_is_answered_while_its_queue_drains(desk: Desk) -> None:
    desk.submit("a")
    desk.command(DrainQueue(name="default", command_id="p1", issued_at=desk.now))
    desk.cycle()
    desk.submit("a", again="-2")
    assert one(desk.cycle(), facts.CommandAnswered).reason == "exists"  # type: ignore[union-attr]


def test_a_queue_that_nobody_declared_cannot_be_paused(desk: Desk) -> None:
    desk.command(PauseQueue(name="mail", command_id="p1", issued_at=desk.now))
    # Of two partitions or more another one may be its home; here there is one.
    assert one(desk.cycle(), facts.CommandRejected).reason == "not_found"  # type: ignore[union-attr]


def test_a_report_with_other_parts_is_acknowledgement_too(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand)
    session = desk.sessions.get(hand.name)
    assert session is not None
    assert list(session.unacknowledged) == [token]
    report(desk, hand, progress=[Progress("acme", A, token, 0.5)])
    assert list(session.unacknowledged) == []


def test_oversized_parts_are_refused_whole(desk: Desk, hand: Hand) -> None:
    token = running(desk, hand)
    progress = [Progress("acme", A, token, 0.5, "", b"1" * 16_385)]
    refused = one(report(desk, hand, progress=progress), facts.ReportRefused)
    assert refused.kind == "report"  # type: ignore[union-attr]
