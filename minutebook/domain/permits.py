"""Permits: what a limit allows. Granted at the limit's home, held by one partition, run under by one attempt.

A partition asks for as many as it could use; the home grants while fewer than the limit's are out, and never more in
one period than its rate; who has no use for a permit gives it back. So nothing is counted twice and nothing leaks: each
permit is in the state of its home, and in that of one partition or on its way. Pure over rows and instants in ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from minutebook.domain.state import Home, Limit, Stock

UNUSED_MS: Final = 2_000
"""So long a permit waits for the grant that it was asked for; then it goes back, and another one is asked for."""
ASKED_MAX: Final = 4_096
"""Permits of one limit that a partition has asked for at a time, and rows of one event of permits."""


def is_paused(limit: Limit, now: int) -> bool:
    """Whether nothing starts under that limit at `now`."""
    return now < limit.paused_until


# -- at the partition that asks


def asked(stock: Stock, limit: Limit) -> int:
    """Permits asked for and not answered. A changed limit has forgotten what was asked before."""
    return stock.asked if stock.version == limit.version else 0


def lacking(stock: Stock, limit: Limit, wanted: int) -> int:
    """How many more to ask for, where `wanted` could be used now; never more at a time than the limit's."""
    bound = ASKED_MAX if limit.concurrency < 0 else min(ASKED_MAX, limit.concurrency)
    return max(0, min(wanted, bound) - len(stock.free) - asked(stock, limit))


def useless(stock: Stock, limit: Limit | None, waiting: int, now: int) -> list[int]:
    """Permits to give back, at most `ASKED_MAX`: those whose attempt has ended, those that nobody waits for, and those
    that found no grant in time. `waiting`: executions that wait for a permit of that limit."""
    kept = 0 if limit is None or is_paused(limit, now) else waiting
    idle = [
        permit
        for place, (permit, received_at) in enumerate(stock.free)
        if place >= kept or now - received_at >= UNUSED_MS
    ]
    return [*stock.spent, *idle][:ASKED_MAX]


def next_useless_at(stock: Stock) -> int | None:
    """When the next permit will have waited too long; None if none waits."""
    return min((received_at + UNUSED_MS for _, received_at in stock.free), default=None)


# -- at the limit's home


def grantable(home: Home, limit: Limit | None, now: int, most: int) -> list[int]:
    """The partitions that get a permit now, one after the other: highest priority first, then partitions in turn."""
    if limit is None or home.version != limit.version or is_paused(limit, now):
        return []
    room = most if limit.concurrency < 0 else min(most, limit.concurrency - home.in_use)
    if limit.rate_count >= 0:
        room = min(room, limit.rate_count - _recent(home, limit, now))
    turn = _turn(home)
    return [partition for partition, _ in zip(turn, range(room), strict=False)]


def grantable_at(home: Home, limit: Limit | None, now: int) -> int | None:
    """When time alone will allow more: the end of a pause, or of a period of the rate. None if something else must."""
    if limit is None or home.version != limit.version or not home.demands:
        return None
    if is_paused(limit, now):
        return limit.paused_until
    if limit.rate_count >= 0 and _recent(home, limit, now) >= limit.rate_count:
        return _frees_at(home, limit, now)
    return None


def recent_of(home: Home, limit: Limit | None, now: int) -> list[tuple[int, int]]:
    """(instant, permits) of the grants within the rate's period up to `now`; nothing where there is no rate."""
    if limit is None or limit.rate_count < 0:
        return []
    return [(at, count) for at, count in home.recent if at > now - limit.rate_period_ms]


def _recent(home: Home, limit: Limit, now: int) -> int:
    return sum(count for _, count in recent_of(home, limit, now))


def _frees_at(home: Home, limit: Limit, now: int) -> int:
    """When fewer than the rate's permits lie in the period that ends then."""
    over = _recent(home, limit, now) - limit.rate_count + 1
    for at, count in recent_of(home, limit, now):
        over -= count
        if over <= 0:
            return at + limit.rate_period_ms
    return now + limit.rate_period_ms


def _turn(home: Home) -> Iterator[int]:
    """Who gets the next permit, and the one after."""
    for priority in sorted({priority for _, _, priority in home.demands}, reverse=True):
        left = {partition: count for partition, count, of in home.demands if of == priority}
        order = sorted(left, key=lambda partition: (partition <= home.turn, partition))
        while order:
            for partition in order:
                yield partition
                left[partition] -= 1
            order = [partition for partition in order if left[partition] > 0]
