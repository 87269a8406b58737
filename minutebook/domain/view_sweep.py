"""Letting go of what `view_expiry` has filed: a few rows with each frame, so that nothing stands still meanwhile.

What has ended anew since it was filed is filed for another day as well, and stays. How many go with a frame follows
from the log alone, as everything does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import msgspec

from minutebook.domain import view_drops, view_expiry, view_index
from minutebook.domain import view_rows as keys
from minutebook.domain.keys import DAY_MS
from minutebook.domain.transitions import closed_status
from minutebook.domain.view_expiry import FAMILY
from minutebook.domain.view_operations import FAMILY as OPERATIONS
from minutebook.domain.view_operations import OperationRow
from minutebook.domain.view_rows import ExecutionRow, JobRow

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView

FRAME_MIN: Final = 64
"""Rows looked at with a frame, beside as many as it files itself: what goes keeps up with what comes."""
STANDING_MAX: Final = 1_000
"""Executions of a job that are asked by which version they run."""
_CHUNK: Final = 1_000

_decode_at = msgspec.msgpack.Decoder(int).decode


class Sweep:
    """How far one partition's view has looked through what is to go; a fresh one begins anew, and finds the same."""

    def __init__(self, prefix: bytes) -> None:
        self._found: deque[tuple[bytes, int]] = deque()
        self._start = self._prefix = prefix
        self._through_day = -1

    def go_on(self, view: PartitionView) -> None:
        """Look at some of what was to go by today."""
        today = view.now // DAY_MS
        if self._through_day >= today:
            return
        for _ in range(FRAME_MIN + view.filed):
            if not self._found:
                self._found.extend(self._next(view, today))
            if not self._found:
                self._through_day = today
                return
            key, ended_at = self._found.popleft()
            self._start = key + b"\0"
            view.dirty[FAMILY][key] = None
            kind, rest = view_expiry.parts_of(key)
            if not _LET_GO[kind](view, view.prefix + rest, ended_at):
                view_expiry.file(view, kind, rest, ended_at, 0)  # tomorrow again

    def _next(self, view: PartitionView, today: int) -> list[tuple[bytes, int]]:
        """The first of what is left, written or not: what is filed meanwhile is for later days."""
        end, dirty = view_expiry.day_start(self._prefix, today + 1), view.dirty[FAMILY]
        pending = ((key, at) for key, at in dirty.items() if at is not None and self._start <= key < end)
        stored = (
            (key, _decode_at(value))
            for key, value in view.rows.scan(FAMILY, self._start, end)
            if key not in dirty
        )
        return sorted(chain(pending, islice(stored, _CHUNK)))[:_CHUNK]


def _is_forgotten(view: PartitionView, ended_at: int) -> bool:
    """Whether the owner cannot name any more what ended then; until it says so, events may."""
    return ended_at // DAY_MS <= view.forgotten_through


def _execution(view: PartitionView, key: bytes, ended_at: int) -> bool:
    row = view.execution_at(key)
    if row is None or not row.outcome or row.last.ended_at != ended_at:
        return True
    if view_index.day_shelf(row, view.kept_from) != view_index.STANDING:
        return True
    if row.outcome == "dead" and not _is_forgotten(view, ended_at):
        return False
    tenant, job_id = keys.job_of_key(key)
    job = view.open_job(tenant, job_id)
    view_drops.drop_execution(view, view.changed_executions.get(key) or view.execution_of(key, row, job))
    suffix = keys.execution_suffix(job.key, key)
    if suffix.startswith("r"):
        _forget_request(
            view, keys.request_row(view.prefix, tenant, f"{job_id}:{suffix}"), keys.instant_of(key)
        )
    return True


def _forget_request(view: PartitionView, key: bytes, requested_at: int) -> None:
    """Unless the same command came again since: the owner remembers it for some days only."""
    if view.read("requests", key, int) == requested_at:
        view.dirty["requests"][key] = None


def _request(view: PartitionView, key: bytes, requested_at: int) -> bool:
    tenant, job_id, suffix = keys.request_parts(key)
    job = keys.job_row(view.prefix, tenant, job_id)
    if view.execution_at(keys.execution_row(job, requested_at, suffix)) is None:
        _forget_request(view, key, requested_at)
    return True


def _job(view: PartitionView, key: bytes, closed_at: int) -> bool:
    known = view.changed_jobs.get(key)
    if known is not None and known.is_dropped:
        return True
    tenant, job_id = keys.job_of_key(key)
    progress = view.progress(tenant, job_id)
    if progress is None or progress.closed_at != closed_at:
        return True
    if closed_status(progress.status, progress.next_at, progress.open, progress.last_outcome) is None:
        return True
    if not _is_forgotten(view, closed_at):
        return False
    view_drops.drop_definition(view, view.open_job(tenant, job_id))
    return True


def _version(view: PartitionView, key: bytes, superseded_at: int) -> bool:
    """A version goes once nothing that stands runs by it; what was made by it and ended has gone with its day."""
    row = view.read("versions", key, JobRow)
    if row is None or row.accepted_at > superseded_at:
        return True  # of another job, to which the id was given out since
    standing = _standing(view, keys.job_of_version(key))
    if len(standing) > STANDING_MAX or row.version in standing:
        return False
    view.dirty["versions"][key] = None
    now = view.read("jobs", keys.job_of_version(key), JobRow)
    tenant, job_id = keys.job_of_key(key)
    for name in set(_calendars(row)) - set(_calendars(now)):
        view.dirty["calendar_jobs"][keys.calendar_job_row(view.prefix, tenant, name, job_id)] = None
    return True


def _calendars(row: JobRow | None) -> list[str]:
    return [] if row is None or row.timing is None else list(row.timing.calendars)


def _standing(view: PartitionView, job: bytes) -> list[int]:
    """Versions of those executions of a job that are open, were given up, or ended late; of some, where they are many."""
    first, end = keys.executions_of(job)
    shelf = view_index.shelf_of(view.partition, view_index.STANDING)
    start, stop = view_index.on_shelf(shelf, first), view_index.on_shelf(shelf, end)
    changed = {key: hot for key, hot in view.changed_executions.items() if first <= key < end}
    stored = (
        row.version
        for key, row in view.rows_of("executions", start, stop, ExecutionRow)
        if view_index.off_shelf(key) not in changed
    )
    pending = [
        hot.row.version
        for hot in changed.values()
        if not hot.is_dropped and view_index.day_shelf(hot.row, view.kept_from) == view_index.STANDING
    ]
    return pending + list(islice(stored, STANDING_MAX + 1))


def _operation(view: PartitionView, key: bytes, ended_at: int) -> bool:
    row = view.read(OPERATIONS, key, OperationRow)
    if row is not None and row.ended_at == ended_at:
        if not _is_forgotten(view, ended_at):
            return False
        view.dirty[OPERATIONS][key] = None
    return True


def _session(view: PartitionView, key: bytes, ended_at: int) -> bool:
    view.dirty["sessions"][key] = None
    return True


# Each says whether that is done with; what is not is looked at again on the next day.
_LET_GO: Final[dict[bytes, Callable[[PartitionView, bytes, int], bool]]] = {
    view_expiry.EXECUTION: _execution,
    view_expiry.JOB: _job,
    view_expiry.OPERATION: _operation,
    view_expiry.REQUEST: _request,
    view_expiry.SESSION: _session,
    view_expiry.VERSION: _version,
}
