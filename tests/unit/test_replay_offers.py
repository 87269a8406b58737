"""`why` tells what workers offered while something waited, as far as `worker-reports` is still there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from kafka.errors import TopicAuthorizationFailedError

from minutebook.domain.records import FullPulse, Pulse, QueueOffer, Report, Tick
from minutebook.history.why import Answer, Reason, Wait
from minutebook.log.port import RawRecord
from minutebook.times import format_instant
from minutebook.wire import codec
from replay.offers import Reports, offers_told
from replay.why import why_in
from tests.simulation.copies import CopiedLog
from tests.simulation.log_maker import T0, LogMaker, submit

SECOND = 1_000
WAIT = Wait("q", "t", T0, T0 + 60 * SECOND, None)


class MemoryReports:
    """`worker-reports` of one partition, with `kept` as the offset of the first record that is still there."""

    def __init__(self) -> None:
        self.records: list[RawRecord] = []
        self.kept = 0

    def add(self, at: int, record: Report | Tick) -> None:
        self.records.append(RawRecord(len(self.records), at, None, codec.encode(record)))

    def pulse(
        self,
        session: str,
        at: int,
        offer: int,
        *,
        task: str = "t",
        queue: str = "q",
        is_leaving: bool = False,
    ) -> None:
        full = FullPulse(f"name of {session}", "1", [task], [QueueOffer(queue)], 10 * SECOND, 3 * SECOND, [])
        self.add(at, Report(session, 1, Pulse(offer, -1, is_leaving), full))

    def bounds(self, partition: int) -> tuple[int, int]:
        return self.kept, len(self.records)

    def offset_at(self, partition: int, at: int) -> int:
        found = (record.offset for record in self.records[self.kept :] if record.stamp >= at)
        return next(found, len(self.records))

    def read(self, partition: int, start: int, end: int) -> Iterator[RawRecord]:
        return iter(self.records[start:end])

    def close(self) -> None:
        pass


@pytest.fixture
def reports() -> MemoryReports:
    return MemoryReports()


def told(reports: MemoryReports) -> list[tuple[str, str]]:
    return [(reason.code, reason.text) for reason in offers_told(lambda: reports, 3, WAIT)]


def test_who_was_alive_is_told_with_what_it_offered(reports: MemoryReports) -> None:
    reports.pulse("dead.0", T0 - 30 * SECOND, 9)
    reports.pulse("busy.0", T0 - SECOND, 0)
    reports.pulse("other.0", T0 - SECOND, 4, task="u")
    reports.pulse("aside.0", T0 - SECOND, 5, queue="r")
    reports.add(T0, Tick("o", 1))
    reports.add(T0 + SECOND, Report("busy.0", 2, Pulse(2, 70)))
    reports.pulse("free.0", T0 + 50 * SECOND, 7, is_leaving=True)
    reports.pulse("late.0", T0 + 61 * SECOND, 7)
    fit = "was alive, knows the task t and takes from the queue q: it offered"
    assert told(reports) == [
        (
            "worker_offered",
            f"free.0 (name of free.0) {fit} 0 slots here when the wait began, at most 7 until it ended; it was leaving "
            "(worker-reports 3:6 to 3:6)",
        ),
        (
            "worker_offered",
            f"busy.0 (name of busy.0) {fit} 0 slots here when the wait began, at most 2 until it ended "
            "(worker-reports 3:1 to 3:5)",
        ),
        (
            "worker_unfit",
            "aside.0 (name of aside.0) was alive and does not take from the queue q (worker-reports 3:3 to 3:3)",
        ),
        (
            "worker_unfit",
            "other.0 (name of other.0) was alive and does not know the task t (worker-reports 3:2 to 3:2)",
        ),
    ]


def test_that_nobody_was_there_is_told(reports: MemoryReports) -> None:
    reports.pulse("dead.0", T0 - 30 * SECOND, 9)
    assert told(reports) == [
        (
            "no_session",
            "No worker's session reported to partition 3 then (worker-reports 3:0 up to 3:1)",
        )
    ]


@pytest.mark.parametrize(
    ("at", "said"), [(T0 + 5 * SECOND, "begins at 2025-06-15"), (None, "of that time it is gone")]
)
def test_reports_that_are_gone_are_not_made_up(at: int | None, said: str, reports: MemoryReports) -> None:
    reports.pulse("w.0", T0 - SECOND, 9)
    reports.kept = 1
    if at is not None:
        reports.pulse("w.0", at, 9)
    ((code, text),) = told(reports)
    assert code == "reports_untold"
    assert said in text


@pytest.mark.parametrize("kept", [1, 2])
def test_a_look_back_that_is_partly_gone_is_said(kept: int, reports: MemoryReports) -> None:
    """What the session can run it said in a report that is gone."""
    reports.pulse("w.0", T0 - 40 * SECOND, 9)
    reports.pulse("v.0", T0 - 30 * SECOND, 9)
    reports.add(T0 - SECOND, Report("w.0", 2, Pulse(9, -1)))
    reports.add(T0 + SECOND, Report("w.0", 3, Pulse(9, -1)))
    reports.kept = kept
    *_, (code, text) = told(reports)
    assert code == "reports_untold"
    assert f"its reports before {format_instant(reports.records[kept].stamp)} are gone" in text


def test_a_look_back_that_is_all_there_is_not_said_to_be_gone(reports: MemoryReports) -> None:
    reports.pulse("old.0", T0 - 70 * SECOND, 9)
    reports.pulse("old.0", T0 - 60 * SECOND, 9)
    reports.pulse("w.0", T0 - SECOND, 9)
    reports.kept = 1
    assert [code for code, _ in told(reports)] == ["worker_offered"]


def test_a_crowd_is_counted(reports: MemoryReports) -> None:
    for number in range(25):
        reports.pulse(f"w{number}.0", T0 - SECOND, number)
    found = told(reports)
    assert [code for code, _ in found] == ["worker_offered"] * 10 + ["workers_more"]
    assert found[0][1].startswith("w24.0")
    assert found[-1][1] == "15 further sessions were alive"


def test_what_is_no_report_is_passed_over(reports: MemoryReports) -> None:
    reports.records.append(RawRecord(0, T0 - SECOND, None, b"junk"))
    assert [code for code, _ in told(reports)] == ["no_session"]


def refused() -> Reports:
    raise TopicAuthorizationFailedError


@pytest.mark.parametrize(
    ("source", "said"),
    [(None, "only files are at hand"), (refused, "it cannot be read (TopicAuthorizationFailedError)")],
)
def test_reports_that_are_not_at_hand_are_said_to_be_missing(
    source: Callable[[], Reports] | None, said: str
) -> None:
    (reason,) = offers_told(source, 3, WAIT)
    assert reason == Reason(
        code="reports_untold", text=f"What workers offered then, only worker-reports tells, and {said}"
    )


def test_an_execution_that_waited_is_answered_with_them(reports: MemoryReports) -> None:
    maker = LogMaker()
    maker.open()
    maker.command(submit("a"))
    maker.due()
    reports.pulse("w.0", T0 + 20 * SECOND, 4, queue="default")
    maker.clock.advance(60 * SECOND)
    maker.grant("w.0")

    def ask(source: Callable[[], Reports] | None) -> Answer:
        return why_in(CopiedLog(maker.records), "acme", "a", T0, open_reports=source)

    codes = [reason.code for reason in ask(lambda: reports).reasons]
    assert codes == ["definition", "queued", "no_worker", "worker_offered"]
    codes = [reason.code for reason in ask(None).reasons]
    assert codes == ["definition", "queued", "no_worker", "reports_untold"]
