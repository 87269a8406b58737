"""The table of metrics is the promised list, every row is exported by its process, and frames count what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from minutebook.collectors import LABEL_SETS_MAX, OTHER, Count, Distribution
from minutebook.domain import events as facts
from minutebook.domain.records import Failed
from minutebook.domain.timing import Timing
from minutebook.metrics import BY_NAME, COUNTER, GAUGE, HISTOGRAM, OWNERS, TABLE, exported_by
from streams import metrics
from streams.counting import _COUNTED, Counting
from tests.simulation.desk import T0, TASK, Desk, Hand, results

PROMISED = {
    HISTOGRAM: {
        "due_lateness_seconds": "queue",
        "grant_wait_seconds": "queue",
        "grant_ack_seconds": "queue",
        "attempt_run_seconds": "queue task status",
        "command_decision_seconds": "command",
        "frame_append_seconds": "",
        "frame_events": "",
        "store_write_seconds": "",
        "rebalance_seconds": "",
    },
    COUNTER: {
        "commands_total": "command outcome",
        "jobs_submitted_total": "queue task",
        "executions_due_total": "queue",
        "due_records_republished_total": "queue",
        "grants_total": "queue",
        "grants_returned_total": "queue reason",
        "claims_total": "queue outcome",
        "attempts_finished_total": "queue task status",
        "executions_skipped_total": "reason",
        "retries_total": "reason",
        "leases_expired_total": "queue",
        "stale_reports_total": "kind",
        "duplicates_suppressed_total": "kind",
        "inputs_refused_total": "reason",
        "dead_letters_total": "reason",
        "void_frames_total": "reason",
        "rebalances_total": "",
        "clock_clamped_total": "",
        "alerts_raised_total": "kind",
        "alerts_total": "outcome",
    },
    GAUGE: {
        "jobs": "status",
        "attempts": "status",
        "queued": "queue waiting_for",
        "due_ahead": "horizon",
        "worker_slots": "state",
        "partition_lag_records": "topic partition",
        "view_read_ratio": "",
        "view_read_records_per_second": "",
        "view_ready_in_seconds": "",
        "oldest_due_age_seconds": "",
        "oldest_input_age_seconds": "partition",
        "clock_skew_seconds": "",
        "loop_lag_seconds": "",
        "recovery_remaining_records": "partition",
        "store_size_bytes": "partition",
        "partition_owner_info": "partition owner epoch state",
        "build_info": "version",
        "alerts_waiting": "",
    },
}
"""What people may rely on: name without its prefix -> labels."""

FORBIDDEN = {"tenant", "job", "job_id", "execution", "execution_id", "command_id", "worker", "session", "key"}


def test_the_table_is_the_promised_list() -> None:
    found = {
        kind: {
            row.name.removeprefix("minutebook_"): " ".join(row.labels) for row in TABLE if row.kind == kind
        }
        for kind in (HISTOGRAM, COUNTER, GAUGE)
    }
    assert found == PROMISED


def test_names_end_in_their_unit_and_labels_name_no_id_and_no_tenant() -> None:
    for row in TABLE:
        assert row.name.startswith("minutebook_")
        assert row.name.endswith("_total") == (row.kind == COUNTER), row.name
        assert bool(row.buckets) == (row.kind == HISTOGRAM), row.name
        assert not FORBIDDEN & set(row.labels), row.name
        assert len(row.known) in (0, len(row.labels)), row.name


def test_lateness_has_the_promised_buckets() -> None:
    bounds = BY_NAME["minutebook_due_lateness_seconds"].buckets
    assert (bounds[bounds.index(0.05)], bounds[-1]) == (0.05, 60)


def test_known_label_sets_start_at_zero() -> None:
    registry = CollectorRegistry()
    Count("minutebook_commands_total", registry)
    Distribution("minutebook_due_lateness_seconds", registry)
    assert (
        registry.get_sample_value("minutebook_commands_total", {"command": "SubmitJob", "outcome": "refused"})
        == 0
    )
    assert registry.get_sample_value("minutebook_due_lateness_seconds_count", {"queue": "default"}) == 0
    assert (
        registry.get_sample_value(
            "minutebook_due_lateness_seconds_bucket", {"queue": "default", "le": "+Inf"}
        )
        == 0
    )


def test_names_that_people_choose_cannot_fill_the_memory() -> None:
    submitted = Count("minutebook_jobs_submitted_total", CollectorRegistry())
    run = Distribution("minutebook_attempt_run_seconds", CollectorRegistry())
    for number in range(LABEL_SETS_MAX + 5):
        submitted.add(("default", f"task-{number}"))
        run.observe(0.1, ("default", f"task-{number}", "succeeded"))
    submitted.add(("default", "task-0"))
    assert submitted.value("default", "task-0") == 2
    assert submitted.value(OTHER, OTHER) == 5
    assert run.total(OTHER, OTHER, OTHER) == 5


def test_a_histogram_adds_up() -> None:
    registry = CollectorRegistry()
    lateness = Distribution("minutebook_due_lateness_seconds", registry)
    lateness.observe_ms({0: 2, 5: 1, 70_000: 3, -4: 1}, ("q",))

    def at_most(bound: str) -> float | None:
        return registry.get_sample_value(
            "minutebook_due_lateness_seconds_bucket", {"queue": "q", "le": bound}
        )

    assert [at_most("0.005"), at_most("60"), at_most("+Inf")] == [4, 4, 7]
    assert registry.get_sample_value("minutebook_due_lateness_seconds_sum", {"queue": "q"}) == pytest.approx(
        210.005
    )


def families(registry: CollectorRegistry) -> Iterator[Metric]:
    yield from registry.collect()


def test_every_counter_and_histogram_of_the_owners_is_exported() -> None:
    found = {family.name for family in families(metrics.REGISTRY)}
    expected = {row.name.removesuffix("_total") for row in exported_by(OWNERS) if row.kind != GAUGE}
    assert expected <= found


# -- what frames count


class Counter:
    """A desk whose frames are counted, and how much a metric grew since it was made."""

    def __init__(self) -> None:
        self.desk = Desk()
        self.counting = Counting(self.desk.book)

    def cycle(self, after_ms: int = 0) -> None:
        self.desk.cycle(after_ms)
        self.counting.acknowledged(self.desk.sessions.acknowledged)
        self.counting.frame(self.desk.last.placed, self.desk.last.now, self.desk.core.decided)
        self.counting.outputs(self.desk.granted, self.desk.last.now)

    def grew(self, act: Callable[[], object], **asked: tuple[object, tuple[str, ...]]) -> dict[str, float]:
        before = {name: value(*which) for name, which in asked.items()}
        act()
        return {name: value(*which) - before[name] for name, which in asked.items()}


def value(metric: object, labels: tuple[str, ...]) -> float:
    if isinstance(metric, Distribution):
        return metric.total(*labels)
    assert isinstance(metric, Count)
    return metric.value(*labels)


@pytest.fixture
def counted() -> Counter:
    return Counter()


DEFAULT = ("default",)


def test_a_run_is_counted_from_command_to_end(counted: Counter) -> None:
    desk = counted.desk
    hand = Hand(desk)
    hand.pulse(5, held=[])

    def act() -> None:
        desk.submit("a", "b", after_ms=1_000)
        counted.cycle()
        hand.pulse(5)
        counted.cycle()
        counted.cycle(1_020)
        hand.pulse(5, succeeded=results(hand.take()))
        counted.cycle(5)

    grown = counted.grew(
        act,
        submitted=(metrics.SUBMITTED, ("default", TASK)),
        commands=(metrics.COMMANDS, ("SubmitJob", "accepted")),
        decided=(metrics.DECISION, ("SubmitJob",)),
        due=(metrics.DUE, DEFAULT),
        late=(metrics.LATENESS, DEFAULT),
        granted=(metrics.GRANTS, DEFAULT),
        waited=(metrics.GRANT_WAIT, DEFAULT),
        finished=(metrics.FINISHED, ("default", TASK, "succeeded")),
        ran=(metrics.RUN, ("default", TASK, "succeeded")),
    )
    assert grown == dict.fromkeys(grown, 2)
    assert counted.counting._running == {}


def test_lateness_is_from_the_due_instant_to_the_frame(counted: Counter) -> None:
    desk = counted.desk

    def within(bound: str) -> float:
        labels = {"queue": "default", "le": bound}
        found = metrics.REGISTRY.get_sample_value("minutebook_due_lateness_seconds_bucket", labels)
        assert found is not None
        return found

    before = within("0.05"), within("0.1")
    desk.submit("a", after_ms=1_000)
    counted.cycle()
    counted.cycle(1_080)
    assert (within("0.05") - before[0], within("0.1") - before[1]) == (0, 1)


def test_what_was_queued_counts_its_wait_and_its_task_when_granted(counted: Counter) -> None:
    desk = counted.desk
    desk.declare("mail", is_open=False)
    desk.submit("a", after_ms=1_000, queue="mail")
    counted.cycle()
    counted.cycle(1_000)
    hand = Hand(desk)
    desk.now += 30_000
    hand.pulse(1, held=[], queues=("mail",))

    def act() -> None:
        counted.cycle()
        taken = hand.take()
        hand.pulse(0, failed=[Failed("acme", *taken[0], "E", "m", False, None, 5, 7)])
        counted.cycle(10)

    grown = counted.grew(
        act,
        granted=(metrics.GRANTS, ("mail",)),
        waited=(metrics.GRANT_WAIT, ("mail",)),
        failed=(metrics.FINISHED, ("mail", TASK, "failed")),
        retried=(metrics.RETRIES, ("failed",)),
    )
    assert grown == dict.fromkeys(grown, 1)


def test_a_new_owner_knows_the_task_of_what_runs(counted: Counter) -> None:
    desk = counted.desk
    hand = Hand(desk)
    hand.pulse(1, held=[])
    desk.submit("a")
    counted.cycle()
    counted.cycle()
    taken = hand.take()
    assert taken
    again = Counting(desk.book)
    assert list(again._running.items()) == [(taken[0][1], ("default", TASK))]


def test_returned_lost_and_skipped_name_their_reasons(counted: Counter) -> None:
    desk = counted.desk
    hand = Hand(desk)
    hand.pulse(2, held=[])
    desk.submit("a", "b")
    counted.cycle()
    counted.cycle()
    (first, second) = hand.take()

    def act() -> None:
        hand.pulse(0, handed_back=[first])
        counted.cycle(10)
        desk.now += 11_000
        desk.tick()
        counted.cycle()
        counted.cycle()

    grown = counted.grew(
        act,
        returned=(metrics.RETURNED, ("default", "handed_back")),
        lost=(metrics.FINISHED, ("default", TASK, "lost")),
        expired=(metrics.LEASES_EXPIRED, DEFAULT),
        retried=(metrics.RETRIES, ("lost",)),
    )
    assert grown == dict.fromkeys(grown, 1)
    assert second[1] not in counted.counting._running


def test_refused_and_repeated_commands_are_told_apart(counted: Counter) -> None:
    desk = counted.desk
    desk.submit("a", after_ms=1_000)
    counted.cycle()

    def act() -> None:
        desk.submit("a", after_ms=1_000)
        desk.submit("b", queue="nowhere")
        desk.inputs["job-commands"].add(b"no record", desk.now)
        counted.cycle()

    grown = counted.grew(
        act,
        repeated=(metrics.COMMANDS, ("SubmitJob", "repeated")),
        duplicate=(metrics.DUPLICATES, ("command",)),
        refused=(metrics.COMMANDS, ("SubmitJob", "refused")),
        rejected=(metrics.REFUSED, ("rejected",)),
    )
    assert grown == dict.fromkeys(grown, 1)


def test_skipped_instants_count_each(counted: Counter) -> None:
    desk = counted.desk
    desk.submit("a", every_ms=60_000, timing=Timing(misfire="none"))
    counted.cycle()
    grown = counted.grew(lambda: counted.cycle(10 * 60_000), skipped=(metrics.SKIPPED, ("misfire",)))
    said = [event.count for event in desk.last.events if isinstance(event, facts.ExecutionsSkipped)]
    assert sum(said) > 1
    assert grown["skipped"] == sum(said)


def test_a_void_frame_counts_nothing(counted: Counter) -> None:
    desk = counted.desk
    desk.submit("a")
    grown = counted.grew(
        desk.void,
        submitted=(metrics.SUBMITTED, ("default", TASK)),
        commands=(metrics.COMMANDS, ("SubmitJob", "accepted")),
    )
    assert grown == {"submitted": 0, "commands": 0}
    desk.cycle()
    assert sum(desk.core.decided.values()) == 1


def test_a_grant_is_acknowledged_by_the_report_that_shows_it(counted: Counter) -> None:
    desk = counted.desk
    hand = Hand(desk)
    hand.pulse(1, held=[])
    desk.submit("a")
    counted.cycle()
    counted.cycle()
    taken = hand.take()
    session = desk.sessions.get(hand.name)
    assert session is not None
    session.sent_at[taken[0][1] >> 16] = desk.now

    def act() -> None:
        desk.now += 40
        hand.pulse(0, held=[token for _, token in taken])
        counted.cycle()
        hand.pulse(0, succeeded=results(taken))
        counted.cycle(500)

    assert counted.grew(act, acks=(metrics.GRANT_ACK, DEFAULT)) == {"acks": 1}


def test_what_waits_says_for_what(counted: Counter) -> None:
    desk = counted.desk
    desk.submit("a", "b", after_ms=1_000)
    desk.cycle()
    desk.cycle(1_000)
    granting = desk.core.granting
    assert dict(granting.waiting()) == {("default", "worker"): 2, ("default", "permit"): 0}
    assert granting.oldest_at() == T0 + 1_000


def test_every_event_that_is_counted_is_an_event() -> None:
    assert set(_COUNTED) <= set(facts.Event.__args__)  # type: ignore[attr-defined]  # a union has them
