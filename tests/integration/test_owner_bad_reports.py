"""Reports that no worker should send: refused on record, nothing changes, and the next good one counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from minutebook.domain import events as facts
from minutebook.domain.commands import CancelJob, SubmitJob
from minutebook.domain.records import Claim, Inbox, Progress, Pulse, Report, Succeeded
from minutebook.log.reader import CLOCK_BOUND_MS
from minutebook.wire import codec, topics
from tests.crash.ledger import Ledger
from tests.crash.raw_worker import RawWorker, failed, grants_of, handed_back, succeeded
from tests.crash.stack import TENANT, Stack, home_of, job, now_ms
from tests.integration.answered import assert_rejected_once
from tests.integration.case import Case

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(scope="module")
def stack(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One owner for all tests of this module; they play the workers themselves."""
    made = Stack(broker.bootstrap_servers, tmp_path_factory.mktemp("owners"))
    owner = made.owner("o1")
    made.await_ready(owner)
    yield made
    assert Ledger(made.look()).complaints == []
    assert owner.is_running, made.story()
    made.close()


@pytest.fixture
def case(stack: Stack) -> Case:
    return Case(stack)


@pytest.mark.row("W1")
def test_result_for_an_unknown_execution_is_refused(stack: Stack, case: Case) -> None:
    token = case.running()
    case.report(succeeded=succeeded("nobody:1", token), failed=failed("nobody:1", token))

    stack.until(
        "refused", lambda log: [e.execution for e in log.events(facts.ReportRefused)].count("nobody:1") >= 2
    )
    case.finish(token)


@pytest.mark.row("W2")
def test_result_of_another_session_is_refused(stack: Stack, case: Case) -> None:
    token, other = case.running(), RawWorker(stack, case.task)
    other.report(case.partition, held=[], succeeded=succeeded(case.execution, token))

    (refusal,) = case.await_refusals()
    assert (refusal.session, refusal.token) == (other.session, token)
    case.finish(token)


@pytest.mark.row("W18")
def test_result_of_another_session_of_the_worker_is_refused(stack: Stack, case: Case) -> None:
    """The session holds the lease, not the worker id."""
    token, other = case.running(), RawWorker(stack, case.task, worker=case.worker.worker, number=1)
    other.report(case.partition, held=[], succeeded=succeeded(case.execution, token))

    case.await_refusals()
    case.finish(token)


@pytest.mark.row("K14")
def test_result_before_the_grant_is_refused(stack: Stack, case: Case) -> None:
    stack.until(
        "queued", lambda log: any(case.execution in e.executions for e in log.events(facts.ExecutionsQueued))
    )
    case.report(held=[], succeeded=succeeded(case.execution, -1, 0, 1))

    assert len(case.await_refusals(3)) == 3
    case.finish()


@pytest.mark.row("W3")
def test_result_with_an_old_token_is_refused(stack: Stack, case: Case) -> None:
    old = case.running()
    case.report(last_token=old, handed_back=handed_back([case.execution], [old]))
    new = case.running()
    assert new > old
    case.report(last_token=new, succeeded=succeeded(case.execution, old))

    (refusal,) = case.await_refusals()
    assert refusal.token == old
    case.finish(new)


@pytest.mark.row("W4")
def test_same_result_twice_is_not_recorded_again(stack: Stack, case: Case) -> None:
    token = case.running()
    case.finish(token)
    case.report(last_token=token, succeeded=succeeded(case.execution, token))

    Case(stack).finish()
    assert case.refusals() == []
    assert sum(case.execution in e.executions for e in stack.log.events(facts.AttemptsSucceeded)) == 1


def test_token_twice_in_one_result_counts_once(stack: Stack, case: Case) -> None:
    token = case.running()
    case.report(last_token=token, succeeded=succeeded(case.execution, token, token))

    stack.until("succeeded", lambda _: case.outcome() == "succeeded")
    rows = [name for e in stack.log.events(facts.AttemptsSucceeded) for name in e.executions]
    assert rows.count(case.execution) == 1


@pytest.mark.row("W5")
def test_failure_after_success_is_refused(stack: Stack, case: Case) -> None:
    token = case.running()
    case.finish(token)
    case.report(last_token=token, failed=failed(case.execution, token))

    case.await_refusals()
    assert case.outcome() == "succeeded"


@pytest.mark.row("W6")
def test_success_after_failure_is_refused_and_the_retry_runs(stack: Stack, case: Case) -> None:
    token = case.running()
    case.report(last_token=token, failed=failed(case.execution, token, retry_after_ms=0))
    case.report(last_token=token, succeeded=succeeded(case.execution, token))

    case.await_refusals()
    case.finish()


@pytest.mark.row("W7")
def test_result_after_a_cancel_that_was_obeyed_is_refused(stack: Stack, case: Case) -> None:
    token = case.running()
    stack.send(CancelJob(tenant=TENANT, job_id=case.command.job_id, command_id="c", issued_at=now_ms()))
    stack.until(
        "asked to stop", lambda log: any(case.execution in e.stopping for e in log.events(facts.JobCancelled))
    )
    case.report(last_token=token, failed=failed(case.execution, token, error_type="Cancelled"))
    case.report(last_token=token, succeeded=succeeded(case.execution, token))

    case.await_refusals()
    assert case.outcome() == "cancelled"


def test_success_that_crosses_a_cancel_still_counts(stack: Stack, case: Case) -> None:
    token = case.running()
    stack.send(CancelJob(tenant=TENANT, job_id=case.command.job_id, command_id="c", issued_at=now_ms()))
    stack.until(
        "asked to stop", lambda log: any(case.execution in e.stopping for e in log.events(facts.JobCancelled))
    )

    case.finish(token)


@pytest.mark.row("W8")
def test_result_of_a_withdrawn_grant_is_refused(stack: Stack, case: Case) -> None:
    """Nobody acknowledged the grant; the owner itself marks the time, for no other report comes."""
    case.report(offer=1, held=[])
    token = case.worker.await_grant(case.execution)
    stack.until(
        "withdrawn",
        lambda log: any(
            e.reason == "withdrawn" and token in e.tokens for e in log.events(facts.GrantsReturned)
        ),
    )
    other = RawWorker(stack, case.task)
    new = other.take(case.partition, case.execution)
    case.report(succeeded=succeeded(case.execution, token))

    case.await_refusals()
    other.report(case.partition, last_token=new, succeeded=succeeded(case.execution, new))
    stack.until("succeeded", lambda _: case.outcome() == "succeeded")


@pytest.mark.row("W9")
def test_pulse_of_an_ended_session_is_told_so(stack: Stack, case: Case) -> None:
    case.report(offer=1, held=[], lease_ms=1_000)
    case.worker.await_grant(case.execution)
    stack.until(
        "ended", lambda log: any(e.session == case.worker.session for e in log.events(facts.SessionEnded))
    )
    other = RawWorker(stack, case.task)
    new = other.take(case.partition, case.execution)
    case.report(offer=10, held=[])

    stack.until("told again", lambda _: len(session_over(stack, case.worker.session)) >= 2)
    other.report(case.partition, last_token=new, succeeded=succeeded(case.execution, new))
    stack.until("succeeded", lambda _: case.outcome() == "succeeded")


def session_over(stack: Stack, session: str) -> list[Inbox]:
    found = [codec.decode(record.value) for records in stack.whole(topics.INBOX) for record in records]
    return [one for one in found if isinstance(one, Inbox) and one.session == session and one.is_session_over]


@pytest.mark.row("W4")
def test_pulse_twice_counts_its_offer_once(stack: Stack) -> None:
    cases = [Case(stack)]
    task, partition = cases[0].task, cases[0].partition
    others = jobs_of(task, partition, 4)
    stack.submit(others)
    worker = RawWorker(stack, task)
    worker.report(partition, offer=2, held=[])
    worker.report(partition, offer=2, held=[], sequence=1)
    worker.report(partition, offer=2, sequence=0)
    send_marker(stack, partition)

    assert len(grants_to(stack, worker.session)) <= 2


def jobs_of(task: str, partition: int, count: int) -> list[SubmitJob]:
    found: list[SubmitJob] = []
    while len(found) < count:
        command = job(task=task, run_at=now_ms())
        if home_of(command) == partition:
            found.append(command)
    return found


def grants_to(stack: Stack, session: str) -> list[str]:
    return [
        name
        for kind in (facts.ExecutionsDueGranted, facts.ExecutionsGranted)
        for e in stack.log.events(kind)
        for name, holder in zip(e.executions, e.session, strict=True)
        if e.sessions[holder] == session
    ]


def send_marker(stack: Stack, partition: int) -> None:
    """A job of its own run to its end on `partition`: all before has been decided."""
    while True:
        marker = Case(stack)
        marker.finish()
        if marker.partition == partition:
            return


@pytest.mark.parametrize("offer", [1_000_000, 2**31 - 1])
@pytest.mark.row("W16")
def test_absurd_offer_is_cut(stack: Stack, case: Case, offer: int) -> None:
    case.report(offer=offer, held=[])
    token = case.worker.await_grant(case.execution)
    case.report(last_token=token, held=[token])

    case.finish(token)


@pytest.mark.row("W16")
def test_negative_offer_is_refused(stack: Stack, case: Case) -> None:
    case.report(offer=-1, held=[])

    stack.until(
        "refused", lambda log: any(e.session == case.worker.session for e in log.events(facts.ReportRefused))
    )
    assert grants_of(stack.log, case.execution) == []
    case.finish()


@pytest.mark.row("W17")
def test_session_with_very_many_task_names_is_refused(stack: Stack, case: Case) -> None:
    names = [case.task, *(f"t{number}" for number in range(100_000))]
    case.report(offer=1, held=[], tasks=names)

    stack.until(
        "refused", lambda log: any(e.session == case.worker.session for e in log.events(facts.ReportRefused))
    )
    assert grants_of(stack.log, case.execution) == []
    case.finish()


@pytest.mark.parametrize("session", ["", "no-dot", "x" * 300 + ".0"])
def test_report_of_a_senseless_session_is_refused(stack: Stack, case: Case, session: str) -> None:
    stack.produce(topics.REPORTS, case.partition, codec.encode(Report(session, 1, Pulse(1, -1))))

    stack.until(
        "refused", lambda log: any(e.session == session[:256] for e in log.events(facts.ReportRefused))
    )
    case.finish()


UNEQUAL: dict[str, Callable[[str, int], dict[str, Any]]] = {
    "fewer tokens": lambda name, token: {"succeeded": broken(succeeded(name, token), tokens=[])},
    "no such tenant": lambda name, token: {"succeeded": broken(succeeded(name, token), tenant=[7])},
    "tenant below 0": lambda name, token: {"succeeded": broken(succeeded(name, token), tenant=[-1])},
    "no delays": lambda name, token: {"succeeded": broken(succeeded(name, token), start_delay_ms=[])},
    "hand-back": lambda name, token: {"handed_back": broken(handed_back([name], [token]), executions=[])},
}


def broken(record: Any, **columns: list[Any]) -> Any:
    return type(record)(
        **{name: columns.get(name, getattr(record, name)) for name in record.__struct_fields__}
    )


@pytest.mark.parametrize("kind", UNEQUAL)
def test_columns_that_do_not_fit_are_refused_whole(stack: Stack, case: Case, kind: str) -> None:
    token = case.running()
    case.report(last_token=token, **UNEQUAL[kind](case.execution, token))

    stack.until(
        "refused", lambda log: any(e.session == case.worker.session for e in log.events(facts.ReportRefused))
    )
    case.finish(token)


@pytest.mark.row("W12")
def test_hostile_error_text_is_cut_and_escaped(stack: Stack, case: Case) -> None:
    token = case.running()
    text = "\x1b[31mred\x00\x07" + "x" * 900_000
    case.report(
        last_token=token, failed=failed(case.execution, token, message=text, error_type="E\x1b" * 999)
    )

    stack.until(
        "failed", lambda log: any(e.execution == case.execution for e in log.events(facts.AttemptFailed))
    )
    (event,) = [e for e in stack.log.events(facts.AttemptFailed) if e.execution == case.execution]
    assert event.message.startswith("\\x1b[31mred\\x00\\x07xxx")
    assert len(event.message) == 8_192
    assert event.error_type.isprintable()
    case.finish()


@pytest.mark.parametrize("wait", [-1, 10**12])
@pytest.mark.row("W13")
def test_senseless_retry_after_is_refused_and_the_backoff_used(stack: Stack, case: Case, wait: int) -> None:
    token = case.running()
    case.report(last_token=token, failed=failed(case.execution, token, retry_after_ms=wait))

    (refusal,) = case.await_refusals()
    assert (refusal.kind, refusal.token) == ("retry_after", token)
    (fact,) = [f for f in stack.log.of(facts.AttemptFailed) if f.event.execution == case.execution]
    assert 1_000 <= fact.event.retry_at - fact.now <= 1_250
    case.finish()


YEAR_MS = 366 * 86_400_000


@pytest.mark.parametrize("ahead_ms", [YEAR_MS, -YEAR_MS, 2**62, -(2**62)])
@pytest.mark.row("W14")
def test_times_that_a_worker_reports_decide_nothing(stack: Stack, case: Case, ahead_ms: int) -> None:
    """A result says how late it started and how long it ran: it may be a year, or below nothing."""
    token = case.running()
    done = broken(succeeded(case.execution, token), start_delay_ms=[ahead_ms], run_ms=[ahead_ms])
    before = now_ms()
    case.report(last_token=token, succeeded=done)

    stack.until("succeeded", lambda _: case.outcome() == "succeeded")
    (fact,) = [f for f in stack.log.of(facts.AttemptsSucceeded) if case.execution in f.event.executions]
    assert before - CLOCK_BOUND_MS <= fact.now <= now_ms() + CLOCK_BOUND_MS
    Case(stack).finish()


@pytest.mark.row("W14")
def test_times_of_a_failure_decide_nothing(stack: Stack, case: Case) -> None:
    token = case.running()
    case.report(last_token=token, failed=failed(case.execution, token, start_delay_ms=2**62, run_ms=-YEAR_MS))

    stack.until(
        "failed", lambda log: any(e.execution == case.execution for e in log.events(facts.AttemptFailed))
    )
    (fact,) = [f for f in stack.log.of(facts.AttemptFailed) if f.event.execution == case.execution]
    assert 1_000 <= fact.event.retry_at - fact.now <= 1_250
    case.finish()


@pytest.mark.row("W15")
def test_progress_beyond_the_whole_is_refused(stack: Stack, case: Case) -> None:
    token = case.running()
    case.report(last_token=token, progress=[Progress(TENANT, case.execution, token, 1.5)])

    (refusal,) = case.await_refusals()
    assert (refusal.kind, refusal.token) == ("progress", token)
    case.finish(token)


@pytest.mark.row("W11")
def test_broker_refuses_a_report_of_a_hundred_megabytes(stack: Stack, case: Case) -> None:
    producer = Producer(stack.kafka.confluent() | {"message.max.bytes": 200_000_000})
    refused: list[Any] = []
    producer.produce(
        stack.kafka.topic(topics.REPORTS),
        bytes(100_000_000),
        partition=case.partition,
        on_delivery=lambda error, _: refused.append(error),
    )
    producer.flush()

    assert refused[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    case.finish()


@pytest.mark.row("W16")
def test_million_claims_in_one_record_are_refused(stack: Stack, case: Case) -> None:
    """Each as short as it can be, so that the broker takes the record."""
    claims = [Claim("", "", 0)] * 1_000_000
    record = stack.produce(
        topics.REPORTS, case.partition, codec.encode(Report(case.worker.session, 0, claims=claims))
    )

    assert "limit" in assert_rejected_once(stack, topics.REPORTS, record, case.partition)
    case.finish()


@pytest.mark.row("W16")
def test_token_that_was_never_given_gains_no_grants(stack: Stack, case: Case) -> None:
    """Grants count against an offer above the last token seen: one from the future would make it endless."""
    case.report(offer=1, held=[], last_token=2**62)

    stack.until(
        "refused", lambda log: any(e.session == case.worker.session for e in log.events(facts.ReportRefused))
    )
    assert grants_of(stack.log, case.execution) == []
    case.finish()


@pytest.mark.parametrize("timestamp", [1, 32_472_144_000_000])
@pytest.mark.row("K12")
def test_records_own_timestamp_counts_for_nothing(stack: Stack, case: Case, timestamp: int) -> None:
    case.worker.report(case.partition, offer=1, held=[], timestamp=timestamp)
    token = case.worker.await_grant(case.execution)
    case.worker.report(case.partition, last_token=token, held=[token], timestamp=timestamp)

    case.finish(token)


def test_many_refusals_in_one_report_hold_nobody_up(stack: Stack, case: Case) -> None:
    """Each row in it would be answered with more than ten times its size."""
    rows = 16_000
    result = Succeeded(
        ["t" * 128], [0] * rows, [f"{'n' * 40}:1"] * rows, list(range(rows)), [0] * rows, [0] * rows
    )
    session = f"{'s' * 250}.0"
    stack.flood(topics.REPORTS, case.partition, [codec.encode(Report(session, 0, None, None, result))] * 3)

    case.finish()
    refused = [e for e in stack.log.events(facts.ReportRefused) if e.session == session]
    assert 0 < len(refused) <= 3 * 1_001
    assert "more rows" in refused[-1].reason


def test_very_many_failures_in_one_report_hold_nobody_up(stack: Stack, case: Case) -> None:
    many = [one for number in range(60_000) for one in failed("n:1", number, message="", error_type="")]
    stack.produce(topics.REPORTS, case.partition, codec.encode(Report(case.worker.session, 0, failed=many)))

    case.finish()


@pytest.mark.parametrize("count", [100_000, 1_000_000])
def test_very_many_held_tokens_hold_nobody_up(stack: Stack, case: Case, count: int) -> None:
    case.report(held=range(count))

    case.finish()


@pytest.mark.row("W10")
def test_flood_of_pulses_keeps_its_lease_and_leaves_other_sessions_alone(stack: Stack) -> None:
    """As many as a thousand a second are in a minute, at once; then silence, and the lease ends as any other."""
    noisy = Case(stack)
    token = noisy.running()
    for start in range(10, 60_010, 12_000):
        values = [
            codec.encode(Report(noisy.worker.session, number, Pulse(0, token)))
            for number in range(start, start + 12_000)
        ]
        stack.flood(topics.REPORTS, noisy.partition, values)
        send_marker(stack, noisy.partition)
        assert not [e for e in stack.log.events(facts.SessionEnded) if e.session == noisy.worker.session]

    noisy.report(last_token=token, held=[token], lease_ms=1_000, sequence=60_010)
    stack.until(
        "ended",
        lambda log: any(e.session == noisy.worker.session for e in log.events(facts.SessionEnded)),
    )
    inbox = [record for records in stack.whole(topics.INBOX) for record in records]
    assert len([record for record in inbox if record.key == noisy.worker.worker.encode()]) < 10
    other = RawWorker(stack, noisy.task)
    new = other.take(noisy.partition, noisy.execution)
    other.report(noisy.partition, last_token=new, succeeded=succeeded(noisy.execution, new))
    stack.until("succeeded", lambda _: noisy.outcome() == "succeeded")
