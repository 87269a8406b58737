"""The arithmetic of the benchmarks, on starts and samples made up by hand."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from bench.consumption import Disk, Sample, cpu_at, grown, kind_of
from bench.figures import Tally, median, quantile
from bench.producer import TENANT, in_batches, last_jobs, one_by_one, submissions
from bench.profile import Sample as Stack
from bench.profile import shares
from bench.reports import Rate, Said, rate
from bench.sampled import NATIVE
from bench.witness import Start, Witness, WitnessFiles
from bench.workloads import spread
from minutebook.ids import job_key
from minutebook.wire.codec import CommandBatch, decode
from minutebook.wire.topics import partition_of

T = 1_700_000_000_000
MS = 1_000_000


def at(ms: float) -> int:
    """Nanoseconds since the epoch, `ms` after T."""
    return int(T * MS + ms * MS)


def test_a_burst_in_order() -> None:
    tally = Tally([T] * 4)
    tally.add(Start(number, at(late)) for number, late in enumerate((10, 20, 30, 500)))
    found = tally.figures()
    assert (found.first_start_s, found.last_start_s) == (0.01, 0.5)
    assert (found.p50_s, found.p99_s, found.max_s) == (0.02, 0.5, 0.5)
    assert found.runs_per_s == 8.0
    assert (found.early, found.lost, found.repeated) == (0, 0, 0)


def test_lateness_of_a_steady_load_counts_from_each_due_instant() -> None:
    tally = Tally([T, T + 1_000, T + 2_000])
    tally.add([Start(0, at(4)), Start(1, at(1_002)), Start(2, at(2_008))])
    found = tally.figures()
    assert (found.p50_s, found.max_s) == (0.004, 0.008)
    assert (found.first_start_s, found.last_start_s) == (0.004, 2.008)


def test_what_never_started_is_lost() -> None:
    tally = Tally([T] * 3)
    tally.add([Start(1, at(5))])
    found = tally.figures()
    assert (found.started, found.lost, found.repeated) == (1, 2, 0)
    assert found.runs_per_s == 200.0


def test_a_second_start_is_repeated_and_lateness_keeps_the_first() -> None:
    tally = Tally([T, T])
    tally.add([Start(0, at(900)), Start(1, at(5)), Start(0, at(7)), Start(0, at(950))])
    found = tally.figures()
    assert (found.started, found.lost, found.repeated) == (2, 0, 2)
    assert found.max_s == 0.007


def test_a_start_before_its_due_instant_is_early() -> None:
    tally = Tally([T, T])
    tally.add([Start(0, at(-0.001)), Start(1, at(0))])
    assert tally.figures().early == 1


def test_some_of_the_runs_are_looked_at_alone() -> None:
    tally = Tally([T, T, T, T + 1_000, T + 1_000])
    tally.add([Start(0, at(5)), Start(1, at(9_000)), Start(3, at(1_300)), Start(4, at(1_020))])
    assert tally.late_s(range(3, 5)) == [0.02, 0.3]
    assert tally.late_s(range(2, 3)) == []
    assert tally.started_after(at(1_300), range(3)) == 2


def said(ms: int, size: int = 100, held: int = 0, is_report: bool = True) -> Said:
    return Said(T + ms, is_report, size, held)


def test_reports_of_a_stretch_of_time_are_counted_and_ticks_apart() -> None:
    stretch = [said(0), said(500, 300, 7), said(999), said(1_999, is_report=False)]
    found = rate([said(-1), *stretch, said(2_000)], T, T + 2_000)
    assert found == Rate(reports_per_s=1.5, ticks_per_s=0.5, bytes_per_s=300.0, held_max=7)


def test_nothing_was_reported() -> None:
    assert rate([], T, T + 1_000) == Rate(0.0, 0.0, 0.0, 0)


def test_jobs_of_another_tenant_and_task_are_numbered_from_where_it_is_said() -> None:
    found = list(submissions("guest", [T, T], task="bench.short", tenant="guest-01", first=7))
    assert [(one.tenant, one.job_id, one.task, one.payload) for one in found] == [
        ("guest-01", "guest-7", "bench.short", b"7"),
        ("guest-01", "guest-8", "bench.short", b"8"),
    ]


def test_nothing_started() -> None:
    found = Tally([T, T]).figures()
    assert (found.started, found.lost, found.p50_s, found.runs_per_s) == (0, 2, None, None)


@pytest.mark.parametrize("number", [-1, 2])
def test_a_start_of_what_was_not_submitted_is_an_error(number: int) -> None:
    with pytest.raises(ValueError, match="only 0 to 1 were submitted"):
        Tally([T, T]).add([Start(number, at(0))])


@pytest.mark.parametrize(("part", "wanted"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_quantile_is_by_nearest_rank(part: float, wanted: int) -> None:
    assert quantile(range(1, 101), part) == wanted


def test_median_of_three_is_the_middle_one() -> None:
    assert median([3.0, 1.0, 2.0]) == 2.0


def test_starts_are_read_once_and_survive_without_being_closed(tmp_path: Path) -> None:
    witness, files = Witness(tmp_path), WitnessFiles(tmp_path)
    assert list(files.news()) == []
    for number in (7, 0, 5_000):
        witness.record(number)
    assert [start.number for start in files.news()] == [7, 0, 5_000]
    for number in range(10_000):
        witness.record(number)
    starts = list(files.news())
    assert [start.number for start in starts] == list(range(10_000))
    assert all(one.at_ns <= two.at_ns for one, two in itertools.pairwise(starts))
    assert list(files.news()) == []


def test_starts_are_counted_without_being_read(tmp_path: Path) -> None:
    witness, files = Witness(tmp_path), WitnessFiles(tmp_path)
    counted = [files.count()]
    for more in (1, 4_095, 0, 1, 10_000):
        for number in range(more):
            witness.record(number)
        counted.append(files.count())
    assert counted == [0, 1, 4_096, 4_096, 4_097, 14_097]
    assert len(list(files.news())) == 14_097


def test_cpu_between_two_samples_is_in_proportion() -> None:
    samples = [Sample(100, {"owner": 1.0}, {}), Sample(200, {"owner": 3.0, "api": 1.0}, {})]
    assert cpu_at(samples, 150) == {"owner": 2.0, "api": 0.5}
    assert cpu_at(samples, 0) == {"owner": 1.0}
    assert cpu_at(samples, 900) == {"owner": 3.0, "api": 1.0}


@pytest.mark.parametrize(
    ("name", "kind"), [("owner-12", "owner"), ("kafka", "broker"), ("api", "api"), ("worker-1", "worker")]
)
def test_kinds_of_processes(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_bytes_are_what_was_added() -> None:
    before = Disk({"job-events": 100}, {"owners": 10, "api": 0})
    after = Disk({"job-events": 300, "worker-inbox": 50}, {"owners": 30, "api": 5})
    found = grown(before, after, 10)
    assert found["log"] == 25.0
    assert found["topics"] == {"job-events": 20.0, "worker-inbox": 5.0}
    assert found["stores"] == {"owners": 2.0, "api": 0.5}


def test_bulk_records_are_full_and_lie_on_the_partition_of_their_jobs() -> None:
    records = list(in_batches(submissions("x", [T] * 9_000), 8))
    numbers = []
    for record in records:
        batch = decode(record.value)
        assert isinstance(batch, CommandBatch)
        numbers += [int(command.payload) for command in batch.commands]
        for command in batch.commands:
            assert partition_of(job_key(TENANT, command.job_id), 8) == record.partition
    assert sorted(numbers) == list(range(9_000))
    assert len(records) < 9_000 / 500 + 8


def test_single_records_carry_their_own_key() -> None:
    (record,) = one_by_one(submissions("x", [T]), 8)
    assert record.key == b"default/x-0"
    assert record.partition == partition_of("default/x-0", 8)


def test_last_jobs_are_one_a_partition() -> None:
    found = last_jobs("x", 1_000, 8)
    assert sorted(partition_of(job_key(TENANT, name), 8) for name in found) == list(range(8))
    assert "x-999" in found
    assert last_jobs("x", 1, 8) == ["x-0"]


def test_a_steady_load_is_spread_evenly() -> None:
    due = spread(T, 11_574, 11_574)
    assert due[0] == T
    assert all(one <= two for one, two in itertools.pairwise(due))
    assert due[-1] == T + 999
    assert max(due.count(T + ms) for ms in (0, 500, 999)) <= 12


def test_shares_count_own_time_at_the_leaf_and_called_time_once() -> None:
    found = shares(
        [
            Stack(1, "MainThread", ("json:dumps", "streams.owner:a", "streams.owner:a", "asyncio:run")),
            Stack(2, "MainThread", ("streams.owner:a", "asyncio:run")),
            Stack(3, NATIVE, ()),
            Stack(4, "MainThread", ("json:dumps", "asyncio:run")),
        ]
    )
    assert found["own"] == {"json:dumps": 50.0, "streams.owner:a": 25.0, NATIVE: 25.0}
    assert found["with_called"] == {"streams.owner:a": 50.0}
    assert found["threads"] == {"MainThread": 75.0, NATIVE: 25.0}
