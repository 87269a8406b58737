"""`python -m bench.profile [N]`: W1 with a sampler in each of our processes; says where the CPU time of a run goes.
With `--rate R` a steady load of R runs a second takes the place of the burst.

Sampled from T - 0.1 s until every result is in the log. The samplers cost some speed: take figures of speed from
`python -m bench`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import time
from typing import Any, Final, NamedTuple

from bench.consumption import kind_of
from bench.results import ROOT, commit, machine, versions
from bench.rig import BenchError, Options, choose_t_ms, measured, running
from bench.sampled import FOLDER, NATIVE
from bench.workloads import spread
from minutebook.cli.dev import stop_signals
from minutebook.embedded.cluster import Cluster
from minutebook.embedded.service import Command
from minutebook.errors import MinutebookError

_TOP: Final = 25
_OURS: Final = ("minutebook.", "streams.", "api.", "bench.", "__main__")


class Sample(NamedTuple):
    """Where a process was: functions from the leaf on, as `module:name`."""

    at_ns: int
    thread: str
    functions: Sequence[str]


class SampledCluster(Cluster):
    """Runs each process of ours under the sampler."""

    def _command(self, name: str, arguments: Sequence[str], *rest: Any, **more: Any) -> Command:
        return super()._command(name, ("-m", "bench.sampled", *arguments), *rest, **more)


def shares(samples: Iterable[Sample]) -> dict[str, Any]:
    """Shares of the samples: by thread, by the function that ran, and by each of our functions with all that it called."""
    threads: Counter[str] = Counter()
    own: Counter[str] = Counter()
    under: Counter[str] = Counter()
    for sample in samples:
        threads[sample.thread] += 1
        own[sample.functions[0] if sample.functions else NATIVE] += 1
        under.update({name for name in sample.functions if name.startswith(_OURS)})
    total = max(1, threads.total())
    return {
        "samples": threads.total(),
        "threads": _top(threads, total),
        "own": _top(own, total),
        "with_called": _top(under, total),
    }


def _top(counts: Counter[str], total: int) -> dict[str, float]:
    return {name: round(count / total * 100, 1) for name, count in counts.most_common(_TOP)}


def read_samples(file: Path, from_ns: int, to_ns: int) -> list[Sample]:
    """Samples of a process between two moments. A last line cut by its end is left out."""
    found = []
    for line in file.read_text().splitlines():
        try:
            sample = Sample(*json.loads(line))
        except ValueError:
            continue
        if from_ns <= sample.at_ns <= to_ns:
            found.append(sample)
    return found


async def profile(
    n: int, rate: int | None, options: Options, folder: Path, console_say: Any
) -> dict[str, Any]:
    """Run the load and sum up the samples by kind of process."""
    options = replace(options, cluster=SampledCluster, environment={FOLDER: str(folder)})
    async with running(options, console_say) as rig:
        pids = {pid: kind_of(name) for name, pid in rig.cluster.processes}
        t_ms = choose_t_ms(n, options)
        found = await measured(rig, spread(t_ms, n, rate) if rate else array("q", [t_ms]) * n)
        to_ns = int(time() * 1e9)
    samples: dict[str, list[Sample]] = {}
    for file in folder.glob("*.samples"):
        kind = pids.get(int(file.stem))
        if kind:
            samples.setdefault(kind, []).extend(read_samples(file, int((t_ms - 100) * 1e6), to_ns))
    cpu = found.more["cpu_s_per_1000_runs_until_recorded"]
    return {
        "workload": _name(rate),
        "n": n,
        "commit": commit(),
        "machine": machine(),
        "versions": versions(),
        "settings": options.settings(),
        "last_start_s": found.last_start_s,
        "us_of_cpu_per_run_until_recorded": {kind: round(used * 1000, 1) for kind, used in cpu.items()},
        "percent": {kind: shares(one) for kind, one in sorted(samples.items())},
    }


def _name(rate: int | None) -> str:
    return f"steady-{rate}" if rate else "W1"


def _tell(found: Mapping[str, Any]) -> None:
    print(
        f"last start T+{found['last_start_s']} s; us of CPU per run: {found['us_of_cpu_per_run_until_recorded']}"
    )
    for kind, parts in found["percent"].items():
        us = found["us_of_cpu_per_run_until_recorded"].get(kind, 0.0)
        for part in ("threads", "own", "with_called"):
            print(f"\n{kind}, {part} ({parts['samples']} samples)")
            for name, percent in parts[part].items():
                print(f"  {percent:5.1f} %  {percent * us / 100:6.2f} us  {name}")


def main() -> int:
    """Profile and write `bench/results/profile-<load>.json`. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("n", nargs="?", type=int, default=100_000, help="size (%(default)s)")
    parser.add_argument("--rate", type=int, help="runs a second; all at once without it")
    parser.add_argument("--owners", type=int, choices=(1, 2), default=2, help="owner processes (%(default)s)")
    parser.add_argument("--keep", type=Path, help="folder of the cluster, kept afterwards with its logs")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="minutebook-profile-"))
    with stop_signals():
        try:
            found = asyncio.run(
                profile(given.n, given.rate, Options(owners=given.owners, keep=given.keep), folder, print)
            )
        except (BenchError, MinutebookError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        finally:
            shutil.rmtree(folder)
    _tell(found)
    (ROOT / "results").mkdir(exist_ok=True)
    (ROOT / "results" / f"profile-{_name(given.rate)}.json").write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
