"""Metrics of the API process, by their contract: prefix `minutebook_`, no id and no tenant as a label."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from api.follower import Follower
from api.view import View
from minutebook import __version__
from minutebook.wire.topics import EVENTS


class ViewCollector(Collector):
    """Reads the figures when asked; nothing is counted on the way."""

    def __init__(self, follower: Follower, view: View) -> None:
        self._follower = follower
        self._view = view

    def collect(self) -> Iterator[Metric]:
        """The metrics, now."""
        lag = GaugeMetricFamily(
            "minutebook_partition_lag_records", "Records not folded yet.", labels=["topic", "partition"]
        )
        for partition, records in self._follower.lag.items():
            lag.add_metric([EVENTS, str(partition)], records)
        yield lag
        void = CounterMetricFamily("minutebook_void_frames", "Records of the log that count for nobody.")
        void.add_metric([], sum(part.cursor.void_frames for part in self._view.parts))
        yield void
        build = GaugeMetricFamily("minutebook_build_info", "Version of this process.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build


def registry_of(follower: Follower, view: View) -> CollectorRegistry:
    """A registry with the metrics of this process alone."""
    registry = CollectorRegistry()
    registry.register(ViewCollector(follower, view))
    return registry
