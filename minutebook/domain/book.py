"""The state of one partition: typed families over a store, with what is decided but not yet in the log on top.

Writes gather in memory and are seen by reads at once; `commit` hands them to the store in one batch, `discard` drops
them. A bounded cache of decoded rows saves reading back what was written a moment ago.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

import msgspec

from minutebook.domain import keys
from minutebook.domain.known_calendars import KnownCalendars
from minutebook.domain.known_limits import KnownLimits
from minutebook.domain.operation import HomeOperation, Share
from minutebook.domain.state import (
    Alerted,
    Answer,
    ApiKey,
    Calendar,
    Cursor,
    DeadExecution,
    Execution,
    Home,
    Job,
    Limit,
    Queue,
    Rescheduling,
    Session,
    Spec,
    Stock,
    Task,
)
from minutebook.store.port import Rows

T = TypeVar("T")

FAMILIES: Final = (
    "cursor",
    "jobs",
    "specs",
    "executions",
    "index",
    "queued",
    "running",
    "counts",
    "queues",
    "sessions",
    "closed",
    "shelf",
    "dead",
    "commands",
    "ended",
    "limits",
    "stocks",
    "homes",
    "permits",
    "alerts",
    "shares",
    "operations",
    "tasks",
    "asked",
    "calendars",
    "calendar_jobs",
    "reschedulings",
    "skips",
    "filled",
    "api_keys",
)
REMEMBERED: Final = ("closed", "shelf", "dead", "commands", "ended", "alerts", "asked", "skips")
CACHED_MAX: Final = 20_000
FORMAT: Final = 6
"""Version of these rows: a store of another version is dropped and folded again."""
DEFAULT_QUEUE: Final = "default"

_encode = msgspec.msgpack.Encoder().encode


class Family(Generic[T]):
    """Rows of one kind: structs, or plain bytes where `kind` is bytes."""

    def __init__(self, rows: Rows, name: str, kind: type[T]) -> None:
        self._rows = rows
        self._name = name
        self._is_plain = kind is bytes
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self.pending: dict[bytes, T | None] = {}
        self._young: dict[bytes, T] = {}
        self._old: dict[bytes, T] = {}

    def get(self, key: bytes) -> T | None:
        """The row under `key`, None where there is none."""
        if key in self.pending:
            return self.pending[key]
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is None:
                return self._read(key)
        return found

    def _read(self, key: bytes) -> T | None:
        stored = self._rows.get(self._name, key)
        if stored is None or self._is_plain:
            return stored  # type: ignore[return-value]  # plain: T is bytes
        found = self._young[key] = self._decode(stored)
        self._bound_cache()
        return found

    def _row(self, stored: bytes) -> T:
        return stored if self._is_plain else self._decode(stored)  # type: ignore[return-value]  # plain: T is bytes

    def _bound_cache(self) -> None:
        """Two generations: what was not written or read lately goes with the old one."""
        if len(self._young) > CACHED_MAX:
            self._old, self._young = self._young, {}

    def put(self, key: bytes, row: T) -> None:
        """Write `row`."""
        self.pending[key] = row

    def delete(self, key: bytes) -> None:
        """Delete the row, if there is one."""
        self.pending[key] = None

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, T]]:
        """Rows whose keys start with `prefix`, what is pending included, in order of keys."""
        found: dict[bytes, T | None] = {}
        for key, stored in self._rows.scan(self._name, prefix, keys.after(prefix) if prefix else None):
            found[key] = self._row(stored)
        found.update((key, row) for key, row in self.pending.items() if key.startswith(prefix))
        for key in sorted(found):
            row = found[key]
            if row is not None:
                yield key, row

    def walk(self, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, T]]:
        """Stored rows with start <= key < end in order of keys, each as it is by now, read one at a time and not cached.
        `end` None: all that follow.

        For a family that may be large: what is pending and not stored yet is not shown.
        """
        for key, stored in self._rows.scan(self._name, start, end):
            row = self.pending[key] if key in self.pending else self._row(stored)
            if row is not None:
                yield key, row

    def first(self, start: bytes, end: bytes) -> tuple[bytes, T] | None:
        """The first row with start <= key < end, what is pending included; None if there is none."""
        stored = next(self.walk(start, end), None)
        if self.pending:
            written = (key for key, row in self.pending.items() if row is not None and start <= key < end)
            key = min(written, default=end)
            if key != end and (stored is None or key < stored[0]):
                return key, self.pending[key]  # type: ignore[return-value]  # those deleted are left out
        return stored

    def settle(self) -> dict[bytes, bytes | None]:
        """What was pending, as it must be stored at once; it is cached from here on."""
        pending, self.pending = self.pending, {}
        if self._is_plain:
            return pending  # type: ignore[return-value]  # T is bytes
        stored: dict[bytes, bytes | None] = {}
        young, old = self._young, self._old
        for key, row in pending.items():
            if row is not None:
                young[key] = row
                stored[key] = _encode(row)
            else:
                stored[key] = None
                young.pop(key, None)
                if old:
                    old.pop(key, None)
        self._bound_cache()
        return stored

    def discard(self) -> None:
        """Forget what is pending."""
        self.pending = {}

    def forget_cached(self) -> None:
        """Forget what is cached: the store was written past this family."""
        self._young, self._old = {}, {}


class Book:
    """Everything that a partition's owner knows for certain."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.cursors = Family(rows, "cursor", Cursor)
        self.jobs = Family(rows, "jobs", Job)
        self.specs = Family(rows, "specs", Spec)
        self.executions = Family(rows, "executions", Execution)
        self.index = Family(rows, "index", bytes)
        self.queued = Family(rows, "queued", bytes)
        self.running = Family(rows, "running", Execution)
        self.counts = Family(rows, "counts", int)
        self.queues = Family(rows, "queues", Queue)
        self.sessions = Family(rows, "sessions", Session)
        self.closed = Family(rows, "closed", Job)
        self.shelf = Family(rows, "shelf", Spec)
        self.dead = Family(rows, "dead", DeadExecution)
        self.commands = Family(rows, "commands", Answer)
        self.ended = Family(rows, "ended", bytes)
        self.limits = Family(rows, "limits", Limit)
        self._known_limits = KnownLimits(self.limits)
        self.stocks = Family(rows, "stocks", Stock)
        self.homes = Family(rows, "homes", Home)
        self.permits = Family(rows, "permits", int)
        self.alerts = Family(rows, "alerts", Alerted)
        self.shares = Family(rows, "shares", Share)
        self.operations = Family(rows, "operations", HomeOperation)
        self.tasks = Family(rows, "tasks", Task)
        self.asked = Family(rows, "asked", str)
        self.calendars = Family(rows, "calendars", Calendar)
        self.known_calendars = KnownCalendars(self.calendars)
        self.calendar_jobs = Family(rows, "calendar_jobs", bytes)
        self.reschedulings = Family(rows, "reschedulings", Rescheduling)
        self.skips = Family(rows, "skips", int)
        self.filled = Family(rows, "filled", bytes)
        self.api_keys = Family(rows, "api_keys", ApiKey)
        self._families: dict[str, Family] = {  # type: ignore[type-arg]  # families of many kinds
            "cursor": self.cursors,
            "jobs": self.jobs,
            "specs": self.specs,
            "executions": self.executions,
            "index": self.index,
            "queued": self.queued,
            "running": self.running,
            "counts": self.counts,
            "queues": self.queues,
            "sessions": self.sessions,
            "closed": self.closed,
            "shelf": self.shelf,
            "dead": self.dead,
            "commands": self.commands,
            "ended": self.ended,
            "limits": self.limits,
            "stocks": self.stocks,
            "homes": self.homes,
            "permits": self.permits,
            "alerts": self.alerts,
            "shares": self.shares,
            "operations": self.operations,
            "tasks": self.tasks,
            "asked": self.asked,
            "calendars": self.calendars,
            "calendar_jobs": self.calendar_jobs,
            "reschedulings": self.reschedulings,
            "skips": self.skips,
            "filled": self.filled,
            "api_keys": self.api_keys,
        }
        self._ranges: list[tuple[str, bytes, bytes]] = []
        self.cursor = self.cursors.get(b"") or Cursor(format=FORMAT)
        self._committed = self.cursor

    def advance(self, cursor: Cursor) -> None:
        """Move the cursor."""
        self.cursor = cursor
        self.cursors.put(b"", cursor)

    def execution(self, key: bytes) -> Execution | None:
        """An open execution: one that runs lies in `running`, one that waits in `executions`."""
        return self.running.get(key) or self.executions.get(key)

    def executions_of(self, job: bytes) -> list[tuple[bytes, Execution]]:
        """The open executions of a job, those that wait before those that run."""
        prefix = job + b":"
        return [*self.executions.scan(prefix), *self.running.scan(prefix)]

    def remembered(self, family: Family[T], row: bytes) -> T | None:
        """A row kept by day, looked for in every day that is kept."""
        for day in self.cursor.days:
            found = family.get(keys.remembered_row(day, row))
            if found is not None:
                return found
        return None

    def recall(self, family: Family[T], row: bytes) -> T | None:
        """Take a row kept by day out of memory again; None if it is not there."""
        for day in self.cursor.days:
            key = keys.remembered_row(day, row)
            found = family.get(key)
            if found is not None:
                family.delete(key)
                return found
        return None

    def queue(self, name: str) -> Queue | None:
        """A declared queue; `default` is there from the start, for everybody."""
        found = self.queues.get(name.encode())
        return Queue(0, False, []) if found is None and name == DEFAULT_QUEUE else found

    def is_paused(self, queue: str) -> bool:
        """Whether nothing of that queue is granted now."""
        found = self.queue(queue)
        return found is not None and found.is_paused

    def limit(self, tenant: str, name: str) -> Limit | None:
        """A limit that holds; an empty name is that of the tenant-wide one. None where there is none."""
        return self._known_limits.get(tenant, name)

    def limits_of(self, tenant: str, key: str) -> tuple[str, ...]:
        """Names of the limits that hold for a job with that key (empty = none): the key's first, then the tenant's."""
        return self._known_limits.of(tenant, key)

    def put_limit(self, tenant: str, name: str, limit: Limit) -> None:
        """Write a limit, unless a version as new is known."""
        self._known_limits.put(tenant, name, limit)

    def is_of_this_format(self) -> bool:
        """Whether the stored rows were written by this version of fold."""
        return self.cursor.format == FORMAT

    def drop_day(self, day: int) -> None:
        """Delete all rows remembered for `day`."""
        for name in REMEMBERED:
            self._drop(name, keys.remembered_row(day, b""), keys.remembered_row(day + 1, b""))

    def drop_filled(self, job: bytes) -> None:
        """Delete all rows of instants of a job that were filled."""
        start, end = job + b":", keys.after(job + b":")
        if self.filled.first(start, end) is not None:
            self._drop("filled", start, end)

    def _drop(self, name: str, start: bytes, end: bytes) -> None:
        """Delete all rows of a family with start <= key < end."""
        family = self._families[name]
        self._ranges.append((name, start, end))
        family.forget_cached()
        for key in [key for key in family.pending if start <= key < end]:
            del family.pending[key]

    def commit(self) -> None:
        """Everything pending goes to the store in one batch."""
        pending = {name: family.settle() for name, family in self._families.items() if family.pending}
        self.rows.write(pending, self._ranges)
        self._ranges = []
        self._committed = self.cursor

    def discard(self) -> None:
        """Everything pending is forgotten: its frame is void."""
        self._known_limits.discard()
        self.known_calendars.discard()
        for family in self._families.values():
            family.discard()
        self._ranges = []
        self.cursor = self._committed


def digest(rows: Rows) -> bytes:
    """SHA-256 over every row of every family: equal states have equal digests."""
    total = hashlib.sha256()
    for name in FAMILIES:
        total.update(name.encode() + b"\0")
        for key, value in rows.scan(name, b"", None):
            total.update(struct.pack(">II", len(key), len(value)))
            total.update(key)
            total.update(value)
    return total.digest()
