"""Figures that tests found, one table a title, shown when all tests have run; and how many rounds they were asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

SETTING: Final = "MINUTEBOOK_ROUNDS"
FEW: Final = 2
PROOF: Final = 10
"""From so many rounds on, a run is a proof: on a machine of its own, judged by the goals."""

_tables: dict[str, list[dict[str, str]]] = {}


def rounds_asked() -> int:
    """How often a fault is repeated: `MINUTEBOOK_ROUNDS`, or a few. Raises ValueError if that is no count."""
    text = os.environ.get(SETTING, str(FEW))
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{SETTING}={text!r}: give a whole number of rounds, at least 1")
    return int(text)


ROUNDS: Final = rounds_asked()


def bound(goal: float, busy: float) -> float:
    """What a figure is held to: the goal in a proof, else what holds on a busy machine."""
    return goal if ROUNDS >= PROOF else busy


def note(title: str, **figures: object) -> None:
    """One row of the table `title`; the names are its columns."""
    _tables.setdefault(title, []).append({name: _text(value) for name, value in figures.items()})


def noted() -> dict[str, list[dict[str, str]]]:
    """All rows by title."""
    return _tables


def take(tables: dict[str, list[dict[str, str]]]) -> None:
    """Rows that another process noted."""
    for title, rows in tables.items():
        _tables.setdefault(title, []).extend(rows)


def lines() -> Iterator[str]:
    """All tables, as text."""
    for title, rows in _tables.items():
        columns = list(dict.fromkeys(name for row in rows for name in row))
        cells = [[name.replace("_", " ") for name in columns]]
        cells += [[row.get(name, "") for name in columns] for row in rows]
        widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
        yield title
        for line in cells:
            yield "  " + "  ".join(map(str.ljust, line, widths)).rstrip()


def _text(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
