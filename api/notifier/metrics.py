"""Metrics of the notifier."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from api.notifier.reader import Notifier
from minutebook.collectors import counter_family, gauge, starting


class NotifierCollector(Collector):
    """Reads the figures when asked."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    def collect(self) -> Iterator[Metric]:
        """The metrics, now."""
        outcomes = {labels: self._notifier.tally[labels[0]] for labels in starting("minutebook_alerts_total")}
        yield counter_family("minutebook_alerts_total", outcomes)
        yield gauge("minutebook_alerts_waiting", self._notifier.waiting())
