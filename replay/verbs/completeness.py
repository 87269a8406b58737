"""`python -m replay completeness`."""

from __future__ import annotations

import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from minutebook.clock import SystemClock
from minutebook.history.ledger import Range
from minutebook.log.last_audit import keep_last
from minutebook.log.written import write_whole
from minutebook.times import format_instant
from replay.completeness import CompletenessReport, completeness, last_of
from replay.frames import void_note
from replay.pages import completeness_page
from replay.tenant_files import holds_tenant
from replay.verbs.common import ExitCode, Files, Output, Topic, instant_of_text, opened, progress, told

_DAY_MS: Final = 86_400_000
_LATER_MS: Final = 300_000
"""A day is looked at so long after its end: what was due in it is on record by then."""
_LOOK_EVERY_S: Final = 3_600.0


def completeness_of(
    since: Annotated[
        str, typer.Argument(metavar="FROM", help="First instant, such as 2026-03-01T00:00:00Z.")
    ] = "",
    until: Annotated[str, typer.Argument(metavar="TO", help="End: instants before it.")] = "",
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="Only this one's.", envvar="MINUTEBOOK_REPLAY_TENANT")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            help="Folder for the report as JSON and as a page; of all tenants also in short, `last-completeness.json`.",
            file_okay=False,
            envvar="MINUTEBOOK_REPLAY_REPORT",
        ),
    ] = None,
    nightly: Annotated[
        bool,
        typer.Option(
            "--nightly",
            help="Go on for ever: after each day in UTC a report on it; needs --report.",
            envvar="MINUTEBOOK_REPLAY_NIGHTLY",
        ),
    ] = False,
    topic: Topic = None,
    files: Files = None,
    output: Output = "table",
) -> None:
    """Is every instant that the schedules implied accounted for? What is not is named.

    Exit code 0: complete. 1: an instant is missing. 2: wrong usage. 3: no such topic. 5: Kafka cannot be reached.
    """
    if nightly:
        if report is None or since or until:
            raise typer.BadParameter("goes with --report, and without FROM and TO", param_hint="--nightly")
        _every_night(report, tenant, topic)
        return
    if not since or not until:
        raise typer.BadParameter("give the time to look at: FROM and TO", param_hint="FROM TO")
    asked = Range(instant_of_text(since, "FROM"), instant_of_text(until, "TO") - 1)
    if asked.last_at < asked.first_at:
        raise typer.BadParameter("must be later than FROM", param_hint="TO")
    found = _found(asked, tenant, topic, files)
    if output == "json":
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    else:
        _write(found)
    if report is not None:
        is_of_all = tenant is None and (files is None or not holds_tenant(files))
        # Where an instant is missing, that is the exit code, whether or not the report can be kept.
        with nullcontext() if found.ok else suppress(typer.Exit), told():
            _keep(found, report, is_of_all=is_of_all)
    if not found.ok:
        raise typer.Exit(ExitCode.NO)


def _found(asked: Range, tenant: str | None, topic: str | None, files: Path | None) -> CompletenessReport:
    with opened(topic, files, tenant=tenant) as log:
        partitions = [one for one in log.partitions() if files is None or log.bounds(one) != (0, 0)]
        with progress(log, partitions) as advance:
            return completeness(log, partitions, asked, tenant, advance)


def _every_night(report: Path, tenant: str | None, topic: str | None) -> None:
    clock = SystemClock()
    while True:
        asked = last_day(clock.now())
        if not (report / f"{_name(format_instant(asked.first_at))}.json").exists():
            found = _found(asked, tenant, topic, None)
            typer.echo(f"{found.first_at[:10]}: {'complete' if found.ok else 'NOT complete'}")
            with told():
                _keep(found, report, is_of_all=tenant is None)
        next_at = asked.last_at + 1 + _DAY_MS + _LATER_MS
        time.sleep(max(1.0, min(_LOOK_EVERY_S, (next_at - clock.now()) / 1_000)))


def last_day(now: int) -> Range:
    """The last day in UTC that is over at `now` (ms) for so long that what was due in it is on record."""
    end = (now - _LATER_MS) // _DAY_MS * _DAY_MS
    return Range(end - _DAY_MS, end - 1)


def _name(first_at: str) -> str:
    return f"completeness-{first_at[:10]}"


def _keep(found: CompletenessReport, folder: Path, *, is_of_all: bool) -> None:
    """Leave a report in a folder; of all tenants also what it comes to."""
    folder.mkdir(parents=True, exist_ok=True)
    name = _name(found.first_at)
    made_at = SystemClock().now()
    page = completeness_page(found, made_at)
    write_whole(folder / f"{name}.html", page.encode())
    write_whole(folder / f"{name}.json", msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    if is_of_all:
        keep_last(folder, last_of(found, made_at))
    typer.echo(f"{folder / name}.html and .json", err=True)


def _write(found: CompletenessReport) -> None:
    console = Console()
    title = f"Instants from {found.first_at} through {found.last_at}"
    table = Table(title=title, title_justify="left")
    for column in (
        "tenant",
        "jobs",
        "implied",
        "ran",
        "did not run, for a reason",
        "ended",
        "open",
        "missing",
    ):
        table.add_column(column)
    for item in found.tenants:
        table.add_row(
            item.tenant,
            str(item.jobs),
            str(item.implied),
            str(item.ran),
            _counts(item.explained),
            _counts(item.ended),
            str(item.open),
            f"[red]{item.missing}[/red]" if item.missing else "0",
        )
    console.print(table)
    for one in found.missing:
        row = f" and {one.count - 1} after it" if one.count > 1 else ""
        console.print(
            f"[red]MISSING[/red] {one.at}{row}: job {escape(one.job_id)} of {one.tenant}: {escape(one.what)}"
        )
    if found.behind_the_log:
        parts = ", ".join(map(str, found.behind_the_log))
        console.print(f"The log of partition {parts} ends before that time does.")
    for part in found.partitions:
        if note := void_note(part.partition, part.position, part.void_at_end):
            console.print(f"note: {note}", markup=False)
    if found.is_empty():
        console.print("The log holds no record: nothing is known of that time.")
    elif found.ok:
        far = "" if found.is_to_the_end() else " as far as the log goes"
        console.print(f"Complete{far}: each instant ran, or the log says why it did not.")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()) if count)
