"""Folds of the read model for limits: what each partition knows of one, and how much of it is used and asked for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import view_rows as keys
from minutebook.domain.view_rows import LimitRow, PermitsAskedRow, PermitsUsedRow

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView


def declared(view: PartitionView, event: facts.LimitDeclared) -> None:
    """The home of a limit has answered."""
    subject = ids.limit_subject(event.name)
    view.answer(event, _command(view, event), job_id=subject, tenant=event.tenant, version=event.version)


def _command(view: PartitionView, event: facts.LimitDeclared) -> str:
    """Which command has changed a limit from what this partition, its home, knows."""
    if event.is_deleted:
        return "DeleteLimit"
    known = view.limit(event.tenant, event.name)
    is_moved = known is not None and known.paused_until != event.paused_until
    return "PauseLimit" if is_moved else "DeclareLimit"


def copied(view: PartitionView, event: facts.LimitCopied) -> None:
    """This partition knows the limit; an older version changes nothing."""
    known = view.limit(event.tenant, event.name)
    if known is None or known.version < event.version:
        view.dirty["limits"][keys.limit_row(view.prefix, event.tenant, event.name)] = LimitRow(
            event.version,
            event.concurrency,
            event.rate_count,
            event.rate_period_ms,
            event.paused_until,
            event.is_deleted,
        )


# -- at the partition that asks


def asked(view: PartitionView, event: facts.PermitsAsked) -> None:
    """It could use permits. What it asked of an older version of the limit is void."""
    known = view.permits_asked(event.tenant, event.limit)
    before = known.count if known.version == event.version else 0
    _put_asked(view, event.tenant, event.limit, PermitsAskedRow(event.version, before + event.count))


def received(view: PartitionView, event: facts.PermitsReceived) -> None:
    """Permits are here."""
    known = view.permits_asked(event.tenant, event.limit)
    if known.version == event.version:
        left = max(0, known.count - len(event.permits))
        _put_asked(view, event.tenant, event.limit, PermitsAskedRow(event.version, left))


def _put_asked(view: PartitionView, tenant: str, limit: str, row: PermitsAskedRow) -> None:
    view.dirty["permits_asked"][keys.limit_row(view.prefix, tenant, limit)] = row


# -- at the limit's home


def demanded(view: PartitionView, event: facts.PermitsDemanded) -> None:
    """A partition asks. What was demanded of an older version of the limit is void."""
    known = view.permits_used(event.tenant, event.limit)
    demands = dict(known.demands) if known.version == event.version else {}
    demands[event.partition] = demands.get(event.partition, 0) + event.count
    _put_used(view, event.tenant, event.limit, event.version, known.in_use, demands)


def granted(view: PartitionView, event: facts.PermitsGranted) -> None:
    """Permits are out, each to one partition."""
    known = view.permits_used(event.tenant, event.limit)
    answered = Counter(event.partitions)
    demands = {partition: count - answered[partition] for partition, count in known.demands}
    in_use = known.in_use + len(event.partitions)
    _put_used(view, event.tenant, event.limit, known.version, in_use, demands)


def returned(view: PartitionView, event: facts.PermitsReturned) -> None:
    """Permits are back."""
    known = view.permits_used(event.tenant, event.limit)
    in_use = known.in_use - len(event.permits)
    _put_used(view, event.tenant, event.limit, known.version, in_use, dict(known.demands))


def _put_used(
    view: PartitionView, tenant: str, limit: str, version: int, in_use: int, demands: dict[int, int]
) -> None:
    left = tuple(sorted((partition, count) for partition, count in demands.items() if count > 0))
    key = keys.limit_row(view.prefix, tenant, limit)
    view.dirty["permits_used"][key] = PermitsUsedRow(version, in_use, left)


# -- answers


def lacks_permit(view: PartitionView, tenant: str, key: str, now: int) -> bool:
    """Whether what is queued here with that key (empty = none) waits for a permit: one is asked for and has not come,
    or a limit that holds is paused at `now`.
    """
    for name in {key, ""}:
        limit = view.limit(tenant, name)
        if limit is None or limit.is_deleted:
            continue
        asked = view.permits_asked(tenant, name)
        if now < limit.paused_until or (asked.version == limit.version and asked.count):
            return True
    return False
