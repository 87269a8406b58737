"""`python -m examples.demo`: exit code 0 only if every due instant is accounted for and replay agrees.

The last line on stdout is one JSON object with the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import threading
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from examples.demo.audit import Account
from examples.demo.client import ApiError
from examples.demo.day import Day, DemoError, fresh_folder
from examples.demo.display import Display
from examples.demo.plan import MINUTE_MS
from examples.demo.verification import VerificationError, is_complete, verify, why
from examples.demo.witness import FOLDER, WitnessFiles
from minutebook.cli.dev import stop, stop_signals
from minutebook.embedded.cluster import Cluster, ClusterSettings
from minutebook.errors import MinutebookError

_INTERRUPTED = 130
_SHOWN = 10


def main() -> int:
    """Run the demo and end everything that it started. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=Path(".minutebook/demo"), help="folder, made fresh (%(default)s)"
    )
    parser.add_argument("--api-port", type=int, help="port of the API; a free one by default")
    parser.add_argument("--kafka-port", type=int, help="port of the broker; a free one by default")
    parser.add_argument(
        "--keep", action="store_true", help="keep everything running until Ctrl-C, to look at the pages"
    )
    given = parser.parse_args()
    console = Console(soft_wrap=True)
    with stop_signals():
        try:
            return _run(given, console)
        except (MinutebookError, DemoError, ApiError, VerificationError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return _INTERRUPTED


def _run(given: argparse.Namespace, console: Console) -> int:
    data = fresh_folder(given.data)
    witness = data / "witness"
    cluster = Cluster(
        ClusterSettings(
            data_dir=data,
            worker="examples.demo.tasks:app",
            kafka_port=given.kafka_port,
            api_port=given.api_port,
            environment={FOLDER: str(witness.absolute())},
        )
    )
    try:
        cluster.start(lambda line: console.print(line, highlight=False))
        with Display(console) as display:
            day = Day(cluster, display, WitnessFiles(witness))
            account = asyncio.run(day.run())
        console.print("Owners and API copy their state; replay folds the log again and compares")
        report = asyncio.run(verify(cluster))
        _tell(account, report, console)
        complete = asyncio.run(is_complete(cluster, day.began - MINUTE_MS, day.clock.now()))
        _tell_complete(complete, console)
        if account.left_out is not None:
            _tell_why(asyncio.run(why(cluster, *account.left_out)), console)
        if given.keep:
            _keep(cluster, console)
    finally:
        stop(cluster)
    print(json.dumps(_figures(account, report) | {"completeness": complete}), flush=True)
    is_well = report["ok"] and complete["ok"] and not account.complaints and not account.early
    return 0 if is_well else 1


def _keep(cluster: Cluster, console: Console) -> None:
    """Let everything run until Ctrl-C."""
    console.print(
        f"All of it goes on: {cluster.api_url}, with the API key {cluster.api_key}. Ctrl-C stops it.",
        highlight=False,
    )
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()


def _tell(account: Account, report: dict[str, Any], console: Console) -> None:
    table = Table(title="What came of it")
    table.add_column("")
    table.add_column("", justify="right")
    table.add_row("jobs", str(account.jobs))
    for status, count in sorted(account.executions.items()):
        table.add_row(f"executions {status}", str(count))
    for name, part in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
        table.add_row(f"late {name}", f"{account.quantile(part) * 1000:.0f} ms")
    for reason, count in sorted(account.skipped.items()):
        table.add_row(f"instants skipped: {reason}", str(count))
    table.add_row("spread by jitter, up to", f"{account.spread_ms} ms")
    table.add_row("early", str(account.early))
    table.add_row("lost", str(account.lost))
    table.add_row("repeated", str(account.repeated))
    for kill in account.kills:
        table.add_row(f"{kill['what']} killed: latest start", f"{kill['latest_start_s']} s")
    table.add_row("replay verify", "agrees" if report["ok"] else "DIFFERS")
    console.print(table)
    for complaint in account.complaints[:_SHOWN]:
        console.print(f"not accounted for: {complaint}", highlight=False)
    for finding in report["findings"][:_SHOWN]:
        console.print(f"replay: {finding}", highlight=False)


def _tell_complete(complete: dict[str, Any], console: Console) -> None:
    said = "each ran, or the log says why it did not" if complete["ok"] else "NOT all are accounted for"
    console.print(
        f"Completeness: {complete['implied']} instants follow from the schedules in the log; {said}",
        highlight=False,
    )
    for missing in complete["missing"][:_SHOWN]:
        console.print(f"missing: {missing}", highlight=False)


def _tell_why(answer: dict[str, Any], console: Console) -> None:
    console.print(f"Why {answer['job_id']} at {answer['at']}? {answer['verdict']}:", highlight=False)
    for reason in answer["reasons"]:
        console.print(f"  - {reason['text']}", highlight=False, markup=False)


def _figures(account: Account, report: dict[str, Any]) -> dict[str, Any]:
    return {
        "jobs": account.jobs,
        "executions": dict(sorted(account.executions.items())),
        "p50_s": round(account.quantile(0.5), 4),
        "p99_s": round(account.quantile(0.99), 4),
        "max_s": round(account.quantile(1.0), 4),
        "skipped": dict(sorted(account.skipped.items())),
        "spread_s": account.spread_ms / 1000,
        "early": account.early,
        "lost": account.lost,
        "repeated": account.repeated,
        "kills": account.kills,
        "verify": report,
    }


if __name__ == "__main__":
    sys.exit(main())
