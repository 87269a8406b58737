"""Keys of rows: bytes that sort as the rows must be read.

Names hold no NUL byte, so NUL parts them; numbers are big-endian.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final, NamedTuple

JOB: Final = 1
EXECUTION: Final = 2
DEADLINE: Final = 3
START_DEADLINE: Final = 4

CATCH_UP_PRIORITY: Final = -1
"""That of what is made up for: behind every priority that a job can have."""

_DIGIT_9: Final = ord("9")
_PLACE = struct.Struct(">IHB")
_U64 = struct.Struct(">Q")
_U32 = struct.Struct(">I")
DAY_BYTES: Final = _U32.size
"""What a row that is forgotten as a whole day begins with."""
MINUTE_MS: Final = 60_000
DAY_MS: Final = 86_400_000
REMEMBERED_DAYS: Final = 8
"""Days before today of which rows are kept that are forgotten as a whole day."""


@lru_cache(maxsize=64)
def _version(version: int) -> bytes:
    return b"\0" + _U32.pack(version)


@lru_cache(maxsize=1024)
def _place(at: int, kind: int) -> bytes:
    return _PLACE.pack(at // MINUTE_MS, at % MINUTE_MS, kind)


@lru_cache(maxsize=1024)
def _instant(at: int) -> bytes:
    return _U64.pack(at)


@lru_cache(maxsize=64)
def _day(day: int) -> bytes:
    return _U32.pack(day)


def job_row(tenant: str, job_id: str) -> bytes:
    """Row of a job."""
    return f"{tenant}\0{job_id}".encode()


def execution_row(tenant: str, execution: str) -> bytes:
    """Row of an execution; those of one job follow one another."""
    return f"{tenant}\0{execution}".encode()


def job_of_execution(row: bytes) -> bytes:
    """Row of the job that an execution's row belongs to."""
    return row[: row.rindex(b":")]


def spec_row(job: bytes, version: int) -> bytes:
    """Row of one version of a job."""
    return job + _version(version)


def limit_row(tenant: str, name: str) -> bytes:
    """Row of a limit; those of one tenant follow one another, the tenant-wide one (no name) first."""
    return f"{tenant}\0{name}".encode()


def calendar_row(tenant: str, name: str) -> bytes:
    """Row of a calendar; those of one tenant follow one another."""
    return f"{tenant}\0{name}".encode()


def calendar_job_row(tenant: str, name: str, job_id: str) -> bytes:
    """Row that says that a job depends on a calendar; those of one calendar follow one another by job."""
    return f"{tenant}\0{name}\0{job_id}".encode()


def api_key_row(tenant: str, key: str) -> bytes:
    """Row of the API key with that id."""
    return f"{tenant}\0{key}".encode()


def operation_row(tenant: str, operation: str) -> bytes:
    """Row of a bulk operation."""
    return f"{tenant}\0{operation}".encode()


def names(row: bytes) -> tuple[str, str]:
    """(tenant, job id) or (tenant, execution id) in a row's key."""
    tenant, _, rest = row.decode().partition("\0")
    return tenant, rest


def index_row(at: int, kind: int, row: bytes) -> bytes:
    """Row of the time index: minute | ms in the minute | kind | id."""
    return _place(at, kind) + row


def index_bound(at: int) -> bytes:
    """A key before every index row at `at` or later, after every earlier one."""
    return _PLACE.pack(at // MINUTE_MS, at % MINUTE_MS, 0)


def index_parts(key: bytes) -> tuple[int, int, bytes]:
    """(instant, kind, id) of an index row."""
    minute, ms, kind = _PLACE.unpack_from(key)
    return minute * MINUTE_MS + ms, kind, key[_PLACE.size :]


@lru_cache(maxsize=4096)
def lane_prefix(queue: str, task: str, priority: int, tenant: str, limit: str) -> bytes:
    """Start of the keys of the rows that are queued alike; one character stands for the priority, the highest first."""
    return f"{queue}\0{task}\0{chr(_DIGIT_9 - priority)}{tenant}\0{limit}\0".encode()


class Lane(NamedTuple):
    """What is queued alike: it goes to the same sessions, under the same permits, in order of time. `limit` is what its
    jobs name, empty = none.
    """

    queue: str
    task: str
    priority: int
    tenant: str
    limit: str = ""

    def prefix(self) -> bytes:
        """Start of the keys of its rows."""
        return lane_prefix(self.queue, self.task, self.priority, self.tenant, self.limit)


def queued_row(prefix: bytes, ready_at: int, execution: str) -> bytes:
    """Row of the queued set in the lane with that prefix."""
    return prefix + _instant(ready_at) + execution.encode()


def queued_parts(key: bytes) -> tuple[Lane, str]:
    """(lane, execution id) of a row of the queued set."""
    queue, task, rest = key.split(b"\0", 2)
    tenant, limit, tail = rest[1:].split(b"\0", 2)
    lane = Lane(queue.decode(), task.decode(), _DIGIT_9 - rest[0], tenant.decode(), limit.decode())
    return lane, tail[8:].decode()


def instant_row(job: bytes, at: int) -> bytes:
    """Row of an instant of the job of that row: they sort by time."""
    return job + b":" + _U64.pack(at)


def instant_of(row: bytes) -> int:
    """The instant in a row of one."""
    return int(_U64.unpack_from(row, len(row) - _U64.size)[0])


def job_of_instant(row: bytes) -> bytes:
    """Row of the job that the row of an instant belongs to."""
    return row[: -_U64.size - 1]


def permit_row(limit: bytes, permit: int) -> bytes:
    """Row of a permit that is out, where `limit` is the row of its limit."""
    return limit + b"\0" + _U64.pack(permit)


def remembered_name(key: bytes) -> str:
    """The name in the key of a row that is kept by day."""
    return key[len(remembered_row(0, b"")) :].decode()


def remembered_row(day: int, row: bytes) -> bytes:
    """Row that is forgotten as a whole day."""
    return _day(day) + row


def after(prefix: bytes) -> bytes:
    """The first key behind every key that starts with `prefix`."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1])
