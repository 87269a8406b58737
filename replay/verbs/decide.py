"""`python -m replay decide`."""

from __future__ import annotations

from contextlib import closing

import typer
from rich.console import Console

from replay.decided import write_decided, write_decided_json
from replay.deciding import decide_again
from replay.verbs.common import (
    ExitCode,
    Files,
    Output,
    Partitions,
    Topic,
    UntilText,
    chosen,
    inputs_of,
    opened,
    progress,
    until_of,
)


def decide(
    topic: Topic = None,
    files: Files = None,
    partition: Partitions = None,
    until: UntilText = None,
    output: Output = "table",
) -> None:
    """Make each decision again from the commands, mail and reports behind it, as far as they are kept, and compare.

    Exit code 0: all that could be decided again came out as it is on record. 1: a difference, named with partition, offset and
    event, or a log that is not whole. 2: wrong usage. 3: no such topic. 5: Kafka cannot be reached.
    """
    end = until_of(until)
    with opened(topic, files, needs_whole=True) as log, closing(inputs_of(files)) as inputs:
        partitions = chosen(log.partitions(), partition)
        with progress(log, partitions) as advance:
            decided = decide_again(log, inputs, partitions, end, advance)
    if output == "json":
        typer.echo(write_decided_json(decided))
    else:
        write_decided(decided, Console())
    if not decided.ok:
        raise typer.Exit(ExitCode.NO)
