"""What the processes use: CPU and memory by kind of process from /proc, bytes on disk by topic and by store."""

from __future__ import annotations

import asyncio
import contextlib
import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import time_ns
from typing import Final, NamedTuple

from minutebook.embedded.cluster import Running

LOAD: Final = "load"
"""Kind of the process that makes the load and measures."""
OTHERS: Final = "others"
"""What everything else on the machine used: where it is much, figures mean little."""

_EVERY_S: Final = 0.1
_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_UTIME, _STIME = 11, 12

ByKind = Mapping[str, float]


class Sample(NamedTuple):
    """CPU seconds used so far and resident MiB, by kind of process, at `at_ns` (since the epoch)."""

    at_ns: int
    cpu_s: ByKind
    rss_mib: ByKind


def kind_of(name: str) -> str:
    """Kind of a process of the cluster: `owner-2` is an `owner`, `kafka` the `broker`."""
    kind = name.rstrip("0123456789").rstrip("-")
    return "broker" if kind == "kafka" else kind


class Consumption:
    """Samples all processes ten times a second. What ended keeps what it had used."""

    def __init__(self, processes: Callable[[], Sequence[Running]]) -> None:
        self.samples: list[Sample] = []
        self.peak_rss_mib: dict[str, float] = {}
        self._processes = processes
        self._cpu_s: dict[tuple[str, int], float] = {}

    async def watch(self) -> None:
        """Sample until cancelled."""
        while True:
            self.sample()
            await asyncio.sleep(_EVERY_S)

    def sample(self) -> None:
        """Look once."""
        rss: dict[str, float] = defaultdict(float)
        for name, pid in (*self._processes(), Running(LOAD, os.getpid())):
            kind = kind_of(name)
            with contextlib.suppress(OSError, ValueError):
                self._cpu_s[kind, pid] = cpu_s(pid)
                now_mib, peak_mib = memory_mib(pid)
                rss[kind] += now_mib
                self.peak_rss_mib[kind] = max(self.peak_rss_mib.get(kind, 0.0), peak_mib)
        total: dict[str, float] = defaultdict(float)
        for (kind, _), used in self._cpu_s.items():
            total[kind] += used
        total[OTHERS] = machine_cpu_s() - sum(total.values())
        self.samples.append(Sample(time_ns(), dict(total), dict(rss)))

    def cpu_between(self, from_ns: int, to_ns: int) -> dict[str, float]:
        """CPU seconds by kind used between two moments."""
        before, after = cpu_at(self.samples, from_ns), cpu_at(self.samples, to_ns)
        return {kind: used - before.get(kind, 0.0) for kind, used in after.items()}


def cpu_at(samples: Sequence[Sample], at_ns: int) -> dict[str, float]:
    """CPU seconds by kind at a moment, between two samples in proportion; outside of them the nearest one's."""
    after = bisect_right(samples, at_ns, key=lambda sample: sample.at_ns)
    if after == 0:
        return dict(samples[0].cpu_s)
    low = samples[after - 1]
    if after == len(samples):
        return dict(low.cpu_s)
    high = samples[after]
    part = (at_ns - low.at_ns) / (high.at_ns - low.at_ns)
    return {kind: low.cpu_s.get(kind, 0.0) * (1 - part) + used * part for kind, used in high.cpu_s.items()}


def cpu_s(pid: int) -> float:
    """CPU seconds, user and system, of a process and its threads. Raises OSError if it is gone."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[_UTIME]) + int(fields[_STIME])) * _TICK_S


def machine_cpu_s() -> float:
    """CPU seconds that the whole machine has been busy."""
    user, nice, system, _idle, _wait, interrupt, soft, steal, *_ = (
        Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
    )
    return sum(map(int, (user, nice, system, interrupt, soft, steal))) * _TICK_S


def memory_mib(pid: int) -> tuple[float, float]:
    """Resident MiB of a process, now and at its peak. Raises OSError if it is gone, ValueError while it ends."""
    found = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "VmHWM"):
            found[name] = int(value.split()[0]) / 1024
    if len(found) != 2:
        raise ValueError(f"process {pid} has no memory any more")
    return found["VmRSS"], found["VmHWM"]


class Disk(NamedTuple):
    """Bytes of record data by topic, and of the stores of owners and API."""

    log: Mapping[str, int]
    stores: Mapping[str, int]


def disk(data_dir: Path) -> Disk:
    """What a cluster's folder holds now. Kafka's index files, which it makes large ahead of need, do not count."""
    log: dict[str, int] = defaultdict(int)
    for segment in (data_dir / "kafka" / "logs").glob("*/*.log"):
        topic = segment.parent.name.rpartition("-")[0]
        if not topic.startswith("__"):
            log[topic] += _size(segment)
    stores = {
        name: sum(_size(file) for file in (data_dir / name).rglob("*") if file.is_file())
        for name in ("owners", "api")
    }
    return Disk(dict(log), stores)


def grown(before: Disk, after: Disk, count: int) -> dict[str, object]:
    """Bytes a job or run between two looks: the log's sum and its topics, the stores'."""
    topics = {name: size - before.log.get(name, 0) for name, size in sorted(after.log.items())}
    stores = {
        name: round((size - before.stores.get(name, 0)) / count, 1) for name, size in after.stores.items()
    }
    each = {name: round(size / count, 1) for name, size in topics.items() if size}
    return {"log": round(sum(topics.values()) / count, 1), "topics": each, "stores": stores}


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # a store has just replaced it
        return 0
