"""`python -m replay verify --files` of one tenant's files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from replay.tenant_files import TenantLog
from replay.verbs.common import ExitCode, opened, progress, told
from replay.verify_part import TenantReport, verify_part

KAFKA: Final = "kafka"
"""Where `--within` means the broker's topic."""


def verify_tenant(files: Path, within: str | None, topic: str | None, output: str) -> None:
    """Check one tenant's files, alone or against the log: Kafka's, or an export of the whole of it."""
    whole = None if within in (None, KAFKA) else Path(str(within))
    if whole is not None and not whole.is_dir():
        raise typer.BadParameter(f"is neither {KAFKA} nor a folder", param_hint="--within")
    with told():
        part = TenantLog(files)
        if within is None:
            report = verify_part(part)
        else:
            with (
                opened(topic, whole, needs_whole=True) as log,
                progress(log, log.partitions()) as advance,
            ):
                report = verify_part(part, log, advance)
    if output == "json":
        typer.echo(msgspec.json.format(msgspec.json.encode(report), indent=2))
    else:
        _write(report)
    if not report.ok:
        raise typer.Exit(ExitCode.NO)


def _write(report: TenantReport) -> None:
    console = Console()
    table = Table(title=f"{report.topic}: what is here of {report.tenant}", title_justify="left")
    for column in ("partition", "from", "up to", "records", "events"):
        table.add_column(column, justify="right")
    for column in ("head after", "the log"):
        table.add_column(column)
    for item in report.partitions:
        numbers = (item.partition, item.start, item.end - 1, item.records, item.events)
        table.add_row(*map(str, numbers), item.head_after[:12], item.log)
    console.print(table)
    for finding in report.findings:
        console.print(f"[red]DIFFERENT[/red] {finding.place()}: ", end="")
        console.print(finding.what, markup=False)
    if report.is_proved:
        console.print(
            "Each record is the log's, and nothing that the log has of the tenant there is left out."
        )
    elif report.ok:
        console.print(
            "It fits together. Not proved: that the log has these events, and that none is left out. "
            "With --within, the log or a full export of it proves that."
        )
