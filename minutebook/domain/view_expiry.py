"""Filing what will go from the read model by name, since no range holds it: closed jobs, dead executions, and the like.

A row says on which day it is to go, what it is about, and at which instant that ended. `view_sweep` looks through them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from minutebook.domain.keys import DAY_MS
from minutebook.domain.view_rows import HotExecution, HotJob

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView

FAMILY: Final = "expiries"

EXECUTION: Final = b"e"
JOB: Final = b"j"
OPERATION: Final = b"o"
REQUEST: Final = b"r"
SESSION: Final = b"s"
VERSION: Final = b"v"

_DAY = struct.Struct(">I")
_KIND_AT: Final = 2 + _DAY.size


def day_start(prefix: bytes, day: int) -> bytes:
    """First key of what goes on a day, counted from the epoch, or later."""
    return prefix + _DAY.pack(day)


def parts_of(key: bytes) -> tuple[bytes, bytes]:
    """(kind, key of what is to go without its partition)."""
    return key[_KIND_AT : _KIND_AT + 1], key[_KIND_AT + 1 :]


def ended_late(view: PartitionView, hot: HotExecution) -> None:
    """An execution has ended whose day is gone: it lies with what stands, and is kept from now on as long as others."""
    file(view, EXECUTION, hot.key[2:], hot.row.last.ended_at, view.retention.history_days)


def given_up(view: PartitionView, hot: HotExecution) -> None:
    """An execution is dead."""
    file(view, EXECUTION, hot.key[2:], hot.row.last.ended_at, view.retention.given_up_days)


def requested(view: PartitionView, key: bytes, at: int) -> None:
    """An execution was asked for at `at`: where its row lies is known as long as it may lie with its day."""
    file(view, REQUEST, key[2:], at, view.retention.history_days)


def closed(view: PartitionView, job: HotJob) -> None:
    """A job is closed, and nothing of it is open any more."""
    progress = job.progress
    progress.closed_at = view.now
    days = view.retention.given_up_days if progress.dead else view.retention.closed_days
    file(view, JOB, job.key[2:], view.now, days)


def superseded(view: PartitionView, key: bytes, at: int) -> None:
    """A version of a job is its version no more since `at`; what ran by it may be kept."""
    file(view, VERSION, key[2:], at, view.retention.given_up_days)


def operation_ended(view: PartitionView, key: bytes) -> None:
    """A bulk operation is over."""
    file(view, OPERATION, key[2:], view.now, view.retention.closed_days)


def session_ended(view: PartitionView, key: bytes) -> None:
    """A session is over; what ran in it may be kept."""
    file(view, SESSION, key[2:], view.now, view.retention.given_up_days)


def file(view: PartitionView, kind: bytes, rest: bytes, ended_at: int, days: int) -> None:
    """What ended at `ended_at` is to go when `days` more have passed; a day that is gone already is today."""
    day = max(ended_at // DAY_MS + days, view.now // DAY_MS) + 1
    view.dirty[FAMILY][day_start(view.prefix, day) + kind + rest] = ended_at
    view.filed += 1
