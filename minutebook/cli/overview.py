"""`minutebook overview`: how the jobs of a tenant stand, from counts that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minutebook.cli.output import Format, Output, write_one
from minutebook.client import SyncClient


def overview(output: Output = Format.TABLE) -> None:
    """Show jobs and executions by status, what is due soon, how late attempts start, and the oldest that is overdue."""
    with SyncClient() as client:
        found = client.overview()
    late = found.lateness
    fields = {
        "jobs": _counts(found.jobs),
        "executions": _counts(found.executions),
        "due": f"{found.due.in_1m} in 1 min, {found.due.in_5m} in 5 min, {found.due.in_60m} in 60 min",
        "late": None
        if late.p50_ms is None
        else f"{late.p50_ms} ms (p50), {late.p99_ms} ms (p99), of the last {late.of_last_s} s",
        "started": f"{sum(found.started_per_min)} in 60 min, {found.started_per_min[-1]} in this one",
        "overdue since": found.oldest_overdue_at or "nothing is",
    }
    write_one(found, output, {name: value for name, value in fields.items() if value is not None})


def _counts(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none"
