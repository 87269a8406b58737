"""`minutebook partition`: who owns the partitions, and how far their logs are read."""

from __future__ import annotations

import typer

from minutebook.cli.output import Format, Output, note, write_many
from minutebook.client import SyncClient
from minutebook.client.live_models import Partition

app = typer.Typer(help="Partitions: parts of the jobs, each with its owner.", no_args_is_help=True)
_COLUMNS = (
    "id",
    "owner",
    "epoch",
    "since",
    "applied",
    "end",
    "lag",
    "per s",
    "void",
    "last frame",
    "ahead ms",
)


@app.callback()
def partition() -> None:
    """Partitions: parts of the jobs, each with its owner."""


@app.command("list")
def list_(output: Output = Format.TABLE) -> None:
    """List the partitions: owner, offsets of their logs as the API has read them, and the owners' clocks."""
    with SyncClient() as client:
        page = client.partitions()
    write_many(page.items, output, _COLUMNS, map(_row, page.items))
    if page.view_unready:
        note(f"The API answers nothing else yet: {page.view_unready}.")


def _row(item: Partition) -> tuple[object, ...]:
    return (
        item.id,
        item.owner,
        item.epoch,
        item.owned_since,
        item.applied_offset,
        item.end_offset,
        item.lag,
        item.read_per_s,
        item.void_frames,
        item.last_decided_at,
        item.ahead_of_broker_ms,
    )
