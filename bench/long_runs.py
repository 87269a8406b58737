"""Long runs: N runs, each 2.5 leases long, all at once. None may be lost while its worker lives, and what workers report must
not grow with what they run: pulses are counted while nothing, a tenth of N and N run.
"""

from __future__ import annotations

from array import array
from dataclasses import replace
from time import time
from typing import Final

from bench import reports
from bench.eventlog import EventLog
from bench.figures import Tally
from bench.results import Repetition
from bench.rig import Options, Rig, Say, check_settled, choose_t_ms, running
from bench.witness import LONG, LONG_S
from minutebook.domain import events as facts

WORKERS: Final = 3
STEP_S: Final = 60
"""From the instant of the few to that of all."""
WINDOW_S: Final = 15
BEFORE_END_S: Final = 1
_PATIENCE_S: Final = 120.0


async def measure(n: int, options: Options, say: Say) -> list[Repetition]:
    """One repetition: a tenth of `n`, then `n` at once."""
    few = max(1, n // 10)
    options = replace(options, workers=WORKERS, slots=max(few, n * 2 // 5))
    async with running(options, say) as rig:
        t_ms = choose_t_ms(few + n, options)
        tally = Tally(array("q", [t_ms]) * few + array("q", [t_ms + STEP_S * 1000]) * n)
        check_settled(await rig.create("long", tally.due_ms, LONG), t_ms)
        say(f"{few:,} and {n:,} jobs of {LONG_S:.0f} s are there; T in {t_ms / 1000 - time():.0f} s")
        await rig.until(t_ms)
        await rig.starts(tally, _PATIENCE_S)
        await rig.until(max(tally.due_ms) + int(LONG_S * 1000))
        async with EventLog(rig.cluster.kafka, rig.partitions) as log:
            is_recorded = await log.read_until(facts.AttemptsSucceeded, few + n, _PATIENCE_S)
        tally.add(rig.witness.news())
        return [_repetition(rig, tally, log, is_recorded, await _rates(rig, t_ms, few, n))]


async def _rates(rig: Rig, t_ms: int, few: int, n: int) -> dict[str, dict[str, float]]:
    """What came on `worker-reports` while 0, `few` and `n` were running, by their number."""
    said = await reports.read(rig.cluster.kafka, rig.partitions)
    ends_ms = {0: t_ms, few: t_ms + int(LONG_S * 1000), n: t_ms + int((STEP_S + LONG_S) * 1000)}
    found: dict[str, dict[str, float]] = {}
    for running_, end_ms in ends_ms.items():
        to_ms = end_ms - BEFORE_END_S * 1000
        found[f"running_{running_}"] = reports.rate(said, to_ms - WINDOW_S * 1000, to_ms)._asdict()
        rig.say(f"{running_:,} running: {found[f'running_{running_}']}")
    return found


def _repetition(
    rig: Rig, tally: Tally, log: EventLog, is_recorded: bool, rates: dict[str, dict[str, float]]
) -> Repetition:
    found = tally.figures()
    rows = {kind.__name__: log.rows[kind.__name__] for kind in (facts.AttemptsLost, facts.GrantsReturned)}
    rig.say(f"{found.started:,} started, {found.lost:,} did not, {found.repeated:,} again; {rows}")
    return Repetition(
        p50_s=found.p50_s,
        p99_s=found.p99_s,
        max_s=found.max_s,
        early=found.early,
        lost=found.lost,
        repeated=found.repeated,
        peak_rss_mib={kind: round(mib, 1) for kind, mib in sorted(rig.consumption.peak_rss_mib.items())},
        more={
            **rates,
            "results_recorded": is_recorded,
            "attempts_lost": rows[facts.AttemptsLost.__name__],
            "grants_returned": rows[facts.GrantsReturned.__name__],
            "rows": dict(log.rows),
        },
    )
