"""What an audit found, for people and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec
from rich.console import Console
from rich.table import Table

from minutebook.log.last_audit import LastVerify, Place
from minutebook.times import format_instant
from replay.heads import Head, Heads

EQUAL: Final = "equal"
DIFFERENT: Final = "different"
NO_COPY: Final = "no copy"
NOT_REACHED: Final = "not reached"
"""The copy was made at a position behind the end that was asked for: nothing is known of it."""
PASSED: Final = "passed by"
"""What this audit goes on from stood behind the position of the copy: nothing is known of it."""
NOT_ASKED: Final = "not asked"


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong, at `offset`; where nothing can say more exactly, somewhere from `first` to `last`."""

    partition: int
    offset: int
    first: int
    last: int
    what: str

    def place(self) -> str:
        """Where it is, for people."""
        exactly = f"partition {self.partition}, offset {self.offset}"
        return (
            exactly if self.first == self.last else f"{exactly} (somewhere from {self.first} to {self.last})"
        )


class PartitionReport(msgspec.Struct, kw_only=True):
    """One partition: its records from `start` through `position`, and whether its copies agree.

    `events` are those of the valid frames, `rows` the facts in them: an event with columns has one for each execution.
    `head` is the chain's head there, `digest` that of the state folded, both in hex. `unproven_from` is the first
    record that no later frame and no copy vouches for. `kept`: whether the head that somebody kept is the
    chain's. `taken_over`: how many of the records an earlier call had checked; they were not read again, but the last of them
    still has its hash. `unchecked`: what was not, and why. `is_interrupted`: there is more to read.
    """

    partition: int
    start: int
    end: int
    records: int = 0
    frames: int = 0
    void: int = 0
    events: int = 0
    rows: int = 0
    position: int = -1
    head: str = ""
    digest: str = ""
    unproven_from: int = 0
    taken_over: int = 0
    unchecked: list[str] = []
    is_interrupted: bool = False
    state: str = NOT_ASKED
    view: str = NOT_ASKED
    kept: str = NOT_ASKED


class Report(msgspec.Struct, kw_only=True):
    """The whole audit. `ok`: everything that was checked agrees."""

    ok: bool
    topic: str
    log_id: str
    partitions: list[PartitionReport]
    findings: list[Finding]

    def is_interrupted(self) -> bool:
        """Whether there is more to read."""
        return any(item.is_interrupted for item in self.partitions)


def heads_of(report: Report) -> Heads:
    """What to keep, to prove later that nothing changed."""
    return Heads(
        log_id=report.log_id,
        partitions={
            item.partition: Head(position=item.position, head=item.head)
            for item in report.partitions
            if item.position >= item.start
        },
    )


def last_of(
    report: Report, made_at: int, more: Sequence[Finding] = (), *, is_interrupted: bool = False
) -> LastVerify:
    """The audit in short, for those who only ask how it went, with what else was found. `made_at`: ms since the epoch, UTC.

    `is_interrupted`: whether what else was looked for was not looked for to the end; the report knows of itself.
    """
    findings = [*report.findings, *more]
    first = findings[0] if findings else None
    return LastVerify(
        made_at=format_instant(made_at),
        ok=report.ok,
        is_interrupted=is_interrupted or report.is_interrupted(),
        records=sum(item.records for item in report.partitions),
        through=[Place(partition=item.partition, position=item.position) for item in report.partitions],
        findings=len(findings),
        first=None if first is None else Place(partition=first.partition, position=first.offset),
    )


def write_json(report: Report, beside: Mapping[str, object] = MappingProxyType({})) -> str:
    """One JSON object, in a stable shape; what stands `beside` the audit has names of its own in it."""
    return msgspec.json.format(
        msgspec.json.encode(msgspec.structs.asdict(report) | dict(beside)), indent=2
    ).decode()


def write_table(report: Report, console: Console) -> None:
    """A row per partition, then what was found."""
    table = Table(title=f"{report.topic}: the log folded again", title_justify="left")
    for column in ("partition", "records", "valid", "void", "events", "position"):
        table.add_column(column, justify="right")
    for column in ("head", "state", "view"):
        table.add_column(column)
    for item in report.partitions:
        table.add_row(
            *(str(number) for number in (item.partition, item.records, item.frames, item.void, item.events)),
            str(item.position) if item.records else "",
            item.head[:12],
            _colored(item.state),
            _colored(item.view),
        )
    console.print(table)
    for item in report.partitions:
        for line in _notes(item):
            console.print(f"partition {item.partition}: {line}", markup=False)
    for finding in report.findings:
        console.print(f"[red]DIFFERENT[/red] {finding.place()}: ", end="")
        console.print(finding.what, markup=False)
    if report.ok:
        console.print(_summary(report))


def _colored(outcome: str) -> str:
    color = {EQUAL: "green", DIFFERENT: "red", NO_COPY: "red"}.get(outcome, "dim")
    return f"[{color}]{outcome}[/{color}]"


def _notes(item: PartitionReport) -> list[str]:
    """What to know of a partition beside its row."""
    found = []
    if item.taken_over:
        last = item.start + item.taken_over - 1
        found.append(
            f"offsets {item.start} to {last} were checked by an earlier call and not read again; "
            f"the record at {last} still has the hash that it had"
        )
    if item.is_interrupted:
        left = item.end - max(item.start, item.position + 1)
        found.append(f"interrupted with {left} records left to read")
    return found + item.unchecked


def _summary(report: Report) -> str:
    parts = report.partitions
    compared = sum(outcome == EQUAL for item in parts for outcome in (item.state, item.view))
    if not any(item.end > item.start for item in parts):
        return " ".join(["The log holds no record: nothing was checked.", *_tails(parts)])
    said = f"All agree: {sum(item.records for item in parts)} records, {compared} copies compared."
    if report.is_interrupted():
        return f"{said} This is not all: it was interrupted."
    return " ".join([said, *_unproven(parts), *_tails(parts)])


def _unproven(parts: list[PartitionReport]) -> list[str]:
    """What nothing vouches for: the last record as a rule, more where void records follow the last frame."""
    bare = [item for item in parts if item.unproven_from <= item.position]
    last = [str(item.partition) for item in bare if item.unproven_from == item.position]
    said = (
        [f"The last record of partition {', '.join(last)} has no copy behind it that proves it."]
        if last
        else []
    )
    return said + [
        f"Offsets {item.unproven_from} to {item.position} of partition {item.partition} have nothing behind them that "
        "proves them."
        for item in bare
        if item.unproven_from < item.position
    ]


def _tails(parts: list[PartitionReport]) -> list[str]:
    """Where no head was compared that lies at the end or behind it, records may have been taken away there."""
    unkept = [str(item.partition) for item in parts if item.kept != EQUAL]
    if not unkept:
        return []
    which = "" if len(unkept) == len(parts) else f" of partition {', '.join(unkept)}"
    return [
        f"Whether records behind the last one{which} are gone, only a head that was kept can show: --against."
    ]
