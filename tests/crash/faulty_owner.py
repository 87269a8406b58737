"""`python -m tests.crash.faulty_owner FAULT NTH`: an owner process with one fault in it.

`lose-grant`: its NTH inbox record with grants is acknowledged, but goes nowhere. `go-silent`: behind its NTH record of an
input of partition 1, the group's consumer brings nothing more of that partition. `fail-decide`: deciding a command for a
job whose id starts with `poison` raises, each time.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Coroutine, Iterable
from typing import Any

from minutebook.clock import SystemClock
from minutebook.domain.commands import Command
from minutebook.domain.outputs import ToSession
from minutebook.log import inputs
from minutebook.log.port import Ack, RawRecord
from streams.__main__ import main
from streams.host import Host
from streams.outbox import Outbox


class _Acknowledged(Ack):
    """What the producer would have answered."""

    @property
    def timestamp(self) -> int:
        return self.stamp


def lose_grant(nth: int) -> None:
    """The `nth` inbox record with grants is lost between the owner and the broker."""
    counter, start, clock = itertools.count(1), Outbox._start, SystemClock()

    async def lost() -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        future.set_result(_Acknowledged(0, clock.now()))
        return future

    def losing_start(self: Outbox, output: Any) -> Coroutine[Any, Any, asyncio.Future[Any]]:
        if isinstance(output, ToSession) and output.record.granted and next(counter) == nth:
            return lost()
        return start(self, output)

    Outbox._start = losing_start  # type: ignore[method-assign]


def go_silent(nth: int) -> None:
    """The group's consumer stops delivering a partition, and nobody is told."""
    counter, offer = itertools.count(1), Host.offer

    def silent_offer(self: Host, topic: str, partition: int, records: Iterable[RawRecord]) -> None:
        brought = [record for record in records if partition != 1 or next(counter) <= nth]
        offer(self, topic, partition, brought)

    Host.offer = silent_offer  # type: ignore[method-assign]


def fail_decide() -> None:
    """Commands of some jobs cannot be decided."""
    decide = inputs.decide  # type: ignore[attr-defined]  # imported there, and called there by this name

    def failing_decide(book: Any, command: Command, stamp: int) -> Any:
        if getattr(command, "job_id", "").startswith("poison"):
            raise ZeroDivisionError("as planned")
        return decide(book, command, stamp)

    inputs.decide = failing_decide  # type: ignore[attr-defined]  # as above


if __name__ == "__main__":
    fault, nth = sys.argv[1], int(sys.argv[2])
    if fault == "lose-grant":
        lose_grant(nth)
    elif fault == "go-silent":
        go_silent(nth)
    elif fault == "fail-decide":
        fail_decide()
    else:
        raise SystemExit(f"no fault {fault}")
    sys.exit(main())
