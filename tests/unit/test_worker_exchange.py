"""Sessions, marks, leases and reports with the time as an argument: no thread, no loop, no broker."""

from __future__ import annotations

import math

import msgspec
import pytest

from minutebook.domain.records import Inbox, Report
from minutebook.wire import codec
from minutebook.worker.exchange import Exchange, Profile, is_whole
from minutebook.worker.lease import BrokerTime, Lease
from minutebook.worker.outcomes import Failure, Result, Verdict
from minutebook.worker.progress import Noted
from minutebook.worker.run import Ended, Orders, Run, StopReason
from tests.unit.worker_owner import Queued, columns

LEASE_S = 10.0
PULSE_S = 3.0
STAMP = 1_700_000_000_000


class Desk:
    """An exchange and what was acknowledged; reports are acknowledged when `settle` is called."""

    def __init__(self, partitions: int = 2, slots: int = 10) -> None:
        profile = Profile("w", "name", "1", frozenset({"t"}), ("default",), slots, 10_000, 3_000)
        self.exchange = Exchange(profile, partitions)
        self.on_way: list[tuple[int, Report, float]] = []

    def speak(self, now: float) -> dict[int, Report]:
        """Reports that go at `now`, by partition."""
        found = self.exchange.reports(now)
        self.on_way += [(partition, report, now) for partition, report in found]
        return dict(found)

    def settle(self, now: float) -> None:
        """Acknowledge what is on its way."""
        for partition, report, sent_at in self.on_way:
            self.exchange.acknowledged(partition, report, STAMP + int(sent_at * 1_000), sent_at, now)
        self.on_way = []

    def round(self, now: float) -> dict[int, Report]:
        """Speak and settle."""
        found = self.speak(now)
        self.settle(now)
        return found

    def grant(
        self, count: int, now: float, *, partition: int = 0, frame: int = 1, **fields: object
    ) -> Orders:
        """A record with `count` grants, tokens from frame x 65,536."""
        granted = columns([Queued(f"j:{frame}-{row}", "t", b"1", 1_000) for row in range(count)], 0)
        start_by = STAMP + int(now * 1_000) + 1_500
        record = {
            "session": "w.0",
            "partition": partition,
            "frame": frame,
            "start_by": start_by,
            "queued": [],
        }
        return self.exchange.take([Inbox(**(record | {"granted": granted} | fields))], now)

    def end(self, runs: list[Run], outcome: Verdict | Failure | Result = Verdict.SUCCEEDED) -> None:
        """These runs end."""
        self.exchange.ended([Ended(run, outcome) for run in runs])


def token(frame: int, row: int) -> int:
    return (frame << 16) + row


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.round(0.0)
    return made


def test_first_reports_are_full_pulses_to_all_partitions() -> None:
    reports = Desk(partitions=3).speak(0.0)
    assert sorted(reports) == [0, 1, 2]
    first = reports[0]
    assert (first.session, first.sequence) == ("w.0", 1)
    assert first.pulse is not None
    assert (first.pulse.offer, first.pulse.last_token) == (10, -1)
    assert first.full is not None
    assert (first.full.worker, first.full.tasks, first.full.lease_ms, first.full.pulse_ms) == (
        "name",
        ["t"],
        10_000,
        3_000,
    )
    assert first.full.held == []


def test_full_pulse_follows_after_its_interval(desk: Desk) -> None:
    assert desk.speak(2.9) == {}
    assert desk.exchange.next_at() == PULSE_S
    assert desk.speak(PULSE_S)[0].sequence == 2


def test_result_goes_at_once_with_a_short_pulse(desk: Desk) -> None:
    orders = desk.grant(3, 1.0)
    desk.end(orders.starts)
    report = desk.speak(1.0)[0]
    assert report.full is None
    assert report.succeeded is not None
    assert report.succeeded.tokens == [token(1, 0), token(1, 1), token(1, 2)]
    assert (report.succeeded.tenants, report.succeeded.tenant) == (["acme"], [0, 0, 0])
    assert report.pulse is not None
    assert report.pulse.last_token == token(1, 2)


def test_results_gather_while_a_report_is_on_its_way(desk: Desk) -> None:
    first, second, third = desk.grant(3, 1.0).starts
    desk.end([first])
    desk.speak(1.0)
    desk.end([second])
    desk.end([third])
    assert desk.speak(1.001) == {}
    desk.settle(1.002)
    succeeded = desk.speak(1.03)[0].succeeded
    assert succeeded is not None
    assert succeeded.tokens == [second.token, third.token]


def test_results_gather_for_longer_while_the_owner_has_an_offer(desk: Desk) -> None:
    first, second = desk.grant(2, 1.0).starts
    desk.end([first])
    desk.round(1.0)
    desk.end([second])
    assert desk.speak(1.024) == {}
    assert desk.exchange.next_at() == pytest.approx(1.025)
    assert desk.speak(1.026)[0].succeeded is not None


def test_results_go_soon_when_the_owner_has_no_offer_left(desk: Desk) -> None:
    runs = desk.grant(9, 1.0).starts
    desk.end(runs[:1])
    desk.round(1.0)
    desk.grant(2, 1.001, frame=2)
    desk.end(runs[1:])
    assert desk.speak(1.004) == {}
    assert desk.exchange.next_at() == pytest.approx(1.005)
    assert desk.speak(1.006)[0].succeeded is not None


def test_failures_and_hand_backs_do_not_gather_for_long(desk: Desk) -> None:
    first, second = desk.grant(2, 1.0).starts
    desk.end([first])
    desk.round(1.0)
    desk.end([second], Failure("E", "m"))
    assert desk.exchange.next_at() == pytest.approx(1.005)


def test_partitions_do_not_wait_for_one_another(desk: Desk) -> None:
    mine, other = desk.grant(1, 1.0).starts, desk.grant(1, 1.0, partition=1).starts
    desk.end(mine)
    desk.speak(1.0)
    desk.end(other)
    assert list(desk.speak(1.001)) == [1]


def test_token_stays_held_until_its_result_is_acknowledged(desk: Desk) -> None:
    run = desk.grant(1, 1.0).starts
    assert _held(desk.round(PULSE_S)[0]) == [token(1, 0)]
    desk.end(run)
    assert _held(desk.round(2 * PULSE_S)[0]) == [token(1, 0)]
    assert _held(desk.round(3 * PULSE_S)[0]) == []


def test_handed_back_token_stays_held_until_acknowledged() -> None:
    desk = Desk(slots=1)
    desk.round(0.0)
    desk.grant(2, 3.0)
    report = desk.speak(3.0)[0]
    assert report.handed_back is not None
    assert report.handed_back.tokens == [token(1, 1)]
    assert sorted(_held(report)) == [token(1, 0), token(1, 1)]


def test_nothing_at_or_below_the_mark_is_started(desk: Desk) -> None:
    assert len(desk.grant(2, 1.0, frame=5).starts) == 2
    assert desk.grant(2, 1.0, frame=5) == Orders([], [])
    assert desk.grant(2, 1.0, frame=4) == Orders([], [])
    assert len(desk.grant(1, 1.0, frame=6).starts) == 1


def test_marks_of_partitions_are_apart(desk: Desk) -> None:
    desk.grant(1, 1.0, frame=9)
    assert len(desk.grant(1, 1.0, frame=1, partition=1).starts) == 1


def test_record_is_read_whole_before_the_mark_moves(desk: Desk) -> None:
    granted = columns([Queued(f"j:{row}", "t", b"1", 1_000) for row in range(3)], 0)
    granted.rows[:] = [2, 0, 1]
    orders = desk.grant(0, 1.0, granted=granted)
    assert [run.token for run in orders.starts] == [token(1, 2), token(1, 0), token(1, 1)]


def test_records_of_other_sessions_and_partitions_are_passed_over(desk: Desk) -> None:
    assert desk.grant(1, 1.0, session="w.1") == Orders([], [])
    assert desk.grant(1, 1.0, partition=7) == Orders([], [])


def test_grant_after_start_by_is_handed_back(desk: Desk) -> None:
    assert desk.grant(1, 1.0, start_by=STAMP + 999).starts == []
    report = desk.speak(1.0)[0]
    assert report.handed_back is not None
    assert report.handed_back.executions == ["j:1-0"]


def test_run_carries_its_start_by_on_the_worker_clock(desk: Desk) -> None:
    assert desk.grant(1, 1.0).starts[0].start_by == pytest.approx(2.5)


def test_long_run_is_shown_within_50_ms(desk: Desk) -> None:
    desk.grant(1, 1.0)
    assert desk.speak(1.04) == {}
    assert desk.exchange.next_at() == pytest.approx(1.05)
    assert _held(desk.speak(1.051)[0]) == [token(1, 0)]


def test_short_run_needs_no_full_pulse(desk: Desk) -> None:
    desk.end(desk.grant(1, 1.0).starts)
    desk.round(1.0)
    assert desk.speak(1.1) == {}


def test_report_that_waits_shows_the_long_run_after_its_ack(desk: Desk) -> None:
    short, _long = desk.grant(2, 1.0).starts
    desk.end([short])
    desk.speak(1.0)
    assert desk.speak(1.06) == {}
    desk.settle(1.07)
    assert _held(desk.speak(1.07)[0]) == [token(1, 1)]


def test_failures_carry_what_the_owner_needs(desk: Desk) -> None:
    runs = desk.grant(1, 1.0).starts
    desk.exchange.ended([Ended(runs[0], Failure("E", "m", is_permanent=True, retry_after_ms=5), 7, 9)])
    failed = desk.speak(1.0)[0].failed[0]
    assert (failed.tenant, failed.execution, failed.token) == ("acme", "j:1-0", token(1, 0))
    assert (failed.error_type, failed.message, failed.is_permanent, failed.retry_after_ms) == (
        "E",
        "m",
        True,
        5,
    )
    assert (failed.start_delay_ms, failed.run_ms) == (7, 9)


def test_report_is_bounded_and_the_rest_follows() -> None:
    desk = Desk(slots=200)
    desk.round(0.0)
    desk.end(desk.grant(100, 1.0).starts, Failure("E", "m"))
    assert len(desk.round(1.0)[0].failed) == 64
    assert len(desk.round(1.1)[0].failed) == 36


def noted(run: Run, row: int = 1, size: int = 0) -> Noted:
    return Noted(run, 0.5, "half", b'"' + b"x" * size + b'%d"' % row)


def test_progress_of_a_partition_goes_out_once_a_second(desk: Desk) -> None:
    (run,) = desk.grant(1, 1.0).starts
    desk.exchange.progressed([noted(run, 1)])
    assert [row.details for row in desk.round(1.0)[0].progress] == [b'"1"']
    desk.exchange.progressed([noted(run, 2)])
    desk.exchange.progressed([noted(run, 3)])
    assert [report.progress for report in desk.round(1.9).values()] in ([], [[]])
    assert [row.details for row in desk.round(2.0)[0].progress] == [b'"3"'], "the latest"


def test_last_progress_goes_with_the_failure_and_not_with_a_success(desk: Desk) -> None:
    runs = desk.grant(2, 1.0).starts
    desk.exchange.progressed([noted(runs[0], 1)])
    desk.round(1.0)
    desk.exchange.progressed([noted(run, 2) for run in runs])
    desk.end(runs[:1], Failure("E", "m"))
    desk.end(runs[1:])
    report = desk.round(1.1)[0]
    assert [row.token for row in report.progress] == [runs[0].token] == [row.token for row in report.failed]
    assert report.succeeded is not None


def test_progress_of_what_has_ended_or_is_of_another_session_is_dropped(desk: Desk) -> None:
    (run,) = desk.grant(1, 1.0).starts
    desk.end([run])
    desk.exchange.progressed([noted(run)])
    desk.exchange.progressed([noted(msgspec.structs.replace(run, session=7))])
    assert desk.round(1.0)[0].progress == []


def test_large_results_are_spread_over_reports() -> None:
    desk = Desk(slots=200)
    desk.round(0.0)
    desk.end(desk.grant(40, 1.0).starts, Result(b"1" * 65_536))
    sent, at = 0, 1.0
    while sent < 40:
        report = desk.round(at)[0]
        assert len(codec.encode(report)) < 1 << 20
        assert report.succeeded is not None, "nothing is left behind"
        sent += len(report.succeeded.tokens)
        at += 0.1


def test_the_largest_report_fits_the_brokers_limit() -> None:
    desk = Desk(slots=5_000)
    desk.round(0.0)
    runs = desk.grant(4_000, 1.0).starts
    desk.exchange.progressed([noted(run, 1, 16_000) for run in runs[:300]])
    desk.end(runs[100:200], Failure("E" * 256, "\u20ac" * 2_700))
    desk.end(runs[1_000:])
    seen, at = 0, 1.0
    while seen < 300:
        report = desk.round(at)[0]
        assert len(codec.encode(report)) < 1 << 20
        assert len(report.failed) <= 100
        assert len(report.progress) <= 100
        seen += len(report.progress)
        at += 1.0


def test_cancelled_token_is_stopped_and_its_result_counts(desk: Desk) -> None:
    runs = desk.grant(2, 1.0).starts
    orders = desk.grant(0, 1.1, granted=None, cancelled=[runs[0].token, 12_345])
    assert [(stop.key, stop.reason) for stop in orders.stops] == [((0, runs[0].token), StopReason.CANCELLED)]
    desk.end(runs[:1], Failure("Cancelled", "stopped on request"))
    assert desk.speak(1.2)[0].failed[0].token == runs[0].token


def test_ended_session_drops_its_tokens_and_raises_its_number(desk: Desk) -> None:
    first, second = desk.grant(2, 1.0).starts
    desk.end([first])
    orders = desk.grant(0, 1.1, granted=None, is_session_over=True)
    assert [(stop.key, stop.reason) for stop in orders.stops] == [((0, second.token), StopReason.LOST)]
    desk.end([second])
    report = desk.speak(1.2)[0]
    assert (report.session, report.sequence) == ("w.1", 1)
    assert (report.succeeded, _held(report)) == (None, [])
    assert report.pulse is not None
    assert (report.pulse.last_token, report.pulse.offer) == (second.token, 10)


def test_ended_session_leaves_the_other_partitions_alone(desk: Desk) -> None:
    other = desk.grant(1, 1.0, partition=1).starts
    desk.grant(0, 1.1, granted=None, is_session_over=True)
    desk.end(other)
    report = desk.speak(1.2)[1]
    assert report.session == "w.0"
    assert report.succeeded is not None


def test_session_over_said_twice_raises_the_number_once(desk: Desk) -> None:
    desk.grant(0, 1.1, granted=None, is_session_over=True)
    desk.grant(0, 1.1, granted=None, is_session_over=True)
    assert desk.speak(1.2)[0].session == "w.1"


def test_late_ack_of_the_old_session_renews_nothing(desk: Desk) -> None:
    desk.end(desk.grant(1, 1.0).starts)
    desk.speak(1.0)
    desk.grant(0, 1.1, granted=None, is_session_over=True)
    desk.settle(1.2)
    assert desk.grant(1, 1.3, frame=2, session="w.1").starts == []


def test_lease_counts_from_the_sending_of_the_last_acknowledged_pulse(desk: Desk) -> None:
    runs = desk.grant(2, 0.5).starts
    desk.round(3.0)
    desk.speak(6.0)
    ends_at = 3.0 + LEASE_S * 0.9
    assert desk.exchange.tick(ends_at - 0.01) == Orders([], [])
    assert desk.exchange.next_at() == pytest.approx(ends_at)
    stops = desk.exchange.tick(ends_at).stops
    assert [(stop.key, stop.reason) for stop in stops] == [(run.key, StopReason.LOST) for run in runs]
    assert desk.exchange.tick(ends_at + 1) == Orders([], [])


def test_lease_of_one_partition_stops_nothing_of_another(desk: Desk) -> None:
    desk.grant(1, 0.5)
    other = desk.grant(1, 0.5, partition=1).starts
    desk.speak(3.0)
    ours = [entry for entry in desk.on_way if entry[0] == 1]
    desk.on_way = ours
    desk.settle(3.1)
    stops = desk.exchange.tick(9.5).stops
    assert [stop.key for stop in stops] == [(0, token(1, 0))]
    desk.end(other)
    assert desk.speak(9.6)[1].succeeded is not None


def test_nothing_starts_without_a_lease_until_a_pulse_is_acknowledged(desk: Desk) -> None:
    assert desk.grant(1, 9.5).starts == []
    desk.round(9.6)
    assert len(desk.grant(1, 9.7, frame=2).starts) == 1


def test_result_after_the_lease_counts_for_nobody(desk: Desk) -> None:
    runs = desk.grant(1, 0.5).starts
    desk.speak(3.0)
    desk.exchange.tick(9.5)
    desk.end(runs)
    desk.settle(9.6)
    report = desk.speak(9.7)[0]
    assert (report.succeeded, _held(report)) == (None, [])


def test_stopped_runs_keep_their_slots_until_they_end() -> None:
    desk = Desk(slots=2)
    desk.round(0.0)
    runs = desk.grant(2, 0.5).starts
    desk.grant(0, 1.1, granted=None, is_session_over=True)
    report = desk.round(1.2)[0]
    assert report.pulse is not None
    assert report.pulse.offer == 0
    desk.end(runs)
    pulse = desk.speak(5.0)[0].pulse
    assert pulse is not None
    assert pulse.offer == 2


def test_leaving_is_said_to_all_at_once_and_starts_nothing(desk: Desk) -> None:
    running = desk.grant(1, 1.0).starts
    desk.exchange.leave()
    reports = desk.round(1.1)
    assert sorted(reports) == [0, 1]
    assert {(r.pulse.is_leaving, r.pulse.offer) for r in reports.values() if r.pulse} == {(True, 0)}
    assert desk.grant(2, 1.2, frame=2).starts == []
    assert not desk.exchange.is_quiet
    desk.end(running)
    desk.round(1.3)
    assert desk.exchange.is_quiet
    assert (desk.exchange.drained, desk.exchange.handed_back) == (1, 2)


def test_slot_of_a_late_thread_is_free_only_when_it_ends() -> None:
    desk = Desk(slots=1)
    desk.round(0.0)
    run = desk.grant(1, 1.0).starts[0]
    desk.exchange.ended([Ended(run, Failure("Timeout", ""), frees_slot=False)])
    report = desk.round(1.1)[0]
    assert report.pulse is not None
    assert (len(report.failed), report.pulse.offer) == (1, 0)
    desk.exchange.ended([Ended(run, Verdict.SUCCEEDED)])
    report = desk.round(4.2)[0]
    assert report.pulse is not None
    assert (report.succeeded, report.pulse.offer) == (None, 1)


def test_broken_columns_are_seen() -> None:
    granted = columns([Queued("j:1", "t", b"1", 1_000)], 0)
    assert is_whole(Inbox("w.0", 0, 1, 0, [], granted))
    granted.payloads.append(b"2")
    assert not is_whole(Inbox("w.0", 0, 1, 0, [], granted))
    assert is_whole(Inbox("w.0", 0, 1, 0, []))


@pytest.mark.parametrize("column", ["max_attempts", "deadlines_at", "details"])
def test_a_column_that_may_be_empty_has_every_row_or_none(column: str) -> None:
    granted = columns([Queued("j:1", "t", b"1", 1_000), Queued("j:2", "t", b"1", 1_000)], 0)
    for rows, is_good in (([], True), ([1, 1], True), ([1], False)):
        told = msgspec.structs.replace(granted, **{column: rows})
        assert is_whole(Inbox("w.0", 0, 1, 0, [], told)) is is_good


def test_broker_time_is_never_behind_the_broker() -> None:
    broker = BrokerTime()
    assert broker.local(STAMP) == math.inf
    broker.learn(STAMP + 900, sent_at=0.0, now=1.0)
    broker.learn(STAMP + 1_105, sent_at=1.1, now=1.2)
    assert broker.local(STAMP + 2_005) == pytest.approx(2.0)


def test_broker_time_follows_a_step_of_the_broker_clock() -> None:
    broker = BrokerTime()
    broker.learn(STAMP, sent_at=0.0, now=0.0)
    for second in range(1, 40):
        broker.learn(STAMP + 60_000 + second * 1_000, sent_at=float(second), now=float(second))
    assert broker.local(STAMP + 60_000) == pytest.approx(0.0)


def test_lease_before_any_ack_counts_from_the_first_pulse() -> None:
    lease = Lease(10.0)
    assert lease.ends_at == -math.inf
    lease.sent(1.0)
    lease.sent(5.0)
    assert lease.ends_at == 10.0
    lease.renewed(5.0)
    lease.renewed(4.0)
    assert lease.ends_at == 14.0


def _held(report: Report) -> list[int]:
    assert report.full is not None
    return report.full.held
