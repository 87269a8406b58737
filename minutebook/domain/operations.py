"""Bulk operations at their home: commands that start and cancel them, what partitions tell, and when they end.

The work itself, partition by partition, is in `operation_steps`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

import msgspec

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.backfill import check_range
from minutebook.domain.book import Book
from minutebook.domain.commands import REASON_CHARS_MAX, CancelOperation, OperationCommand, StartOperation
from minutebook.domain.events import Event
from minutebook.domain.operation import (
    CAUSES,
    RATE_MAX_PER_S,
    HomeOperation,
    OperationCount,
    OperationFact,
    OperationFilter,
)
from minutebook.domain.refusal import Refusal, answered
from minutebook.domain.state import ACTIVE, PAUSED

DEAD_KINDS: Final = ("redrive", "discard")
"""Kinds that are about dead executions."""
JOB_KINDS: Final = ("pause", "resume", "cancel")
"""Kinds that are about jobs."""
KINDS: Final = ("redrive", "backfill", *JOB_KINDS, "discard")
OPEN_MAX: Final = 100
"""Operations that are open at one time: each of them is looked at in every partition."""
TEXT_CHARS_MAX: Final = 256


def decide_operation(book: Book, command: OperationCommand, stamp: int) -> list[Event]:
    """Events of a command on an operation, at its home. Raises Refusal."""
    known = book.operations.get(keys.operation_row(command.tenant, command.operation))
    match command:
        case StartOperation():
            return _start(book, known, command, stamp)
        case CancelOperation():
            return _cancel(book, known, command, stamp)
        case _:
            assert_never(command)


def _start(book: Book, known: HomeOperation | None, command: StartOperation, stamp: int) -> list[Event]:
    if known is not None or has_ended(book, command.tenant, command.operation):
        raise Refusal(
            "id_exists", "operation", "an operation with this id was started before; choose another"
        )
    _check(command, stamp)
    if sum(1 for _ in book.shares.scan(b"")) >= OPEN_MAX:
        raise Refusal(
            "too_many", "operation", f"{OPEN_MAX} operations are open; cancel one or wait for its end"
        )
    fact = OperationFact(
        tenant=command.tenant,
        operation=command.operation,
        kind=command.kind,
        filter=command.filter,
        rate_per_s=command.rate_per_s,
        reason=command.reason[:REASON_CHARS_MAX],
        actor=command.actor,
        accepted_at=stamp,
        home=book.cursor.partition,
    )
    return [facts.OperationStarted(command.command_id, fact), facts.OperationCopied(fact)]


def _check(command: StartOperation, stamp: int) -> None:
    if command.kind not in KINDS:
        raise Refusal("invalid", "kind", f"must be one of {', '.join(KINDS)}")
    if not 0 <= command.rate_per_s <= RATE_MAX_PER_S:
        raise Refusal("invalid", "rate_per_s", f"1 to {RATE_MAX_PER_S}; leave it out for no limit")
    if command.kind == "backfill":
        check_range(command.filter, stamp)
    elif command.kind in JOB_KINDS:
        check_jobs(command.filter)
    else:
        check_dead(command.filter)


def check_jobs(wanted: OperationFilter) -> None:
    """Raises Refusal naming the part of the filter that no job can fit."""
    _check_names(wanted, ("task", "queue", "tag", "job_prefix"))
    for field in ("job_id", "error_type", "cause"):
        if getattr(wanted, field):
            raise Refusal("invalid", f"filter/{field}", "is about executions; jobs are meant here")
    if wanted.status not in ("", ACTIVE, PAUSED):
        raise Refusal("invalid", "filter/status", f"must be {ACTIVE} or {PAUSED}: closed jobs do not change")
    _check_times(wanted)


def check_dead(wanted: OperationFilter) -> None:
    """Raises Refusal naming the part of the filter that no dead execution can fit."""
    _check_names(wanted, ("task", "queue", "job_prefix"))
    if wanted.job_id:
        raise Refusal("invalid", "filter/job_id", "is for a backfill; job_prefix says whose executions")
    for field in ("tag", "status"):
        if getattr(wanted, field):
            raise Refusal("invalid", f"filter/{field}", "is about jobs; dead executions are meant here")
    if len(wanted.error_type) > TEXT_CHARS_MAX:
        raise Refusal("invalid", "filter/error_type", f"ends at {TEXT_CHARS_MAX} characters")
    if wanted.cause and wanted.cause not in CAUSES:
        raise Refusal("invalid", "filter/cause", f"must be one of {', '.join(CAUSES)}")
    _check_times(wanted)


def _check_names(wanted: OperationFilter, fields: Iterable[str]) -> None:
    for field in fields:
        text = getattr(wanted, field)
        if text and not ids.is_name(text):
            raise Refusal("invalid", f"filter/{field}", "1-128 ASCII letters, digits, . _ -")


def _check_times(wanted: OperationFilter) -> None:
    if -1 < wanted.until_at <= wanted.from_at:
        raise Refusal("invalid", "filter/until_at", "must be later than filter/from_at")


def _cancel(book: Book, known: HomeOperation | None, command: CancelOperation, stamp: int) -> list[Event]:
    if known is None:
        raise Refusal("operation_ended", "operation", "it is not open: it has ended, or never was")
    if known.fact.is_cancelled:
        return [answered(command, "cancelled")]
    fact = msgspec.structs.replace(known.fact, is_cancelled=True)
    reason = command.reason[:REASON_CHARS_MAX]
    return [
        facts.OperationCancelled(command.command_id, command.actor, reason, stamp, fact),
        facts.OperationCopied(fact),
    ]


def has_ended(book: Book, tenant: str, operation: str) -> bool:
    """Whether an operation with that id ended within the days that are remembered."""
    return book.remembered(book.ended, keys.operation_row(tenant, operation)) is not None


def counted(book: Book, partition: int, count: OperationCount) -> list[Event]:
    """Events at the home when `partition` tells how far it is: what it told, and the end once all have finished.

    Empty for an operation that is not open: a repeat after its end.
    """
    known = book.operations.get(keys.operation_row(count.tenant, count.operation))
    if known is None:
        return []
    told = {**known.told, partition: count}
    events: list[Event] = [
        facts.OperationCounted(
            count.tenant,
            count.operation,
            partition,
            count.matched,
            count.done,
            count.refused,
            count.is_finished,
        )
    ]
    if len(told) == book.cursor.partitions and all(one.is_finished for one in told.values()):
        matched, done, refused = totals(told.values())
        is_cancelled = known.fact.is_cancelled
        events.append(
            facts.OperationEnded(count.tenant, count.operation, matched, done, refused, is_cancelled)
        )
    return events


def count_of(event: facts.OperationAdvanced) -> OperationCount:
    """What a partition tells the home."""
    return OperationCount(
        event.tenant, event.operation, event.matched, event.done, event.refused, event.is_finished
    )


def totals(told: Iterable[OperationCount]) -> tuple[int, int, int]:
    """(matched, done, refused) of all partitions; one that still counts has matched nothing yet."""
    counts = list(told)
    return (
        sum(max(0, one.matched) for one in counts),
        sum(one.done for one in counts),
        sum(one.refused for one in counts),
    )
