"""`minutebook tenant`: the tenants that you may see, through the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from minutebook.cli.output import Format, Output, write_many
from minutebook.client import SyncClient, Tenant

app = typer.Typer(help="Tenants that you may see.", no_args_is_help=True)
_COLUMNS = ("tenant", "jobs", "executions")


@app.callback()
def _group() -> None:
    """Keeps `list` a subcommand although it is the only one."""


@app.command("list")
def list_(output: Output = Format.TABLE) -> None:
    """List your tenant, or all of them as an admin of the one that operates the installation, with counts by status."""
    with SyncClient() as client:
        items = list(client.tenants())
    write_many(items, output, _COLUMNS, map(_row, items))


def _row(item: Tenant) -> tuple[str, str, str]:
    return item.name, _counts(item.jobs), _counts(item.executions)


def _counts(found: Mapping[Any, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in sorted(found.items()))
