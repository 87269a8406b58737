"""Fairness: one tenant's N runs are due at T, and a second later one run each of twenty other tenants. Whoever has few jobs
must not wait behind whoever has many.

Each run holds its slot for a moment, so that the crowd's take many seconds; the others' starts are what counts.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import replace
from time import time
from typing import Final

from bench.figures import Tally, quantile
from bench.producer import in_batches, send, submissions
from bench.results import Repetition
from bench.rig import Options, Rig, Say, check_settled, choose_t_ms, running
from bench.witness import SHORT, SHORT_S
from minutebook.domain.commands import SubmitJob

GUESTS: Final = 20
AFTER_MS: Final = 1_000
SLOTS: Final = 100
"""Of each worker."""
GOAL_S: Final = 2.0
_PATIENCE_S: Final = 120.0


async def measure(n: int, options: Options, say: Say) -> list[Repetition]:
    """One repetition: `n` runs of the crowd."""
    options = replace(options, slots=SLOTS)
    async with running(options, say) as rig:
        t_ms = choose_t_ms(n, options)
        tally = Tally(array("q", [t_ms]) * n + array("q", [t_ms + AFTER_MS]) * GUESTS)
        await rig.create("crowd", tally.due_ms[:n], SHORT)
        check_settled(await send(rig.cluster.kafka, in_batches(_guests(n, t_ms), rig.partitions)), t_ms)
        say(
            f"{n:,} jobs of one tenant and one of {GUESTS} others are there; T in {t_ms / 1000 - time():.0f} s"
        )
        await rig.until(t_ms)
        await rig.starts(tally, _PATIENCE_S + n * SHORT_S / (SLOTS * options.workers))
        return [_repetition(tally, n, rig)]


def _guests(n: int, t_ms: int) -> Iterator[SubmitJob]:
    """A job of each guest; their runs are numbered behind those of the crowd."""
    for guest in range(GUESTS):
        due_ms = [t_ms + AFTER_MS]
        yield from submissions("guest", due_ms, task=SHORT, tenant=f"guest-{guest:02}", first=n + guest)


def _repetition(tally: Tally, n: int, rig: Rig) -> Repetition:
    found, crowd, guests = tally.figures(), range(n), tally.late_s(range(n, n + GUESTS))
    last_guest_ns = (tally.due_ms[-1] / 1000 + guests[-1]) * 1e9 if guests else 0.0
    waiting = tally.started_after(last_guest_ns, crowd)
    rig.say(
        f"{len(guests)} of {GUESTS} guests started, the last {guests[-1] if guests else '-'} s after its instant "
        f"(goal {GOAL_S} s); {waiting:,} of the crowd waited then"
    )
    return Repetition(
        first_start_s=found.first_start_s,
        last_start_s=found.last_start_s,
        p50_s=found.p50_s,
        p99_s=found.p99_s,
        max_s=found.max_s,
        runs_per_s=found.runs_per_s,
        early=found.early,
        lost=found.lost,
        repeated=found.repeated,
        peak_rss_mib={kind: round(mib, 1) for kind, mib in sorted(rig.consumption.peak_rss_mib.items())},
        more={
            "guests_started": len(guests),
            "guests_p50_s": quantile(guests, 0.5) if guests else None,
            "guests_max_s": guests[-1] if guests else None,
            "guests_goal_s": GOAL_S,
            "crowd_waiting_at_last_guest": waiting,
        },
    )
