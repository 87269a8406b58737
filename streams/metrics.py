"""What the owners' process counts, by the table of metrics. `due_lateness_seconds` is the headline."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry

from minutebook.collectors import Count, Distribution

REGISTRY: Final = CollectorRegistry()


def _count(name: str) -> Count:
    return Count(f"minutebook_{name}", REGISTRY)


def _distribution(name: str) -> Distribution:
    return Distribution(f"minutebook_{name}", REGISTRY)


LATENESS: Final = _distribution("due_lateness_seconds")
GRANT_WAIT: Final = _distribution("grant_wait_seconds")
GRANT_ACK: Final = _distribution("grant_ack_seconds")
RUN: Final = _distribution("attempt_run_seconds")
DECISION: Final = _distribution("command_decision_seconds")
FRAME_APPEND: Final = _distribution("frame_append_seconds")
FRAME_EVENTS: Final = _distribution("frame_events")
STORE_WRITE: Final = _distribution("store_write_seconds")
REBALANCE: Final = _distribution("rebalance_seconds")

COMMANDS: Final = _count("commands_total")
SUBMITTED: Final = _count("jobs_submitted_total")
DUE: Final = _count("executions_due_total")
REPUBLISHED: Final = _count("due_records_republished_total")
GRANTS: Final = _count("grants_total")
RETURNED: Final = _count("grants_returned_total")
CLAIMS: Final = _count("claims_total")
FINISHED: Final = _count("attempts_finished_total")
SKIPPED: Final = _count("executions_skipped_total")
RETRIES: Final = _count("retries_total")
LEASES_EXPIRED: Final = _count("leases_expired_total")
STALE: Final = _count("stale_reports_total")
DUPLICATES: Final = _count("duplicates_suppressed_total")
REFUSED: Final = _count("inputs_refused_total")
DEAD: Final = _count("dead_letters_total")
VOID_FRAMES: Final = _count("void_frames_total")
REBALANCES: Final = _count("rebalances_total")
CLOCK_CLAMPED: Final = _count("clock_clamped_total")
ALERTS: Final = _count("alerts_raised_total")
