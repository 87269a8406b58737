"""W6: how fast jobs are created, in each of the ways in. None of them comes due meanwhile."""

from __future__ import annotations

import asyncio
import json
from array import array
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from time import perf_counter_ns, time, time_ns
from typing import Any, Final

from bench.eventlog import EventLog
from bench.figures import quantile
from bench.producer import Encoded, in_batches, job_id, one_by_one, send, submissions
from bench.results import Repetition
from bench.rig import BenchError, Options, Rig, Say, running
from bench.witness import TASK
from minutebook.domain import events as facts
from minutebook.domain.commands import SubmitJob

_LATER_S: Final = 86_400
_BATCH: Final = 500
_CONNECTIONS: Final = 32
_MANY_CONNECTIONS: Final = 256
"""So many callers at a time that an API process has something to do while it waits for the owners."""
_BATCH_CONNECTIONS: Final = 4
_PATIENCE_S: Final = 300

Pack = Callable[[Iterable[SubmitJob], int], Iterator[Encoded]]


async def measure(n: int, options: Options, say: Say) -> list[Repetition]:
    """`n` jobs in bulk batches, a fifth as single records, half in batches by HTTP, a twentieth one by one by HTTP from
    few callers, and a fifth from many."""
    async with running(options, say) as rig, EventLog(rig.cluster.kafka, rig.partitions) as log:
        ways = {
            "bulk_batches": await _produced(rig, log, "bulk", n, in_batches),
            "single_records": await _produced(rig, log, "single", n // 5, one_by_one),
            "post_batch": await _posted(rig, log, "batch", n // 2, _BATCH, _BATCH_CONNECTIONS),
            "post_one": await _posted(rig, log, "one", n // 20, 1, _CONNECTIONS),
            "post_one_by_many": await _posted(rig, log, "many", n // 5, 1, _MANY_CONNECTIONS),
        }
        return [
            Repetition(
                created_per_s=ways["bulk_batches"]["created_per_s"],
                peak_rss_mib={
                    kind: round(mib, 1) for kind, mib in sorted(rig.consumption.peak_rss_mib.items())
                },
                more=ways,
            )
        ]


async def _produced(rig: Rig, log: EventLog, prefix: str, n: int, pack: Pack) -> dict[str, Any]:
    """By a Kafka producer; created = decided by the owner, as the broker's stamp of its frame says."""
    before = log.rows[facts.JobSubmitted.__name__]
    later_ms = int((time() + _LATER_S) * 1000)
    records = list(pack(submissions(prefix, array("q", [later_ms]) * n), rig.partitions))
    sent = await send(rig.cluster.kafka, records)
    await rig.viewed(prefix, n)
    viewed_ns = time_ns()
    created_ns = await _decided(log, before + n) * 1_000_000
    rig.say(f"{prefix}: {n:,} created")
    return {
        "n": n,
        "created_per_s": _rate(n, created_ns - sent.first_ns),
        "acknowledged_per_s": _rate(n, sent.acked_ns - sent.first_ns),
        "viewed_per_s": _rate(n, viewed_ns - sent.first_ns),
        "cpu_s_per_1000_jobs": _cpu(rig, sent.first_ns, created_ns, n),
    }


async def _posted(
    rig: Rig, log: EventLog, prefix: str, n: int, size: int, connections: int
) -> dict[str, Any]:
    """By HTTP, `size` jobs a request; created = answered with 201, so decided and in the view."""
    before = log.rows[facts.JobSubmitted.__name__]
    bodies = list(_bodies(prefix, n, size))
    bodies.reverse()
    took_ns: list[int] = []

    async def post() -> None:
        while bodies:
            began = perf_counter_ns()
            await _post(rig, bodies.pop(), size, f"{prefix}-{len(bodies)}")
            took_ns.append(perf_counter_ns() - began)

    first_ns = time_ns()
    await asyncio.gather(*(post() for _ in range(connections)))
    created_ns = time_ns()
    await _decided(log, before + n)
    rig.say(f"{prefix}: {n:,} created")
    took_ns.sort()
    return {
        "n": n,
        "created_per_s": _rate(n, created_ns - first_ns),
        "connections": connections,
        "jobs_per_request": size,
        "request_p50_ms": round(quantile(took_ns, 0.5) / 1e6, 2),
        "request_p99_ms": round(quantile(took_ns, 0.99) / 1e6, 2),
        "cpu_s_per_1000_jobs": _cpu(rig, first_ns, created_ns, n),
    }


async def _post(rig: Rig, body: bytes, size: int, key: str) -> None:
    path = "/v1/jobs" if size == 1 else "/v1/jobs/batch"
    headers = {"content-type": "application/json", "idempotency-key": key}
    async with rig.http.post(rig.cluster.api_url + path, data=body, headers=headers) as answer:
        text = await answer.text()
        if answer.status not in (200, 201) or (size > 1 and _created(text) != size):
            raise BenchError(f"POST {path}: {answer.status} {text[:300]}")


def _created(text: str) -> int:
    """Items of a batch's answer that were created."""
    return sum(item["status"] == 201 for item in json.loads(text)["items"])


def _bodies(prefix: str, n: int, size: int) -> Iterator[bytes]:
    run_at = datetime.fromtimestamp(int(time()) + _LATER_S, UTC).isoformat()
    jobs = [
        {"id": job_id(prefix, number), "task": TASK, "payload": number, "run_at": run_at}
        for number in range(n)
    ]
    for first in range(0, n, size):
        body = jobs[first] if size == 1 else {"jobs": jobs[first : first + size]}
        yield json.dumps(body).encode()


async def _decided(log: EventLog, jobs: int) -> int:
    """Wait for so many jobs in the log; the broker's stamp of the last frame with one, in ms."""
    kind = facts.JobSubmitted
    if not await log.read_until(kind, jobs, _PATIENCE_S):
        raise BenchError(f"{log.rows[kind.__name__]:,} of {jobs:,} jobs are in the log after {_PATIENCE_S} s")
    return log.last_at[kind.__name__]


def _cpu(rig: Rig, from_ns: int, to_ns: int, n: int) -> dict[str, float]:
    rig.consumption.sample()
    return {
        kind: round(used / n * 1000, 4) for kind, used in rig.consumption.cpu_between(from_ns, to_ns).items()
    }


def _rate(n: int, ns: int) -> float:
    return round(n / (ns / 1e9), 1)
