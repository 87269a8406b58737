"""The due set: what has come due and is not on record yet, in memory, by lane; its rows still lie in the time index.

Where workers keep taking, an execution waits here for its grant and is recorded once, as due and granted, instead of
twice. It waits `HOLD_MS` at most, and not at all where nobody takes: then it is queued on record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Set
from typing import Final

import msgspec

from minutebook.domain import keys
from minutebook.domain.due import Due
from minutebook.domain.keys import Lane

HOLD_MS: Final = 5_000
MOVING_MS: Final = 2_000
"""A lane of which nothing was granted for so long has nobody who takes."""
HELD_MAX: Final = 16_384
"""Executions held in memory; what comes on top is queued."""


class Held(msgspec.Struct, frozen=True, gc=False):
    """One execution that is due, the row of the time index that says so, and since when it is held here, ms."""

    key: bytes
    due: Due
    since: int


class DueLane:
    """What is due alike, in the order of the time index. `live` are the rows that are held, of all lanes."""

    def __init__(self, lane: Lane, live: dict[bytes, Held]) -> None:
        self.lane = lane
        self.rows: deque[Held] = deque()
        self.granted_at = -MOVING_MS
        self._live = live

    def head_at(self) -> int | None:
        """See `Source.head_at`."""
        rows, live = self.rows, self._live
        while rows:
            head = rows[0]
            if live.get(head.key) is head:
                return head.due.due_at
            rows.popleft()
        return None

    def head_key(self) -> bytes:
        """See `Source.head_key`."""
        due = self.rows[0].due
        return keys.execution_row(due.tenant, due.execution)

    def pop(self) -> Held:
        """Take the head, only after `head_at` has named it."""
        head = self.rows.popleft()
        self._live.pop(head.key, None)
        return head

    def is_moving(self, now: int) -> bool:
        """Whether something of it was granted a moment ago."""
        return now - self.granted_at <= MOVING_MS


class DueSet:
    """Everything that is held, by lane."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[str, str, int, str, str], DueLane] = {}
        self._live: dict[bytes, Held] = {}
        self._last: DueLane | None = None

    def __len__(self) -> int:
        """Executions held."""
        return len(self._live)

    def __iter__(self) -> Iterator[DueLane]:
        return iter(self._lanes.values())

    def put(self, key: bytes, due: Due, now: int) -> None:
        """Hold an execution. Those of one lane come in the order of the time index."""
        lane = (due.queue, due.task, due.priority, due.tenant, due.limit)
        found = self._last
        if found is None or found.lane != lane:
            found = self._last = self._lanes.get(lane) or self._open(Lane(*lane))
        self._live[key] = row = Held(key, due, now)
        found.rows.append(row)

    def _open(self, lane: Lane) -> DueLane:
        opened = self._lanes[lane] = DueLane(lane, self._live)
        return opened

    def remove(self, rows: Set[bytes]) -> None:
        """Those rows of the time index were written anew, or deleted."""
        for key in rows & self._live.keys():
            del self._live[key]

    def take_overdue(self, now: int, most: int) -> Iterator[Held]:
        """Take out what must not wait here any longer, `most` at a time."""
        left, excess = most, len(self) - HELD_MAX
        for lane in list(self._lanes.values()):
            is_moving = lane.is_moving(now)
            while left > 0 and lane.head_at() is not None:
                if is_moving and excess <= 0 and now - lane.rows[0].since < HOLD_MS:
                    break
                left -= 1
                excess -= 1
                yield lane.pop()
            if not lane.rows and not is_moving:
                del self._lanes[lane.lane]
                self._last = None

    def first_key(self) -> bytes | None:
        """The smallest row of the time index that is held; None if nothing is."""
        return min((lane.rows[0].key for lane in self._lanes.values() if lane.rows), default=None)

    def next_at(self) -> int | None:
        """When something must be queued if nothing is granted before, ms; None if nothing is held."""
        ends = [
            min(lane.granted_at + MOVING_MS + 1, lane.rows[0].since + HOLD_MS)
            for lane in self._lanes.values()
            if lane.rows
        ]
        return min(ends, default=None)

    def drain(self) -> list[bytes]:
        """Forget everything; the rows of the time index that were held."""
        found = list(self._live)
        self._lanes.clear()
        self._live.clear()
        self._last = None
        return found
