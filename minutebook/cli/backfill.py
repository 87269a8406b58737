"""`minutebook job backfill`: past instants of a job that never ran, run as an operation."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from minutebook.cli.job import JobId
from minutebook.cli.operation import WATCH, begun
from minutebook.cli.options import Key, Reason, Yes, ask
from minutebook.cli.output import Format, Output, note, write_many, write_one
from minutebook.client import BackfillDryRun, SyncClient

_REASONS: Final = ("reason", "would run", "count")


def backfill(
    job: JobId,
    from_at: Annotated[
        str, typer.Option("--from", help="Instants then or later, such as 2030-01-31T08:00:00Z.")
    ],
    until_at: Annotated[str, typer.Option("--until", help="Instants before; not later than now.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count them by reason, change nothing.")] = False,
    rate: Annotated[int | None, typer.Option(min=1, max=10_000, help="At most so many a second.")] = None,
    reason: Reason = "",
    watch: WATCH = False,
    yes: Yes = False,
    key: Key = None,
    output: Output = Format.TABLE,
) -> None:
    """Run instants of a job's schedule that never ran: skipped, or before the job was created. It goes on by itself."""
    with SyncClient() as client:
        if dry_run or not yes:
            counted = client.count_backfill(job, from_at, until_at)
            if dry_run:
                _write_counts(counted, output)
                return
            ask(f"Run {counted.would_run} instants of {job}?", yes=yes)
        operation = client.backfill(job, from_at, until_at, rate_per_s=rate, reason=reason, key=key)
        begun(client, operation, output, watch=watch)


def _write_counts(counted: BackfillDryRun, output: Format) -> None:
    if output is not Format.TABLE:
        write_one(counted, output, {})
        return
    where = f", from {counted.first_at} to {counted.last_at}" if counted.would_run else ""
    note(f"{counted.would_run} of {counted.matched} instants would run{where}; nothing was changed.")
    rows = [(item.reason, "yes" if item.would_run else "no", item.count) for item in counted.reasons]
    write_many(counted.reasons, output, _REASONS, rows)
