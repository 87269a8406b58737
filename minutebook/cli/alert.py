"""`minutebook alert`: what people must hear of, through the API."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from minutebook.cli.output import Format, Output, write_many
from minutebook.client import Alert, SyncClient

app = typer.Typer(help="Alerts: what people must hear of.", no_args_is_help=True)
_COLUMNS = ("at", "kind", "job", "task", "queue", "left out", "text")


class KindName(StrEnum):
    """What an alert tells of."""

    EXECUTION_DEAD = "execution_dead"
    ATTEMPT_STUCK = "attempt_stuck"
    TASK_UNKNOWN = "task_unknown"


@app.callback()
def _group() -> None:
    """Keeps `list` a subcommand although it is the only one."""


@app.command("list")
def list_(
    kind: Annotated[KindName | None, typer.Option(help="Only those of this kind.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """List the latest alerts, the newest first."""
    with SyncClient() as client:
        items = client.alerts(kind=None if kind is None else kind.value)
        write_many(items, output, _COLUMNS, map(_row, items))


def _row(item: Alert) -> tuple[object, ...]:
    return item.at, item.kind, item.job_id or "", item.task, item.queue, item.left_out, item.text
