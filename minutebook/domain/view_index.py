"""Secondary indexes of the read model, and how many rows each of their groups has.

An entry is a key `group` + `place`: a group is what lists can be filtered by (a status, a task in a queue, a tag, an
error type), a place is an instant and an id, so that a group lists its rows by time. What entries a row has is a pure
function of the row. The difference to those that it had is written when it leaves memory: a row that came and went
between two commits is entered once.

Entries of executions lie on shelves. On the shelf of its day (of `scheduled_at`) lies what ended and changes no more;
on STANDING what is open, or was given up and may be redriven. One that was discarded keeps its status, and is counted
once more as discarded.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from minutebook.domain.view_rows import DAY_MS, ExecutionRow, HotExecution, HotJob, JobCard
from minutebook.store.port import Rows

JOB_INDEX: Final = "job_index"
JOB_COUNTS: Final = "job_counts"
EXECUTION_INDEX: Final = "execution_index"
EXECUTION_COUNTS: Final = "execution_counts"
EXECUTION_TOTALS: Final = "execution_totals"
"""Counts by status, and of what was discarded, over all shelves."""
FAMILIES: Final = (JOB_INDEX, JOB_COUNTS, EXECUTION_INDEX, EXECUTION_COUNTS, EXECUTION_TOTALS)

STATUS: Final = b"s"
LANE: Final = b"l"
TAG: Final = b"t"
ERROR: Final = b"e"
DISCARDED: Final = b"d"

STANDING: Final = 0xFFFF_FFFF
"""Number of the shelf of what may still change; those of days count from the epoch."""

_SHELF = struct.Struct(">HI")
INSTANT: Final = struct.Struct(">q")

Entries = tuple[tuple[bytes, bytes], ...]
"""(group, place) of all entries of a row."""

_encode = msgspec.msgpack.Encoder().encode
_decode_count = msgspec.msgpack.Decoder(int).decode


class Facts(NamedTuple):
    """What the entry of an execution says of it."""

    status: str
    queue: str
    task: str


# -- keys


@lru_cache(maxsize=256)
def shelf_of(partition: int, day: int) -> bytes:
    """Start of every group on a shelf."""
    return _SHELF.pack(partition, day)


def day_of(shelf: bytes) -> int:
    """Number of a shelf, from the start of one of its groups."""
    return int(_SHELF.unpack_from(shelf)[1])


@lru_cache(maxsize=8192)
def group_of(shelf: bytes, tenant: str, kind: bytes, *values: str) -> bytes:
    """Start of the entries of one group. `shelf` is the partition's prefix for jobs."""
    # Error types are any text; names hold no NUL byte.
    told = "".join(value.replace("\0", "\ufffd") + "\0" for value in values)
    return shelf + tenant.encode() + b"\0" + kind + told.encode()


def lane_of(group: bytes, head: bytes) -> tuple[str, str]:
    """(task, queue) in a group of lanes; `head` is the group of all lanes."""
    task, queue, _ = group[len(head) :].decode().split("\0")
    return task, queue


@lru_cache(maxsize=8192)
def _filed_by(
    partition: int, day: int, tenant: str, status: str, queue: str, task: str
) -> tuple[bytes, bytes]:
    """Groups of an execution by status and by lane; asked together, for each that is written."""
    shelf = shelf_of(partition, day)
    return group_of(shelf, tenant, STATUS, status), group_of(shelf, tenant, LANE, task, queue)


@lru_cache(maxsize=8192)
def _value(status: str, queue: str, task: str) -> bytes:
    return f"{status}\0{queue}\0{task}".encode()


def facts_of(value: bytes) -> Facts:
    """What the value of an execution's entry says."""
    return Facts(*value.decode().split("\0"))


def job_of_place(place: bytes) -> str:
    """Job id in the place of a job's entry."""
    return place[INSTANT.size :].decode()


def execution_of_place(place: bytes) -> tuple[str, int, bytes]:
    """(job id, instant, kind) in the place of an execution's entry."""
    job_id, _, kind = place[INSTANT.size :].partition(b"\0")
    return job_id.decode(), int(INSTANT.unpack_from(place)[0]), kind


def stored_key(entries: Entries, key: bytes) -> bytes:
    """Under what an execution with these entries is stored: its key, on their shelf."""
    return entries[0][0][: _SHELF.size] + key[2:]


def on_shelf(shelf: bytes, key: bytes) -> bytes:
    """An execution's key on a shelf."""
    return shelf + key[2:]


def off_shelf(stored: bytes) -> bytes:
    """An execution's key, from the one that it is stored under."""
    return stored[:2] + stored[_SHELF.size :]


def days_between(rows: Rows, partition: int, first: int, last: int, is_ascending: bool) -> Iterator[int]:
    """Days from `first` to `last`, both included, of which executions have a shelf."""
    return shelves_between(rows, EXECUTION_COUNTS, partition, first, min(last, STANDING - 1), is_ascending)


def shelves_between(
    rows: Rows, family: str, partition: int, first: int, last: int, is_ascending: bool = True
) -> Iterator[int]:
    """Numbers from `first` to `last`, both included, of which a family has a shelf."""
    while first <= last:
        start, end = shelf_of(partition, first), shelf_of(partition, last + 1)
        scan = rows.scan if is_ascending else rows.scan_back
        found = next(scan(family, start, end), None)
        if found is None:
            return
        day = day_of(found[0])
        yield day
        first, last = (day + 1, last) if is_ascending else (first, day - 1)


# -- entries


def job_entries(prefix: bytes, job: HotJob, card: JobCard, status: str) -> Entries:
    """Entries of a job: by status, by task and queue, by each of its tags."""
    place = INSTANT.pack(card.created_at) + job.name
    tenant = job.tenant
    return (
        (group_of(prefix, tenant, STATUS, status), place),
        (group_of(prefix, tenant, LANE, card.task, card.queue), place),
        *((group_of(prefix, tenant, TAG, tag), place) for tag in card.tags),
    )


def is_history(row: ExecutionRow) -> bool:
    """Whether an execution has ended for good: one that was given up may be redriven, unless it was discarded."""
    return bool(row.outcome) and (row.outcome != "dead" or row.discard is not None)


def day_shelf(row: ExecutionRow, kept_from: int) -> int:
    """The shelf of an execution; one that ends when its day is gone already lies with what stands."""
    day = row.scheduled_at // DAY_MS
    return day if is_history(row) and day >= kept_from else STANDING


def execution_entries(partition: int, kept_from: int, hot: HotExecution) -> Entries:
    """Entries of an execution: by status, by task and queue, of one given up by the type of its error, and of a discarded one
    that it is so.
    """
    row, job, key = hot.row, hot.job, hot.key
    day = day_shelf(row, kept_from)
    by_status, by_lane = _filed_by(partition, day, job.tenant, row.last.status, hot.queue, hot.task)
    start = len(job.key) + 1
    tail = start + INSTANT.size
    place = b"%b%b\0%b" % (key[start:tail], job.name, key[tail:])
    if row.outcome != "dead":
        return (by_status, place), (by_lane, place)
    shelf = shelf_of(partition, day)
    by_error = group_of(shelf, job.tenant, ERROR, row.last.error_type)
    entries = (by_status, place), (by_lane, place), (by_error, place)
    if row.discard is None:
        return entries
    return (*entries, (group_of(shelf, job.tenant, DISCARDED), place))


class IndexChanges:
    """Differences of one index since they were last taken, with those of its counts."""

    def __init__(self) -> None:
        self.entries: dict[bytes, bytes | None] = {}
        self.moves: Counter[bytes] = Counter()
        """By how much the count of a group changes."""

    def replace(self, before: Entries, after: Entries, value: bytes) -> None:
        """A row's entries were these and are those. One that stays is written again where it has a value."""
        entries, moves = self.entries, self.moves
        if not before:
            for group, place in after:
                entries[group + place] = value
                moves[group] += 1
            return
        for entry in before:
            if entry not in after:
                group, place = entry
                entries[group + place] = None
                moves[group] -= 1
        for entry in after:
            is_new = entry not in before
            if is_new or value:
                group, place = entry
                entries[group + place] = value
                moves[group] += is_new


def file_job(changes: IndexChanges, prefix: bytes, job: HotJob, card: JobCard) -> None:
    """Enter a job as it stands, in place of how it was entered last."""
    before: Entries = ()
    if job.filed_status:
        before = job_entries(prefix, job, job.filed_card or card, job.filed_status)
    after = () if job.is_dropped else job_entries(prefix, job, card, job.progress.status)
    changes.replace(before, after, b"")
    job.filed_status, job.filed_card = job.progress.status, card


def file_execution(changes: IndexChanges, partition: int, kept_from: int, hot: HotExecution) -> None:
    """Enter an execution as it stands, in place of how it was entered last."""
    after = () if hot.is_dropped else execution_entries(partition, kept_from, hot)
    changes.replace(hot.filed, after, _value(hot.row.last.status, hot.queue, hot.task))
    hot.filed = after


def counted(rows: Rows, family: str, moves: Counter[bytes]) -> dict[bytes, bytes | None]:
    """The counts that changed; a group without rows has none."""
    found: dict[bytes, bytes | None] = {}
    for group, change in moves.items():
        if change:
            count = count_of(rows, family, group) + change
            found[group] = _encode(count) if count else None
    return found


def count_of(rows: Rows, family: str, group: bytes) -> int:
    """How many rows a group has."""
    stored = rows.get(family, group)
    return 0 if stored is None else _decode_count(stored)


def totals_of(moves: Counter[bytes]) -> Counter[bytes]:
    """Changes of the counts over all shelves, from those of the groups of executions."""
    found: Counter[bytes] = Counter()
    for group, change in moves.items():
        if group[_SHELF.size :].partition(b"\0")[2].startswith((STATUS, DISCARDED)):
            found[group[:2] + group[_SHELF.size :]] += change
    return found
