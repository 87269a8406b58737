"""What rounds of one fault on one installation amount to, in figures for the table."""

from __future__ import annotations

from collections.abc import Sequence

from tests import figures
from tests.crash.checker import unanswered, unfinished
from tests.crash.joblog import whole_log
from tests.crash.ledger import Ledger
from tests.crash.pair import refusals
from tests.crash.stack import Stack


def note(stack: Stack, fault: str, restarted_s: Sequence[float], bound_s: float) -> None:
    """A row for the faults of a stack: one number a round says after how many seconds the work went on.

    Lost and given twice are counted in the raw log, read anew; `refused` are late results.
    """
    log = whole_log(stack.kafka, stack.partitions)
    ledger = Ledger(log)
    figures.note(
        "Faults in rounds",
        fault=fault,
        rounds=len(restarted_s),
        median_s=sorted(restarted_s)[len(restarted_s) // 2],
        max_s=max(restarted_s),
        bound_s=float(bound_s),
        jobs=len(stack.sent),
        lost=len([*unanswered(ledger, log, stack.sent), *unfinished(ledger, stack.sent)]),
        granted_twice=ledger.double_grants,
        refused=refusals(stack),
    )
