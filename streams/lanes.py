"""The queued set as grants see it: lanes by queue, priority, tenant and task, their heads in memory."""

from __future__ import annotations

from collections import defaultdict

from minutebook.domain import keys
from minutebook.domain.keys import Lane
from minutebook.store.port import Rows
from streams.window import Window


class Lanes:
    """Every lane that may hold something. Follows the committed rows of the family `queued`."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._windows: dict[bytes, tuple[Lane, Window]] = {}
        self.by_queue: dict[str, dict[bytes, tuple[Lane, Window]]] = defaultdict(dict)
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

    def _open(self, prefix: bytes) -> Window:
        lane = keys.queued_parts(prefix + bytes(8))[0]
        window = Window(self._rows, "queued", prefix, keys.after(prefix))
        self._windows[prefix] = self.by_queue[lane.queue][prefix] = (lane, window)
        return window

    def follow(self, pending: dict[bytes, bytes | None]) -> None:
        """Rows written and deleted by the frame about to be committed."""
        prefix = b"\0"
        for key, value in pending.items():
            if not key.startswith(prefix):
                prefix = _prefix(key)
                known = self._windows.get(prefix)
                window = self._open(prefix) if known is None else known[1]
            if value is None:
                window.remove(key)
            else:
                window.put(key)

    def put_back(self, taken: list[bytes]) -> None:
        """Rows popped for a frame that turned out void."""
        for key in taken:
            prefix = _prefix(key)
            self._windows[prefix][1].put(key)

    def has_any(self) -> bool:
        """Whether anything is queued at all."""
        return any(len(window) for _, window in self._windows.values())

    def has_queued(self, queue: str) -> bool:
        """Whether anything is queued there."""
        lanes = self.by_queue.get(queue)
        return lanes is not None and any(window.head() is not None for _, window in lanes.values())


def _prefix(key: bytes) -> bytes:
    """The lane's part of a row's key: queue, task, then priority and tenant, each closed by NUL."""
    first = key.index(b"\0")
    second = key.index(b"\0", first + 1)
    return key[: key.index(b"\0", second + 1) + 1]
