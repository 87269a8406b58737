"""The last word: every process copies its state, and replay folds the log again and compares."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

import httpx

from minutebook.embedded.cluster import Cluster

_CHECKOUT: Final = Path(__file__).parents[2]
_TIMEOUT_S: Final = 30


class VerificationError(Exception):
    """The log could not be verified; the message says why."""


async def verify(cluster: Cluster) -> dict[str, Any]:
    """Verify the log of a cluster that has come to rest.

    Returns `ok`, the number of `records` read, and `findings`, a text for each difference. Raises
    VerificationError.
    """
    await _copy_states(cluster)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "replay", "verify", "--checkpoints", str(cluster.checkpoint_dir), "--output", "json",
        cwd=_CHECKOUT, env=cluster.environment, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    report = _report(output, process.returncode)
    return {
        "ok": process.returncode == 0,
        "records": sum(partition["records"] for partition in report["partitions"]),
        "findings": [
            f"job-events-{one['partition']} offset {one['offset']}: {one['what']}"
            for one in report["findings"]
        ],
    }


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
