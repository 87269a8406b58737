"""`python -m replay export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minutebook.errors import SettingsError
from replay.files import FileLog, new_folder, write_log
from replay.parquet import write_parquet
from replay.part import is_own
from replay.tenant_files import TenantLog, write_tenant
from replay.verbs.common import Files, Topic, UntilText, instant_of_text, opened, progress, until_of
from replay.verify_part import PartReport, verify_part


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

    The folder is there with all of it, or not at all. Exit code 0: done. 1: the log is not whole. 2: wrong usage. 3: no such
    topic, nothing of that tenant or time, or the folder is not empty or cannot be written. 5: Kafka cannot be reached.
    """
    if tenant == "":
        raise typer.BadParameter("must not be empty", param_hint="--tenant")
    since_at = 0 if since is None else instant_of_text(since, "--from")
    end = until_of(until)
    held = dict[int, PartReport]()
    with opened(topic, files, needs_whole=True) as log, new_folder(folder) as made:
        partitions = log.partitions()
        with progress(log, partitions) as advance:
            stretches = (
                write_log(log, made, partitions, since_at, end, advance).stretches
                if tenant is None
                else write_tenant(log, made, tenant, since_at, end, advance).stretches
            )
        if not any(stretch.end > stretch.start for stretch in stretches):
            raise SettingsError("the log has no record in that time: nothing was written")
        if tenant is not None:
            part = TenantLog(made)
            held = {one.partition: one for one in verify_part(part).partitions}
            if not _has_own(part):
                raise SettingsError(f"the log holds nothing of the tenant {tenant} in that time")
        if parquet:
            write_parquet(FileLog(made) if tenant is None else part, made)
    for stretch in stretches:
        count = f"{stretch.end - stretch.start} records"
        if tenant is not None:
            own = held[stretch.partition]
            count = f"{own.events} events in {own.records} of {count}"
        typer.echo(f"partition {stretch.partition}: {count}, head {stretch.head_after}")
    typer.echo(
        f"Keep these heads: they prove what is in {folder}."
        if tenant is None
        else f"Each event in {folder} can be found in these records of the log: `verify --files {folder} --within kafka`.",
        err=True,
    )


def _has_own(files: TenantLog) -> bool:
    """Whether anything there is the tenant's own, and not every tenant's."""
    events = (
        event
        for partition in files.partitions()
        for record in files.records(partition)
        for event in record.frame.events
    )
    return any(map(is_own, events))
