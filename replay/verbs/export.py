"""`python -m replay export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from replay.files import FileLog, export
from replay.parquet import write_parquet
from replay.tenant_files import TenantLog, export_tenant
from replay.verbs.common import ExitCode, Files, Topic, UntilText, instant_of_text, opened, progress, until_of


def export_log(
    folder: Annotated[Path, typer.Argument(help="New folder for the files.", file_okay=False)],
    since: Annotated[
        str | None, typer.Option("--from", help="Begin with the first record stamped then or later.")
    ] = None,
    until: UntilText = None,
    tenant: Annotated[
        str | None,
        typer.Option(
            "--tenant",
            help="Only what is this one's, without a byte of another's.",
            envvar="MINUTEBOOK_REPLAY_TENANT",
        ),
    ] = None,
    parquet: Annotated[
        bool,
        typer.Option(
            "--parquet", help="Beside it a row per event as Parquet.", envvar="MINUTEBOOK_REPLAY_PARQUET"
        ),
    ] = False,
    topic: Topic = None,
    files: Files = None,
) -> None:
    """Write the log, a stretch of it, or what it holds of one tenant, into files that the verbs here read with --files.

    Exit code 0: done. 2: wrong usage. 3: no such topic, or the folder is not empty. 5: Kafka cannot be reached.
    """
    since_at = 0 if since is None else instant_of_text(since, "--from")
    with opened(topic, files, needs_whole=True) as log:
        partitions = log.partitions()
        with progress(log, partitions) as advance:
            stretches = (
                export(log, folder, partitions, since_at, until_of(until), advance).stretches
                if tenant is None
                else export_tenant(log, folder, tenant, since_at, until_of(until), advance).stretches
            )
        if parquet:
            write_parquet(FileLog(folder) if tenant is None else TenantLog(folder), folder)
    for stretch in stretches:
        typer.echo(
            f"partition {stretch.partition}: {stretch.end - stretch.start} records, head {stretch.head_after}"
        )
    typer.echo(
        f"Keep these heads: they prove what is in {folder}."
        if tenant is None
        else f"Each event in {folder} can be found in these records of the log: `verify --files {folder} --within kafka`.",
        err=True,
    )
    if not any(stretch.end > stretch.start for stretch in stretches):
        typer.echo("error: there is no record in that time", err=True)
        raise typer.Exit(ExitCode.NOT_FOUND)
