"""Open queues of one partition: which queued executions are to be published as due records, and which again.

Due records are hints: the claim decides, so a repeat changes nothing and is never a new attempt. At most `EMIT_WINDOW`
of a queue are published and unclaimed; the rest waits in the queued set and follows as claims come. All of this is
memory: after a take-over what is still queued is published again.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Final, NamedTuple

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.placing import spec_of
from minutebook.domain.records import DueRecord
from minutebook.ids import job_of
from streams.lanes import Lanes, QueuedLane, lane_prefix_of

EMIT_WINDOW: Final = 20_000
AGAIN_PASSED_MS: Final = 5_000
"""While later ones are claimed, one that is not was dropped by somebody, or lost."""
AGAIN_IDLE_MS: Final = 60_000
"""Where nothing later is claimed, consumers are slow or away."""
DOUBLINGS_MAX: Final = 10
AGAIN_SHARE: Final = 0.01
"""Of what is published for the first time, so much may be published again; and one a second."""
CREDIT_MAX: Final = AGAIN_SHARE * EMIT_WINDOW


class Hint(NamedTuple):
    """A due record to be published. `key` is its row of the queued set; `is_repeat`: it was published before."""

    queue: str
    key: bytes
    record: DueRecord
    is_repeat: bool


class _Out:
    """A row that is published, or on its way out: then its `number` is -1. Numbers rise in order of publishing."""

    __slots__ = ("number", "repeats", "sent_at")

    def __init__(self) -> None:
        self.number = -1
        self.repeats = 0
        self.sent_at = 0


class Emission:
    """What is published of one open queue and not claimed yet. Instants are the owner's, in ms."""

    def __init__(self, lanes: Mapping[bytes, QueuedLane]) -> None:
        self._lanes = lanes
        self._ripe = dict.fromkeys(lanes)
        """Lanes that may hold rows that were never published."""
        self._out: dict[bytes, _Out] = {}
        self._sent: list[deque[tuple[bytes, int]]] = [deque() for _ in range(DOUBLINGS_MAX + 1)]
        """(row, number) by how often it was published again: oldest first, in both."""
        self._numbers = count()
        self._claimed_through = -1
        self._credit = 1.0
        self._credited_at: int | None = None

    def rows(self) -> list[bytes]:
        """Rows that are published or on their way out."""
        return list(self._out)

    def has_fresh(self) -> bool:
        """Whether something may wait that was never published, and there is room for it."""
        return bool(self._ripe) and len(self._out) < EMIT_WINDOW

    def fresh(self, most: int) -> list[bytes]:
        """The next rows to publish for the first time: by priority, then tenants in turn, then time."""
        room = min(most, EMIT_WINDOW - len(self._out))
        turns: dict[str, int] = {}
        found: list[bytes] = []
        places = [place for prefix in list(self._ripe) if (place := self._place(prefix, turns)) is not None]
        heapq.heapify(places)
        while places and len(found) < room:
            prefix = places[0][-1]
            lane = self._lanes[prefix]
            key = lane.pop()
            if key not in self._out:
                self._out[key] = _Out()
                found.append(key)
                turns[lane.lane.tenant] = turns.get(lane.lane.tenant, 0) + 1
            place = self._place(prefix, turns)
            if place is None:
                heapq.heappop(places)
            else:
                heapq.heapreplace(places, place)
        self._credit = max(self._credit, min(CREDIT_MAX, self._credit + AGAIN_SHARE * len(found)))
        return found

    def _place(self, prefix: bytes, turns: dict[str, int]) -> tuple[int, int, int, bytes] | None:
        lane = self._lanes.get(prefix)
        at = None if lane is None else lane.head_at()
        if lane is None or at is None:
            self._ripe.pop(prefix, None)
            return None
        return -lane.lane.priority, turns.get(lane.lane.tenant, 0), at, prefix

    def again(self, now: int, most: int) -> list[bytes]:
        """Rows that are unclaimed for too long, as far as repeats are allowed."""
        self._credit_time(now)
        found: list[bytes] = []
        for level in self._sent:
            while level and len(found) < most and self._credit >= 1:
                key, number = level[0]
                out = self._out.get(key)
                if out is not None and out.number == number:
                    if now < out.sent_at + self._wait_ms(out):
                        break
                    out.number = -1
                    out.repeats = min(out.repeats + 1, DOUBLINGS_MAX)
                    self._credit -= 1
                    found.append(key)
                level.popleft()
        return found

    def _credit_time(self, now: int) -> None:
        since = now if self._credited_at is None else self._credited_at
        self._credited_at = now
        if self._credit < 1:
            self._credit = min(1.0, self._credit + max(0, now - since) / 1_000)

    def _wait_ms(self, out: _Out) -> int:
        is_passed = out.number < self._claimed_through
        return (AGAIN_PASSED_MS if is_passed else AGAIN_IDLE_MS) << out.repeats

    def sent(self, key: bytes, now: int) -> None:
        """The broker has the due record of that row."""
        out = self._out.get(key)
        if out is None or out.number >= 0:
            return
        out.number, out.sent_at = next(self._numbers), now
        self._sent[out.repeats].append((key, out.number))

    def gone(self, key: bytes, *, is_claimed: bool) -> None:
        """The row waits no more."""
        out = self._out.pop(key, None)
        if out is not None and is_claimed:
            self._claimed_through = max(self._claimed_through, out.number)

    def put(self, prefix: bytes, key: bytes) -> None:
        """The row waits, for the first time or again: perhaps as a further attempt."""
        self._out.pop(key, None)
        self._ripe[prefix] = None


class OpenQueues:
    """The open queues of one partition. `names` is theirs, kept up to date; `lanes` hold what is queued, of all queues."""

    def __init__(self, book: Book, lanes: Lanes, partition: int) -> None:
        self._book = book
        self._lanes = lanes
        self._partition = partition
        self.names: set[str] = set()
        self._emissions: dict[str, Emission] = {}
        self._prefixes: tuple[bytes, ...] = ()
        for name, queue in book.queues.scan(b""):
            if queue.is_open:
                self._open(name.decode())

    def _open(self, name: str) -> None:
        self.names.add(name)
        self._emissions[name] = Emission(self._lanes.by_queue[name])
        self._prefixes = tuple(queue.encode() + b"\0" for queue in sorted(self.names))

    def _close(self, name: str) -> None:
        """The queue is an ordinary one from here on: what was published waits for offers again."""
        self.names.discard(name)
        self._lanes.put_back(self._emissions.pop(name).rows())
        self._prefixes = tuple(queue.encode() + b"\0" for queue in sorted(self.names))

    def follow(self, placed: Iterable[tuple[Event, int]], pending: Mapping[bytes, bytes | None]) -> None:
        """What the frame about to be committed writes to the queued set, and says of queues. Call it after the lanes'."""
        if self._prefixes:
            for key, value in pending.items():
                if key.startswith(self._prefixes):
                    self._follow_row(key, is_there=value is not None)
        for event, _ in placed:
            if isinstance(event, facts.QueueCopied) and event.is_open != (event.name in self.names):
                (self._open if event.is_open else self._close)(event.name)

    def _follow_row(self, key: bytes, *, is_there: bool) -> None:
        emission = self._emissions[key[: key.index(b"\0")].decode()]
        if is_there:
            emission.put(lane_prefix_of(key), key)
            return
        lane, name = keys.queued_parts(key)
        row = keys.execution_row(lane.tenant, name)
        emission.gone(key, is_claimed=self._book.running.pending.get(row) is not None)

    def has_fresh(self, queue: str) -> bool:
        """Whether something of that queue may wait that was never published, and there is room for it."""
        emission = self._emissions.get(queue)
        return emission is not None and emission.has_fresh() and not self._book.is_paused(queue)

    def take(self, queue: str, now: int, most: int) -> list[Hint]:
        """Up to `most` due records to publish now. Call it while no decision is pending: they follow from the log.

        Nothing of a paused queue.
        """
        if self._book.is_paused(queue):
            return []
        emission = self._emissions[queue]
        fresh = emission.fresh(most) if emission.has_fresh() else []
        again = emission.again(now, most - len(fresh))
        found = [self._hint(queue, key, is_repeat=False) for key in fresh]
        found += [self._hint(queue, key, is_repeat=True) for key in again]
        return [hint for hint in found if hint is not None]

    def sent(self, queue: str, key: bytes, now: int) -> None:
        """The broker has the due record of that row."""
        emission = self._emissions.get(queue)
        if emission is not None:
            emission.sent(key, now)

    def _hint(self, queue: str, key: bytes, *, is_repeat: bool) -> Hint | None:
        """None where the row waits no more, which a window read anew may still show."""
        lane, name = keys.queued_parts(key)
        row = keys.execution_row(lane.tenant, name)
        execution = self._book.executions.get(row)
        if execution is None or execution.status != "queued":
            self._emissions[queue].gone(key, is_claimed=False)
            return None
        spec = spec_of(self._book, row, execution.version)
        record = DueRecord(
            tenant=lane.tenant,
            execution=name,
            attempt=execution.attempt,
            job_id=job_of(name),
            task=spec.task,
            queue=queue,
            payload=spec.payload,
            scheduled_at=execution.scheduled_at,
            due_at=execution.due_at,
            partition=self._partition,
            traceparent=spec.traceparent,
        )
        return Hint(queue, key, record, is_repeat)
