"""The last word is the log's: replay folds it again and compares with copies of every process's state, makes its decisions
again, expands the schedules anew, and says why something did not run.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

import httpx

from minutebook.client.keys import TENANT
from minutebook.embedded.cluster import Cluster
from minutebook.times import format_instant

_CHECKOUT: Final = Path(__file__).parents[2]
_TIMEOUT_S: Final = 30


class VerificationError(Exception):
    """The log could not be verified; the message says why."""


async def verify(cluster: Cluster) -> dict[str, Any]:
    """Verify the log of a cluster that has come to rest.

    Returns `ok`, the number of `records` read, how many events were `decided` again, and `findings`, a text for each
    difference. Raises VerificationError.
    """
    await _copy_states(cluster)
    code, report = await _replay(cluster, "verify", "--checkpoints", str(cluster.checkpoint_dir))
    decided_code, decided = await _replay(cluster, "decide")
    return {
        "ok": code == decided_code == 0,
        "records": sum(partition["records"] for partition in report["partitions"]),
        "decided": sum(partition["equal"] + partition["allowed"] for partition in decided["partitions"]),
        "findings": [
            f"job-events-{one['partition']} offset {one['offset']}: {one['what']}"
            for one in report["findings"] + decided["findings"]
        ],
    }


async def is_complete(cluster: Cluster, first_at: int, end_at: int) -> dict[str, Any]:
    """Whether every instant from `first_at` until before `end_at` (ms) is accounted for in the log.

    Returns `ok`, how many instants were `implied`, and `missing`, a text for each. Raises VerificationError.
    """
    since, until = format_instant(first_at), format_instant(end_at)
    code, report = await _replay(cluster, "completeness", since, until)
    return {
        "ok": code == 0,
        "implied": sum(tenant["implied"] for tenant in report["tenants"]),
        "missing": [f"{one['job_id']} at {one['at']}: {one['what']}" for one in report["missing"]],
    }


async def why(cluster: Cluster, job_id: str, at: str) -> dict[str, Any]:
    """Why a job did or did not run at an instant, with the facts that say so. Raises VerificationError."""
    _, answer = await _replay(cluster, "why", job_id, at, "--tenant", TENANT)
    return answer


async def _replay(cluster: Cluster, *arguments: str) -> tuple[int | None, dict[str, Any]]:
    """Exit code of an audit, and what it says."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "replay", *arguments, "--output", "json",
        cwd=_CHECKOUT, env=cluster.environment, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    return process.returncode, _report(output, process.returncode)


async def _copy_states(cluster: Cluster) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=_TIMEOUT_S) as http:
        for name, port in cluster.health_ports.items():
            try:
                answer = await http.post(f"http://127.0.0.1:{port}/checkpoint")
                answer.raise_for_status()
            except httpx.HTTPError as error:
                raise VerificationError(f"{name} made no copy of its state: {error}") from error


def _report(output: bytes, code: int | None) -> dict[str, Any]:
    try:
        report: dict[str, Any] = json.loads(output)
    except ValueError:
        raise VerificationError(f"replay ended with {code} and without a report") from None
    return report
