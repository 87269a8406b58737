"""Ends of attempts as a report says them."""

from __future__ import annotations

from minutebook.domain.names import Names
from minutebook.domain.records import CancelledByTask, Failed, HandedBack, Progress, Snoozed, Succeeded
from minutebook.worker.outcomes import Cancelling, Failure, Result, Snoozing
from minutebook.worker.progress import Noted
from minutebook.worker.run import Ended, Run


def _tenants(runs: list[Run]) -> tuple[list[str], list[int]]:
    """Dictionary of the tenants, and its index for each run."""
    names = Names()
    column = names.column([run.tenant for run in runs])
    return names.texts, column


def succeeded_of(ends: list[Ended]) -> Succeeded:
    """Good ends as columns."""
    runs = [end.run for end in ends]
    tenants, tenant = _tenants(runs)
    return Succeeded(
        tenants,
        tenant,
        [run.execution for run in runs],
        [run.token for run in runs],
        [end.start_delay_ms for end in ends],
        [end.run_ms for end in ends],
        [_data(end) for end in ends] if Result in {type(end.outcome) for end in ends} else [],
    )


def _data(end: Ended) -> bytes:
    return end.outcome.data if isinstance(end.outcome, Result) else b""


def snoozed_of(end: Ended) -> Snoozed:
    """An attempt that asks for another one later."""
    run, outcome = end.run, end.outcome
    assert isinstance(outcome, Snoozing)
    return Snoozed(
        run.tenant,
        run.execution,
        run.token,
        outcome.after_ms,
        outcome.until_at,
        outcome.reason,
        end.start_delay_ms,
        end.run_ms,
    )


def cancelled_of(end: Ended) -> CancelledByTask:
    """An attempt whose task cancels the execution."""
    run, outcome = end.run, end.outcome
    assert isinstance(outcome, Cancelling)
    return CancelledByTask(run.tenant, run.execution, run.token, outcome.reason)


def progress_of(item: Noted) -> Progress:
    """How far an attempt is."""
    run = item.run
    return Progress(run.tenant, run.execution, run.token, item.fraction, item.text, item.details)


def failed_of(end: Ended) -> Failed:
    """A failed attempt."""
    run, failure = end.run, end.outcome
    assert isinstance(failure, Failure)
    return Failed(
        tenant=run.tenant,
        execution=run.execution,
        token=run.token,
        error_type=failure.error_type,
        message=failure.message,
        is_permanent=failure.is_permanent,
        retry_after_ms=failure.retry_after_ms,
        start_delay_ms=end.start_delay_ms,
        run_ms=end.run_ms,
    )


def handed_back_of(runs: list[Run]) -> HandedBack:
    """Grants given back, as columns."""
    tenants, tenant = _tenants(runs)
    return HandedBack(tenants, tenant, [run.execution for run in runs], [run.token for run in runs])
