"""The queued set as grants see it: lanes by queue, priority, tenant and task, their heads in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set

from minutebook.domain import keys
from minutebook.store.port import Rows
from streams.window import Window


class QueuedLane:
    """What is queued alike: the rows of the store that start with the lane's prefix."""

    def __init__(self, rows: Rows, prefix: bytes) -> None:
        self.lane = lane_at(prefix)
        self.window = Window(rows, "queued", prefix, keys.after(prefix))
        self.name_at = len(prefix) + 8
        """Where the execution id starts in a row's key."""
        self._tenant = self.lane.tenant.encode() + b"\0"

    def head_at(self) -> int | None:
        """See `Source.head_at`."""
        key = self.window.head()
        return None if key is None else int.from_bytes(key[self.name_at - 8 : self.name_at], "big")

    def head_key(self) -> bytes:
        """See `Source.head_key`."""
        key = self.window.head()
        assert key is not None
        return self.execution_key(key)

    def execution_key(self, row: bytes) -> bytes:
        """Row of the execution that a row of this lane stands for."""
        return self._tenant + row[self.name_at :]

    def pop(self) -> bytes:
        """Take the head out of memory, only after `head_at` has named it; its key."""
        key = self.window.head()
        assert key is not None
        self.window.pop()
        return key


class Lanes:
    """Every lane that may hold something. Follows the committed rows of the family `queued`."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._lanes: dict[bytes, QueuedLane] = {}
        self.by_queue: dict[str, dict[bytes, QueuedLane]] = defaultdict(dict)
        self._is_empty = False
        """No lane held anything when last looked, and nothing was put since."""
        self._discover()

    def _discover(self) -> None:
        """Find the lanes that hold rows by skipping from prefix to prefix."""
        start = b""
        while True:
            key = next((key for key, _ in self._rows.scan("queued", start, None)), None)
            if key is None:
                return
            prefix = keys.queued_parts(key)[0].prefix()
            self._open(prefix)
            start = keys.after(prefix)

    def _open(self, prefix: bytes) -> QueuedLane:
        opened = QueuedLane(self._rows, prefix)
        self._lanes[prefix] = self.by_queue[opened.lane.queue][prefix] = opened
        return opened

    def _close(self, lane: keys.Lane) -> None:
        """Forget an empty lane of a limit: there may be a limit for each customer, and most of them rest."""
        prefix = lane.prefix()
        self._lanes.pop(prefix, None)
        self.by_queue[lane.queue].pop(prefix, None)

    def follow(self, pending: dict[bytes, bytes | None]) -> None:
        """Rows written and deleted by the frame about to be committed."""
        prefix = b"\0"
        touched: list[QueuedLane] = []
        for key, value in pending.items():
            if not key.startswith(prefix):
                prefix = lane_prefix_of(key)
                lane = self._lanes.get(prefix) or self._open(prefix)
                touched.append(lane)
            if value is None:
                lane.window.remove([key])
            else:
                self._is_empty = False
                lane.window.put(key)
        for lane in touched:
            if lane.lane.limit and not lane.window.may_hold_any():
                self._close(lane.lane)

    def put_back(self, taken: list[bytes]) -> None:
        """Rows popped for a frame that turned out void."""
        self._is_empty = False
        for key in taken:
            prefix = lane_prefix_of(key)
            (self._lanes.get(prefix) or self._open(prefix)).window.put(key)

    def has_any(self, but: Set[str]) -> bool:
        """Whether anything may be queued at all, on other queues than those."""
        self._is_empty = self._is_empty or not any(
            lane.window.may_hold_any()
            for queue, lanes in self.by_queue.items()
            if queue not in but
            for lane in lanes.values()
        )
        return not self._is_empty


def lane_at(prefix: bytes) -> keys.Lane:
    """The lane with that prefix."""
    return keys.queued_parts(prefix + bytes(8))[0]


def lane_prefix_of(key: bytes) -> bytes:
    """The lane's part of a row's key: queue, task, then priority and tenant, then limit, each closed by NUL."""
    first = key.index(b"\0")
    second = key.index(b"\0", first + 1)
    third = key.index(b"\0", second + 1)
    return key[: key.index(b"\0", third + 1) + 1]
