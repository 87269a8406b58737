"""What the owners count, as Prometheus metrics. `due_lateness_seconds` is the headline."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Iterable
from typing import Final

from prometheus_client import REGISTRY, Counter, Histogram
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from minutebook.domain import events as facts
from minutebook.log.draft import Draft

LATENESS_BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60)


class Lateness(Collector):
    """Histogram filled by whole columns: `due_at` to the frame in which the execution was queued or granted."""

    def __init__(self) -> None:
        self._counts = [0] * (len(LATENESS_BUCKETS_S) + 1)
        self._sum_s = 0.0

    def observe(self, due_at: list[int], now: int) -> None:
        """All rows of one event, ms."""
        for at, rows in Tally(due_at).items():
            late_s = max(now - at, 0) / 1000
            self._sum_s += late_s * rows
            self._counts[bisect_left(LATENESS_BUCKETS_S, late_s)] += rows

    def collect(self) -> Iterable[Metric]:
        """See prometheus_client."""
        total = 0
        buckets: list[tuple[str, float]] = []
        for bound, count in zip((*LATENESS_BUCKETS_S, float("inf")), self._counts, strict=True):
            total += count
            buckets.append(("+Inf" if bound == float("inf") else str(bound), total))
        family = HistogramMetricFamily("minutebook_due_lateness_seconds", "due_at to queued or granted")
        family.add_metric([], buckets, self._sum_s)
        yield family


LATENESS: Final = Lateness()
REGISTRY.register(LATENESS)
FRAME_APPEND: Final = Histogram(
    "minutebook_frame_append_seconds",
    "frame sent to acknowledged",
    buckets=(0.001, 0.002, 0.005, 0.01, 0.05, 0.25, 1, 5),
)
VOID_FRAMES: Final = Counter("minutebook_void_frames_total", "own frames that turned out void")
DUE: Final = Counter("minutebook_executions_due_total", "executions that came due")
GRANTS: Final = Counter("minutebook_grants_total", "grants")
RETURNED: Final = Counter("minutebook_grants_returned_total", "grants given back", ["reason"])
FINISHED: Final = Counter("minutebook_attempts_finished_total", "attempts that ended", ["status"])
DEAD: Final = Counter("minutebook_dead_letters_total", "executions given up", ["reason"])
ALERTS: Final = Counter("minutebook_alerts_raised_total", "alerts", ["kind"])
STALE: Final = Counter("minutebook_stale_reports_total", "results and hand-backs refused", ["kind"])
REFUSED: Final = Counter("minutebook_inputs_refused_total", "inputs refused", ["reason"])
REPUBLISHED: Final = Counter(
    "minutebook_due_records_republished_total", "due records published again, being unclaimed", ["queue"]
)
CLAIMS: Final = Counter("minutebook_claims_total", "claims on open queues", ["queue", "outcome"])


def count(draft: Draft) -> None:
    """Count what a frame, now valid, says."""
    for event in draft.events:
        match event:
            case facts.ExecutionsDueGranted() | facts.ExecutionsQueued():
                LATENESS.observe(event.due_at, draft.now)
                DUE.inc(len(event.executions))
                if isinstance(event, facts.ExecutionsDueGranted):
                    GRANTS.inc(len(event.executions))
            case facts.ExecutionsGranted():
                GRANTS.inc(len(event.executions))
            case facts.AttemptsSucceeded():
                FINISHED.labels("succeeded").inc(len(event.executions))
            case facts.AttemptFailed():
                FINISHED.labels("failed").inc()
            case facts.AttemptsLost():
                FINISHED.labels("lost").inc(len(event.executions))
            case facts.GrantsReturned():
                RETURNED.labels(event.reason).inc(len(event.executions))
            case facts.ExecutionDead():
                DEAD.labels(event.cause).inc()
            case facts.AlertRaised():
                ALERTS.labels(event.kind).inc()
            case facts.ReportRefused():
                STALE.labels(event.kind).inc()
            case facts.RecordRejected():
                REFUSED.labels("rejected").inc()
            case facts.InputRefused():
                REFUSED.labels("internal_error").inc()
            case _:
                continue
