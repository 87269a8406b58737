"""`python -m replay verify`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from minutebook.clock import SystemClock
from minutebook.errors import SettingsError
from minutebook.log.last_audit import keep_last
from replay.decided import Decided, write_decided
from replay.deciding import decide_again
from replay.heads import Heads, read_heads, write_heads
from replay.inputs import Inputs
from replay.report import Report, heads_of, last_of, write_json, write_table
from replay.tenant_files import holds_tenant
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
    stoppable,
    told,
    until_of,
)
from replay.verbs.verify_part import verify_tenant
from replay.verify import Copies, copies_in, verify


def verify_log(
    checkpoints: Annotated[
        Path | None,
        typer.Option(
            help="Folder with copies of the owners' states and of the view, as `POST /checkpoint` makes them.",
            envvar="MINUTEBOOK_REPLAY_CHECKPOINTS",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    topic: Topic = None,
    files: Files = None,
    partition: Partitions = None,
    until: UntilText = None,
    heads: Annotated[
        Path | None,
        typer.Option(
            help="Keep the heads of all chains in this file, if all agrees.",
            envvar="MINUTEBOOK_REPLAY_HEADS",
            dir_okay=False,
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            help="Heads kept before: nothing up to them may have changed.",
            envvar="MINUTEBOOK_REPLAY_AGAINST",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|kafka",
            help="With the files of one tenant: the full export, or `kafka`, in which each of their events must be found.",
            envvar="MINUTEBOOK_REPLAY_WITHIN",
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Keep in this folder how far the audit comes, and go on from there: a later call reads only what is new.",
            envvar="MINUTEBOOK_REPLAY_RESUME",
            file_okay=False,
        ),
    ] = None,
    decide: Annotated[
        bool,
        typer.Option(
            "--decide",
            help="Make each decision again, too, as the verb `decide` does.",
            envvar="MINUTEBOOK_REPLAY_DECIDE",
        ),
    ] = False,
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            max=256,
            help="Processes that read partitions side by side.",
            envvar="MINUTEBOOK_REPLAY_PROCESSES",
            show_default="one a core",
        ),
    ] = len(os.sched_getaffinity(0)),
    reports: Annotated[
        Path | None,
        typer.Option(
            "--report",
            help="Folder for the result in short, `last-verify.json`, for the page of the audit log: only of the whole log.",
            file_okay=False,
            envvar="MINUTEBOOK_REPLAY_REPORT",
        ),
    ] = None,
    output: Output = "table",
) -> None:
    """Check every record of the log, fold it again, and compare with the copies; with --decide make each decision again, too.

    Exit code 0: all agree. 1: a difference, named with partition and offset. 2: wrong usage. 3: no such topic, or a folder of
    another audit. 5: Kafka cannot be reached. 6: a process died. 130: interrupted.
    """
    if files is not None and holds_tenant(files):
        if checkpoints or partition or until or heads or against or resume or reports or decide:
            raise typer.BadParameter(
                "holds one tenant's part: only --within can be asked of it", param_hint="--files"
            )
        verify_tenant(files, within, topic, output)
        return
    if within is not None:
        raise typer.BadParameter("goes with the files of one tenant", param_hint="--within")
    if reports is not None and (partition or until is not None):
        raise typer.BadParameter(
            "keeps the result of the whole log: it does not go with --partition or --until",
            param_hint="--report",
        )
    end = until_of(until)
    kept = None if against is None else _kept(against)
    report = decided = None
    with opened(topic, files) as log, _inputs(files, decide) as inputs:
        partitions = chosen(log.partitions(), partition)
        copies = None if checkpoints is None else _copies(checkpoints)
        try:
            with stoppable() as is_stopped, progress(log, partitions, 2 if decide else 1) as advance:
                report = verify(
                    log,
                    partitions,
                    copies,
                    end,
                    advance,
                    kept=kept,
                    folder=resume,
                    processes=processes,
                    is_stopped=is_stopped,
                )
                if inputs is not None:
                    decided = decide_again(
                        log, inputs, partitions, end, advance, processes=processes, is_stopped=is_stopped
                    )
                    report.ok = report.ok and decided.ok
        except Exception:
            if report is not None:  # what was verified stays said, whatever became of the decisions
                _write(report, None, output)
                with suppress(typer.Exit):
                    _keep(reports, report, None, is_interrupted=True)
            raise
    is_interrupted = report.is_interrupted() or (decided is not None and decided.is_interrupted())
    _write(report, decided, output)
    # A difference is the exit code, whether or not the result can be kept.
    with nullcontext() if report.ok else suppress(typer.Exit):
        _keep(reports, report, decided, is_interrupted=is_interrupted)
    if not report.ok:
        raise typer.Exit(ExitCode.NO)
    if is_interrupted:
        how = (
            "the same call goes on from there" if resume else "with --resume FOLDER a later call would go on"
        )
        typer.echo(f"interrupted: {how}", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED)
    if heads is not None:
        with told():
            write_heads(heads, heads_of(report))


@contextmanager
def _inputs(files: Path | None, is_wanted: bool) -> Iterator[Inputs | None]:
    """What decisions are made again from, opened before hours of reading; None = they are not."""
    if not is_wanted:
        yield None
        return
    with closing(inputs_of(files)) as inputs:
        yield inputs


def _keep(folder: Path | None, report: Report, decided: Decided | None, *, is_interrupted: bool) -> None:
    """Leave the result in short where the pages look for it. Raises typer.Exit, having said why."""
    if folder is None:
        return
    more = () if decided is None else decided.findings
    with told():
        keep_last(folder, last_of(report, SystemClock().now(), more, is_interrupted=is_interrupted))


def _write(report: Report, decided: Decided | None, output: str) -> None:
    if output == "json":
        typer.echo(write_json(report, {} if decided is None else {"decided": decided}))
        return
    console = Console()
    write_table(report, console)
    if decided is not None:
        write_decided(decided, console)


def _kept(path: Path) -> Heads:
    try:
        return read_heads(path)
    except SettingsError as error:
        raise typer.BadParameter(str(error), param_hint="--against") from error


def _copies(folder: Path) -> Copies:
    try:
        return copies_in(folder)
    except SettingsError as error:
        raise typer.BadParameter(str(error), param_hint="--checkpoints") from error
