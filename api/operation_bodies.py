"""Bulk operations as bodies: the requests that start them, read strictly, and the operation as it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from api.bodies import check_distinct, read_object
from api.fields import Fields
from api.problems import Refused
from minutebook.client.operation_models import (
    Operation,
    OperationProgress,
    OperationRefusal,
    OperationState,
)
from minutebook.client.operation_models import OperationFilter as OperationFilterBody
from minutebook.domain.commands import REASON_CHARS_MAX, StartOperation
from minutebook.domain.operation import CAUSES, RATE_MAX_PER_S, OperationFilter
from minutebook.domain.operations import DEAD_KINDS, JOB_KINDS, KINDS, TEXT_CHARS_MAX, totals
from minutebook.domain.state import ACTIVE, NONE_AT, PAUSED
from minutebook.domain.view_operations import OperationRow
from minutebook.domain.view_rows import CommandRow
from minutebook.times import format_instant, parse_instant

_FIELDS: Final = ("dry_run", "rate_per_s", "reason")
_TIMES: Final = {
    **dict.fromkeys(DEAD_KINDS, ("given_up_from", "given_up_until")),
    "backfill": ("from_at", "until_at"),
}
_DEAD: Final = ("task", "queue", "error_type", "cause", "job_prefix", "given_up_from", "given_up_until")
_RANGE: Final = ("from", "until")
_JOBS: Final = ("task", "queue", "tag", "status", "job_prefix", "created_from", "created_until")


class OperationWish(NamedTuple):
    """What a caller wants done to which executions or jobs, and how. `where`: what the names of the filter follow in the body."""

    kind: str
    wanted: OperationFilter
    is_dry_run: bool
    rate_per_s: int
    reason: str
    where: str = "filter/"


def read_dead(data: bytes, kind: str) -> OperationWish:
    """The wish to redrive or to discard in a body. Raises Refused naming every field at fault."""
    return _read(data, ("filter", *_FIELDS), lambda fields: (kind, _read_dead_filter(fields)))


def read_operation(data: bytes) -> OperationWish:
    """The wish in a body that says of which kind it is. Raises Refused naming every field at fault."""
    return _read(data, ("kind", "filter", *_FIELDS), _read_kind)


def read_backfill(data: bytes, job_id: str) -> OperationWish:
    """The wish to fill a range of one job in a body. Raises Refused naming every field at fault."""
    wish = _read(data, (*_RANGE, *_FIELDS), lambda fields: ("backfill", _read_range(fields, job_id)))
    return wish._replace(where="")


def _read(
    data: bytes, known: Sequence[str], read: Callable[[Fields], tuple[str, OperationFilter]]
) -> OperationWish:
    members = read_object(data)
    fields = Fields(members)
    fields.refuse_unknown(known)
    kind, wanted = read(fields)
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
    return OperationWish(kind, wanted, bool(is_dry_run), rate_per_s or 0, reason)


def _read_kind(fields: Fields) -> tuple[str, OperationFilter]:
    if "kind" not in fields.members:
        fields.fault("kind", f"is required, one of {', '.join(KINDS)}")
    kind = fields.choice("kind", KINDS)
    if kind in JOB_KINDS:
        return kind, _read_job_filter(fields)
    if kind in DEAD_KINDS:
        return kind, _read_dead_filter(fields)
    if kind != "backfill":
        return kind, OperationFilter()  # at fault, which is gathered
    inner = _filter_of(fields, ("job_id", *_RANGE), "a backfill needs job_id, from and until")
    if inner is None:
        return kind, OperationFilter()
    job_id = inner.name("job_id", None) or ""
    if "job_id" not in inner.members:
        inner.fault("job_id", "is required: whose instants")
    wanted = _read_range(inner, job_id)
    fields.errors += inner.errors
    return kind, wanted


def _read_range(fields: Fields, job_id: str) -> OperationFilter:
    """A range of one job's instants; faults are gathered in `fields`."""
    for name in _RANGE:
        if name not in fields.members:
            fields.fault(name, "is required, an instant such as 2030-01-31T08:00:00Z")
    from_at, until_at = fields.parsed("from", parse_instant), fields.parsed("until", parse_instant)
    return OperationFilter(
        job_id=job_id,
        from_at=NONE_AT if from_at is None else from_at,
        until_at=NONE_AT if until_at is None else until_at,
    )


def _filter_of(fields: Fields, known: Sequence[str], remedy: str) -> Fields | None:
    """The fields of the filter; None where it is at fault as a whole, which is gathered in `fields`."""
    value = fields.value("filter")
    if not isinstance(value, dict):
        if value is not None or "filter" not in fields.members:
            fields.fault("filter", f"is required, an object; {remedy}")
        return None
    fields.names += len(value)
    for name in value:
        if name not in known:
            fields.fault_unknown(name, "filter/", known)
    members = {name: Raw(msgspec.json.encode(value[name])) for name in known if name in value}
    return Fields(members, "filter/")


def _read_dead_filter(fields: Fields) -> OperationFilter:
    """A filter of dead executions; faults are gathered in `fields`."""
    inner = _filter_of(fields, _DEAD, "{} means all of your dead letters")
    if inner is None:
        return OperationFilter()
    from_at, until_at = _read_times(inner, "given_up_from", "given_up_until")
    error_type = inner.text("error_type")
    if error_type is not None and not 1 <= len(error_type) <= TEXT_CHARS_MAX:
        inner.fault("error_type", f"must have 1-{TEXT_CHARS_MAX} characters")
    found = OperationFilter(
        task=inner.name("task", None) or "",
        queue=inner.name("queue", None) or "",
        error_type=error_type or "",
        cause=inner.choice("cause", CAUSES) if "cause" in inner.members else "",
        job_prefix=inner.name("job_prefix", None) or "",
        from_at=from_at,
        until_at=until_at,
    )
    fields.errors += inner.errors
    return found


def _read_job_filter(fields: Fields) -> OperationFilter:
    """A filter of jobs; faults are gathered in `fields`."""
    inner = _filter_of(fields, _JOBS, "{} means all of your jobs")
    if inner is None:
        return OperationFilter()
    from_at, until_at = _read_times(inner, "created_from", "created_until")
    found = OperationFilter(
        task=inner.name("task", None) or "",
        queue=inner.name("queue", None) or "",
        tag=inner.name("tag", None) or "",
        status=inner.choice("status", (ACTIVE, PAUSED)) if "status" in inner.members else "",
        job_prefix=inner.name("job_prefix", None) or "",
        from_at=from_at,
        until_at=until_at,
    )
    fields.errors += inner.errors
    return found


def _read_times(fields: Fields, first: str, last: str) -> tuple[int, int]:
    """Two instants in order, -1 for one that is left out; faults are gathered in `fields`."""
    from_at, until_at = fields.parsed(first, parse_instant), fields.parsed(last, parse_instant)
    if from_at is not None and until_at is not None and until_at <= from_at:
        fields.fault(last, f"must be later than {first}")
    return NONE_AT if from_at is None else from_at, NONE_AT if until_at is None else until_at


def operation_body(row: OperationRow, partitions: int, refused: CommandRow | None) -> Operation:
    """An operation as it stands. `refused`: why its job cannot be filled, or no longer."""
    fact = row.fact
    return Operation(
        id=fact.operation,
        kind=fact.kind,  # type: ignore[arg-type]  # one of the kinds by the owner
        state=operation_state(row),
        filter=_filter_body(fact.kind, fact.filter),
        rate_per_s=fact.rate_per_s or None,
        reason=fact.reason,
        actor=fact.actor,
        progress=_progress(row, partitions),
        started_at=format_instant(fact.accepted_at),
        ended_at=None if row.ended_at == NONE_AT else format_instant(row.ended_at),
        cancelled_by=row.cancelled_by if fact.is_cancelled else None,
        cancel_reason=row.cancel_reason if fact.is_cancelled else None,
        refusal=None if refused is None else OperationRefusal(refused.reason, refused.detail),
    )


def pending_body(command: StartOperation) -> Operation:
    """An operation that is durable and not decided yet."""
    return Operation(
        id=command.operation,
        kind=command.kind,  # type: ignore[arg-type]  # one of the kinds by `read_operation`
        state="pending",
        filter=_filter_body(command.kind, command.filter),
        rate_per_s=command.rate_per_s or None,
        reason=command.reason,
        actor=command.actor,
        progress=OperationProgress(matched=None, done=0, refused=0, left=None),
    )


def operation_state(row: OperationRow) -> OperationState:
    """Where an operation stands."""
    if row.fact.is_cancelled:
        return "stopping" if row.ended_at == NONE_AT else "cancelled"
    return "running" if row.ended_at == NONE_AT else "completed"


def _progress(row: OperationRow, partitions: int) -> OperationProgress:
    matched, done, refused = totals(row.told.values())
    if len(row.told) < partitions or any(count.matched < 0 for count in row.told.values()):
        return OperationProgress(matched=None, done=done, refused=refused, left=None)
    return OperationProgress(matched=matched, done=done, refused=refused, left=matched - done - refused)


def _filter_body(kind: str, wanted: OperationFilter) -> OperationFilterBody:
    given: dict[str, Any] = {
        "task": wanted.task,
        "queue": wanted.queue,
        "error_type": wanted.error_type,
        "cause": wanted.cause,
        "job_prefix": wanted.job_prefix,
        "job_id": wanted.job_id,
        "tag": wanted.tag,
        "status": wanted.status,
    }
    first, last = _TIMES.get(kind, ("created_from", "created_until"))
    if wanted.from_at != NONE_AT:
        given[first] = format_instant(wanted.from_at)
    if wanted.until_at != NONE_AT:
        given[last] = format_instant(wanted.until_at)
    return OperationFilterBody(**{name: text or UNSET for name, text in given.items()})
