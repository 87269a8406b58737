"""`minutebook job list` and `execution list`: all of a tenant's jobs and executions, filtered, page after page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Final, TypeVar

import typer

from minutebook.cli.filters import ALL_LIMIT, All, From, Limit, Until, Words, asked
from minutebook.cli.output import Format, Output, note, write_many
from minutebook.cli.rules import rule_of
from minutebook.client import Job, SyncClient
from minutebook.client.list_models import ExecutionSummary

T = TypeVar("T")
_JOBS: Final = ("id", "task", "status", "when", "next", "queue", "tags", "open", "succeeded", "dead")
EXECUTIONS: Final = (
    "execution",
    "task",
    "queue",
    "status",
    "attempt",
    "due",
    "started",
    "ended",
    "worker",
    "error",
)
Order = Annotated[
    str | None,
    typer.Option(
        help="created or -created, the latest first; due or -due, by the next instant: only those that have one."
    ),
]
ScheduledOrder = Annotated[str | None, typer.Option(help="scheduled or -scheduled, the latest first.")]


def list_jobs(
    words: Words = None,
    status: Annotated[str | None, typer.Option(help="active, paused, completed, dead or cancelled.")] = None,
    task: Annotated[str | None, typer.Option(help="Only those of this task.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only those of this queue.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only those with this tag.")] = None,
    created_from: From = None,
    created_until: Until = None,
    due_from: Annotated[
        str | None, typer.Option(help="Only those whose next instant is then or later; the earliest first.")
    ] = None,
    due_until: Annotated[str | None, typer.Option(help="Only those whose next instant is before.")] = None,
    order: Order = None,
    limit: Limit = ALL_LIMIT,
    everything: All = False,
    output: Output = Format.TABLE,
) -> None:
    """List jobs, the latest created first."""
    options = {"status": status, "task": task, "queue": queue, "tag": tag, "order": order}
    due = {"due_from": due_from, "due_until": due_until}
    query = asked("job", words, **options, **due, from_=created_from, until=created_until)
    with SyncClient() as client:
        _write(client.jobs, query, None if everything else limit, output, _JOBS, _job_row)


def list_executions(
    words: Words = None,
    status: Annotated[str | None, typer.Option(help="Of the latest attempt, such as running.")] = None,
    task: Annotated[str | None, typer.Option(help="Only those of this task.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only those of this queue.")] = None,
    job: Annotated[str | None, typer.Option(help="Only those of this job.")] = None,
    error_type: Annotated[str | None, typer.Option(help="Only those given up for such an error.")] = None,
    scheduled_from: From = None,
    scheduled_until: Until = None,
    order: ScheduledOrder = None,
    limit: Limit = ALL_LIMIT,
    everything: All = False,
    output: Output = Format.TABLE,
) -> None:
    """List executions of all jobs, the latest scheduled first; those that are scheduled, the earliest first."""
    options = {"status": status, "task": task, "queue": queue, "job_id": job, "error_type": error_type}
    query = asked("execution", words, **options, order=order, from_=scheduled_from, until=scheduled_until)
    with SyncClient() as client:
        _write(client.all_executions, query, None if everything else limit, output, EXECUTIONS, execution_row)


def _write(
    call: Callable[..., Iterator[Any]],
    query: dict[str, str],
    limit: int | None,
    output: Format,
    columns: Sequence[str],
    row_of: Callable[[Any], Sequence[object]],
) -> None:
    """A list as it comes, but not more than `limit`; where there is more, that is said."""
    if limit is None:
        found = call(**query)
        write_many(found, output, columns, map(row_of, found))
        return
    items = list(call(**query, limit=limit + 1))
    write_many(items[:limit], output, columns, map(row_of, items[:limit]))
    if len(items) > limit:
        note(f"There are more than {limit}: give --all, or a filter.")


def _job_row(job: Job) -> tuple[object, ...]:
    count = job.executions
    tags = ", ".join(job.tags)
    return (
        job.id,
        job.task,
        job.status,
        rule_of(job),
        job.next_at,
        job.queue,
        tags,
        count.open,
        count.succeeded,
        count.dead,
    )


def execution_row(item: ExecutionSummary) -> tuple[object, ...]:
    """One execution, under the columns of `EXECUTIONS`."""
    error = f"{item.error.type}: {item.error.message}" if item.error else None
    reason = f" ({item.reason})" if item.reason else ""
    many = f" x {item.count}" if item.count else ""
    return (
        item.execution_id,
        item.task,
        item.queue,
        f"{item.status}{reason}{many}",
        item.attempt,
        item.due_at,
        item.started_at,
        item.ended_at,
        item.worker,
        error,
    )
