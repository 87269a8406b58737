"""`python -m tests.crash.dying_worker worker run module:app`: a worker that dies when it has taken its first grant.

It has read the inbox record, has started nothing and told nobody.
"""

from __future__ import annotations

from collections.abc import Iterable

from minutebook.cli.main import run
from minutebook.domain.records import Inbox
from minutebook.worker.exchange import Exchange
from minutebook.worker.run import Orders
from tests.crash.tasks import die


def arm() -> None:
    """Make this process die at its first grant."""
    take = Exchange.take

    def dying_take(self: Exchange, inbox: Iterable[Inbox], now: float) -> Orders:
        orders = take(self, inbox, now)
        if orders.starts:
            die()
        return orders

    Exchange.take = dying_take  # type: ignore[method-assign]


if __name__ == "__main__":
    arm()
    run()
