"""`python -m replay export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from replay.files import export
from replay.verbs.common import ExitCode, Files, Topic, UntilText, instant_of_text, opened, progress, until_of


def export_log(
    folder: Annotated[Path, typer.Argument(help="New folder for the files.", file_okay=False)],
    since: Annotated[
        str | None, typer.Option("--from", help="Begin with the first record stamped then or later.")
    ] = None,
    until: UntilText = None,
    topic: Topic = None,
    files: Files = None,
) -> None:
    """Write the log, or a stretch of it, into files that every verb here reads with --files.

    Exit code 0: done. 2: wrong usage. 3: no such topic, or the folder is not empty. 5: Kafka cannot be reached.
    """
    since_at = 0 if since is None else instant_of_text(since, "--from")
    with opened(topic, files) as log:
        partitions = log.partitions()
        with progress(log, partitions) as advance:
            manifest = export(log, folder, partitions, since_at, until_of(until), advance)
    for stretch in manifest.stretches:
        typer.echo(
            f"partition {stretch.partition}: {stretch.end - stretch.start} records, head {stretch.head_after}"
        )
    typer.echo(f"Keep these heads: they prove what is in {folder}.", err=True)
    if not any(stretch.end > stretch.start for stretch in manifest.stretches):
        typer.echo("error: there is no record in that time", err=True)
        raise typer.Exit(ExitCode.NOT_FOUND)
