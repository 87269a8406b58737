"""Reports to events: results, hand-backs, losses, withdrawals; what is old or sent again changes nothing."""

from __future__ import annotations

import pytest

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.giving_up import Held
from minutebook.domain.policy import DEFAULT
from minutebook.domain.records import Progress, Report, Succeeded
from minutebook.domain.results import died, legible
from minutebook.domain.retries import RETRY_AFTER_MAX_MS, backoff_ms
from minutebook.domain.state import NONE_AT
from tests.simulation.folds import viewed
from tests.simulation.log_maker import (
    SESSION,
    T0,
    LogMaker,
    cancel,
    execution_of,
    failure,
    hand_back,
    submit,
    success,
)

A, B = execution_of("a", T0), execution_of("b", T0)


@pytest.fixture
def maker() -> LogMaker:
    """Two jobs, both running in the same session."""
    made = LogMaker()
    made.open()
    made.command(submit("a"), submit("b"))
    made.due(SESSION)
    return made


def queued(maker: LogMaker) -> list[str]:
    return [keys.queued_parts(key)[1] for key, _ in maker.book.queued.scan(b"")]


def closed(maker: LogMaker, job_id: str) -> str:
    found = maker.book.remembered(maker.book.closed, keys.job_row("acme", job_id))
    return found.status if found else ""


# -- success


def test_successes_end_their_jobs(maker: LogMaker) -> None:
    first, second = maker.running()
    assert maker.report(success([first, second])) == [
        facts.AttemptsSucceeded(["acme"], [0, 0], [A, B], [first.token, second.token], [0, 0], [0, 0])
    ]
    assert (closed(maker, "a"), closed(maker, "b")) == ("completed", "completed")
    assert maker.running() == []


def test_the_same_success_again_is_not_recorded(maker: LogMaker) -> None:
    report = success(maker.running())
    maker.report(report)
    assert maker.report(report) == []


def test_a_success_twice_in_one_report_counts_once(maker: LogMaker) -> None:
    (held, _) = maker.running()
    (event,) = maker.report(success([held, held]))
    assert isinstance(event, facts.AttemptsSucceeded)
    assert event.tokens == [held.token]


@pytest.mark.parametrize("what", ["token", "session", "execution", "tenant"])
def test_a_result_that_does_not_fit_is_refused_on_record(maker: LogMaker, what: str) -> None:
    (held, _) = maker.running()
    tenant, name, token, session = "acme", A, held.token, SESSION
    match what:
        case "token":
            token -= 1
        case "session":
            session = "w9.1"
        case "execution":
            name = execution_of("nothing", T0)
        case "tenant":
            tenant = "blue"
    report = Report(session, 1, succeeded=Succeeded([tenant], [0], [name], [token], [0], [0]))
    assert maker.report(report) == [
        facts.ReportRefused(session, "result", tenant, name, token, "stale token")
    ]
    assert len(maker.running()) == 2


def test_good_rows_of_a_report_count_beside_stale_ones(maker: LogMaker) -> None:
    first, second = maker.running()
    succeeded, refused = maker.report(success([first, second._replace(token=1)]))
    assert isinstance(succeeded, facts.AttemptsSucceeded)
    assert succeeded.executions == [A]
    assert isinstance(refused, facts.ReportRefused)


def test_an_old_result_after_a_loss_is_refused(maker: LogMaker) -> None:
    """The fencing token: who lost its lease changes nothing any more."""
    held = maker.running()
    maker.lose(held)
    maker.grant("w2.1")
    refused = maker.report(success(held))
    assert [type(event) for event in refused] == [facts.ReportRefused] * 2
    assert len(maker.running("w2.1")) == 2


# -- failure


def test_a_failure_is_followed_by_a_retry(maker: LogMaker) -> None:
    (held, _) = maker.running()
    wait_ms = backoff_ms(DEFAULT, "acme", A, 1)
    assert maker.report(failure(held, run_ms=5, start_delay_ms=2)) == [
        facts.AttemptFailed("acme", A, 1, held.token, SESSION, "ValueError", "no", False, T0 + wait_ms, 2, 5)
    ]
    waiting = maker.execution("acme", A)
    assert (waiting.status, waiting.attempt, waiting.failures) == ("scheduled", 2, 1)
    assert (waiting.token, waiting.session) == (-1, "")


def test_five_failures_end_as_dead(maker: LogMaker) -> None:
    for attempt in range(1, 6):
        held = next(item for item in maker.running() if item.key.endswith(A.encode()))
        assert held.execution.attempt == attempt
        events = maker.report(failure(held))
        maker.clock.advance(20_000)
        maker.due(SESSION)
    failed, dead, alert = events
    assert isinstance(alert, facts.AlertRaised)
    assert isinstance(failed, facts.AttemptFailed)
    assert failed.retry_at == NONE_AT
    assert dead == facts.ExecutionDead(
        tenant="acme",
        execution=A,
        version=1,
        generation=0,
        attempt=5,
        scheduled_at=T0,
        due_at=T0,
        given_up_at=dead.given_up_at,  # type: ignore[union-attr]
        cause="attempts",
        error_type="ValueError",
        message="no",
    )
    assert closed(maker, "a") == "dead"


def test_a_permanent_failure_is_dead_at_once_and_keeps_its_version(maker: LogMaker) -> None:
    (held, _) = maker.running()
    failed, dead, _ = maker.report(failure(held, is_permanent=True))
    assert isinstance(failed, facts.AttemptFailed)
    assert isinstance(dead, facts.ExecutionDead)
    assert dead.cause == "permanent"
    row = keys.spec_row(keys.job_row("acme", "a"), 1)
    assert maker.book.specs.get(row) is None
    assert maker.book.remembered(maker.book.shelf, row) is not None


def test_the_same_failure_again_is_not_recorded(maker: LogMaker) -> None:
    (held, _) = maker.running()
    maker.report(failure(held))
    assert maker.report(failure(held)) == []


def test_a_success_after_the_failure_of_the_same_token_is_refused(maker: LogMaker) -> None:
    (held, _) = maker.running()
    maker.report(failure(held))
    (event,) = maker.report(success([held]))
    assert isinstance(event, facts.ReportRefused)


@pytest.mark.parametrize("wait", [-1, RETRY_AFTER_MAX_MS + 1, 2**62])
def test_a_senseless_retry_after_is_refused_on_record_and_the_backoff_used(
    maker: LogMaker, wait: int
) -> None:
    (held, _) = maker.running()
    failed, refused = maker.report(failure(held, retry_after_ms=wait))
    assert isinstance(failed, facts.AttemptFailed)
    assert failed.retry_at == T0 + backoff_ms(DEFAULT, "acme", A, 1)
    assert refused == facts.ReportRefused(
        SESSION, "retry_after", "acme", A, held.token, f"{wait} ms, not 0 to {RETRY_AFTER_MAX_MS}"
    )


@pytest.mark.parametrize("wait", [0, RETRY_AFTER_MAX_MS])
def test_a_retry_after_at_its_limits_is_taken(maker: LogMaker, wait: int) -> None:
    (held, _) = maker.running()
    (failed,) = maker.report(failure(held, retry_after_ms=wait))
    assert isinstance(failed, facts.AttemptFailed)
    assert failed.retry_at == T0 + wait


@pytest.mark.row("W15")
@pytest.mark.parametrize("share", [1.5, 1.0000001, -0.0001, float("nan"), float("inf"), -float("inf")])
def test_senseless_progress_is_refused_on_record_and_changes_nothing(maker: LogMaker, share: float) -> None:
    (held, _) = maker.running()
    before = maker.execution("acme", A)
    report = Report(SESSION, 1, progress=[Progress("acme", A, held.token, share, "x", b"{}")])
    (refused,) = maker.report(report)
    assert isinstance(refused, facts.ReportRefused)
    assert (refused.kind, refused.execution, refused.token) == ("progress", A, held.token)
    assert refused.reason == f"a share of progress is from 0 to 1, not {share}"
    assert maker.execution("acme", A) == before


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_progress_at_its_limits_is_taken(maker: LogMaker, share: float) -> None:
    (held, _) = maker.running()
    (event,) = maker.report(Report(SESSION, 1, progress=[Progress("acme", A, held.token, share)]))
    assert isinstance(event, facts.AttemptProgressed)
    assert event.fraction == share


def test_messages_are_bounded_and_harmless(maker: LogMaker) -> None:
    (held, _) = maker.running()
    (event,) = maker.report(failure(held, message="\x1b[31m" + "x" * 20_000, error_type="E" * 1_000))
    assert isinstance(event, facts.AttemptFailed)
    assert "\x1b" not in event.message
    assert len(event.message) < 9_000
    assert len(event.error_type) == 256


def test_legible_keeps_lines_and_escapes_the_rest() -> None:
    assert legible("a\n\tb\x00\u202e\r\u00fc", 100) == "a\n\tb\\x00\\u202e\\r\u00fc"


# -- given back, taken back


def test_a_hand_back_queues_again_uncounted(maker: LogMaker) -> None:
    first, second = maker.running()
    assert maker.report(hand_back([first, second])) == [
        facts.GrantsReturned(
            ["acme"], "handed_back", [0, 0], [A, B], [first.token, second.token], [SESSION], [0, 0], [-1, -1]
        )
    ]
    assert queued(maker) == [A, B]
    again = maker.execution("acme", A)
    assert (again.attempt, again.failures, again.losses, again.withdrawals) == (1, 0, 0, 0)


def test_a_hand_back_twice_in_one_report_counts_once(maker: LogMaker) -> None:
    (held, _) = maker.running()
    (event,) = maker.report(hand_back([held, held]))
    assert isinstance(event, facts.GrantsReturned)
    assert event.tokens == [held.token]
    assert maker.report(hand_back([held])) == []


def test_the_fourth_withdrawal_waits(maker: LogMaker) -> None:
    waits = []
    for _ in range(5):
        (held, *_) = [item for item in maker.running() if item.key.endswith(A.encode())]
        (event,) = maker.withdraw([held])
        assert isinstance(event, facts.GrantsReturned)
        waits.append(event.wait_until[0] - maker.clock.now() if event.wait_until[0] >= 0 else 0)
        maker.clock.advance(5_000)
        maker.due(SESSION)
        maker.grant(SESSION)
    assert waits == [0, 0, 0, 1_000, 2_000]
    assert maker.execution("acme", A).attempt == 1


def test_a_withdrawn_one_gets_a_new_token(maker: LogMaker) -> None:
    (held, _) = maker.running()
    maker.withdraw([held])
    maker.grant("w2.1")
    (again,) = maker.running("w2.1")
    assert again.token > held.token
    (event,) = maker.report(success([held]))
    assert isinstance(event, facts.ReportRefused)


# -- losses


def test_a_loss_is_a_further_attempt_at_once(maker: LogMaker) -> None:
    first, second = maker.running()
    assert maker.lose([first, second]) == [
        facts.AttemptsLost(
            ["acme"],
            "lease_over",
            [0, 0],
            [A, B],
            [first.token, second.token],
            [SESSION],
            [0, 0],
            [True, True],
        )
    ]
    lost = maker.execution("acme", A)
    assert (lost.status, lost.attempt, lost.losses, lost.failures) == ("queued", 2, 1, 0)


def test_ten_losses_end_as_dead(maker: LogMaker) -> None:
    for number in range(1, DEFAULT.max_losses + 1):
        (held,) = [item for item in maker.running() if item.key.endswith(A.encode())]
        events = maker.lose([held])
        assert len(events) == (1 if number < DEFAULT.max_losses else 3)
        maker.grant(SESSION)
    dead = events[1]
    assert isinstance(dead, facts.ExecutionDead)
    assert (dead.cause, dead.attempt) == ("losses", DEFAULT.max_losses)
    assert closed(maker, "a") == "dead"


def test_losses_use_up_no_attempts(maker: LogMaker) -> None:
    """Dying workers must not eat the attempts of a healthy job."""
    for _ in range(6):
        maker.lose(maker.running())
        maker.grant(SESSION)
    (held, _) = maker.running()
    (event,) = maker.report(failure(held))
    assert isinstance(event, facts.AttemptFailed)
    assert event.retry_at == maker.clock.now() + backoff_ms(DEFAULT, "acme", A, 1)


def test_a_waiting_one_whose_session_died_counts_a_loss(maker: LogMaker) -> None:
    (held, _) = maker.running()
    maker.withdraw([held])
    waiting = maker.execution("acme", A)
    (event,) = died(maker.book, Held(held.key, -1, waiting), maker.clock.now())
    maker.add(event)
    after = maker.execution("acme", A)
    assert (after.status, after.losses, after.attempt) == ("queued", 1, 1)
    assert queued(maker) == [A]


def test_a_waiting_one_that_killed_too_many_is_dead(maker: LogMaker) -> None:
    (held, _) = maker.running()
    for _ in range(DEFAULT.max_losses - 1):
        maker.lose([item for item in maker.running() if item.key == held.key])
        maker.grant(SESSION)
    maker.withdraw([item for item in maker.running() if item.key == held.key])
    lost, dead, _ = maker.add(
        *died(maker.book, Held(held.key, -1, maker.execution("acme", A)), maker.clock.now())
    ).events
    assert isinstance(lost, facts.AttemptsLost)
    assert lost.has_retry == [False]
    assert isinstance(dead, facts.ExecutionDead)
    assert queued(maker) == []
    assert closed(maker, "a") == "dead"
    view, _ = viewed(maker.records)
    ((_, name, row),) = view.executions("acme", "a")
    assert (name, row.outcome, row.last.status, row.last.number) == (A, "dead", "lost", DEFAULT.max_losses)


@pytest.mark.parametrize("how", ["lost", "withdrawn", "handed_back"])
def test_a_stopping_attempt_ends_cancelled_however_it_ends(maker: LogMaker, how: str) -> None:
    (held, _) = maker.running()
    maker.command(cancel("a"))
    (stopping,) = [item for item in maker.running() if item.key == held.key]
    if how == "lost":
        events = maker.lose([stopping])
    elif how == "withdrawn":
        events = maker.withdraw([stopping])
    else:
        events = maker.report(hand_back([stopping]))
    (event,) = events
    assert isinstance(event, facts.AttemptCancelled)
    assert (event.execution, event.token) == (A, held.token)
    assert closed(maker, "a") == "cancelled"
    assert queued(maker) == []
