"""What the demo shows while it runs: a live table on a terminal, a plain line every five seconds elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from examples.demo.witness import Sighting
from minutebook.embedded.cluster import Running

_LINE_EVERY_S: Final = 5.0


@dataclass(slots=True)
class Tally:
    """Counts of the sightings so far."""

    started: int = 0
    finished: int = 0
    raised: int = 0
    late_ms: list[float] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def add(self, sighting: Sighting) -> None:
        """Count one more."""
        if sighting.moment == "finished":
            self.finished += 1
        elif sighting.moment == "raised":
            self.raised += 1
        else:
            self.started += 1
            self._first(sighting)

    def late(self, part: float) -> str:
        """Lateness of first starts below which `part` of them lie, as text."""
        ordered = sorted(self.late_ms)
        return f"{ordered[min(len(ordered) - 1, int(part * len(ordered)))]:.0f} ms" if ordered else "-"

    def _first(self, sighting: Sighting) -> None:
        if sighting.execution not in self._seen:
            self._seen.add(sighting.execution)
            self.late_ms.append(sighting.at - sighting.due_at)


class Display:
    """Shows the tally and the processes; what is no terminal gets plain lines."""

    def __init__(self, console: Console) -> None:
        self.tally = Tally()
        self._console = console
        self._last_line_s = -_LINE_EVERY_S
        self._live = (
            Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """One piece of news; it stays above the table."""
        self._console.print(text, highlight=False)

    def show(self, elapsed_s: float, processes: Sequence[Running]) -> None:
        """Show where things stand, `elapsed_s` seconds after the first submission."""
        if self._live is not None:
            self._live.update(self._table(elapsed_s, processes), refresh=True)
        elif elapsed_s - self._last_line_s >= _LINE_EVERY_S:
            self._last_line_s = elapsed_s
            self._console.print(self._line(elapsed_s), highlight=False)

    def _table(self, elapsed_s: float, processes: Sequence[Running]) -> Table:
        table = Table(title=f"minutebook demo, {elapsed_s:.0f} s")
        for heading in ("started", "finished", "raised", "late p50", "late p99"):
            table.add_column(heading, justify="right")
        table.add_column("processes")
        tally = self.tally
        table.add_row(
            str(tally.started), str(tally.finished), str(tally.raised), tally.late(0.5), tally.late(0.99),
            "\n".join(f"{one.name} ({one.pid})" for one in processes),
        )  # fmt: skip
        return table

    def _line(self, elapsed_s: float) -> str:
        tally = self.tally
        return (
            f"{elapsed_s:4.0f} s  started {tally.started}  finished {tally.finished}  raised {tally.raised}"
            f"  late p50 {tally.late(0.5)}  p99 {tally.late(0.99)}"
        )
