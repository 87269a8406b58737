"""What came of decisions that were made again, for people and as JSON."""

from __future__ import annotations

from collections import Counter

import msgspec
from rich.console import Console
from rich.table import Table

from replay.frames import void_note
from replay.report import Finding


class PartitionDecided(msgspec.Struct, kw_only=True):
    """One partition: `equal` events came out as they are, `allowed` need not have been but may be, `unchecked` could not be
    decided again, by reason. The last `void_at_end` records through `position` are void. `is_interrupted`: there is more."""

    partition: int
    position: int = -1
    frames: int = 0
    equal: int = 0
    allowed: int = 0
    unchecked: dict[str, int] = msgspec.field(default_factory=dict)
    void_at_end: int = 0
    is_interrupted: bool = False


class Decided(msgspec.Struct, kw_only=True):
    """All of it. `inputs`: why there were none to read; empty if there were."""

    ok: bool
    inputs: str
    partitions: list[PartitionDecided]
    findings: list[Finding]

    def is_interrupted(self) -> bool:
        """Whether there is more to decide again."""
        return any(item.is_interrupted for item in self.partitions)

    def unchecked(self) -> Counter[str]:
        """Events that could not be decided again, by reason."""
        total: Counter[str] = Counter()
        for partition in self.partitions:
            total.update(partition.unchecked)
        return total


def write_decided_json(decided: Decided) -> str:
    """One JSON object, in a stable shape."""
    return msgspec.json.format(msgspec.json.encode(decided), indent=2).decode()


def write_decided(decided: Decided, console: Console) -> None:
    """A row per partition, then what could not be decided again, and what came out differently."""
    table = Table(title="Events decided again", title_justify="left")
    for column in ("partition", "frames", "equal", "allowed", "unchecked", "different"):
        table.add_column(column, justify="right")
    different = Counter(finding.partition for finding in decided.findings)
    for item in decided.partitions:
        counts = (
            item.frames,
            item.equal,
            item.allowed,
            sum(item.unchecked.values()),
            different[item.partition],
        )
        table.add_row(str(item.partition), *(str(count) for count in counts))
    console.print(table)
    if decided.inputs:
        console.print(decided.inputs, markup=False)
    for reason, count in sorted(decided.unchecked().items()):
        console.print(f"unchecked: {count}, {reason}", markup=False)
    for finding in decided.findings:
        console.print(f"[red]DIFFERENT[/red] {finding.place()}, ", end="")
        console.print(finding.what, markup=False)
    for item in decided.partitions:
        if note := void_note(item.partition, item.position, item.void_at_end):
            console.print(f"note: {note}", markup=False)
        if item.is_interrupted:
            far = f"interrupted behind offset {item.position}" if item.position >= 0 else "not begun"
            console.print(
                f"partition {item.partition}: {far}, decisions are made again from the start", markup=False
            )
    if not decided.ok:
        return
    if any(item.equal or item.allowed for item in decided.partitions):
        console.print("What could be decided again came out as it is on record.")
    else:
        console.print("Nothing could be decided again.")
