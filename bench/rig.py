"""The whole product on this machine, freshly started in an empty folder: what every workload runs on."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import time, time_ns
from typing import Any, Final

import aiohttp

from bench import consumption
from bench.consumption import Consumption
from bench.eventlog import EventLog
from bench.figures import Tally
from bench.producer import Sent, in_batches, last_jobs, send, submissions
from bench.results import Repetition
from bench.witness import FOLDER, TASK, WitnessFiles
from minutebook.domain import events as facts
from minutebook.embedded.cluster import Cluster, ClusterSettings

SETTLED_S: Final = 20.0
"""The last job is acknowledged at least so long before T."""

_BEFORE_S: Final = 1.0
_PATIENCE_S: Final = 60.0
_LOOK_S: Final = 0.5
_VIEWED_PER_S_MIN: Final = 500

Say = Callable[[str], None]
Fault = Callable[["Rig"], Coroutine[Any, Any, None]]


class BenchError(Exception):
    """The workload cannot be measured as it should; the message says why."""


@dataclass(frozen=True, slots=True)
class Options:
    """How the product is set up. `create_rate` (jobs a second) is what creating is expected to reach: it places T."""

    owners: int = 2
    partitions: int = 8
    create_rate: int = 5_000
    cluster: type[Cluster] = Cluster
    worker: str = "bench.tasks:app"
    workers: int = 2
    slots: int = 2_000
    environment: Mapping[str, str] = field(default_factory=dict)
    keep: Path | None = None

    def settings(self) -> dict[str, Any]:
        """For the result file: which processes run, and how."""
        return {
            "processes": {"broker": 1, "owner": self.owners, "api": 1, "worker": self.workers, "load": 1},
            "partitions": self.partitions,
            "slots_per_worker": self.slots,
            "hash_chain": True,
            "view": True,
            "command_batch": 500,
            "created_per_s": "from the first record sent to the stamp of the last frame with a job; encoded before",
            "cpu_s_per_1000_runs": "from T - 1 s to the last start",
        }


class Rig:
    """A running cluster, and what is watched of it. Made by `running`."""

    def __init__(self, cluster: Cluster, data_dir: Path, partitions: int, say: Say) -> None:
        self.cluster = cluster
        self.data_dir = data_dir
        self.partitions = partitions
        self.say = say
        self.consumption = Consumption(lambda: cluster.processes)
        self.witness = WitnessFiles(data_dir / "witness")
        self.http: aiohttp.ClientSession

    async def create(self, prefix: str, due_ms: Sequence[int], task: str = TASK) -> Sent:
        """Create a job for each run in bulk and wait until the view has them. They are encoded before the clock starts.

        Raises BenchError if the view does not have them in time.
        """
        records = list(in_batches(submissions(prefix, due_ms, task=task), self.partitions))
        sent = await send(self.cluster.kafka, records)
        await self.viewed(prefix, len(due_ms))
        return sent

    async def viewed(self, prefix: str, n: int) -> None:
        """Wait until the API shows the last of `n` jobs in each partition. Raises BenchError when it takes too long."""
        patience_s = _PATIENCE_S + n / _VIEWED_PER_S_MIN
        deadline = time() + patience_s
        for name in last_jobs(prefix, n, self.partitions):
            while not await self._is_there(f"/v1/jobs/{name}"):
                if time() > deadline:
                    raise BenchError(f"the view does not show job {name} after {patience_s:.0f} s")
                await asyncio.sleep(0.25)

    async def until(self, at_ms: int) -> None:
        """Sleep until an instant of the wall clock."""
        await asyncio.sleep(max(0.0, at_ms / 1000 - time()))

    async def starts(self, tally: Tally, patience_s: float = _PATIENCE_S) -> None:
        """Collect starts until every run has started, or `patience_s` after the last was due."""
        deadline = max(tally.due_ms) / 1000 + patience_s
        while tally.started < len(tally.due_ms) and time() < deadline:
            if self.witness.count() >= len(tally.due_ms):
                tally.add(self.witness.news())
            await asyncio.sleep(_LOOK_S)
        tally.add(self.witness.news())

    async def _is_there(self, path: str) -> bool:
        async with self.http.get(self.cluster.api_url + path) as answer:
            if answer.status not in (200, 404, 503):
                raise BenchError(f"GET {path}: {answer.status} {await answer.text()}")
            return answer.status == 200


@contextlib.asynccontextmanager
async def running(options: Options, say: Say) -> AsyncIterator[Rig]:
    """A fresh cluster; afterwards nothing of it runs and its folder is gone, unless `options.keep` names one."""
    folder = options.keep or Path(tempfile.mkdtemp(prefix="minutebook-bench-"))
    if options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    settings = ClusterSettings(
        data_dir=folder,
        owners=options.owners,
        workers=options.workers,
        worker=options.worker,
        concurrency=options.slots,
        environment={FOLDER: str(folder / "witness"), **options.environment},
    )
    cluster = options.cluster(settings)
    try:
        await asyncio.to_thread(cluster.start)
        rig = Rig(cluster, folder, options.partitions, say)
        watching = asyncio.create_task(rig.consumption.watch())
        headers = {"authorization": f"Bearer {cluster.api_key}"}
        async with aiohttp.ClientSession(
            headers=headers, connector=aiohttp.TCPConnector(limit=0)
        ) as rig.http:
            yield rig
        watching.cancel()
    finally:
        await asyncio.to_thread(cluster.stop)
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


async def measured(
    rig: Rig,
    due_ms: Sequence[int],
    prefix: str = "job",
    fault: Fault | None = None,
    stored: Sequence[int] = (),
) -> Repetition:
    """Create the jobs, let them come due, and measure. `fault` is awaited from T on; `stored` are due instants of
    jobs that lie in the stores all the while and do not come due.

    Raises BenchError if the jobs were not there `SETTLED_S` before T.
    """
    began_ns = time_ns()
    if stored:
        await rig.create(f"{prefix}-later", stored)
    empty = consumption.disk(rig.data_dir)
    t_ms = min(due_ms)
    sent = await rig.create(prefix, due_ms)
    check_settled(sent, t_ms)
    rig.say(f"{len(due_ms):,} jobs are there; T in {t_ms / 1000 - time():.0f} s")
    await rig.until(t_ms - int(2 * _BEFORE_S * 1000))
    created = consumption.disk(rig.data_dir)
    tally = Tally(due_ms)
    await rig.until(t_ms)
    faulty = asyncio.create_task(fault(rig)) if fault else None
    await rig.starts(tally)
    if faulty:
        await faulty
    found = tally.figures()
    rig.say(f"{found.started:,} runs started, {found.lost:,} did not; the last at T+{found.last_start_s} s")
    async with EventLog(rig.cluster.kafka, rig.partitions) as log:
        is_recorded = await log.read_until(facts.AttemptsSucceeded, found.started, _PATIENCE_S)
    settled_ns = time_ns()
    rig.consumption.sample()
    created_at = log.last_at.get(facts.JobSubmitted.__name__, 0)
    last_due_at = log.last_due_at
    from_ns = int((t_ms / 1000 - _BEFORE_S) * 1e9)
    last_ns = tally.last_start_ns or settled_ns
    return Repetition(
        created_per_s=round(len(due_ms) / (created_at / 1e3 - sent.first_ns / 1e9), 1),
        first_start_s=found.first_start_s,
        last_start_s=found.last_start_s,
        p50_s=found.p50_s,
        p99_s=found.p99_s,
        max_s=found.max_s,
        runs_per_s=found.runs_per_s,
        early=found.early,
        lost=found.lost,
        repeated=found.repeated,
        last_due_record_s=None if last_due_at is None else (last_due_at - t_ms) / 1000,
        cpu_s_per_1000_runs=_per_1000(rig.consumption.cpu_between(from_ns, last_ns), found.started),
        peak_rss_mib={kind: round(mib, 1) for kind, mib in sorted(rig.consumption.peak_rss_mib.items())},
        bytes_per_job=consumption.grown(empty, created, len(due_ms)),
        bytes_per_run=consumption.grown(created, consumption.disk(rig.data_dir), max(1, found.started)),
        more={
            "results_recorded": is_recorded,
            "last_result_s": (log.last_at.get(facts.AttemptsSucceeded.__name__, t_ms) - t_ms) / 1000,
            "cpu_s_per_1000_runs_until_recorded": _per_1000(
                rig.consumption.cpu_between(from_ns, settled_ns), found.started
            ),
            "cpu_s_per_1000_runs_with_creating": _per_1000(
                rig.consumption.cpu_between(began_ns, settled_ns), found.started
            ),
            "cpu_s_of_others": round(rig.consumption.cpu_between(from_ns, last_ns)[consumption.OTHERS], 2),
            "frames": log.frames,
            "void_frames": log.void,
            "rows": dict(log.rows),
        },
    )


def choose_t_ms(n: int, options: Options) -> int:
    """T: a whole second, far enough for `n` jobs to be encoded and created."""
    return (int(time() + SETTLED_S + n / options.create_rate) + 4) * 1000


def check_settled(sent: Sent, t_ms: int) -> None:
    """Raises BenchError if the jobs were not there `SETTLED_S` before T."""
    if sent.acked_ns / 1e6 > t_ms - SETTLED_S * 1000 or time() * 1000 > t_ms - 2 * _BEFORE_S * 1000:
        raise BenchError("creating took too long before T: give a lower --create-rate")


def _per_1000(cpu_s: Mapping[str, float], runs: int) -> dict[str, float]:
    ours = {kind: used for kind, used in sorted(cpu_s.items()) if kind != consumption.OTHERS}
    found = {kind: round(used / max(1, runs) * 1000, 4) for kind, used in ours.items()}
    return found | {"all": round(sum(found.values()), 4)}
