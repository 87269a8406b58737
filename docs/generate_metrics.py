"""`python -m docs.generate_metrics` writes `docs/reference/metrics.md` from the table of metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutebook.collectors import LABEL_SETS_MAX, OTHER
from minutebook.metrics import HISTOGRAM, TABLE, Metric

PAGE: Final = Path(__file__).parent / "reference" / "metrics.md"
_HEAD: Final = f"""# Metrics

Prometheus reads `/metrics` at the health ports of owners and API, and of a worker that was given one (`--metrics-port`). The
unit ends the name. No label is an id or a tenant; label sets that are known beforehand start at 0; tasks and queues beyond
{LABEL_SETS_MAX:,} label sets of a metric count under `{OTHER}`. Counters and histograms of owners count what is in
the log, each thing in the process that wrote it. Dashboard and alerts: [operate](../operate/README.md). This page is written by
`python -m docs.generate_metrics`.

| metric | kind | labels | exported by | what it tells |
|---|---|---|---|---|
"""


def page() -> str:
    """The page as it must be."""
    return _HEAD + "".join(map(_row, TABLE))


def _row(metric: Metric) -> str:
    labels = " ".join(f"`{name}`" for name in metric.labels) or "–"
    buckets = f"; buckets up to {metric.buckets[-1]:,}" if metric.kind == HISTOGRAM else ""
    cells = (f"`{metric.name}`", metric.kind, labels, ", ".join(metric.where), metric.meaning + buckets)
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
