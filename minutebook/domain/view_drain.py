"""What changed in a view since it was last written: rows, and what follows from them (indexes, counts)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from minutebook.domain import view_coming, view_drops, view_due, view_index, view_starts
from minutebook.store.port import Ranges

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView

Changes = dict[str, dict[bytes, bytes | None]]
"""Writes by family and key; None deletes."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(int).decode


def dropped(view: PartitionView) -> Ranges:
    """What goes with the days, and hours, of which nothing is kept any more: right after one of them has gone."""
    firsts = view_drops.first_shelves(view) if view.has_turned else {}
    hour = view_starts.first_shelf(view.now)
    if hour > view.starts_from:
        view.starts_from = firsts[view_starts.FAMILY] = hour
    start = view_index.shelf_of(view.partition, 0)
    return [(family, start, view_index.shelf_of(view.partition, first)) for family, first in firsts.items()]


def drained(view: PartitionView) -> Changes:
    """All rows of `view` that changed, encoded. Counts go on from those that are stored."""
    found: Changes = {
        family: {key: None if row is None else _encode(row) for key, row in dirty.items()}
        for family, dirty in view.dirty.items()
        if dirty
    }
    if view.changed_jobs:
        found |= _jobs(view)
    if view.changed_executions or view.has_turned:
        found |= _executions(view)
    if view.due_moves:
        found |= view_due.drained(view)
    if view.starts:
        found[view_starts.FAMILY] = view_starts.added(view.rows, view.partition, view.starts, view.now)
    return found


def _jobs(view: PartitionView) -> Changes:
    changes = view_index.IndexChanges()
    for job in view.changed_jobs.values():
        is_moved = job.progress.status != job.filed_status or job.filed_card not in (None, job.card)
        if is_moved or job.is_dropped:
            view_index.file_job(changes, view.prefix, job, view.card(job))
    return {
        "progress": {
            key: None if job.is_dropped else _encode(job.progress) for key, job in view.changed_jobs.items()
        },
        view_index.JOB_INDEX: changes.entries,
        view_index.JOB_COUNTS: view_index.counted(view.rows, view_index.JOB_COUNTS, changes.moves),
        view_coming.FAMILY: view_coming.drained(view),
    }


def _executions(view: PartitionView) -> Changes:
    changes = view_index.IndexChanges()
    rows: dict[bytes, bytes | None] = {}
    for key, hot in view.changed_executions.items():
        before = hot.filed
        view_index.file_execution(changes, view.partition, view.kept_from, hot)
        if before:
            rows[view_index.stored_key(before, key)] = None
        if hot.filed:
            rows[view_index.stored_key(hot.filed, key)] = _encode(hot.row)
    moves = _kept(view, changes.moves) if view.has_turned else changes.moves
    totals = view_index.totals_of(moves)
    if view.has_turned:
        totals.subtract(view_index.totals_of(_gone(view)))
    return {
        "executions": rows,
        view_index.EXECUTION_INDEX: changes.entries,
        view_index.EXECUTION_COUNTS: view_index.counted(view.rows, view_index.EXECUTION_COUNTS, moves),
        view_index.EXECUTION_TOTALS: view_index.counted(view.rows, view_index.EXECUTION_TOTALS, totals),
    }


def _kept(view: PartitionView, moves: Counter[bytes]) -> Counter[bytes]:
    """Of groups on shelves that go as a whole nothing is counted."""
    return Counter(
        {group: change for group, change in moves.items() if view_index.day_of(group) >= view.kept_from}
    )


def _gone(view: PartitionView) -> Counter[bytes]:
    """The counts that go with their days."""
    start, end = (view_index.shelf_of(view.partition, day) for day in (0, view.kept_from))
    found = view.rows.scan(view_index.EXECUTION_COUNTS, start, end)
    return Counter({group: int(_decode(value)) for group, value in found})
