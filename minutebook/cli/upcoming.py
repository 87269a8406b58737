"""`minutebook upcoming`: how many jobs are due when, from counts that are kept."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import typer

from minutebook.cli.output import Format, Output, note, write_many, write_one
from minutebook.client import SyncClient

_COLUMNS: Final = ("at", "due")


class By(StrEnum):
    """How long a stretch is."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


def upcoming(
    by: Annotated[By, typer.Option(help="Length of a stretch.")] = By.MINUTE,
    from_at: Annotated[
        str | None, typer.Option("--from", help="RFC 3339 with an offset; now if not given.")
    ] = None,
    until_at: Annotated[str | None, typer.Option("--until", help="Not included.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """List the minutes, hours or days in which jobs are due, and how many; a job that recurs counts once, at its next instant."""
    with SyncClient() as client:
        found = client.upcoming(by=by.value, from_=from_at, until=until_at)
    if output is not Format.TABLE:
        write_one(found, output, {})
        return
    busy = [one for one in found.buckets if one.due]
    write_many(busy, output, _COLUMNS, ((one.at, one.due) for one in busy))
    note(f"{found.total} jobs are due.")
