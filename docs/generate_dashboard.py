"""`python -m docs.generate_dashboard` writes `docs/operate/dashboard.json`, Grafana's overview, from the table below."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

FILE: Final = Path(__file__).parent / "operate" / "dashboard.json"
_SOURCE: Final = {"type": "prometheus", "uid": "prometheus"}
_COLUMNS: Final = 3
_WIDTH: Final = 24 // _COLUMNS
_HEIGHT: Final = 8


class Panel(NamedTuple):
    """A chart: what it shows, in which unit of Grafana's, and (expression, legend) of each line."""

    title: str
    meaning: str
    unit: str
    lines: tuple[tuple[str, str], ...]


def _quantile(share: float, metric: str, by: str = "") -> str:
    labels = f"{by}, le" if by else "le"
    return (
        f"histogram_quantile({share}, sum by ({labels}) (rate(minutebook_{metric}_bucket[$__rate_interval])))"
    )


def _rate(metric: str, by: str) -> str:
    return f"sum by ({by}) (rate(minutebook_{metric}[$__rate_interval]))"


PANELS: Final = (
    Panel(
        "Lateness",
        "From the due instant to queued or granted, on record. The headline.",
        "s",
        (
            (_quantile(0.5, "due_lateness_seconds"), "p50"),
            (_quantile(0.99, "due_lateness_seconds"), "p99"),
        ),
    ),
    Panel(
        "Came due, granted, ended",
        "Executions a second.",
        "ops",
        (
            ("sum(rate(minutebook_executions_due_total[$__rate_interval]))", "due"),
            ("sum(rate(minutebook_grants_total[$__rate_interval]))", "granted"),
            (_rate("attempts_finished_total", "status"), "{{status}}"),
        ),
    ),
    Panel(
        "Due and not running",
        "By queue and what it waits for.",
        "short",
        (("sum by (queue, waiting_for) (minutebook_queued) > 0", "{{queue}}: {{waiting_for}}"),),
    ),
    Panel(
        "Oldest due",
        "How long the oldest execution waits, but on paused queues.",
        "s",
        (("max(minutebook_oldest_due_age_seconds)", "age"),),
    ),
    Panel(
        "Wait for a grant",
        "From the queued set to a worker, p99 by queue.",
        "s",
        ((_quantile(0.99, "grant_wait_seconds", "queue"), "{{queue}}"),),
    ),
    Panel(
        "Grant to acknowledged",
        "p99 by queue: what the way to workers and back takes.",
        "s",
        ((_quantile(0.99, "grant_ack_seconds", "queue"), "{{queue}}"),),
    ),
    Panel(
        "Run time",
        "p99 by task, of attempts that succeeded.",
        "s",
        (
            (
                'histogram_quantile(0.99, sum by (task, le) (rate(minutebook_attempt_run_seconds_bucket{status="succeeded"}'
                "[$__rate_interval])))",
                "{{task}}",
            ),
        ),
    ),
    Panel(
        "Slots of workers",
        "Of workers that export metrics.",
        "short",
        (("sum by (state) (minutebook_worker_slots)", "{{state}}"),),
    ),
    Panel(
        "Losses and returns",
        "Leases that ended, grants that came back without a start.",
        "ops",
        (
            (_rate("leases_expired_total", "queue"), "lease over: {{queue}}"),
            (_rate("grants_returned_total", "reason"), "{{reason}}"),
        ),
    ),
    Panel(
        "Retries, skipped, given up",
        "A second, by reason.",
        "ops",
        (
            (_rate("retries_total", "reason"), "retry: {{reason}}"),
            (_rate("executions_skipped_total", "reason"), "skipped: {{reason}}"),
            (_rate("dead_letters_total", "reason"), "dead: {{reason}}"),
        ),
    ),
    Panel(
        "Commands",
        "Decided a second, and the time to the decision.",
        "short",
        (
            (_rate("commands_total", "outcome"), "{{outcome}}"),
            (_quantile(0.99, "command_decision_seconds"), "p99, s"),
        ),
    ),
    Panel(
        "Jobs and executions",
        "By status, as the view has them.",
        "short",
        (
            ("max by (status) (minutebook_jobs)", "jobs: {{status}}"),
            ("max by (status) (minutebook_attempts)", "executions: {{status}}"),
        ),
    ),
    Panel(
        "Coming due",
        "Instants within the next minutes.",
        "short",
        (("max by (horizon) (minutebook_due_ahead)", "{{horizon}}"),),
    ),
    Panel(
        "Partitions by state",
        "How many owners are in which state.",
        "short",
        (("count by (state) (minutebook_partition_owner_info)", "{{state}}"),),
    ),
    Panel(
        "Lag",
        "Records not taken yet, the worst partition of each topic; records left of a take-over.",
        "short",
        (
            ("max by (topic) (minutebook_partition_lag_records)", "{{topic}}"),
            ("sum(minutebook_recovery_remaining_records)", "take-over"),
        ),
    ),
    Panel(
        "Oldest input",
        "Age of the oldest input that waits for a decision, by partition.",
        "s",
        (("max by (partition) (minutebook_oldest_input_age_seconds)", "{{partition}}"),),
    ),
    Panel(
        "Log and store",
        "p99 of an append, and of the write that follows.",
        "s",
        (
            (_quantile(0.99, "frame_append_seconds"), "append"),
            (_quantile(0.99, "store_write_seconds"), "store"),
        ),
    ),
    Panel(
        "Clocks and loops",
        "How far each process is off the broker's clock, and how late its event loop is.",
        "s",
        (
            ("minutebook_clock_skew_seconds", "clock: {{instance}}"),
            ("minutebook_loop_lag_seconds", "loop: {{instance}}"),
        ),
    ),
    Panel(
        "Void frames, moves",
        "Records that count for nobody, and assignments by the group, in 10 minutes.",
        "short",
        (
            ("max by (reason) (increase(minutebook_void_frames_total[10m]))", "void: {{reason}}"),
            ("sum(increase(minutebook_rebalances_total[10m]))", "assignments"),
        ),
    ),
    Panel(
        "Stores",
        "Bytes of the owners' stores.",
        "bytes",
        (("sum by (instance) (minutebook_store_size_bytes)", "{{instance}}"),),
    ),
    Panel(
        "Refused and repeated",
        "Inputs refused, reports that came too late, what came twice; a second.",
        "ops",
        (
            (_rate("inputs_refused_total", "reason"), "input: {{reason}}"),
            (_rate("stale_reports_total", "kind"), "stale: {{kind}}"),
            (_rate("duplicates_suppressed_total", "kind"), "twice: {{kind}}"),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana takes it."""
    return {
        "uid": "minutebook",
        "title": "minutebook",
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "tags": ["minutebook"],
        "panels": [_panel(number, panel) for number, panel in enumerate(PANELS)],
    }


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number, _COLUMNS)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.meaning,
        "datasource": _SOURCE,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "options": {"tooltip": {"mode": "multi"}},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": _SOURCE,
                "expr": expression,
                "legendFormat": legend,
            }
            for place, (expression, legend) in enumerate(panel.lines)
        ],
    }


def text() -> str:
    """The file as it must be."""
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
