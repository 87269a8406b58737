"""How late attempts started: buckets, and rows that are a sum whenever they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutebook.domain import view_starts
from minutebook.domain.view import PartitionView
from minutebook.domain.view_rows import FAMILIES, digest
from minutebook.domain.view_starts import bucket_end, bucket_of, first_kept
from minutebook.store.memory import MemoryRows
from tests.unit.test_view import TENANT, Reader, T, due_granted, granted, queued, submitted

MINUTE = 60_000


@given(st.integers(0, 1 << 40))
def test_bucket_ends_at_most_an_eighth_above(late_ms: int) -> None:
    end = bucket_end(bucket_of(late_ms))
    assert late_ms <= end <= late_ms * 9 // 8


@given(st.integers(0, 1 << 45), st.integers(0, 1 << 45))
def test_buckets_are_in_order(one_ms: int, other_ms: int) -> None:
    low, high = sorted((one_ms, other_ms))
    assert bucket_of(low) <= bucket_of(high)


def test_what_starts_early_is_punctual() -> None:
    assert bucket_of(-5) == bucket_of(0) == 0


def started(reader: Reader, minute: int) -> list[tuple[int, int]]:
    reader.commit()
    return at_minute(reader.rows, 3, TENANT, minute)


def at_minute(rows: MemoryRows, partition: int, tenant: str, minute: int) -> list[tuple[int, int]]:
    return dict(view_starts.read(rows, partition, tenant, minute, minute)).get(minute, [])


def test_attempts_are_counted_in_the_minute_in_which_they_start() -> None:
    reader = Reader()
    reader.frame(submitted("a"), submitted("b"), submitted("c"))
    at = reader.frame(due_granted(f"a:{T}", f"b:{T}"))
    reader.frame(queued(f"c:{T}"))
    then = reader.frame(granted(f"c:{T}"))
    assert started(reader, T // MINUTE) == [(bucket_of(at - T), 2), (bucket_of(then - T), 1)]
    assert started(reader, T // MINUTE + 1) == []


@pytest.mark.parametrize("is_committing", [True, False])
def test_minutes_are_kept_for_a_day(is_committing: bool) -> None:
    digests = set()
    for committed in (True, is_committing):
        reader = Reader()
        reader.is_committing = committed
        reader.frame(submitted("a"), submitted("b"), submitted("c"))
        reader.frame(due_granted(f"a:{T}"))
        reader.now += 24 * 60 * MINUTE
        reader.frame(due_granted(f"b:{T}"))
        if committed:
            assert sum(count for _, count in started(reader, T // MINUTE)) == 1
        reader.now += 60 * MINUTE
        reader.frame(due_granted(f"c:{T}"))
        assert started(reader, T // MINUTE) == []
        digests.add(digest(reader.rows, 3))
    assert len(digests) == 1
    assert first_kept(reader.now) > T // MINUTE


def test_a_view_that_is_opened_again_counts_on() -> None:
    reader = Reader()
    reader.frame(submitted("a"), submitted("b"))
    reader.frame(due_granted(f"a:{T}"))
    reader.view = PartitionView(reader.rows, 3)
    reader.frame(due_granted(f"b:{T}"))
    assert sum(count for _, count in started(reader, T // MINUTE)) == 2


def test_partitions_and_tenants_are_apart() -> None:
    rows = MemoryRows(FAMILIES)
    views = [PartitionView(rows, partition) for partition in (0, 1)]
    for view in views:
        view.fold([submitted("a"), due_granted(f"a:{T}")], T, 0)
        rows.write(*view.drain())
    for view in views:
        assert at_minute(rows, view.partition, TENANT, T // MINUTE) == [(0, 1)]
        assert at_minute(rows, view.partition, "other", T // MINUTE) == []


def test_a_stretch_of_minutes_is_read_in_order_over_the_hours_of_one_tenant_alone() -> None:
    reader = Reader()
    reader.frame(*(submitted(f"j{number}") for number in range(200)))
    reader.frame(submitted("x", tenant=f"{TENANT}-2"))
    first = reader.now // MINUTE
    for number in range(200):
        reader.now = (first + number) * MINUTE
        reader.frame(due_granted(f"j{number}:{T}"))
    found = list(view_starts.read(reader.rows, 3, TENANT, first + 50, first + 170))
    assert [minute for minute, _ in found] == list(range(first + 50, first + 171))
    assert all(sum(count for _, count in buckets) == 1 for _, buckets in found)
    assert list(view_starts.read(reader.rows, 3, TENANT[:-1], first, first + 200)) == []
