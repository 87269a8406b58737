"""`python -m tests.crash.dying_owner STEP NTH KIND [freeze]`: an owner that kills, or stops, itself at a step of its work.

STEP is `before-append`, `after-append` (its frame is in the log, nothing is folded), `after-fold` (nothing is stored),
`after-commit` (stored, nothing sent) or `after-outputs` (all sent, nobody was told so); NTH counts frames of KIND: what
grants, gives up, is mailed or rejected, or is a step of a bulk operation.

`python -m tests.crash.dying_owner named`: at the step that a job is named after, `<step>-...`, when it grants it. Each
execution fells one owner.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable
from typing import Any

from minutebook.domain import events as facts
from minutebook.log.draft import Draft
from minutebook.log.kafka import KafkaEventLog
from minutebook.wire.frames import decode_frame
from streams.__main__ import main
from streams.cycle import Cycle
from streams.owner import Owner
from tests.crash.tasks import die, falls_at, freeze

STEPS = ("before-append", "after-append", "after-fold", "after-commit", "after-outputs")
GRANTS = (facts.ExecutionsDueGranted, facts.ExecutionsGranted)
KINDS: dict[str, tuple[type, ...]] = {
    "grants": GRANTS,
    "dead": (facts.ExecutionDead,),
    "mail": (facts.QueueDeclared, facts.CommandForwarded),
    "rejected": (facts.RecordRejected,),
    "operation": (facts.OperationAdvanced,),
    "": (),
}


IsTime = Callable[[Iterable[Any]], bool]
"""Whether the frame with these events is the one to fall at."""


def nth_of(nth: int, kind: str) -> IsTime:
    """The `nth` frame of a kind."""
    counter = itertools.count(1)
    return lambda events: any(isinstance(event, KINDS[kind]) for event in events) and next(counter) == nth


def named_after(step: str) -> IsTime:
    """Every frame that grants a job named after `step`, once for each execution."""
    return lambda events: any(
        falls_at(step, event.executions) for event in events if isinstance(event, GRANTS)
    )


def arm(step: str, is_time: IsTime, fall: Callable[[], None]) -> None:
    """Make this process `fall` at `step` of the frames for which it `is_time`."""
    append, send, follow = KafkaEventLog.append, Owner._send_outputs, Cycle.follow

    async def dying_append(self: KafkaEventLog, partition: int, value: bytes) -> Any:
        now = is_time(decode_frame(value).events)
        if now and step == "before-append":
            fall()
        ack = await append(self, partition, value)
        if now and step == "after-append":
            fall()
        return ack

    def dying_follow(self: Cycle, draft: Draft) -> None:
        follow(self, draft)
        if is_time(draft.events):
            fall()

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
    elif step == "after-fold":
        Cycle.follow = dying_follow  # type: ignore[method-assign]
    elif step in STEPS:
        Owner._send_outputs = dying_send  # type: ignore[method-assign]
    else:
        raise SystemExit(f"no step {step}")


def arm_by_names() -> None:
    """Make this process die wherever a job says."""
    for step in STEPS:
        arm(step, named_after(step), die)


if __name__ == "__main__":
    if sys.argv[1] == "named":
        arm_by_names()
    else:
        fall = freeze if "freeze" in sys.argv else die
        arm(sys.argv[1], nth_of(int(sys.argv[2]), sys.argv[3]), fall)
    sys.exit(main())
