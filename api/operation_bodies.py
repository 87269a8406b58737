"""Bulk operations as bodies: the request to redrive many, read strictly, and the operation as it stands."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from api.bodies import check_distinct, read_object
from api.fields import Fields
from api.problems import Refused
from minutebook.client.operation_models import (
    DeadLetterFilter,
    Operation,
    OperationProgress,
    OperationState,
)
from minutebook.client.times import format_instant, parse_instant
from minutebook.domain.commands import REASON_CHARS_MAX, StartOperation
from minutebook.domain.operation import CAUSES, RATE_MAX_PER_S, OperationFilter
from minutebook.domain.operations import TEXT_CHARS_MAX, totals
from minutebook.domain.state import NONE_AT
from minutebook.domain.view_operations import OperationRow

_FIELDS: Final = ("filter", "dry_run", "rate_per_s", "reason")
_FILTER: Final = ("task", "queue", "error_type", "cause", "job_prefix", "given_up_from", "given_up_until")


class RedriveWish(NamedTuple):
    """What a caller wants redriven, and how."""

    wanted: OperationFilter
    is_dry_run: bool
    rate_per_s: int
    reason: str


def read_redrive(data: bytes) -> RedriveWish:
    """The wish in a body. Raises Refused naming every field at fault."""
    members = read_object(data)
    fields = Fields(members)
    fields.refuse_unknown(_FIELDS)
    wanted = _read_filter(fields)
    is_dry_run = fields.value("dry_run")
    if is_dry_run is not None and not isinstance(is_dry_run, bool):
        fields.fault("dry_run", "must be true or false")
    rate_per_s = fields.whole("rate_per_s")
    if rate_per_s is not None and not 1 <= rate_per_s <= RATE_MAX_PER_S:
        fields.fault("rate_per_s", f"must be 1 to {RATE_MAX_PER_S}; leave it out for no limit")
    reason = fields.text("reason") or ""
    if len(reason) > REASON_CHARS_MAX:
        fields.fault("reason", f"ends at {REASON_CHARS_MAX} characters")
    if fields.errors:
        raise Refused("invalid", errors=fields.errors)
    check_distinct(data, fields.names)
    return RedriveWish(wanted, bool(is_dry_run), rate_per_s or 0, reason)


def _read_filter(fields: Fields) -> OperationFilter:
    """The filter; faults are gathered in `fields`."""
    value = fields.value("filter")
    if not isinstance(value, dict):
        if value is not None or "filter" not in fields.members:
            fields.fault("filter", "is required, an object; {} means all of your dead letters")
        return OperationFilter()
    fields.names += len(value)
    for name in value:
        if name not in _FILTER:
            fields.fault_unknown(name, "filter/", _FILTER)
    members = {name: Raw(msgspec.json.encode(value[name])) for name in _FILTER if name in value}
    inner = Fields(members, "filter/")
    given_up_from = inner.parsed("given_up_from", parse_instant)
    given_up_until = inner.parsed("given_up_until", parse_instant)
    if given_up_from is not None and given_up_until is not None and given_up_until <= given_up_from:
        inner.fault("given_up_until", "must be later than given_up_from")
    error_type = inner.text("error_type")
    if error_type is not None and not 1 <= len(error_type) <= TEXT_CHARS_MAX:
        inner.fault("error_type", f"must have 1-{TEXT_CHARS_MAX} characters")
    found = OperationFilter(
        task=inner.name("task", None) or "",
        queue=inner.name("queue", None) or "",
        error_type=error_type or "",
        cause=inner.choice("cause", CAUSES) if "cause" in members else "",
        job_prefix=inner.name("job_prefix", None) or "",
        from_at=NONE_AT if given_up_from is None else given_up_from,
        until_at=NONE_AT if given_up_until is None else given_up_until,
    )
    fields.errors += inner.errors
    return found


def operation_body(row: OperationRow, partitions: int) -> Operation:
    """An operation as it stands."""
    fact = row.fact
    return Operation(
        id=fact.operation,
        kind="redrive",
        state=_state(row),
        filter=_filter_body(fact.filter),
        rate_per_s=fact.rate_per_s or None,
        reason=fact.reason,
        actor=fact.actor,
        progress=_progress(row, partitions),
        started_at=format_instant(fact.accepted_at),
        ended_at=None if row.ended_at == NONE_AT else format_instant(row.ended_at),
        cancelled_by=row.cancelled_by if fact.is_cancelled else None,
        cancel_reason=row.cancel_reason if fact.is_cancelled else None,
    )


def pending_body(command: StartOperation) -> Operation:
    """An operation that is durable and not decided yet."""
    return Operation(
        id=command.operation,
        kind="redrive",
        state="pending",
        filter=_filter_body(command.filter),
        rate_per_s=command.rate_per_s or None,
        reason=command.reason,
        actor=command.actor,
        progress=OperationProgress(matched=None, done=0, refused=0, left=None),
    )


def _state(row: OperationRow) -> OperationState:
    if row.fact.is_cancelled:
        return "stopping" if row.ended_at == NONE_AT else "cancelled"
    return "running" if row.ended_at == NONE_AT else "completed"


def _progress(row: OperationRow, partitions: int) -> OperationProgress:
    matched, done, refused = totals(row.told.values())
    if len(row.told) < partitions or any(count.matched < 0 for count in row.told.values()):
        return OperationProgress(matched=None, done=done, refused=refused, left=None)
    return OperationProgress(matched=matched, done=done, refused=refused, left=matched - done - refused)


def _filter_body(wanted: OperationFilter) -> DeadLetterFilter:
    given: dict[str, Any] = {
        "task": wanted.task,
        "queue": wanted.queue,
        "error_type": wanted.error_type,
        "cause": wanted.cause,
        "job_prefix": wanted.job_prefix,
    }
    found = DeadLetterFilter(**{name: text or UNSET for name, text in given.items()})
    if wanted.from_at != NONE_AT:
        found.given_up_from = format_instant(wanted.from_at)
    if wanted.until_at != NONE_AT:
        found.given_up_until = format_instant(wanted.until_at)
    return found
