"""`python -m tests.crash.dying_worker worker run module:app`: a worker that falls where its tasks cannot reach.

It dies when it has taken a grant of a job named `untaken-...`: it has read the inbox record, has started nothing and told
nobody. It stops when it is about to send the result of a job named `unsent-...`, and sends it once it is woken. Each
execution fells one worker.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from minutebook.cli.main import run
from minutebook.domain.records import Inbox, Report
from minutebook.worker.exchange import Exchange
from minutebook.worker.link import Link
from minutebook.worker.run import Orders
from tests.crash.tasks import die, falls_at, freeze

UNTAKEN: Final = "untaken"
UNSENT: Final = "unsent"


def arm() -> None:
    """Make this process fall at both places."""
    take, send = Exchange.take, Link._send

    def dying_take(self: Exchange, inbox: Iterable[Inbox], now: float) -> Orders:
        orders = take(self, inbox, now)
        if falls_at(UNTAKEN, [run.execution for run in orders.starts]):
            die()
        return orders

    async def freezing_send(
        self: Link, exchange: Exchange, partition: int, report: Report, sent_at: float
    ) -> None:
        if report.succeeded is not None and falls_at(UNSENT, report.succeeded.executions):
            freeze()
        await send(self, exchange, partition, report, sent_at)

    Exchange.take = dying_take  # type: ignore[method-assign]
    Link._send = freezing_send  # type: ignore[method-assign]


if __name__ == "__main__":
    arm()
    run()
