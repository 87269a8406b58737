"""How fast the log is folded, and verified: a log of `n` events is made as exported files, and read by two processes.

Counted are rows of events, as in W9 and W10: a fact about one execution is one, whether it stands alone or in the columns of
an event; a run that comes due, is granted at once and succeeds is two of them. `fold` decodes, chains and folds the owner's
state into RocksDB; `verify` is what `python -m replay verify` does without copies. Kafka is not there.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from multiprocessing import active_children
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.made_log import make_log
from bench.results import Repetition
from bench.rig import BenchError, Options, Say
from minutebook.domain.rows import rows_of
from replay.files import FileLog
from replay.frames import AuditReader
from replay.parallel import Stopped, spread
from replay.reading import TO_THE_END, Advance
from replay.refold import Refold, folding
from replay.verify import verify

PROCESSES: Final = 2
_SAMPLES: Final = 30


class Fold(NamedTuple):
    """The fold of a partition's owner's state; how many rows it had."""

    log: FileLog
    folder: Path

    def __call__(self, partition: int, advance: Advance, is_stopped: Stopped) -> int:
        refold = Refold(self.folder / f"fold-{partition}", partition, has_view=False)
        try:
            frames = folding(self.log, refold, AuditReader(), TO_THE_END, advance)
            rows = sum(sum(map(rows_of, frame.events)) for frame in frames)
            refold.commit()
        finally:
            refold.close()
        return rows


class Memory:
    """Told how many records were read, it notes now and then the most memory that a process has had so far, in MiB."""

    def __init__(self, records: int) -> None:
        self._step = max(1, records // _SAMPLES)
        self._read = 0
        self._seen: list[float] = []

    def advance(self, _partition: int, records: int) -> None:
        self._read += records
        if self._read >= self._step * (len(self._seen) + 1):
            self._seen.append(max((_peak_mib(child.pid) for child in active_children()), default=0.0))

    def thirds(self) -> dict[str, float]:
        """At a third, at two thirds, and at the end."""
        if not self._seen:
            return {}
        places = {"third": len(self._seen) // 3, "two_thirds": 2 * len(self._seen) // 3, "end": -1}
        return {name: round(self._seen[place], 1) for name, place in places.items()}


async def measure(n: int, options: Options, say: Say) -> list[Repetition]:
    """One repetition of `n` events: made, folded, verified."""
    folder = Path(tempfile.mkdtemp(prefix="minutebook-replay-"))
    try:
        return [await asyncio.to_thread(_measured, folder, n, say)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(folder: Path, n: int, say: Say) -> Repetition:
    started_s = time.perf_counter()
    make_log(folder / "log", n, PROCESSES)
    log = FileLog(folder / "log")
    records = sum(end for _, end in map(log.bounds, log.partitions()))
    made_s = round(time.perf_counter() - started_s, 1)
    size = sum(file.stat().st_size for file in (folder / "log").iterdir())
    say(f"{records:,} frames made in {made_s} s")
    folded, fold = _timed(
        records, lambda advance: spread(log.partitions(), Fold(log, folder), PROCESSES, advance)
    )
    rows = sum(folded.values())
    say(f"folded: {rows:,} events in {fold['wall_s']} s")
    report, verified = _timed(
        records, lambda advance: verify(log, log.partitions(), advance=advance, processes=PROCESSES)
    )
    say(f"verified in {verified['wall_s']} s")
    if not report.ok or sum(item.rows for item in report.partitions) != rows:
        raise BenchError(f"the log that was made is not lawful: {report.findings[:3]}")
    for found in (fold, verified):
        found["events_per_s"] = round(rows / found["wall_s"])
        found["cpu_us_per_event"] = round(found["cpu_s"] / rows * 1e6, 2)
    return Repetition(
        peak_rss_mib={name: found["peak_rss_mib"]["end"] for name, found in (("fold", fold), ("verify", verified))},
        more={
            "processes": PROCESSES,
            "events": rows,
            "frames": records,
            "file_bytes_per_event": round(size / rows, 1),
            "made_s": made_s,
            "fold": fold,
            "verify": verified,
        },
    )  # fmt: skip


def _timed(records: int, work: Callable[[Advance], Any]) -> tuple[Any, dict[str, Any]]:
    """What `work` gives, and what it took."""
    memory = Memory(records)
    before_s, cpu_s = time.perf_counter(), _cpu_s()
    found = work(memory.advance)
    took_s = time.perf_counter() - before_s
    figures = {"wall_s": round(took_s, 1), "cpu_s": round(_cpu_s() - cpu_s, 1)}
    return found, {**figures, "peak_rss_mib": memory.thirds()}


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _peak_mib(pid: int | None) -> float:
    """The most memory that a process has had; 0 for one that is gone."""
    try:
        lines = Path(f"/proc/{pid or os.getpid()}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1_024 for line in lines if line.startswith("VmHWM:")), 0.0)
