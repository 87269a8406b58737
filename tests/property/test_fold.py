"""Fold over whole random logs: the same state however it is reached, and owner, view and time index agree on it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutebook.domain import book as state
from minutebook.domain import events as facts
from minutebook.domain import keys, view_rows
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.permit_folds import stock_of
from minutebook.domain.placing import is_to_come, spec_of
from minutebook.domain.plans import next_at
from minutebook.domain.purge import PURGED
from minutebook.domain.state import NONE_AT, PAUSED, Job, Spec
from minutebook.log.apply import fold_events, take
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader
from minutebook.schedule import zone_names
from minutebook.store.memory import MemoryRows
from minutebook.wire.frames import decode_frame, encode_frame
from tests.simulation.busy_log import BusyLog
from tests.simulation.folds import folded, viewed
from tests.simulation.log_maker import T0, LogMaker

SEEDS = range(12)
STEPS = 400


@pytest.fixture(scope="module", params=SEEDS)
def maker(request: pytest.FixtureRequest) -> LogMaker:
    return BusyLog(request.param).run(STEPS)


# -- one state, however it is reached


def test_a_log_folds_to_its_owners_state_byte_for_byte(maker: LogMaker) -> None:
    """The owner folded its own events; this folds them decoded from their bytes: fold o decode o encode = fold."""
    assert state.digest(folded(maker.records)) == state.digest(maker.rows)


@pytest.mark.parametrize("commit_every", [7, 10_000])
def test_commits_make_no_difference(maker: LogMaker, commit_every: int) -> None:
    assert state.digest(folded(maker.records, commit_every)) == state.digest(maker.rows)


def test_a_fold_goes_on_from_what_is_stored(maker: LogMaker) -> None:
    """A fresh process on the stored rows, at any record, as after a crash."""
    for cut in (1, len(maker.records) // 3, len(maker.records) - 1):
        rows = folded(maker.records[:cut])
        book = Book(rows)
        reader = FrameReader(book.cursor.position, book.cursor.head)
        for record in maker.records[cut:]:
            take(book, reader, record)
            book.commit()
        assert state.digest(rows) == state.digest(maker.rows)


def test_a_draft_that_is_dropped_leaves_nothing(maker: LogMaker) -> None:
    """Its frame is void: what was folded for it is as if it had never been."""
    rows = MemoryRows(state.FAMILIES)
    book, reader = Book(rows), FrameReader()
    for record in maker.records:
        frame = reader_frame(record)
        if frame is not None and frame.head == reader.head:
            fold_events(book, frame)
            book.discard()
        take(book, reader, record)
        book.commit()
    assert state.digest(rows) == state.digest(maker.rows)


def reader_frame(record: RawRecord):  # type: ignore[no-untyped-def]  # a frame, None for junk
    return decode_frame(record.value) if record.value and record.value[:2] == b"\xc3\x01" else None


def test_frames_encode_to_the_bytes_they_came_from(maker: LogMaker) -> None:
    for record in maker.records:
        frame = reader_frame(record)
        if frame is not None:
            assert encode_frame(frame) == record.value


@pytest.mark.parametrize(("drain_every", "hot_max"), [(13, 32_768), (10_000, 32_768), (3, 1)])
def test_the_view_is_the_same_however_often_it_is_written(
    maker: LogMaker, drain_every: int, hot_max: int
) -> None:
    _, once = viewed(maker.records)
    _, other = viewed(maker.records, drain_every, hot_max)
    assert view_rows.digest(other, 0) == view_rows.digest(once, 0)


PROGRAM = """
import sys, msgspec
from minutebook.domain import book as state, view_rows
from minutebook.log.port import RawRecord
from tests.simulation.folds import folded, viewed
records = [RawRecord(o, s, k, v, ()) for o, s, k, v in msgspec.msgpack.decode(open(sys.argv[1], "rb").read())]
print(state.digest(folded(records)).hex(), view_rows.digest(viewed(records)[1], 0).hex())
"""


def test_other_processes_fold_to_the_same_state(tmp_path: Path) -> None:
    """Whatever their hash seed, time zone, locale and working folder."""
    maker = BusyLog(99).run(400)
    file = tmp_path / "log.msgpack"
    file.write_bytes(msgspec.msgpack.encode([record[:4] for record in maker.records]))
    root = Path(__file__).parents[2]
    found = set()
    for more in (
        {"PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "4242", "TZ": "Australia/Lord_Howe", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"},
    ):
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(root), **more}
        command = [sys.executable, "-c", PROGRAM, str(file)]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    here = f"{state.digest(maker.rows).hex()} {view_rows.digest(viewed(maker.records)[1], 0).hex()}\n"
    assert found == {here}


def test_busy_logs_hold_every_kind_of_event() -> None:
    """Else the tests above would say less than they seem to."""
    found = set()
    for seed in SEEDS:
        for record in BusyLog(seed).run(STEPS).records:
            frame = reader_frame(record)
            found |= {type(event) for event in frame.events} if frame is not None else set()
    assert found == set(get_args(Event))


# -- redelivery


def test_commands_delivered_again_in_any_order_change_nothing() -> None:
    busy = BusyLog(5)
    maker = busy.maker
    sent = []
    command = maker.command
    maker.command = lambda *commands, stamp=None: (sent.extend(commands), command(*commands, stamp=stamp))[1]  # type: ignore[method-assign]
    busy.run(STEPS)
    del maker.command
    assert len(sent) > 100
    for order in (sent, sent[::-1], sorted(sent, key=lambda one: one.command_id)):
        answers = maker.command(*order, *order[:10])
        assert {event.reason for event in answers if isinstance(event, facts.CommandRejected)} <= {"too_old"}
        assert all(isinstance(event, facts.CommandRejected) for event in answers)
    assert maker.command(*sent) == []


# -- invariants


def is_indexed(maker: LogMaker, row: bytes, job: Job) -> bool:
    """Whether the job waits for its next instant."""
    return (
        job.indexed_at != NONE_AT
        and maker.book.index.get(keys.index_row(job.indexed_at, keys.JOB, row)) is not None
    )


def test_a_state_holds_together(maker: LogMaker) -> None:
    """Every open execution lies in exactly the place that its status says, and the counts are true."""
    book = maker.book
    index, queued = set(), set()
    lanes: Counter[bytes] = Counter()
    open_of: Counter[bytes] = Counter()
    held: dict[bytes, list[str]] = defaultdict(list)
    for key, execution in [*book.executions.scan(b""), *book.running.scan(b"")]:
        job = keys.job_of_execution(key)
        open_of[job] += 1
        is_running = book.running.get(key) is not None
        assert (
            is_running == (execution.status == "running") == bool(execution.session) == (execution.token >= 0)
        )
        assert is_running or not execution.is_stopping
        assert not (is_running and book.executions.get(key)), "it lies in one place"
        if execution.is_held:
            held[job].append(keys.names(key)[1])
        elif execution.status == "scheduled":
            index.add(keys.index_row(execution.indexed_at, keys.EXECUTION, key))
        elif not is_running:
            assert execution.status == "queued"
            spec = book.specs.get(keys.spec_row(job, execution.version))
            assert spec is not None
            lane = execution.lane(spec, keys.names(key)[0]).prefix()
            queued.add(keys.queued_row(lane, execution.ready_at, keys.names(key)[1]))
            lanes[lane] += 1
    found = {key for key, _ in book.index.scan(b"")}
    for row, job in book.jobs.scan(b""):
        has_version = book.specs.get(keys.spec_row(row, job.version)) is not None
        assert has_version or job.next_at == NONE_AT
        is_waiting = is_indexed(maker, row, job)
        assert is_waiting or job.is_once or job.next_at == NONE_AT or job.status == PAUSED
        assert not (is_waiting and job.status == PAUSED)
        if is_waiting:
            index.add(keys.index_row(job.indexed_at, keys.JOB, row))
        assert job.open == open_of.pop(row, 0) + (job.is_once and is_to_come(book, row, job))
        assert job.open or job.next_at != NONE_AT, "a job that has come to its end is closed"
        assert sorted(job.held) == sorted(held.pop(row, []))
        others = job.open - len(job.held) - (job.is_once and is_to_come(book, row, job))
        assert not job.held or others > 0, "what is held waits for something"
    assert not open_of, "an open execution has an open job"
    assert not held, "what is held is known to its job"
    deadlines = {key for key in found if keys.index_parts(key)[1] in (keys.DEADLINE, keys.START_DEADLINE)}
    assert found - deadlines == index
    for key in deadlines:
        at, kind, row = keys.index_parts(key)
        execution = book.execution(row)
        assert execution is not None, "a deadline goes with its execution"
        policy = spec_of(book, row, execution.version).policy
        after_ms = policy.deadline_ms if kind == keys.DEADLINE else policy.start_deadline_ms
        assert after_ms is not None
        assert at == execution.due_at + after_ms
    assert {key for key, _ in book.queued.scan(b"")} == queued
    assert dict(book.counts.scan(b"")) == dict(lanes)
    assert all(keys.index_parts(key)[0] >= book.cursor.index_low for key in index)
    versions = {keys.spec_row(row, job.version) for row, job in book.jobs.scan(b"")}
    in_use = {
        keys.spec_row(keys.job_of_execution(key), execution.version)
        for key, execution in [*book.executions.scan(b""), *book.running.scan(b"")]
    }
    kept = {key for key, _ in book.specs.scan(b"")}
    assert in_use <= kept <= in_use | versions


def test_owner_and_view_tell_the_same_story(maker: LogMaker) -> None:
    """Two folds that share no line: jobs, their status and counts, and every open execution."""
    view, _ = viewed(maker.records)
    book = maker.book
    for row, job in book.jobs.scan(b""):
        found = view.job(*keys.names(row))
        assert found is not None
        progress = found[1]
        has_come = job.is_once and not is_to_come(book, row, job)
        next_at = NONE_AT if has_come else job.next_at
        assert (progress.status, progress.next_at) == (job.status, next_at)
        assert progress.version == job.version == found[0].version
        assert progress.open == job.open - (job.is_once and not has_come)
    for key, job in book.closed.scan(b""):
        found = view.job(*keys.names(key[4:]))
        if job.status == PURGED:
            assert found is None
            continue
        assert found is not None
        assert (found[1].status, found[1].open) == (job.status, 0)
    for row, _ in book.jobs.scan(b""):
        rows = {name: found for _, name, found in view.executions(*keys.names(row)) if found.skip is None}
        for key, execution in book.executions_of(row):
            found = rows[keys.names(key)[1]]
            assert found.outcome == ""
            assert (found.last.status, found.last.number) == (execution.status, execution.attempt)
            assert found.last.session == execution.session


def test_due_counts_are_those_of_the_next_instants(maker: LogMaker) -> None:
    view, rows = viewed(maker.records, drain_every=7)
    units = {"due_counts": view_rows.MINUTE_MS, "due_hours": view_rows.HOUR_MS}
    counts: dict[str, Counter[bytes]] = {family: Counter() for family in units}
    for key, value in rows.scan("progress", b"", b"\xff"):
        coming_at = msgspec.msgpack.decode(value, type=view_rows.Progress).coming_at
        if coming_at >= 0:
            tenant = key[2:].partition(b"\0")[0].decode()
            for family, unit_ms in units.items():
                counts[family][view_rows.due_row(view.prefix, tenant, coming_at // unit_ms)] += 1
    for family, counted in counts.items():
        kept = {key: msgspec.msgpack.decode(value) for key, value in rows.scan(family, b"", b"\xff")}
        assert kept == counted


def test_calendars_know_exactly_the_jobs_that_depend_on_them(maker: LogMaker) -> None:
    book = maker.book
    expected = set()
    for row, job in book.jobs.scan(b""):
        spec = book.specs.get(keys.spec_row(row, job.version))
        tenant, job_id = keys.names(row)
        if spec is not None:
            expected |= {keys.calendar_job_row(tenant, name, job_id) for name in spec.timing.calendars}
    assert {row for row, _ in book.calendar_jobs.scan(b"")} == expected


def test_owner_and_view_know_the_same_calendars(maker: LogMaker) -> None:
    view, _ = viewed(maker.records)
    for row, calendar in maker.book.calendars.scan(b""):
        known = view.calendar(*keys.names(row))
        assert known is not None
        assert known.version == calendar.version
        assert known.is_deleted == calendar.is_deleted
        assert (known.first_days, known.last_days) == (calendar.first_days, calendar.last_days)
    for row, _ in maker.book.calendar_jobs.scan(b""):
        tenant, name, job_id = row.decode().split("\0")
        assert job_id in set(view.calendar_jobs(tenant, name))


def test_owner_and_view_count_the_same_permits(maker: LogMaker) -> None:
    """Of each limit what is out and asked for at its home, and what is asked for where it is used."""
    view, _ = viewed(maker.records)
    book = maker.book
    for row, home in book.homes.scan(b""):
        used = view.permits_used(*keys.names(row))
        demands = tuple((partition, count) for partition, count, _ in home.demands)
        assert (used.version, used.in_use, used.demands) == (home.version, home.in_use, demands)
    for row, limit in book.limits.scan(b""):
        tenant, name = keys.names(row)
        known, stock = view.limit(tenant, name), stock_of(book, row)
        assert known is not None
        assert (known.version, known.is_deleted) == (limit.version, limit.is_deleted)
        assert view.permits_asked(tenant, name).count == stock.asked


def test_every_ended_execution_has_an_outcome_that_its_last_attempt_explains(maker: LogMaker) -> None:
    view, _ = viewed(maker.records)
    ended: Counter[str] = Counter()
    for row, _ in [*maker.book.jobs.scan(b""), *((key[4:], job) for key, job in maker.book.closed.scan(b""))]:
        for _, _, execution in view.executions(*keys.names(row)):
            if not execution.outcome or execution.skip is not None:
                continue
            ended[execution.outcome] += 1
            wanted = {"dead": {"failed", "lost"}}.get(execution.outcome, {execution.outcome})
            assert execution.last.status in wanted
            numbers = [attempt.number for attempt in (*execution.earlier, execution.last)]
            assert numbers == list(range(1, len(numbers) + 1))
    assert ended


def test_tokens_only_grow(maker: LogMaker) -> None:
    """Over the whole log, take-overs and races included."""
    last = -1
    rows = MemoryRows(state.FAMILIES)
    book, reader = Book(rows), FrameReader()
    for record in maker.records:
        frame = take(book, reader, record)
        ran = {execution.token for _, execution in Book(rows).running.scan(b"")}
        runs = {execution.token for _, execution in book.running.scan(b"")}
        fresh = sorted(runs - ran)
        assert not fresh or frame is not None
        if fresh:
            assert fresh[0] > last
            last = fresh[-1]
        book.commit()


# -- schedules

CRONS = st.sampled_from(
    [
        "* * * * *",
        "*/7 * * * *",
        "0 0 29 2 *",
        "30 2 * * *",
        "0 12 * * 1-5",
        "59 23 31 12 *",
        "0 1 * * 0",
        "*/9 H 2 * * ?",
        "0 0 L * *",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    cron=CRONS,
    zone=st.sampled_from(sorted(zone_names())),
    after=st.integers(T0 - 20 * 365 * keys.DAY_MS, T0 + 20 * 365 * keys.DAY_MS),
)
def test_the_next_instant_of_a_cron_never_goes_back(cron: str, zone: str, after: int) -> None:
    spec = Spec("t", "q", 5, b"", cron, zone, 1_000, "")
    book = Book(MemoryRows(state.FAMILIES))
    for _ in range(4):
        following = next_at(book, "acme", "a", spec, after)
        assert following > after
        after = following
