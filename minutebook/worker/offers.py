"""How many more runs a worker offers to take from each partition.

Free slots go to the partitions that reported queued work, in shares that are divided anew at most once a second. A
partition that reported none is offered a little more than its part of what is free, so that it can start work at any
time; what comes in excess is handed back. Nothing is offered while no slot is free.

Pure: no I/O, the time (seconds, monotonic) is an argument. A partition's owner counts all its grants above the last token
named in a pulse against the offer in it; `outstanding` is what it may still grant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

MOVE_EVERY_S: Final = 1.0
GATHER_S: Final = 0.1
UNANSWERED_S: Final = 0.2
SPARE: Final = 16
GROW_AFTER_S: Final = 0.1
SHRINK_AFTER_S: Final = 1.0


class _Partition:
    """What is known of one partition. `queued` is its last report, index = priority."""

    __slots__ = ("asked_since", "offered_at", "outstanding", "queued", "running", "sent_at", "share")

    def __init__(self, share: int) -> None:
        self.queued: list[int] = []
        self.share = share
        self.running = 0
        self.outstanding = 0
        self.sent_at = -math.inf
        self.offered_at = -math.inf
        self.asked_since = math.inf


class Offers:
    """Slots of one worker over the partitions. `first` breaks ties, so that a fleet does not crowd at one partition."""

    def __init__(self, slots: int, partitions: int, first: int = 0) -> None:
        self.slots = slots
        self.free = slots
        self._count = partitions
        self._first = first % partitions
        self._partitions = [_Partition(share) for share in self._equal_shares()]
        self._promised = 0
        self._has_known = False
        """Whether any partition is known to have work."""
        self._moved_at = -math.inf
        self._move_at = math.inf
        self._free_since = -math.inf
        """Since when some slot is free, as far as `tick` has seen; infinity = none is."""

    # -- what happened

    def took(self, partition: int, started: int, handed_back: int, now: float) -> None:
        """Grants of `partition` came in: some started, the rest went back."""
        it = self._partitions[partition]
        it.running += started
        self.free -= started
        if self.free <= 0:
            self._free_since = math.inf
        it.outstanding = max(0, it.outstanding - started - handed_back)
        it.asked_since = now if it.outstanding else math.inf
        self._count_promised()

    def freed(self, partition: int, count: int = 1) -> None:
        """Runs of `partition` left their slots."""
        self._partitions[partition].running -= count
        self.free += count

    def told(self, partition: int, queued: list[int], now: float) -> None:
        """`partition` reported its queued work, index = priority; an empty list says nothing.

        It is news: what is offered there has its time to be answered anew.
        """
        if not queued:
            return
        is_first = not any(it.queued for it in self._partitions)
        if is_first and now >= self._moved_at + MOVE_EVERY_S:
            for other, share in zip(self._partitions, self._equal_shares(), strict=True):
                other.share = share
        it = self._partitions[partition]
        it.queued = queued if any(queued) else []
        it.asked_since = now if it.outstanding else math.inf
        if any(queued) and self._move_at == math.inf:
            self._move_at = max(self._moved_at + MOVE_EVERY_S, now + GATHER_S)
        self._count_promised()

    def sent(self, partition: int, offer: int, now: float) -> None:
        """A pulse with `offer` went to `partition`."""
        it = self._partitions[partition]
        it.outstanding = offer
        it.sent_at = now
        if offer:
            it.offered_at = now
            it.asked_since = min(it.asked_since, now)
        else:
            it.asked_since = math.inf
        self._count_promised()

    def ended(self, partition: int) -> None:
        """The session toward `partition` is over: nothing is offered there until the next pulse."""
        self._partitions[partition].outstanding = 0
        self._partitions[partition].asked_since = math.inf
        self._count_promised()

    def tick(self, now: float) -> None:
        """Forget counts of partitions that did not answer; move slots if it is time."""
        if self.free > 0 and self._free_since == math.inf:
            self._free_since = now
        for it in self._partitions:
            if it.queued and now - it.asked_since >= UNANSWERED_S:
                it.queued = []
        if now >= self._move_at:
            self._move(now)
        self._count_promised()

    # -- what follows

    def offer(self, partition: int) -> int:
        """What a pulse to `partition` should offer now."""
        it = self._partitions[partition]
        if self.free <= 0:
            return 0
        if not it.queued:
            return min(self.free, -(-self.free // self._count) + SPARE)
        unpromised = self.free - self._promised + it.outstanding
        return max(0, min(it.share - it.running, unpromised))

    def pulse_at(self, partition: int) -> float:
        """When `partition` should hear of a changed offer if nothing else is sent to it; infinity = it need not."""
        it = self._partitions[partition]
        offer = self.offer(partition)
        if offer > it.outstanding and offer >= 2 * it.outstanding:
            return max(it.sent_at, self._spare_since(it)) + GROW_AFTER_S
        if offer < it.outstanding and 2 * offer <= it.outstanding:
            return it.sent_at + SHRINK_AFTER_S
        return math.inf

    def _spare_since(self, it: _Partition) -> float:
        """Since when there are slots for `it` that a partition with known work does not take at once."""
        return self._free_since if self._has_known and not it.queued else -math.inf

    def is_scarce(self, partition: int) -> bool:
        """Whether `partition` has used up most of its offer while slots are free: it may be waiting for the next one."""
        return self.offer(partition) > 2 * self._partitions[partition].outstanding

    @property
    def tick_at(self) -> float:
        """When `tick` has something to do."""
        unanswered = [it.asked_since + UNANSWERED_S for it in self._partitions if it.queued]
        return min(self._move_at, *unanswered) if unanswered else self._move_at

    # -- shares

    def _count_promised(self) -> None:
        known = [it.outstanding for it in self._partitions if it.queued]
        self._has_known, self._promised = bool(known), sum(known)

    def _equal_shares(self) -> list[int]:
        each, rest = divmod(self.slots, self._count)
        return [each + ((number - self._first) % self._count < rest) for number in range(self._count)]

    def _move(self, now: float) -> None:
        """Divide all slots anew by reported work: higher priorities first, the longest unoffered first among equals."""
        known = sorted(
            (number for number, it in enumerate(self._partitions) if it.queued),
            key=lambda number: (self._partitions[number].offered_at, (number - self._first) % self._count),
        )
        self._move_at = math.inf
        if not known:
            return
        for it in self._partitions:
            it.share = 0
        left = self.slots
        for priority in reversed(range(max(len(self._partitions[n].queued) for n in known))):
            left -= self._fill(left, [(n, _wanted(self._partitions[n].queued, priority)) for n in known])
        self._fill(left, [(number, left) for number in known])
        self._moved_at = now
        self._move_at = now + MOVE_EVERY_S

    def _fill(self, slots: int, wanted: Iterable[tuple[int, int]]) -> int:
        """Raise shares evenly, none by more than it wants; how many slots went away."""
        left = slots
        open_ = {number: count for number, count in wanted if count}
        while left and open_:
            each = max(1, left // len(open_))
            for number in list(open_):
                given = min(each, open_[number], left)
                self._partitions[number].share += given
                left -= given
                open_[number] -= given
                if not open_[number]:
                    del open_[number]
        return slots - left


def _wanted(queued: list[int], priority: int) -> int:
    """Slots wanted for one priority: what is queued, and a little for what comes before the next move."""
    count = queued[priority] if priority < len(queued) else 0
    return count + SPARE if count else 0
