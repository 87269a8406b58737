"""The read model of bulk operations: folded at the home of each, where all that partitions told is on record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from minutebook.domain import events as facts
from minutebook.domain import view_expiry
from minutebook.domain.operation import OperationCount, OperationFact
from minutebook.domain.state import NONE_AT
from minutebook.errors import BrokenFrameError
from minutebook.ids import operation_subject

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView

FAMILY: Final = "operations"
replace = msgspec.structs.replace


class OperationRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An operation with what each partition told last. `ended_at` -1 = it is open."""

    fact: OperationFact
    told: dict[int, OperationCount] = {}
    cancelled_by: str = ""
    cancel_reason: str = ""
    ended_at: int = NONE_AT


def operation_row(prefix: bytes, tenant: str, operation: str) -> bytes:
    """Key of an operation."""
    return prefix + f"{tenant}\0{operation}".encode()


def operation_of(view: PartitionView, tenant: str, operation: str) -> OperationRow | None:
    """An operation whose home this partition is."""
    return view.read(FAMILY, operation_row(view.prefix, tenant, operation), OperationRow)


def operations_of(view: PartitionView, tenant: str) -> Iterator[OperationRow]:
    """A tenant's operations whose home this partition is, by id. Reads committed rows only."""
    start = operation_row(view.prefix, tenant, "")
    for _, row in view.rows_of(FAMILY, start, start[:-1] + b"\1", OperationRow):
        yield row


def _started(view: PartitionView, event: facts.OperationStarted) -> None:
    _put(view, OperationRow(event.fact))
    _answer(view, event, event.fact, "StartOperation", event.fact.actor, event.fact.reason)


def _cancelled(view: PartitionView, event: facts.OperationCancelled) -> None:
    row = _row(view, event.fact.tenant, event.fact.operation)
    _put(view, replace(row, fact=event.fact, cancelled_by=event.actor, cancel_reason=event.reason))
    _answer(view, event, event.fact, "CancelOperation", event.actor, event.reason)


def _counted(view: PartitionView, event: facts.OperationCounted) -> None:
    row = _row(view, event.tenant, event.operation)
    count = OperationCount(
        event.tenant, event.operation, event.matched, event.done, event.refused, event.is_finished
    )
    _put(view, replace(row, told={**row.told, event.partition: count}))


def _ended(view: PartitionView, event: facts.OperationEnded) -> None:
    _put(view, replace(_row(view, event.tenant, event.operation), ended_at=view.now))
    view_expiry.operation_ended(view, operation_row(view.prefix, event.tenant, event.operation))


def _put(view: PartitionView, row: OperationRow) -> None:
    view.dirty[FAMILY][operation_row(view.prefix, row.fact.tenant, row.fact.operation)] = row


def _row(view: PartitionView, tenant: str, operation: str) -> OperationRow:
    row = view.read(FAMILY, operation_row(view.prefix, tenant, operation), OperationRow)
    if row is None:
        raise BrokenFrameError(f"operation {tenant}/{operation} is not there")
    return row


def _answer(view: PartitionView, event: Any, fact: OperationFact, command: str, actor: str, why: str) -> None:
    subject = operation_subject(fact.operation)
    view.answer(event, command, job_id=subject, tenant=fact.tenant, version=1, actor=actor, why=why)


FOLDS: Final[dict[type, Callable[[PartitionView, Any], None]]] = {
    facts.OperationStarted: _started,
    facts.OperationCancelled: _cancelled,
    facts.OperationCounted: _counted,
    facts.OperationEnded: _ended,
}
