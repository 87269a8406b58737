"""The span of an attempt: its task sees it as the current one, on the event loop and on threads."""

from __future__ import annotations

from minutebook import ids, tracing
from minutebook.worker.outcomes import Failure, Outcome, Verdict
from minutebook.worker.run import Run


def span_of(run: Run) -> tracing.Made | None:
    """The span of an attempt that starts now, or the context alone that came with its grant; None where there is neither."""
    if not tracing.is_on():
        return tracing.passed_on(run.traceparent)
    return tracing.begin(
        f"run {run.task}",
        "CONSUMER",
        run.traceparent,
        {
            "messaging.system": "kafka",
            "messaging.operation.type": "process",
            "messaging.destination.name": run.queue,
            "minutebook.job_id": ids.job_of(run.execution),
            "minutebook.execution_id": run.execution,
            "minutebook.attempt": run.attempt,
            "minutebook.task": run.task,
        },
    )


def end(span: tracing.Made | None, outcome: Outcome) -> None:
    """The attempt is over. Of a failure its kind is told, not its text: that may hold what is nobody's business."""
    if span is None:
        return
    if isinstance(outcome, Failure):
        span.fail(outcome.error_type)
    span.note(
        "minutebook.outcome",
        outcome.name.lower() if isinstance(outcome, Verdict) else type(outcome).__name__.lower(),
    )
    span.end()
