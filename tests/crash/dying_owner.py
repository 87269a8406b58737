"""`python -m tests.crash.dying_owner STEP NTH KIND [freeze]`: an owner that kills, or stops, itself at a step of its work.

STEP is `before-append`, `after-append` (its frame is in the log, nothing is folded), `after-commit` (folded, nothing sent)
or `after-outputs` (all sent, nobody was told so); NTH counts frames of KIND: what grants, gives up, is mailed or
rejected, or is a step of a bulk operation.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable
from typing import Any

from minutebook.domain import events as facts
from minutebook.log.kafka import KafkaEventLog
from minutebook.wire.frames import decode_frame
from streams.__main__ import main
from streams.owner import Owner
from tests.crash.tasks import die, freeze

STEPS = ("before-append", "after-append", "after-commit", "after-outputs")
KINDS: dict[str, tuple[type, ...]] = {
    "grants": (facts.ExecutionsDueGranted, facts.ExecutionsGranted),
    "dead": (facts.ExecutionDead,),
    "mail": (facts.QueueDeclared, facts.CommandForwarded),
    "rejected": (facts.RecordRejected,),
    "operation": (facts.OperationAdvanced,),
    "": (),
}


def _nth(nth: int, kind: tuple[type, ...]) -> Callable[[Iterable[Any]], bool]:
    counter = itertools.count(1)
    return lambda events: any(isinstance(event, kind) for event in events) and next(counter) == nth


def arm(step: str, nth: int, kind: str, fall: Callable[[], None]) -> None:
    """Make this process `fall` at the `nth` time of `step`."""
    is_time = _nth(nth, KINDS[kind])
    append, send = KafkaEventLog.append, Owner._send_outputs

    async def dying_append(self: KafkaEventLog, partition: int, value: bytes) -> Any:
        now = is_time(decode_frame(value).events)
        if now and step == "before-append":
            fall()
        ack = await append(self, partition, value)
        if now and step == "after-append":
            fall()
        return ack

    async def dying_send(self: Owner, events: Iterable[Any], frame: int, start_at: int) -> None:
        placed = list(events)
        now = is_time(event for event, _ in placed)
        if now and step == "after-commit":
            fall()
        await send(self, placed, frame, start_at)
        if now and step == "after-outputs":
            await self._process.producer.flush()
            fall()

    if step in ("before-append", "after-append"):
        KafkaEventLog.append = dying_append  # type: ignore[method-assign]
    elif step in STEPS:
        Owner._send_outputs = dying_send  # type: ignore[method-assign]
    else:
        raise SystemExit(f"no step {step}")


if __name__ == "__main__":
    arm(sys.argv[1], int(sys.argv[2]), sys.argv[3], freeze if "freeze" in sys.argv else die)
    sys.exit(main())
