"""The workloads, by name. Each takes a size, or its own default, and gives one repetition per call."""

from __future__ import annotations

import asyncio
import shutil
from array import array
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from bench import creating, fairness, lists, long_runs, replay, streams
from bench.results import Repetition
from bench.rig import BenchError, Fault, Options, Rig, Say, choose_t_ms, measured, running

_FAULT_RATE: Final = 500
_FAULT_AFTER_S: Final = 10.0
_FAULT_SECONDS: Final = 40

Measure = Callable[[int, Options, Say], Awaitable[list[Repetition]]]


class Workload(NamedTuple):
    """`n` is the default size; `measure` makes one round, of one repetition or one for each of its cases."""

    what: str
    n: int
    measure: Measure


async def burst(n: int, options: Options, say: Say) -> list[Repetition]:
    """W1: `n` one-off jobs, all due at T."""
    async with running(options, say) as rig:
        return [await measured(rig, array("q", [choose_t_ms(n, options)]) * n)]


async def steady(n: int, rate: int, options: Options, say: Say) -> list[Repetition]:
    """W2, W3: `rate` runs a second until `n` have come."""
    async with running(options, say) as rig:
        found = await measured(rig, spread(choose_t_ms(n, options), n, rate))
        found.more = {**found.more, "rss_mib": _memory(rig)}
        return [found]


async def faults(n: int, options: Options, say: Say) -> list[Repetition]:
    """W7: one repetition for each fault, ten seconds into 500 runs a second; `n` further jobs lie in the stores."""
    found = []
    for name, fault in FAULTS.items():
        say(f"fault: {name}")
        options = replace(options, owners=max(2, options.owners))
        async with running(options, say) as rig:
            count = _FAULT_RATE * _FAULT_SECONDS
            t_ms = choose_t_ms(n + count, options)
            later = array("q", [t_ms + 86_400_000]) * n
            one = await measured(rig, spread(t_ms, count, _FAULT_RATE), fault=fault, stored=later)
            one.case = name
            one.more = {"latest_start_s": one.max_s, **one.more}
            if name == "owner_host_lost":
                one.more["note"] = "no checkpoint: the survivor folds the log from its start"
            found.append(one)
    return found


def spread(t_ms: int, n: int, rate: int) -> Sequence[int]:
    """Due instants of `n` runs, `rate` a second from `t_ms` on."""
    return array("q", (t_ms + number * 1000 // rate for number in range(n)))


async def _owner_killed(rig: Rig) -> None:
    await asyncio.sleep(_FAULT_AFTER_S)
    _kill(rig, "owner-1")


async def _owner_host_lost(rig: Rig) -> None:
    await asyncio.sleep(_FAULT_AFTER_S)
    await asyncio.to_thread(rig.cluster.service("owner-1").await_stop, 0)
    shutil.rmtree(rig.data_dir / "owners" / "owner-1")


async def _worker_killed(rig: Rig) -> None:
    await asyncio.sleep(_FAULT_AFTER_S)
    _kill(rig, "worker-1")


async def _broker_restarted(rig: Rig) -> None:
    await asyncio.sleep(_FAULT_AFTER_S)
    _kill(rig, "kafka")


def _kill(rig: Rig, name: str) -> None:
    if rig.cluster.kill(name) is None:
        raise BenchError(f"{name} was to be killed but does not run")


FAULTS: Final[dict[str, Fault]] = {
    "owner_killed": _owner_killed,
    "owner_host_lost": _owner_host_lost,
    "worker_killed": _worker_killed,
    "broker_restarted": _broker_restarted,
}


def _memory(rig: Rig) -> dict[str, dict[str, float]]:
    """Resident MiB by kind at a quarter, a half, three quarters and the end of the samples."""
    samples = rig.consumption.samples
    return {
        f"{part}/4": {
            kind: round(mib, 1) for kind, mib in samples[len(samples) * part // 4 - 1].rss_mib.items()
        }
        for part in (1, 2, 3, 4)
    }


def workloads(seconds: int | None) -> dict[str, Workload]:
    """By name; `seconds` shortens or lengthens the steady ones."""
    day_s, light_s = seconds or 600, seconds or 60

    def of_rate(rate: int) -> Measure:
        return lambda n, options, say: steady(n, rate, options, say)

    return {
        "W1": Workload("one-off jobs, all due at T", 100_000, burst),
        "W2": Workload("11,574 runs a second: a day of a billion", 11_574 * day_s, of_rate(11_574)),
        "W3": Workload("light: 50 runs a second", 50 * light_s, of_rate(50)),
        "W6": Workload("creating, in each way in", 100_000, creating.measure),
        "W7": Workload("faults at 500 runs a second", 100_000, faults),
        "W10": Workload("lists while events fold in, attempts stored", 1_000_000, lists.measure),
        "fairness": Workload("tenants with one job each beside a crowd", 100_000, fairness.measure),
        "SSE": Workload("readers of the live stream at one API process", 1_000, streams.measure),
        "replay": Workload("a log folded and verified, events in it", 1_000_000, replay.measure),
        "long": Workload("runs that take longer than a lease", 10_000, long_runs.measure),
    }
