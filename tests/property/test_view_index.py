"""Indexes and counts of the read model on whole random logs: always what the rows say, and pages that miss nothing."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from minutebook.domain import view_index, view_lists, view_rows
from minutebook.domain.view import PartitionView
from minutebook.domain.view_coming import jobs_by_due
from minutebook.domain.view_lists import Filter, span_of
from minutebook.domain.view_rows import ExecutionRow, Progress
from minutebook.ids import execution_id
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader, Taken
from minutebook.store.memory import MemoryRows
from tests.simulation.busy_log import BusyLog
from tests.simulation.folds import viewed
from tests.simulation.log_maker import T0, LogMaker

TENANTS = ("acme", "blue")


@pytest.fixture(scope="module", params=range(6))
def maker(request: pytest.FixtureRequest) -> LogMaker:
    return BusyLog(request.param).run(300)


def named(key: bytes, kind: bytes) -> tuple[str, str, str]:
    """(tenant, job id, execution id) of an execution's key."""
    tenant, job_id, rest = key[2:].split(b"\0", 2)
    at = int.from_bytes(rest[:8], "big")
    suffix = rest[8:].decode()
    job = job_id.decode()
    return tenant.decode(), job, f"{job}:{suffix}" if suffix.startswith("r") else execution_id(job, at)


def counts(rows: MemoryRows, family: str) -> dict[bytes, int]:
    return {key: msgspec.msgpack.decode(value) for key, value in rows.scan(family, b"", None)}


@pytest.mark.parametrize("retention_days", [1, 30])
def test_executions_are_filed_as_their_rows_say(maker: LogMaker, retention_days: int) -> None:
    _, rows = viewed(maker.records, drain_every=7, retention_days=retention_days)
    fresh = PartitionView(rows, 0)
    entries: dict[bytes, bytes] = {}
    groups: Counter[bytes] = Counter()
    totals: Counter[tuple[str, str]] = Counter()
    for stored, value in rows.scan("executions", b"", None):
        key = view_index.off_shelf(stored)
        row = msgspec.msgpack.decode(value, type=ExecutionRow)
        tenant, job_id, _ = named(key, b"")
        job = fresh.open_job(tenant, job_id)
        task, queue = row.lane or fresh.lane(job, row.version)
        hot = view_rows.HotExecution(key, row, job, task, queue)
        totals[tenant, row.last.status] += 1
        is_standing = view_index.day_of(stored) == view_index.STANDING
        is_discarded = row.discard is not None
        assert is_standing or is_discarded or row.last.status in ("succeeded", "cancelled", "skipped")
        assert stored == view_index.stored_key(view_index.execution_entries(0, fresh.kept_from, hot), key)
        for group, place in view_index.execution_entries(0, fresh.kept_from, hot):
            entries[group + place] = f"{row.last.status}\0{queue}\0{task}".encode()
            groups[group] += 1
    assert dict(rows.scan("execution_index", b"", None)) == entries
    assert counts(rows, "execution_counts") == groups
    for tenant in TENANTS:
        found = view_lists.counts_by_status(fresh, "execution_totals", tenant)
        assert found == {status: count for (name, status), count in totals.items() if name == tenant}


@pytest.mark.parametrize(("drain_every", "hot_max"), [(13, 32_768), (10_000, 32_768), (3, 1)])
def test_history_goes_with_its_days_however_often_it_is_written(
    maker: LogMaker, drain_every: int, hot_max: int
) -> None:
    view, once = viewed(maker.records, retention_days=1)
    _, other = viewed(maker.records, drain_every, hot_max, retention_days=1)
    assert view_rows.digest(other, 0) == view_rows.digest(once, 0)
    _, everything = viewed(maker.records, retention_days=10_000)
    kept = {view_index.off_shelf(key): value for key, value in once.scan("executions", b"", None)}
    gone = 0
    for stored, value in everything.scan("executions", b"", None):
        key = view_index.off_shelf(stored)
        row = msgspec.msgpack.decode(value, type=ExecutionRow)
        is_old = view_rows.instant_of(key) // view_rows.DAY_MS < view.kept_from
        if not (is_old and view_index.is_history(row)):
            assert kept.pop(key) == value, "what is recent, open or given up stays"
        elif key in kept:
            done_at = row.last.ended_at if row.discard is None else row.discard.at
            assert done_at // view_rows.DAY_MS > row.scheduled_at // view_rows.DAY_MS
            del kept[key]
        else:
            gone += 1
    assert kept == {}
    assert gone or view.kept_from <= T0 // view_rows.DAY_MS


def test_jobs_are_filed_as_their_rows_say(maker: LogMaker) -> None:
    _, rows = viewed(maker.records, drain_every=7)
    fresh = PartitionView(rows, 0)
    entries: set[bytes] = set()
    groups: Counter[bytes] = Counter()
    for key, value in rows.scan("progress", b"", None):
        progress = msgspec.msgpack.decode(value, type=Progress)
        tenant, job_id = (name.decode() for name in key[2:].split(b"\0"))
        job = fresh.open_job(tenant, job_id)
        for group, place in view_index.job_entries(b"\0\0", job, fresh.card(job), progress.status):
            entries.add(group + place)
            groups[group] += 1
    assert {key for key, _ in rows.scan("job_index", b"", None)} == entries
    assert counts(rows, "job_counts") == groups


def fold(view: PartitionView, reader: FrameReader, records: list[RawRecord]) -> None:
    for record in records:
        found = reader.take(record)
        if isinstance(found, Taken):
            view.fold(found.frame.events, found.frame.now, record.offset)
    view.rows.write(*view.drain())


@pytest.mark.parametrize("is_ascending", [True, False])
@pytest.mark.parametrize(
    "wanted", [Filter(), Filter(task="t"), Filter(queue="default"), Filter(status="failed")]
)
def test_pages_repeat_and_skip_nothing_while_rows_are_written(
    maker: LogMaker, wanted: Filter, is_ascending: bool
) -> None:
    """Between two pages the log goes on: what was there at the start is on one page unless it was purged before its turn came,
    and nothing is on two."""
    records = list(maker.records)
    view, reader = PartitionView(MemoryRows(view_rows.FAMILIES), 0), FrameReader()
    half = len(records) // 2
    fold(view, reader, records[:half])

    def listed(place: bytes) -> list[bytes]:
        span = span_of(0, view_lists.LAST_AT, is_ascending, place)
        return [
            at
            for at, value in view_lists.executions(view, "acme", wanted, span)
            if wanted.task in ("", view_index.facts_of(value).task)
        ]

    before = listed(b"")
    shown: list[bytes] = []
    page, place = listed(b"")[:3], b""
    for number in range(half, len(records) + 1, 5):
        shown += page
        rest = listed(place)
        place = rest[len(page)] if len(rest) > len(page) else b""
        if not place:
            break
        fold(view, reader, records[number : number + 5])
        page = listed(place)[:3]
    else:
        shown += listed(place)
    assert len(shown) == len(set(shown))
    assert (set(before) - set(shown)).isdisjoint(listed(b""))
    assert shown == sorted(shown, reverse=not is_ascending)


@pytest.mark.parametrize(("drain_every", "hot_max"), [(1, 32_768), (7, 32_768), (10_000, 32_768), (3, 1)])
def test_jobs_are_filed_by_their_next_instant(maker: LogMaker, drain_every: int, hot_max: int) -> None:
    _, rows = viewed(maker.records, drain_every, hot_max)
    expected = set()
    for key, value in rows.scan("progress", b"", None):
        tenant, job_id = key[2:].decode().split("\0")
        coming_at = msgspec.msgpack.decode(value, type=Progress).coming_at
        if coming_at >= 0:
            expected.add((tenant, coming_at, job_id))
    view, found = PartitionView(rows, 0), set()
    for tenant in TENANTS:
        for place, _ in jobs_by_due(view, tenant, span_of(0, view_lists.LAST_AT, is_ascending=True)):
            found.add((tenant, int.from_bytes(place[:8], "big"), view_index.job_of_place(place)))
    assert found == expected
    assert len(found) == sum(1 for _ in rows.scan("due_index", b"", None))
    counted = sum(counts(rows, "due_counts").values())
    assert counted == len(found)
