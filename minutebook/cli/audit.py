"""`minutebook audit`: who wanted what, through the API."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from minutebook.cli.output import Format, Output, write_many
from minutebook.client import AuditEntry, SyncClient

app = typer.Typer(help="The audit log: who wanted what, and what became of it.", no_args_is_help=True)
_COLUMNS = ("at", "key", "via", "from", "command", "subject", "accepted", "code", "reason", "position")


@app.callback()
def _group() -> None:
    """Keeps `list` a subcommand although it is the only one."""


@app.command("list")
def list_(
    key: Annotated[str | None, typer.Option(help="Only what came with the key of this id.")] = None,
    command: Annotated[
        str | None, typer.Option(help="Only commands of this kind, such as CancelJob.")
    ] = None,
    subject: Annotated[
        str | None, typer.Option(help="Only about the job, queue, limit … of this name.")
    ] = None,
    accepted: Annotated[
        bool | None, typer.Option("--accepted/--refused", help="Only what was accepted, or refused.")
    ] = None,
    since: Annotated[str | None, typer.Option("--from", help="Only from this instant on.")] = None,
    until: Annotated[str | None, typer.Option(help="Only before this instant.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 100,
    output: Output = Format.TABLE,
) -> None:
    """List commands of your tenant, the latest first. Submissions that were accepted are told by their jobs."""
    with SyncClient() as client:
        found = client.audit_log(
            key_id=key, command=command, subject=subject, accepted=accepted, from_at=since, until_at=until
        )
        items = list(islice(found, limit))
    write_many(items, output, _COLUMNS, map(_row, items))


def _row(item: AuditEntry) -> tuple[object, ...]:
    return (
        item.at,
        item.key_id or item.actor,
        item.via,
        item.address,
        item.command,
        f"{item.subject_kind} {item.execution_id or item.subject}",
        "yes" if item.accepted else "no",
        item.code,
        item.reason,
        f"{item.position.partition}/{item.position.offset}",
    )
