"""How fast the view reads the log, and when it will have read it: while nothing is answered yet, people wish to know."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from api.problems import Refused

_MARK_EVERY_S: Final = 1.0
_MARKS_MAX: Final = 16
RETRY_AFTER_S_MAX: Final = 30


class Reading(NamedTuple):
    """How far a log is read: records of it, read and left (None: not known yet), and how many a second by the last while
    (None: unknown).
    """

    read: int
    left: int | None
    per_s: float | None

    @property
    def share(self) -> float:
        """What is read of all there is, from 0 to 1."""
        if self.left is None:
            return 0.0
        return self.read / (self.read + self.left) if self.left else 1.0

    @property
    def ready_in_s(self) -> int | None:
        """Seconds until it is read, at this rate; None where that is unknown."""
        if self.left is None:
            return None
        if not self.left:
            return 0
        return None if not self.per_s else -int(-self.left // self.per_s)

    def text(self) -> str:
        """It in words."""
        if self.left is None:
            return "how much there is to read is not known yet"
        told = f"{self.left} records left of {self.read + self.left}, {self.share:.0%} read"
        if self.per_s is None or self.ready_in_s is None:
            return told
        return f"{told}, {self.per_s:.0f} a second, ready in about {self.ready_in_s} s"


class CatchUp:
    """How far the view has read each partition, by marks of the last quarter of a minute."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, dict[int, int]]] = deque(maxlen=_MARKS_MAX)
        self._read: dict[int, int] = {}
        self._left: dict[int, int] = {}
        self._now_s = 0.0

    def note(self, now_s: float, read: Mapping[int, int], left: Mapping[int, int]) -> None:
        """So many records of each partition are read, and left, at `now_s`, which is monotonic."""
        self._now_s, self._read, self._left = now_s, dict(read), dict(left)
        if not self._marks or now_s - self._marks[-1][0] >= _MARK_EVERY_S:
            self._marks.append((now_s, self._read))

    def of(self, partition: int) -> Reading:
        """How far a partition is read."""
        return self._reading([partition])

    def all(self) -> Reading:
        """How far all of them are, together."""
        return self._reading([*self._read])

    def retry_after_s(self) -> int:
        """When it is worth asking again: in a second at least, in half a minute at most."""
        ready_in_s = self.all().ready_in_s
        return min(max(1, ready_in_s or 1), RETRY_AFTER_S_MAX)

    def _reading(self, partitions: list[int]) -> Reading:
        if not self._marks:
            return Reading(0, None, None)
        read = sum(self._read.get(partition, 0) for partition in partitions)
        left = sum(self._left.get(partition, 0) for partition in partitions)
        per_s = None
        if self._now_s - self._marks[0][0] >= _MARK_EVERY_S:
            began_s, before = self._marks[0]
            fresh = read - sum(before.get(partition, 0) for partition in partitions)
            per_s = max(0, fresh) / (self._now_s - began_s)
        return Reading(read, left, per_s)


def not_ready(catch_up: CatchUp, detail: str = "") -> Refused:
    """Nothing can be answered yet, and when it is worth asking again."""
    return Refused("not-ready", detail[:500], headers={"retry-after": str(catch_up.retry_after_s())})
