"""Geometry of the charts that pages draw as inline SVG: numbers in, numbers out. Colours are the stylesheet's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from api.pages.texts import show_instant, show_ms

WIDTH: Final = 600
HEIGHT: Final = 72
_GAP: Final = 1.5
_TONES: Final = {"succeeded": "ok", "failed": "bad", "lost": "bad", "cancelled": "off", "skipped": "off"}
_BAR_MIN: Final = 2.0
"""What is not nothing is seen."""


class Bar(NamedTuple):
    """A bar of a chart, in its units, from the upper left corner."""

    x: float
    y: float
    width: float
    height: float


def bars(values: Sequence[float], width: float = WIDTH, height: float = HEIGHT) -> list[Bar]:
    """One bar for each value (not negative), side by side; the largest is as high as the chart."""
    if not values:
        return []
    step = width / len(values)
    top = max(values) or 1.0
    gap = min(_GAP, step / 4)
    found = []
    for number, value in enumerate(values):
        tall = max(value / top * height, _BAR_MIN) if value > 0 else 0.0
        found.append(
            Bar(round(number * step, 2), round(height - tall, 2), round(step - gap, 2), round(tall, 2))
        )
    return found


class Span(NamedTuple):
    """A stretch of a timeline, in its units."""

    x: float
    width: float


def span(start: int, end: int, first: int, last: int, width: float = WIDTH) -> Span:
    """Where a stretch from `start` to `end` lies on a timeline from `first` to `last` (ms); never narrower than is seen."""
    whole = max(last - first, 1)
    x = min(max((start - first) / whole, 0.0), 1.0) * width
    wide = max((max(end, start) - start) / whole * width, _BAR_MIN)
    x = min(x, width - _BAR_MIN)
    return Span(round(x, 2), round(min(wide, width - x), 2))


class Lateness(NamedTuple):
    """How late an execution started. `ms` None = it never did."""

    execution_id: str
    scheduled_at: str
    status: str
    ms: int | None


class Row(NamedTuple):
    """A bar and what it says: its name, the value in words, the value, and the tone of its status."""

    name: str
    shown: str
    value: float
    tone: str


def lateness_rows(items: Sequence[Lateness]) -> list[Row]:
    """A row for each execution; one that did not start has no bar."""
    return [
        Row(
            f"{show_instant(item.scheduled_at)}, {item.status}",
            "did not start" if item.ms is None else show_ms(item.ms),
            0 if item.ms is None else max(item.ms, 1),
            _TONES.get(item.status, "run"),
        )
        for item in items
    ]
