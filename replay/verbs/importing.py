"""`python -m replay import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from replay.importing import import_log
from replay.verbs.common import UntilText, opened, progress, until_of


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
) -> None:
    """Fold exported files into the state that owners and API would hold, as copies that `verify --checkpoints` compares.

    Exit code 0: done. 1: the log cannot be folded to its end. 2: wrong usage. 3: files that are not as exported, or that
    do not begin with the log.
    """
    with opened(None, files, needs_whole=True) as log:
        partitions = [one for one in log.partitions() if log.bounds(one) != (0, 0)]
        with progress(log, partitions) as advance:
            digests = import_log(log, partitions, into, until_of(until), advance)
    for partition, found in digests.items():
        typer.echo(f"partition {partition}: state {found['streams']}, view {found['view']}")
