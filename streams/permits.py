"""Permits of one partition's cycles: asked for, used and given back, and granted where this is a limit's home.

Everything that counts is in the book. In memory is only which rows to look at, and what this cycle has used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.grants import Permit, Takers
from minutebook.domain.keys import Lane
from minutebook.domain.offers import Session
from minutebook.domain.permit_folds import home_of, stock_of
from minutebook.domain.permits import (
    ASKED_MAX,
    asked,
    grantable,
    grantable_at,
    is_paused,
    lacking,
    next_useless_at,
    useless,
)
from minutebook.log.draft import Draft
from minutebook.wire import topics
from streams.lanes import Lanes, QueuedLane, lane_at


class LimitedLane:
    """A lane under limits: its front shows only while there is a free permit of each."""

    def __init__(self, queued: QueuedLane, names: tuple[str, ...], permits: Permits, now: int) -> None:
        self.queued = queued
        self.lane = queued.lane
        self.names = names
        """Of its limits, in the order in which permits are asked for."""
        self._permits = permits
        self._now = now

    def head_at(self) -> int | None:
        """See `Source.head_at`."""
        return (
            self.queued.head_at()
            if self._permits.may_start(self.lane.tenant, self.names, self._now)
            else None
        )

    def head_key(self) -> bytes:
        """See `Source.head_key`."""
        return self.queued.head_key()


class _Wish:
    """How many permits of one limit could be used at this moment."""

    def __init__(self) -> None:
        self.waiting = 0
        self.priority = -1
        self.sessions: dict[str, Session] = {}

    def add(self, waiting: int, priority: int, sessions: Iterable[Session]) -> None:
        """So many executions more that wait, and the sessions that offer for them."""
        self.waiting += waiting
        self.priority = max(self.priority, priority)
        self.sessions.update((session.name, session) for session in sessions)

    def count(self) -> int:
        """As many as wait, and as there are slots for."""
        return min(self.waiting, sum(session.free() for session in self.sessions.values()))


class Permits:
    """What one partition has of permits, asks for and grants."""

    def __init__(self, book: Book, lanes: Lanes, partition: int, partitions: int) -> None:
        self._book = book
        self._lanes = lanes
        self._partition = partition
        self._partitions = partitions
        self._used: Counter[bytes] = Counter()
        """Free permits by the row of their limit that a grant in the making takes."""
        self._refused: dict[tuple[str, str], _Wish] = {}
        """Claims that lacked a permit, by tenant and limit."""
        self.look_again()

    def look_again(self) -> None:
        """Forget what a draft has left in memory, and look at every row that is stored."""
        self._used.clear()
        self._refused.clear()
        self._stocks = {row for row, stock in self._book.stocks.scan(b"") if stock.free or stock.spent}
        self._homes = {row for row, _ in self._book.homes.scan(b"")}
        self._at: dict[bytes, int] = {}
        """When time alone lets this home grant more, or makes a permit here useless, by row of the limit."""

    # -- what may start

    def gated(self, lanes: Iterable[QueuedLane], now: int) -> Iterator[QueuedLane | LimitedLane]:
        """Lanes as grants may see them: those under limits show nothing without permits."""
        for lane in lanes:
            names = self._book.limits_of(lane.lane.tenant, lane.lane.limit)
            yield LimitedLane(lane, names, self, now) if names else lane

    def may_start(self, tenant: str, names: tuple[str, ...], now: int) -> bool:
        """Whether there is a free permit of each of these limits of a tenant, and none is paused."""
        return all(self._free(tenant, name) > 0 and not self._is_paused(tenant, name, now) for name in names)

    def _free(self, tenant: str, name: str) -> int:
        row = keys.limit_row(tenant, name)
        return len(stock_of(self._book, row).free) - self._used[row]

    def _is_paused(self, tenant: str, name: str, now: int) -> bool:
        limit = self._book.limit(tenant, name)
        return limit is not None and is_paused(limit, now)

    def use(self, tenant: str, names: tuple[str, ...]) -> list[Permit]:
        """One free permit of each, only after `may_start`; they are spoken for until `used`."""
        found: list[Permit] = []
        for name in names:
            row = keys.limit_row(tenant, name)
            found.append((name, stock_of(self._book, row).free[self._used[row]][0]))
            self._used[row] += 1
        return found

    def used(self) -> None:
        """The grants that were in the making are in the draft."""
        self._used.clear()

    def could_start(self, lane: Lane, waiting: int) -> int:
        """How many of those that wait in a lane its limits may let start, as far as is known here: what is asked for and
        does not come is out elsewhere.
        """
        for name in self._book.limits_of(lane.tenant, lane.limit):
            limit, stock = (
                self._book.limit(lane.tenant, name),
                stock_of(self._book, keys.limit_row(lane.tenant, name)),
            )
            if limit is None:
                continue
            if asked(stock, limit):
                waiting = min(waiting, len(stock.free))
            elif limit.concurrency >= 0:
                waiting = min(waiting, limit.concurrency)
        return waiting

    # -- asking

    def claim(self, lane: Lane, now: int) -> list[Permit] | None:
        """The permits under which a claim is granted; None, and one more is wanted, where there is none free."""
        names = self._book.limits_of(lane.tenant, lane.limit)
        for name in names:
            if self._free(lane.tenant, name) <= 0 or self._is_paused(lane.tenant, name, now):
                wish = self._refused.setdefault((lane.tenant, name), _Wish())
                wish.add(1, lane.priority, ())
                return None
        return self.use(lane.tenant, names)

    def ask_for_claims(self, draft: Draft) -> None:
        """Ask for what claims have lacked."""
        for (tenant, name), wish in self._refused.items():
            self._ask(tenant, name, wish.waiting, wish.priority, draft)
        self._refused.clear()

    def ask(self, lanes: Iterable[LimitedLane], takers: Takers, draft: Draft) -> None:
        """Ask for the permits that are lacking for what waits and somebody offers for: of the first limit of a lane for all
        of it, of the second for as much as has permits of the first."""
        first: dict[tuple[str, tuple[str, ...]], _Wish] = {}
        able = cache(takers.able)
        for lane in lanes:
            sessions = able(lane.lane.queue, lane.lane.task)
            if sessions and lane.queued.head_at() is not None:
                waiting = self._book.counts.get(lane.lane.prefix()) or 0
                wish = first.setdefault((lane.lane.tenant, lane.names), _Wish())
                wish.add(waiting, lane.lane.priority, sessions)
        wishes: dict[tuple[str, str], _Wish] = {}
        for (tenant, names), wish in first.items():
            waiting = wish.waiting
            for name in names:
                wishes.setdefault((tenant, name), _Wish()).add(waiting, wish.priority, wish.sessions.values())
                waiting = min(waiting, self._free(tenant, name))
        for (tenant, name), wish in wishes.items():
            self._ask(tenant, name, wish.count(), wish.priority, draft)

    def _ask(self, tenant: str, name: str, wanted: int, priority: int, draft: Draft) -> None:
        limit = self._book.limit(tenant, name)
        if limit is None or not wanted:
            return
        stock = stock_of(self._book, keys.limit_row(tenant, name))
        more = lacking(stock, limit, wanted)
        if more or (asked(stock, limit) and stock.priority != priority):
            home = topics.partition_of(ids.limit_key(tenant, name), self._partitions)
            draft.add(facts.PermitsAsked(tenant, name, limit.version, home, more, priority))

    # -- at the end of a cycle

    def settle(self, draft: Draft) -> None:
        """Give back what is of no use here, and grant what is asked for where this is its home."""
        book = self._book
        over = [row for row, at in self._at.items() if at <= draft.now]
        stocks = self._stocks.union(book.stocks.pending)
        homes = self._homes.union(book.homes.pending, book.limits.pending, over)
        for row in over:
            del self._at[row]
        for row in sorted(stocks):
            self._give_back(row, draft)
        for row in sorted(homes):
            self._grant(row, draft)

    def next_at(self) -> int | None:
        """When time alone calls for a cycle, ms; None if it does not."""
        return min(self._at.values(), default=None)

    def _give_back(self, row: bytes, draft: Draft) -> None:
        tenant, name = keys.names(row)
        stock = stock_of(self._book, row)
        if stock.free or stock.spent:
            waiting = self._waiting(tenant, name) if stock.free else 0
            gone = useless(stock, self._book.limit(tenant, name), waiting, draft.now)[: draft.room()]
            if gone:
                home = topics.partition_of(ids.limit_key(tenant, name), self._partitions)
                draft.add(facts.PermitsReleased(tenant, name, home, gone))
                stock = stock_of(self._book, row)
        if stock.free or stock.spent:
            self._stocks.add(row)
        else:
            self._stocks.discard(row)
        self._wake(row, next_useless_at(stock))

    def _waiting(self, tenant: str, name: str) -> int:
        """Executions queued under that limit, those of this very cycle included."""
        lanes = {prefix: lane_at(prefix) for prefix in self._book.counts.pending}
        for queued in self._lanes.by_queue.values():
            lanes.update((prefix, one.lane) for prefix, one in queued.items())
        return sum(
            self._book.counts.get(prefix) or 0
            for prefix, lane in lanes.items()
            if lane.tenant == tenant and name in ("", lane.limit)
        )

    def _grant(self, row: bytes, draft: Draft) -> None:
        tenant, name = keys.names(row)
        limit, most = self._book.limit(tenant, name), min(ASKED_MAX, draft.room())
        partitions = grantable(home_of(self._book, row), limit, draft.now, most)
        if partitions and limit is not None:
            draft.add(facts.PermitsGranted(tenant, name, limit.version, partitions))
        if len(partitions) == most:
            self._homes.add(row)
        else:
            self._homes.discard(row)
        self._wake(row, grantable_at(home_of(self._book, row), limit, draft.now))

    def _wake(self, row: bytes, at: int | None) -> None:
        """Look at that row again at `at`, or at what was said before if that is earlier."""
        if at is not None:
            self._at[row] = min(at, self._at.get(row, at))
