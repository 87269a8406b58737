"""Prometheus collectors made from rows of the table of metrics. Needs the extra `prometheus`.

Counting takes whole columns: a dictionary entry and a number for each distinct value, and no lock. What is labelled with
names that people choose is bounded: label sets beyond the bound count under `(other)`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from minutebook.metrics import BY_NAME

LABEL_SETS_MAX: Final = 1_000
"""Of one metric: tasks are named by those who submit, and each name would stay for ever."""
OTHER: Final = "(other)"

Labels = tuple[str, ...]


def starting(name: str) -> list[Labels]:
    """Label sets of a metric that are known beforehand; the empty one where it has no labels."""
    row = BY_NAME[name]
    return list(product(*row.known)) if row.known or not row.labels else []


class Count(Collector):
    """A counter of the table."""

    def __init__(self, name: str, registry: CollectorRegistry) -> None:
        self._row = BY_NAME[name]
        self._counts: dict[Labels, float] = dict.fromkeys(starting(name), 0)
        registry.register(self)

    def add(self, labels: Labels = (), count: float = 1) -> None:
        """`count` more."""
        counts = self._counts
        if labels not in counts and len(counts) >= LABEL_SETS_MAX:
            labels = (OTHER,) * len(labels)
        counts[labels] = counts.get(labels, 0) + count

    def value(self, *labels: str) -> float:
        """How many so far."""
        return self._counts.get(labels, 0)

    def collect(self) -> Iterator[Metric]:
        """See prometheus_client."""
        yield counter_family(self._row.name, self._counts)


class Distribution(Collector):
    """A histogram of the table."""

    def __init__(self, name: str, registry: CollectorRegistry) -> None:
        self._row = BY_NAME[name]
        self._bounds = self._row.buckets
        self._names = [*map(str, self._bounds), "+Inf"]
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        for labels in starting(name):
            self._open(labels)
        registry.register(self)

    def _open(self, labels: Labels) -> list[int]:
        self._sums[labels] = 0.0
        made = self._counts[labels] = [0] * len(self._names)
        return made

    def observe(self, value: float, labels: Labels = (), count: int = 1) -> None:
        """`count` times `value`, in the unit of the metric."""
        if labels not in self._counts and len(self._counts) >= LABEL_SETS_MAX:
            labels = (OTHER,) * len(labels)
        counts = self._counts.get(labels) or self._open(labels)
        counts[bisect_left(self._bounds, value)] += count
        self._sums[labels] += value * count

    def observe_ms(self, tally: Mapping[int, int], labels: Labels = ()) -> None:
        """Milliseconds -> how often; what is below 0 counts as 0."""
        for ms, count in tally.items():
            self.observe(max(ms, 0) / 1_000, labels, count)

    def total(self, *labels: str) -> int:
        """How many were observed so far."""
        return sum(self._counts.get(labels, ()))

    def collect(self) -> Iterator[Metric]:
        """See prometheus_client."""
        family = HistogramMetricFamily(self._row.name, self._row.meaning, labels=self._row.labels)
        for labels, counts in self._counts.items():
            total, buckets = 0, []
            for name, count in zip(self._names, counts, strict=True):
                total += count
                buckets.append((name, total))
            family.add_metric(labels, buckets, self._sums[labels])
        yield family


def counter_family(name: str, values: Mapping[Labels, float]) -> Metric:
    """A counter of the table with these values."""
    row = BY_NAME[name]
    family = CounterMetricFamily(name, row.meaning, labels=row.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def gauge_family(name: str, values: Iterable[tuple[Labels, float]]) -> Metric:
    """A gauge of the table with these values, by label set."""
    row = BY_NAME[name]
    family = GaugeMetricFamily(name, row.meaning, labels=row.labels)
    for labels, value in values:
        family.add_metric(labels, value)
    return family


def gauge(name: str, value: float) -> Metric:
    """A gauge of the table that has no labels."""
    return gauge_family(name, [((), value)])
