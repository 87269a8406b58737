"""A lawful log, made as fast as it can be written: what owners would have put on record of so many runs, as exported files.

Each partition has recurring jobs that fire every minute, and jobs that fire once, one run in ten. Of the chunks that come due
together, four are granted in the frame in which they come due, one is queued before; one run in a hundred fails and is tried
again. A frame holds what a cycle of an owner brings: results of the chunk before, new jobs, what comes due. Frames are made
without deciding; the folds that are measured refuse whatever is not lawful.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from minutebook.domain import events as facts
from minutebook.domain.events import Event
from minutebook.domain.rows import rows_of
from minutebook.domain.state import NONE_AT, UNCHANGED
from minutebook.ids import execution_id
from minutebook.log.port import RawRecord
from minutebook.log.reader import CLOCK_BOUND_MS, HEAD_BEFORE_ALL, next_head
from minutebook.schedule import TZDATA_VERSION
from minutebook.wire import topics
from minutebook.wire.frames import FORMAT_VERSION, Frame, InputPosition, Slice, encode_frame
from replay.files import MANIFEST, Manifest, export

PARTITIONS: Final = 8
ROWS: Final = 250
"""Runs that come due together."""
RECURRING: Final = 2_000
TENANTS: Final = [f"tenant-{number}" for number in range(20)]
TASKS: Final = [f"reports.build-{number}" for number in range(20)]
SESSIONS: Final = [f"0197a3c2-5d1e-7b44-9c1a-{number:012x}.1" for number in range(4)]
START: Final = 1_764_568_800_000  # 2025-12-01T06:00:00Z
MINUTE_MS: Final = 60_000
_PAYLOAD: Final = b'{"account": 4711, "format": "pdf", "pages": [1, 2, 3], "to": "someone@example.com"}'


class Run(NamedTuple):
    """One execution; `next_at` as its job goes on from there. `token` is that under which it runs."""

    tenant: int
    name: str
    at: int
    next_at: int
    attempt: int = 1
    token: int = -1


class MadeLog:
    """`replay.reading.Log` of one partition, made while it is read, until it has `events` rows of events."""

    topic = topics.EVENTS

    def __init__(self, partition: int, events: int) -> None:
        self.partition = partition
        self._events = events
        self._chance = random.Random(partition)
        self._jobs = [(number % len(TENANTS), f"report-{number:06}") for number in range(RECURRING)]
        self._running: list[Run] = []
        self._queued: list[Run] = []
        self._failed: list[Run] = []
        self._head = HEAD_BEFORE_ALL
        self._offset = 0

    def partitions(self) -> list[int]:
        """See `Log.partitions`."""
        return list(range(PARTITIONS))

    def bounds(self, partition: int) -> tuple[int, int]:
        """See `Log.bounds`: where it ends follows from its events."""
        return 0, 1 << 62

    def head_before(self, partition: int) -> bytes:
        """See `Log.head_before`."""
        return HEAD_BEFORE_ALL

    def close(self) -> None:
        """See `Log.close`."""

    def read(self, partition: int, start: int, end: int) -> Iterator[RawRecord]:
        """See `Log.read`."""
        rows = 0
        for now, events in self._frames():
            rows += sum(map(rows_of, events))
            yield self._record(now, events)
            if rows >= self._events:
                return

    def _record(self, now: int, events: list[Event]) -> RawRecord:
        at = self._offset
        inputs = [InputPosition(topic, "x7Jb0u3tQ0mCk5o3mB2a1w", 40 * at) for topic in topics.INPUTS]
        slices = [Slice(topics.REPORTS, 40 * at, b"", 1), Slice("", -1, now.to_bytes(8) * 3, 1)]
        frame = Frame(
            at, self._head, "owner-1/0197a3c2-5d1e-7b44-9c1a-6f2d6b1c9e10", 1, now, 1, TZDATA_VERSION, b"12345678",
            inputs, slices, at - 1, events,
        )  # fmt: skip
        record = RawRecord(at, now + 2, None, encode_frame(frame))
        self._head = next_head(self._head, record)
        self._offset += 1
        return record

    # -- what happens

    def _frames(self) -> Iterator[tuple[int, list[Event]]]:
        """(now, events) of each frame, for ever."""
        opened = facts.LogOpened("bench", PARTITIONS, self.partition, CLOCK_BOUND_MS, FORMAT_VERSION)
        sessions = [facts.SessionStarted(session, session, TASKS, 10_000, 3_000) for session in SESSIONS]
        yield START, [opened, facts.OwnershipTaken("owner-1", 1, 0, 0), *sessions]
        minute = START + MINUTE_MS
        for first in range(0, RECURRING, ROWS):
            chunk = self._jobs[first : first + ROWS]
            yield START, [self._submitted(tenant, job, minute, "* * * * *", START) for tenant, job in chunk]
        while True:
            for first in range(0, RECURRING, ROWS):
                yield from self._chunk(minute, minute + first * MINUTE_MS // RECURRING, first)
            minute += MINUTE_MS

    def _chunk(self, minute: int, now: int, first: int) -> Iterator[tuple[int, list[Event]]]:
        """Results of the chunk before, and the next one; one in five is queued before it is granted."""
        created, once = self._once(minute, now)
        runs = [
            Run(tenant, execution_id(job, minute), minute, minute + MINUTE_MS)
            for tenant, job in self._jobs[first : first + ROWS]
        ]
        runs += once + self._failed
        self._failed = []
        events = [*self._results(now), *created]
        if first // ROWS % 5 != 4:
            yield now, [*events, self._due_granted(runs, sum(map(rows_of, events)))]
            return
        yield now, [*events, self._due(facts.ExecutionsQueued, runs)]
        size = len(runs)
        self._running = [run._replace(token=(self._offset << 16) + row) for row, run in enumerate(runs)]
        attempts = [run.attempt for run in runs]
        tenant, names = [run.tenant for run in runs], [run.name for run in runs]
        yield (
            now + 5,
            [facts.ExecutionsGranted(TENANTS, tenant, names, attempts, SESSIONS, self._sessions(size), [])],
        )

    def _once(self, minute: int, now: int) -> tuple[list[Event], list[Run]]:
        """Jobs that are created to run once, now."""
        jobs = [str(UUID(int=self._chance.getrandbits(128), version=4)) for _ in range(ROWS // 10)]
        tenant = self._chance.randrange(len(TENANTS))
        created: list[Event] = [self._submitted(tenant, job, now, "", now) for job in jobs]
        return created, [Run(tenant, execution_id(job, now), now, NONE_AT) for job in jobs]

    def _submitted(self, tenant: int, job: str, next_at: int, cron: str, now: int) -> Event:
        command = str(UUID(int=self._chance.getrandbits(128), version=4))
        return facts.JobSubmitted(
            TENANTS[tenant], job, command, "key:4f1c2a90be37d815 via api from 10.0.0.7", now, now, bytes(32),
            self._chance.choice(TASKS), _PAYLOAD, 0, bytes(32), "default", cron, "UTC", "refuse", 300_000, 5, next_at, "",
        )  # fmt: skip

    def _due_granted(self, runs: list[Run], row: int) -> Event:
        base = (self._offset << 16) + row
        self._running = [run._replace(token=base + number) for number, run in enumerate(runs)]
        more = {"sessions": SESSIONS, "session": self._sessions(len(runs)), "permits": []}
        return self._due(facts.ExecutionsDueGranted, runs, **more)

    def _due(self, kind: Callable[..., Event], runs: list[Run], **more: object) -> Event:
        size = len(runs)
        return kind(
            TENANTS, ["default"], TASKS, [run.tenant for run in runs], [0] * size,
            [number % len(TASKS) for number in range(size)], [run.name for run in runs], [1] * size,
            [run.at for run in runs], [run.at for run in runs], [run.next_at for run in runs],
            [run.attempt for run in runs], [5] * size, **more,
        )  # fmt: skip

    def _results(self, now: int) -> list[Event]:
        """Ends of what runs: all but one in a hundred are good; a second attempt is always."""
        failed = [run for run in self._running if run.attempt == 1 and self._chance.random() < 0.01]
        names = {run.name for run in failed}
        done = [run for run in self._running if run.name not in names]
        self._running = []
        events: list[Event] = []
        if done:
            events.append(
                facts.AttemptsSucceeded(
                    TENANTS, [run.tenant for run in done], [run.name for run in done], [run.token for run in done],
                    self._chance.choices(range(1, 40), k=len(done)), self._chance.choices(range(1, 2_000), k=len(done)),
                )
            )  # fmt: skip
        for run in failed:
            events.append(facts.AttemptFailed(
                TENANTS[run.tenant], run.name, 1, run.token, SESSIONS[0], "ConnectionError", "refused", False, now + 1_000, 3, 40,
            ))  # fmt: skip
            self._failed.append(run._replace(next_at=UNCHANGED, attempt=2))
        return events

    def _sessions(self, size: int) -> list[int]:
        return [number % len(SESSIONS) for number in range(size)]


def make_log(folder: Path, events: int, processes: int) -> Manifest:
    """Exported files in `folder`, which must be new, with at least `events` rows of events in all."""
    each = -(-events // PARTITIONS)
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        made = list(pool.map(_export, repeat(folder), range(PARTITIONS), repeat(each)))
    manifest = msgspec.structs.replace(made[0], stretches=[one.stretches[0] for one in made])
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return manifest


def _export(folder: Path, partition: int, events: int) -> Manifest:
    alone = folder / f"part-{partition}"
    manifest = export(MadeLog(partition, events), alone, [partition])
    (name,) = [stretch.file for stretch in manifest.stretches]
    (alone / name).rename(folder / name)
    (alone / MANIFEST).unlink()
    alone.rmdir()
    return manifest
