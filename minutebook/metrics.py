"""The table of all metrics: what each process counts, under which name. Plain data; `collectors` makes Prometheus's of it.

The prefix is `minutebook_`, the unit ends the name, `_total` ends counters, no id and no tenant is a label. Label sets that
are known beforehand start at 0, so that a first event shows as an increase.
"""

from __future__ import annotations

from typing import Final, NamedTuple

OWNERS: Final = "owners"
API: Final = "api"
WORKER: Final = "worker"

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"

DEFAULT_QUEUES: Final = ("default",)
COMMANDS: Final = (
    "SubmitJob",
    "EditJob",
    "CancelJob",
    "PauseJob",
    "ResumeJob",
    "RunJobNow",
    "CancelExecution",
    "RedriveExecution",
    "DiscardExecution",
    "PurgeJob",
)
"""Those about jobs and executions; others show once they came."""
OUTCOMES: Final = ("accepted", "repeated", "refused")
SKIPPED: Final = ("paused", "overlap", "misfire", "start_deadline", "deadline", "dst_gap")
ENDED: Final = ("succeeded", "failed", "snoozed", "lost", "cancelled")

_SHORT_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60)
_WRITE_S: Final = (0.001, 0.002, 0.005, 0.01, 0.05, 0.25, 1, 5)
_WAIT_S: Final = (0.01, 0.05, 0.1, 0.5, 1, 5, 30, 60, 300, 1_800, 3_600, 21_600)
_RUN_S: Final = (0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 3_600)
_EVENTS: Final = (1, 2, 5, 10, 25, 50, 100, 250, 1_000)
_MOVE_S: Final = (0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 1_800)


class Metric(NamedTuple):
    """A row. `known`: for each label the values that start at 0, all combinations of them; empty = none is known."""

    name: str
    kind: str
    labels: tuple[str, ...]
    where: tuple[str, ...]
    meaning: str
    buckets: tuple[float, ...] = ()
    known: tuple[tuple[str, ...], ...] = ()


_QUEUE: Final = (DEFAULT_QUEUES,)

TABLE: Final = (
    Metric(
        "minutebook_due_lateness_seconds",
        HISTOGRAM,
        ("queue",),
        (OWNERS,),
        "the headline: from the due instant to the frame, acknowledged, that queued or granted it; retries too",
        _SHORT_S,
        _QUEUE,
    ),
    Metric(
        "minutebook_grant_wait_seconds",
        HISTOGRAM,
        ("queue",),
        (OWNERS,),
        "from its place in the queued set to the grant; 0 for what came due and was granted in one frame",
        _WAIT_S,
        _QUEUE,
    ),
    Metric(
        "minutebook_grant_ack_seconds",
        HISTOGRAM,
        ("queue",),
        (OWNERS,),
        "from a grant at the broker to the report that shows it arrived; one sample a report",
        _SHORT_S,
        _QUEUE,
    ),
    Metric(
        "minutebook_attempt_run_seconds",
        HISTOGRAM,
        ("queue", "task", "status"),
        (OWNERS,),
        "how long attempts ran, as workers report it",
        _RUN_S,
    ),
    Metric(
        "minutebook_command_decision_seconds",
        HISTOGRAM,
        ("command",),
        (OWNERS,),
        "from the broker's stamp of a command to the frame, acknowledged, that answers it",
        _SHORT_S,
        (COMMANDS,),
    ),
    Metric(
        "minutebook_frame_append_seconds",
        HISTOGRAM,
        (),
        (OWNERS,),
        "from a frame sent to a frame acknowledged",
        _WRITE_S,
    ),
    Metric("minutebook_frame_events", HISTOGRAM, (), (OWNERS,), "events in a frame", _EVENTS),
    Metric(
        "minutebook_store_write_seconds",
        HISTOGRAM,
        (),
        (OWNERS,),
        "one batch of a frame's rows written to the owner's store",
        _WRITE_S,
    ),
    Metric(
        "minutebook_rebalance_seconds",
        HISTOGRAM,
        (),
        (OWNERS,),
        "from a partition assigned here to the first cycle of its owner",
        _MOVE_S,
    ),
    Metric(
        "minutebook_commands_total",
        COUNTER,
        ("command", "outcome"),
        (OWNERS,),
        "commands decided",
        known=(COMMANDS, OUTCOMES),
    ),
    Metric("minutebook_jobs_submitted_total", COUNTER, ("queue", "task"), (OWNERS,), "jobs created"),
    Metric(
        "minutebook_executions_due_total",
        COUNTER,
        ("queue",),
        (OWNERS,),
        "executions that came due; retries and waits that are over count again",
        known=_QUEUE,
    ),
    Metric(
        "minutebook_due_records_republished_total",
        COUNTER,
        ("queue",),
        (OWNERS,),
        "due records of open queues published again, being unclaimed",
    ),
    Metric("minutebook_grants_total", COUNTER, ("queue",), (OWNERS,), "grants to workers", known=_QUEUE),
    Metric(
        "minutebook_grants_returned_total",
        COUNTER,
        ("queue", "reason"),
        (OWNERS,),
        "grants that did not start: handed back by the worker, or withdrawn from it",
        known=(DEFAULT_QUEUES, ("handed_back", "withdrawn")),
    ),
    Metric(
        "minutebook_claims_total", COUNTER, ("queue", "outcome"), (OWNERS,), "claims on open queues, decided"
    ),
    Metric(
        "minutebook_attempts_finished_total",
        COUNTER,
        ("queue", "task", "status"),
        (OWNERS,),
        "attempts that ran and ended",
    ),
    Metric(
        "minutebook_executions_skipped_total",
        COUNTER,
        ("reason",),
        (OWNERS,),
        "due instants and waiting executions that will not run",
        known=(SKIPPED,),
    ),
    Metric(
        "minutebook_retries_total",
        COUNTER,
        ("reason",),
        (OWNERS,),
        "further attempts that were decided",
        known=(("failed", "lost", "snoozed", "redriven"),),
    ),
    Metric(
        "minutebook_leases_expired_total",
        COUNTER,
        ("queue",),
        (OWNERS,),
        "attempts lost because their worker's lease ended",
        known=_QUEUE,
    ),
    Metric(
        "minutebook_stale_reports_total",
        COUNTER,
        ("kind",),
        (OWNERS,),
        "results, hand-backs and reports that changed nothing, on record",
        known=(("result", "hand-back", "progress", "retry_after", "report"),),
    ),
    Metric(
        "minutebook_duplicates_suppressed_total",
        COUNTER,
        ("kind",),
        (OWNERS,),
        "commands and mail that came again and changed nothing",
        known=(("command", "mail"),),
    ),
    Metric(
        "minutebook_inputs_refused_total",
        COUNTER,
        ("reason",),
        (OWNERS,),
        "records that could not be taken (rejected), and inputs on which deciding failed (internal_error)",
        known=(("rejected", "internal_error"),),
    ),
    Metric(
        "minutebook_dead_letters_total",
        COUNTER,
        ("reason",),
        (OWNERS,),
        "executions given up",
        known=(("permanent", "attempts", "losses", "deadline"),),
    ),
    Metric(
        "minutebook_void_frames_total",
        COUNTER,
        ("reason",),
        (OWNERS, API),
        "records of the log that count for nobody: an owner's own, and all that the view has read",
        known=(("offset", "head", "clock", "foreign"),),
    ),
    Metric("minutebook_rebalances_total", COUNTER, (), (OWNERS,), "assignments by the group"),
    Metric(
        "minutebook_clock_clamped_total",
        COUNTER,
        (),
        (OWNERS,),
        "cycles in which the clock was behind the last frame, whose time counted instead",
    ),
    Metric(
        "minutebook_alerts_raised_total",
        COUNTER,
        ("kind",),
        (OWNERS,),
        "alerts decided",
        known=(("execution_dead", "attempt_stuck", "task_unknown"),),
    ),
    Metric("minutebook_jobs", GAUGE, ("status",), (API,), "jobs that the view knows"),
    Metric(
        "minutebook_attempts",
        GAUGE,
        ("status",),
        (API,),
        "executions that the view knows, by the status of their latest attempt",
    ),
    Metric(
        "minutebook_queued",
        GAUGE,
        ("queue", "waiting_for"),
        (OWNERS,),
        "executions that are due and do not run, by what they wait for",
    ),
    Metric(
        "minutebook_due_ahead", GAUGE, ("horizon",), (API,), "instants that come due within 1, 5, 60 minutes"
    ),
    Metric("minutebook_worker_slots", GAUGE, ("state",), (WORKER,), "slots of this worker, busy and free"),
    Metric(
        "minutebook_partition_lag_records",
        GAUGE,
        ("topic", "partition"),
        (OWNERS, API),
        "records not taken yet: by the owner of its inputs, by the view of job-events",
    ),
    Metric("minutebook_view_read_ratio", GAUGE, (), (API,), "share of job-events that the view has read"),
    Metric(
        "minutebook_view_read_records_per_second",
        GAUGE,
        (),
        (API,),
        "records that the view reads, by the last while",
    ),
    Metric(
        "minutebook_view_ready_in_seconds",
        GAUGE,
        (),
        (API,),
        "until the view has read all of job-events at this rate; absent where that is unknown",
    ),
    Metric(
        "minutebook_oldest_due_age_seconds",
        GAUGE,
        (),
        (OWNERS,),
        "how long the oldest execution waits that is due and does not run, but on paused queues",
    ),
    Metric(
        "minutebook_oldest_input_age_seconds",
        GAUGE,
        ("partition",),
        (OWNERS,),
        "age of the oldest input that waits for a decision",
    ),
    Metric(
        "minutebook_clock_skew_seconds",
        GAUGE,
        (),
        (OWNERS, API, WORKER),
        "how far the broker's clock is ahead of this process's, as last known",
    ),
    Metric(
        "minutebook_loop_lag_seconds",
        GAUGE,
        (),
        (OWNERS, API, WORKER),
        "how late the event loop came back to a timer, the most of the last 15 s",
    ),
    Metric(
        "minutebook_recovery_remaining_records",
        GAUGE,
        ("partition",),
        (OWNERS,),
        "records of job-events to fold before the partition is served",
    ),
    Metric("minutebook_store_size_bytes", GAUGE, ("partition",), (OWNERS,), "files of an owner's store"),
    Metric(
        "minutebook_partition_owner_info",
        GAUGE,
        ("partition", "owner", "epoch", "state"),
        (OWNERS,),
        "1: this process owns the partition",
    ),
    Metric("minutebook_build_info", GAUGE, ("version",), (OWNERS, API, WORKER), "1: what runs"),
    Metric(
        "minutebook_alerts_total",
        COUNTER,
        ("outcome",),
        (API,),
        "what became of alerts",
        known=(("delivered", "given_up", "nobody", "repeated", "retried", "unreadable"),),
    ),
    Metric("minutebook_alerts_waiting", GAUGE, (), (API,), "alerts on their way to their targets"),
)
BY_NAME: Final = {metric.name: metric for metric in TABLE}


def exported_by(where: str) -> tuple[Metric, ...]:
    """Rows of one process: OWNERS, API or WORKER."""
    return tuple(metric for metric in TABLE if where in metric.where)
