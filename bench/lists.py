"""W10: lists and the overview while events fold in, over a view that holds `n` attempts. Kafka is not there.

The view is made by folding made events, a month of them: recurring jobs every minute and, for one run in ten, jobs that
run once; one run in a hundred is given up. Then 2,000 events a second fold in by the clock, as `api.follower` would fold
them, and queries come at fixed instants; a query's time counts from when it came, so what it waits for is in it.
"""

from __future__ import annotations

import asyncio
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

import msgspec

from api import lists
from api.list_filters import execution_filter, job_filter
from api.view import COMMIT_ROWS, View
from bench.figures import quantile
from bench.results import Repetition
from bench.rig import Options, Say
from minutebook.clock import ManualClock
from minutebook.domain import events as facts
from minutebook.domain.events import Event
from minutebook.domain.view_rows import FAMILIES, CursorRow
from minutebook.ids import execution_id
from minutebook.store.rocks import RocksRows

PARTITIONS: Final = 8
TENANT: Final = "acme"
START: Final = 1_764_547_200_000  # 2025-12-01T00:00:00Z
MINUTES: Final = 30 * 24 * 60
RECURRING: Final = 2_000
ONCE_SHARE: Final = 0.1
DEAD_SHARE: Final = 0.01
TASKS: Final = [f"task-{number}" for number in range(20)]
WEIGHTS: Final = [2.0**-number for number in range(20)]
EVENTS_PER_S: Final = 2_000
QUERIES_PER_S: Final = 40
SECONDS: Final = 60
_STEP_S: Final = 0.01

Query = Callable[[], object]


class Story:
    """A lawful log of made events, frame after frame, folded into a view."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.clock = ManualClock(START)
        self.runs = 0
        self._chance = random.Random(1)
        self._positions = [0] * PARTITIONS
        self._jobs: list[list[str]] = [[] for _ in range(PARTITIONS)]
        self._task: dict[str, str] = {}
        self._turn: Iterator[int] = count()
        for number in range(RECURRING):
            self._create(f"job-{number}", "* * * * *", ["nightly"] if number % 100 == 0 else [])

    def _create(self, job_id: str, cron: str, tags: list[str]) -> int:
        partition = self.view.partition_of_job(TENANT, job_id)
        task = self._task[job_id] = self._chance.choices(TASKS, WEIGHTS)[0]
        now = self.clock.now()
        event = facts.JobSubmitted(
            TENANT, job_id, f"c-{job_id}", "key", now, now, bytes(32), task, b'{"n": 1}', 0, bytes(32), "default",
            cron, "UTC", "refuse", 300_000, 5, now, "", tags=tags,
        )  # fmt: skip
        self._fold(partition, event)
        if cron:
            self._jobs[partition].append(job_id)
        return partition

    def step(self, runs: int) -> None:
        """So many runs at one instant in one partition; one of them, now and then, is given up."""
        partition = next(self._turn) % PARTITIONS
        chosen = self._chance.sample(self._jobs[partition], min(runs, len(self._jobs[partition])))
        once = int(len(chosen) * ONCE_SHARE + self._chance.random())
        at, names = self.clock.now(), [execution_id(job, self.clock.now()) for job in chosen[once:]]
        by_partition: dict[int, list[str]] = {partition: names}
        for _ in range(once):
            job_id = str(UUID(int=self._chance.getrandbits(128), version=4))
            by_partition.setdefault(self._create(job_id, "", []), []).append(execution_id(job_id, at))
        for home, started in by_partition.items():
            if started:
                self._run(home, started, at)

    def _run(self, partition: int, names: list[str], at: int) -> None:
        tasks = [self._task[name.rpartition(":")[0]] for name in names]
        known = sorted(set(tasks))
        size, zeros = len(names), [0] * len(names)
        next_at = [at + 60_000 if name.startswith("job-") else -1 for name in names]
        granted = facts.ExecutionsDueGranted(
            [TENANT], ["default"], known, zeros, zeros, [known.index(task) for task in tasks], names, [1] * size,
            [at] * size, [at] * size, next_at, [1] * size, [5] * size, ["w.1"], zeros, [],
        )  # fmt: skip
        self._fold(partition, granted)
        dead = [name for name in names if self._chance.random() < DEAD_SHARE]
        for name in dead:
            self._fold(partition, facts.ExecutionDead(
                TENANT, name, 1, 0, 1, at, at, at, "attempts", "ConnectionError", "refused",
            ))  # fmt: skip
        done = [name for name in names if name not in dead]
        if done:
            zeros = [0] * len(done)
            self._fold(partition, facts.AttemptsSucceeded([TENANT], zeros, done, zeros, zeros, zeros))
        for name in names:
            if not name.startswith("job-"):
                del self._task[name.rpartition(":")[0]]
        self.runs += size

    def _fold(self, partition: int, event: Event) -> None:
        part = self.view.parts[partition]
        part.fold([event], self.clock.now(), self._positions[partition])
        part.advance(CursorRow(self._positions[partition]))
        part.answered.clear()
        self._positions[partition] += 1
        if part.pending() >= COMMIT_ROWS:
            self.view.commit(partition)


def queries(services: Any) -> dict[str, Query]:
    """By name; each reads its first page, but `deep`, which goes on from a place in the middle."""

    def jobs(**query: str) -> Query:
        return lambda: lists.list_jobs(services, TENANT, job_filter(query), b"", 100)

    def executions(**query: str) -> Query:
        return lambda: lists.list_executions(services, TENANT, execution_filter(query), b"", 100)

    return {
        "jobs": jobs(),
        "jobs, active": jobs(status="active"),
        "jobs, tag": jobs(tag="nightly"),
        "jobs, rare task, completed": jobs(task=TASKS[-1], status="completed"),
        "executions": executions(),
        "executions, deep": executions(until="2025-12-15T00:00:00Z"),
        "executions, failed": executions(status="failed"),
        "executions, rare task": executions(task=TASKS[-1]),
        "executions, error": executions(error_type="ConnectionError", order="scheduled"),
        "executions, two filters": executions(task=TASKS[0], status="failed"),
        "executions, of a job": executions(job_id="job-7"),
        "executions, running": executions(status="running"),
        "overview": lambda: lists.overview(services, TENANT),
    }


async def measure(n: int, options: Options, say: Say) -> list[Repetition]:
    """One repetition: fold `n` attempts, then ask for `SECONDS`."""
    folder = Path(tempfile.mkdtemp(prefix="minutebook-w10-"))
    try:
        return [await asyncio.to_thread(_measured, folder, n, say)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(folder: Path, n: int, say: Say) -> Repetition:
    rows = RocksRows(folder / "view", FAMILIES)
    view = View(rows, PARTITIONS)
    story = Story(view)
    before_s, cpu_s = time.perf_counter(), time.process_time()
    per_step = max(1, n // MINUTES)
    while story.runs < n:
        story.step(min(per_step, 200))
        story.clock.advance(60_000 * min(per_step, 200) * MINUTES // max(n, 1) or 1)
    view.commit_all()
    took_s, cpu_s = time.perf_counter() - before_s, time.process_time() - cpu_s
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    say(f"{story.runs:,} runs folded in {took_s:.0f} s")
    figures = _asked(story, SECONDS)
    rows.close()
    return Repetition(
        peak_rss_mib={"api": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)},
        more={
            "events_folded_per_s": round(2 * n / took_s),
            "cpu_us_per_run_folded": round(cpu_s / n * 1e6, 1),
            "store_bytes_per_run": round(size / n),
            **figures,
        },
    )


def _asked(story: Story, seconds: int) -> Mapping[str, Any]:
    """Ask in turn, by the clock, while events fold in by the clock; ms by query."""
    services = SimpleNamespace(view=story.view, clock=story.clock)
    asked = list(queries(services).items())
    took_ms: dict[str, list[float]] = {name: [] for name, _ in asked}
    cpu_ms: dict[str, list[float]] = {name: [] for name, _ in asked}
    encode = msgspec.json.Encoder().encode
    start_s, folded, number, last_commit_s = time.perf_counter(), 0, 0, 0.0
    runs_before = story.runs
    while (now_s := time.perf_counter() - start_s) < seconds:
        while folded < now_s * EVENTS_PER_S:
            story.step(10)
            story.clock.advance(20)
            folded += 20
        if now_s - last_commit_s > 0.2:
            story.view.commit_all()
            last_commit_s = now_s
        while number / QUERIES_PER_S <= time.perf_counter() - start_s:
            name, query = asked[number % len(asked)]
            before_s = time.thread_time()
            encode(query())
            cpu_ms[name].append((time.thread_time() - before_s) * 1e3)
            came_s = number / QUERIES_PER_S
            took_ms[name].append((time.perf_counter() - start_s - came_s) * 1e3)
            number += 1
        time.sleep(_STEP_S / 10)
    every = [one for found in took_ms.values() for one in found]
    return {
        "p50_ms": _quantiles(took_ms, 0.5),
        "p99_ms": _quantiles(took_ms, 0.99),
        "cpu_p50_ms": _quantiles(cpu_ms, 0.5),
        "cpu_p99_ms": _quantiles(cpu_ms, 0.99),
        "any_p99_ms": round(quantile(sorted(every), 0.99), 1),
        "events_per_s_meanwhile": round(2 * (story.runs - runs_before) / seconds),
    }


def _quantiles(found: Mapping[str, list[float]], share: float) -> dict[str, float]:
    return {name: round(quantile(sorted(times), share), 1) for name, times in found.items()}
