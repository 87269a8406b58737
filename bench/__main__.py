"""`python -m bench [WORKLOAD] [N]`: run workloads, write `bench/results/`, show a table."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from rich.console import Console

from bench.results import result, save, show
from bench.rig import BenchError, Options
from bench.workloads import Workload, workloads
from minutebook.cli.dev import stop_signals
from minutebook.errors import MinutebookError

_INTERRUPTED = 130


def main() -> int:
    """Run what the command line asks for. Returns the exit code: 1 if something cannot be measured."""
    given = _arguments()
    chosen = workloads(given.seconds)
    names = [given.workload] if given.workload else list(chosen)
    console = Console(soft_wrap=True)
    with stop_signals():
        try:
            for name in names:
                asyncio.run(_measure(name, chosen[name], given, console))
        except (BenchError, MinutebookError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return _INTERRUPTED
    return 0


def _arguments() -> argparse.Namespace:
    known = workloads(None)
    what = "\n".join(f"  {name}  {one.what} (N = {one.n:,})" for name, one in known.items())
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=f"{__doc__}\n\n{what}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("workload", nargs="?", choices=[*known], help="all of them without it")
    parser.add_argument("n", nargs="?", type=int, help="size; for W7 the jobs that lie in the stores")
    parser.add_argument("--owners", type=int, choices=(1, 2), default=2, help="owner processes (%(default)s)")
    parser.add_argument("--repetitions", type=int, default=3, help="%(default)s")
    parser.add_argument("--seconds", type=int, help="length of W2 (600) and W3 (60)")
    parser.add_argument("--create-rate", type=int, default=5_000, help="jobs a second expected (%(default)s)")
    parser.add_argument("--keep", type=Path, help="folder of the cluster, kept afterwards with its logs")
    return parser.parse_args()


async def _measure(name: str, workload: Workload, given: argparse.Namespace, console: Console) -> None:
    options = Options(owners=given.owners, create_rate=given.create_rate, keep=given.keep)
    n = given.n or workload.n
    found = []
    for number in range(given.repetitions):
        console.print(f"{name}: {workload.what}, n = {n:,}, repetition {number + 1} of {given.repetitions}")
        found += await workload.measure(n, options, lambda line: console.print(f"  {line}", highlight=False))
    written = result(name, n, options.settings(), found)
    show(written, console)
    console.print(f"written to {save(written)}")


if __name__ == "__main__":
    sys.exit(main())
