"""Metrics of the API process, by the table of metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from api.figures import Figures
from api.follower import Follower
from api.view import View
from minutebook import __version__
from minutebook.broker_clock import BrokerClock
from minutebook.collectors import counter_family, gauge, gauge_family, starting
from minutebook.loop_lag import LoopLag
from minutebook.wire.topics import EVENTS


class ViewCollector(Collector):
    """Reads the figures when asked; nothing is counted on the way."""

    def __init__(
        self, follower: Follower, view: View, figures: Figures, broker_clock: BrokerClock, lag: LoopLag
    ) -> None:
        self._follower = follower
        self._view = view
        self._figures = figures
        self._broker_clock = broker_clock
        self._lag = lag

    def collect(self) -> Iterator[Metric]:
        """The metrics, now."""
        yield gauge_family(
            "minutebook_partition_lag_records",
            (((EVENTS, str(partition)), records) for partition, records in self._follower.lag.items()),
        )
        everything = self._follower.catch_up.all()
        yield gauge("minutebook_view_read_ratio", everything.share)
        yield gauge("minutebook_view_read_records_per_second", everything.per_s or 0.0)
        ready = [] if everything.ready_in_s is None else [((), everything.ready_in_s)]
        yield gauge_family("minutebook_view_ready_in_seconds", ready)
        void = {labels: self._view.voids[labels[0]] for labels in starting("minutebook_void_frames_total")}
        yield counter_family("minutebook_void_frames_total", void)
        yield _by_name("minutebook_due_ahead", self._figures.due)
        yield _by_name("minutebook_jobs", self._figures.jobs)
        yield _by_name("minutebook_attempts", self._figures.attempts)
        yield gauge("minutebook_clock_skew_seconds", self._broker_clock.skew_ms / 1_000)
        yield gauge("minutebook_loop_lag_seconds", self._lag.worst_s())
        yield gauge_family("minutebook_build_info", [((__version__,), 1)])


def _by_name(metric: str, counts: Mapping[str, int]) -> Metric:
    """A gauge with one label."""
    return gauge_family(metric, (((name,), count) for name, count in counts.items()))


def registry_of(*collectors: Collector) -> CollectorRegistry:
    """A registry with these alone."""
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    return registry
