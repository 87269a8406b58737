"""Gauges of the owners' process, read when asked: what waits, how far behind, how large."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from minutebook import __version__
from minutebook.clock import Clock
from minutebook.collectors import Labels, gauge, gauge_family
from minutebook.loop_lag import LoopLag
from streams.host import Host
from streams.owner import Owner


class HostCollector(Collector):
    """The owners of one process. `data_dir` holds their stores."""

    def __init__(self, host: Host, clock: Clock, lag: LoopLag, data_dir: Path) -> None:
        self._host = host
        self._clock = clock
        self._lag = lag
        self._data_dir = data_dir

    def collect(self) -> Iterator[Metric]:
        """The metrics, now."""
        now, owners = self._clock.now(), self._host.owners()
        serving = [owner for owner in owners if owner.state == "serving"]
        queued: Counter[Labels] = Counter()
        for owner in serving:
            queued.update(owner.granting.waiting())
        yield gauge_family("minutebook_queued", queued.items())
        oldest = [at for owner in serving if (at := owner.granting.oldest_at()) is not None]
        yield gauge("minutebook_oldest_due_age_seconds", _age_s(now, min(oldest, default=None)))
        yield self._by_partition(
            "oldest_input_age_seconds", lambda owner: _age_s(now, owner.oldest_input_at())
        )
        yield gauge_family(
            "minutebook_partition_lag_records",
            (
                ((topic, str(owner.partition)), feed.left())
                for owner in owners
                for topic, feed in owner.feeds.items()
            ),
        )
        yield self._by_partition("recovery_remaining_records", lambda owner: owner.left)
        yield self._by_partition("store_size_bytes", self._size_bytes)
        yield gauge_family("minutebook_partition_owner_info", self._infos())
        skews = [owner.skew_ms / 1_000 for owner in serving]
        yield gauge("minutebook_clock_skew_seconds", max(skews, key=abs, default=0.0))
        yield gauge("minutebook_loop_lag_seconds", self._lag.worst_s())
        yield gauge_family("minutebook_build_info", [((__version__,), 1)])

    def _by_partition(self, name: str, value: Callable[[Owner], float]) -> Metric:
        owners = self._host.owners()
        return gauge_family(
            f"minutebook_{name}", (((str(owner.partition),), value(owner)) for owner in owners)
        )

    def _infos(self) -> Iterator[tuple[Labels, float]]:
        for item in self._host.status()["partitions"]:
            yield (str(item["partition"]), self._host.instance_id, str(item["epoch"]), item["state"]), 1

    def _size_bytes(self, owner: Owner) -> int:
        """Bytes of the files of a store; what is deleted meanwhile counts no more."""
        total = 0
        for file in (self._data_dir / f"partition-{owner.partition}").glob("*"):
            with suppress(FileNotFoundError):
                total += file.stat().st_size
        return total


def _age_s(now: int, at: int | None) -> float:
    """Seconds since `at`, 0 where there is nothing or it is yet to come."""
    return 0.0 if at is None else max(0, now - at) / 1_000
