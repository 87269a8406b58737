"""Metrics of the notifier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from api.notifier.reader import Notifier

OUTCOMES: Final = ("delivered", "given_up", "nobody", "repeated", "retried", "unreadable")


class NotifierCollector(Collector):
    """Reads the figures when asked."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    def collect(self) -> Iterator[Metric]:
        """The metrics, now."""
        total = CounterMetricFamily("minutebook_alerts", "What became of alerts.", labels=["outcome"])
        for outcome in OUTCOMES:
            total.add_metric([outcome], self._notifier.tally[outcome])
        yield total
        waiting = GaugeMetricFamily("minutebook_alerts_waiting", "Alerts that are on their way.")
        waiting.add_metric([], self._notifier.waiting())
        yield waiting
