"""The trace context that goes with each grant: a span of the grant, under the submission or linked to it.

An execution that is due more than a minute after its job was submitted, as of a schedule or for a retry, is a trace of its
own with a link: else a schedule would be one trace that never ends. Without spans, such an execution carries nothing.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from minutebook import ids, tracing
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.outputs import Output, ToSession
from minutebook.domain.records import Granted

NEAR_MS: Final = 60_000


def with_spans(book: Book, outputs: list[Output], now: int) -> list[Output]:
    """The outputs of a frame that is in the log, grants with the context that their attempts go on with."""
    return [
        _traced(book, output, output.record.granted, now)
        if isinstance(output, ToSession)
        and output.record.granted is not None
        and output.record.granted.traceparents
        else output
        for output in outputs
    ]


def _traced(book: Book, output: ToSession, granted: Granted, now: int) -> Output:
    contexts = [
        _context(book, granted, row, now) if traceparent else ""
        for row, traceparent in enumerate(granted.traceparents)
    ]
    record = replace(output.record, granted=replace(granted, traceparents=contexts if any(contexts) else []))
    return output._replace(record=record)


def _context(book: Book, granted: Granted, row: int, now: int) -> str:
    name, traceparent = granted.executions[row], granted.traceparents[row]
    is_far = _is_far(
        book, keys.execution_row(granted.tenants[granted.tenant[row]], name), granted.due_at[row]
    )
    task, queue = granted.tasks[granted.task[row]], granted.queues[granted.queue[row]]
    span = tracing.begin(
        f"grant {task}",
        "INTERNAL",
        traceparent,
        {
            "minutebook.job_id": ids.job_of(name),
            "minutebook.execution_id": name,
            "minutebook.attempt": granted.attempts[row],
            "minutebook.task": task,
            "minutebook.queue": queue,
        },
        is_linked=is_far,
        at_ms=min(granted.due_at[row], now),
    )
    if span is None:
        return "" if is_far else traceparent
    span.end()
    return span.traceparent


def _is_far(book: Book, key: bytes, due_at: int) -> bool:
    """Whether it is due more than a minute after its job was submitted; a retry is due when it is tried again."""
    job, execution = book.jobs.get(key[: key.rindex(b":")]), book.running.get(key)
    at = due_at if execution is None else execution.ready_at
    return job is None or at - job.accepted_at > NEAR_MS
