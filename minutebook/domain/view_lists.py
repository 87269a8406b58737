"""Lists of a partition's jobs and executions by time, filtered, from the indexes: what a page costs is what it shows.

Of the groups that a filter allows those with the fewest rows are walked. Whoever reads checks the rest of the filter.
Reads committed rows only.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from minutebook.domain import view_index as index
from minutebook.domain import view_rows as keys
from minutebook.domain.view_index import INSTANT, STANDING, group_of, shelf_of
from minutebook.domain.view_rows import ExecutionRow, JobRow
from minutebook.store.port import Rows

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView

LANES_MAX: Final = 32
"""Tasks of a queue that are walked side by side; of more the statuses are walked."""
LAST_AT: Final = (1 << 63) - 1
_ON_DAYS: Final = frozenset({"", "succeeded", "cancelled", "skipped"})
"""Statuses of executions that lie on the shelves of days; those of others are open, or were given up."""
_GIVEN_UP: Final = frozenset({"", "failed", "lost"})
"""Statuses with which one that was given up may be asked for: it lies with its day once it is discarded."""

_decode_execution = msgspec.msgpack.Decoder(ExecutionRow).decode
_decode_count = msgspec.msgpack.Decoder(int).decode

Found = tuple[bytes, bytes]
"""Place and value of an entry."""


class Filter(NamedTuple):
    """What is to be listed; empty = whatever it is. `tag` is for jobs, `error_type` for executions."""

    status: str = ""
    task: str = ""
    queue: str = ""
    tag: str = ""
    error_type: str = ""


class Span(NamedTuple):
    """Places from `first` up to `end`, not included, in one of both directions."""

    first: bytes
    end: bytes
    is_ascending: bool


def span_of(from_at: int, until_at: int, is_ascending: bool, place: bytes = b"") -> Span:
    """The span of instants from `from_at` up to `until_at`, not included; of what comes from `place` on."""
    first, end = INSTANT.pack(from_at), INSTANT.pack(until_at)
    if place and is_ascending:
        first = max(first, place)
    elif place:
        end = min(end, place + b"\0")
    return Span(first, end, is_ascending)


def jobs(part: PartitionView, tenant: str, wanted: Filter, span: Span) -> Iterator[Found]:
    """Entries of jobs in a span, by place."""
    groups = _groups(part.rows, index.JOB_COUNTS, part.prefix, tenant, wanted)
    return _merged([_walk(part.rows, index.JOB_INDEX, group, span) for group in groups], span)


def executions(part: PartitionView, tenant: str, wanted: Filter, span: Span) -> Iterator[Found]:
    """Entries of executions in a span, by place."""
    standing = _on_shelf(part, STANDING, tenant, wanted, span)
    # Only what was given up is filed by its error.
    is_standing = bool(wanted.error_type) or wanted.status not in _ON_DAYS
    if is_standing and (wanted.status not in _GIVEN_UP or not discarded(part, tenant)):
        return standing
    days = (_on_shelf(part, day, tenant, wanted, span) for day in _days(part, span))
    return _merged([standing, chain.from_iterable(days)], span)


def executions_of_job(
    part: PartitionView, tenant: str, job_id: str, span: Span
) -> Iterator[tuple[bytes, ExecutionRow]]:
    """(place, row) of executions of one job in a span, by place."""
    job = keys.job_row(part.prefix, tenant, job_id)
    size, name = len(job) + 1 + INSTANT.size, job_id.encode()
    # Of one instant there may be several: which of them are in the span their places tell.
    first, last = span.first[: INSTANT.size], span.end[: INSTANT.size]
    start, end = job + b"\0" + first, job + b"\0" + last + b"\xff"
    for key, value in part.history(job, start, end, is_ascending=span.is_ascending):
        place = key[len(job) + 1 : size] + name + b"\0" + key[size:]
        if span.first <= place < span.end:
            yield place, _decode_execution(value)


def lane_of_version(part: PartitionView, tenant: str, job_id: str, version: int) -> tuple[str, str]:
    """Task and queue of a version of a job; nothing where it is not there."""
    job = keys.job_row(part.prefix, tenant, job_id)
    row = part.read("jobs", job, JobRow)
    if row is not None and row.version != version:
        row = part.read("versions", keys.version_row(job, version), JobRow)
    return ("", "") if row is None else (row.task, row.queue)


def counts_by_status(part: PartitionView, family: str, tenant: str) -> dict[str, int]:
    """How many jobs (JOB_COUNTS), or executions (EXECUTION_TOTALS), have each status."""
    head = group_of(part.prefix, tenant, index.STATUS)
    return {group[len(head) : -1].decode(): count for group, count in _counts(part.rows, family, head)}


def discarded(part: PartitionView, tenant: str) -> int:
    """How many executions were discarded, of those that are kept."""
    return index.count_of(part.rows, index.EXECUTION_TOTALS, group_of(part.prefix, tenant, index.DISCARDED))


def tenants(part: PartitionView) -> Iterator[str]:
    """Tenants that have a job in a partition, by name: from one to the next."""
    start, end = part.prefix, keys.partition_prefix(part.partition + 1)
    while (key := next((key for key, _ in part.rows.scan(index.JOB_COUNTS, start, end)), None)) is not None:
        tenant = keys.tenant_of(key)
        yield tenant
        start = part.prefix + f"{tenant}\1".encode()


def _days(part: PartitionView, span: Span) -> Iterator[int]:
    """Days of a span that have a shelf, in its direction."""
    first, last = (INSTANT.unpack_from(place)[0] // keys.DAY_MS for place in (span.first, span.end))
    return index.days_between(part.rows, part.partition, max(first, part.kept_from), last, span.is_ascending)


def _on_shelf(part: PartitionView, day: int, tenant: str, wanted: Filter, span: Span) -> Iterator[Found]:
    shelf = shelf_of(part.partition, day)
    groups = _groups(part.rows, index.EXECUTION_COUNTS, shelf, tenant, wanted)
    return _merged([_walk(part.rows, index.EXECUTION_INDEX, group, span) for group in groups], span)


def _groups(rows: Rows, family: str, shelf: bytes, tenant: str, wanted: Filter) -> list[bytes]:
    """The groups to walk: of those that the filter allows, the ones with the fewest rows."""
    if wanted.error_type:
        return [group_of(shelf, tenant, index.ERROR, wanted.error_type)]
    choices = [_counts(rows, family, _head(shelf, tenant, index.STATUS, wanted.status))]
    if wanted.tag:
        choices.append(_counts(rows, family, _head(shelf, tenant, index.TAG, wanted.tag)))
    if wanted.task or wanted.queue:
        lanes = _counts(rows, family, _head(shelf, tenant, index.LANE, wanted.task))
        ending = f"\0{wanted.queue}\0".encode()
        lanes = [found for found in lanes if not wanted.queue or found[0].endswith(ending)]
        if len(lanes) <= LANES_MAX:
            choices.append(lanes)
    fewest = min(choices, key=lambda groups: sum(count for _, count in groups))
    return [group for group, _ in fewest]


def _head(shelf: bytes, tenant: str, kind: bytes, value: str) -> bytes:
    return group_of(shelf, tenant, kind, value) if value else group_of(shelf, tenant, kind)


def _counts(rows: Rows, family: str, head: bytes) -> list[tuple[bytes, int]]:
    """(group, its rows) of all groups that begin with `head`."""
    return [(key, _decode_count(value)) for key, value in rows.scan(family, head, head + b"\xff")]


def _walk(rows: Rows, family: str, group: bytes, span: Span) -> Iterator[Found]:
    size = len(group)
    scan = rows.scan if span.is_ascending else rows.scan_back
    for key, value in scan(family, group + span.first, group + span.end):
        yield key[size:], value


def _merged(walks: list[Iterator[Found]], span: Span) -> Iterator[Found]:
    if len(walks) == 1:
        return walks[0]
    return heapq.merge(*walks, reverse=not span.is_ascending)
