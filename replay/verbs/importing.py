"""`python -m replay import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from replay.frames import void_note
from replay.importing import import_log
from replay.verbs.common import Output, UntilText, opened, progress, until_of


def import_files(
    files: Annotated[
        Path, typer.Argument(help="Folder made by `export`.", exists=True, file_okay=False, metavar="FILES")
    ],
    into: Annotated[
        Path,
        typer.Option(
            "--into", help="Checkpoint folder: state and view are put there as copies.", file_okay=False
        ),
    ],
    until: UntilText = None,
    output: Output = "table",
) -> None:
    """Fold exported files into the state that owners and API would hold, as copies that `verify --checkpoints` compares.

    All copies are there at the end, or none. Exit code 0: done. 1: the log cannot be folded to its end. 2: wrong usage.
    3: files that are not as exported, that do not begin with the log, or a folder that cannot be written or has an import.
    """
    with opened(None, files, needs_whole=True) as log:
        partitions = [one for one in log.partitions() if log.bounds(one) != (0, 0)]
        with progress(log, partitions) as advance:
            imported = import_log(log, partitions, into, until_of(until), advance)
    if output == "json":
        typer.echo(msgspec.json.format(msgspec.json.encode({"partitions": imported}), indent=2))
        return
    for one in imported:
        typer.echo(f"partition {one.partition}: state {one.state}, view {one.view}")
        if note := void_note(one.partition, one.position, one.void_at_end):
            typer.echo(f"note: {note}")
