"""Whether the group's consumer still delivers. One that silently stops for a partition looks like one that has nothing.

The broker knows how far each input goes. What it has had for two looks, and the consumer did not bring meanwhile, the feed
reads from the topic itself; where that goes on, the process leaves and comes back with a consumer made anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, NamedTuple

import structlog
from aiokafka.errors import KafkaError

from streams.feed import Feed
from streams.host import Host

EVERY_S: Final = 2.0
LOOK_S: Final = 10.0
LEAVE_AFTER: Final = 5

Place = tuple[str, int]
"""Input topic and partition."""
Ends = Callable[[Iterable[Place]], Awaitable[Mapping[Place, int]]]

log = structlog.get_logger()


class _Seen(NamedTuple):
    """A feed at the last look: how far it was delivered, whether the broker had more, how often in a row it stood still."""

    delivered: int
    is_behind: bool
    stood: int


class Deliveries:
    """What was seen of each feed at the last look."""

    def __init__(self) -> None:
        self._last: dict[Place, _Seen] = {}

    def look(self, feeds: Iterable[Feed], ends: Mapping[Place, int]) -> list[Feed]:
        """Feeds to which something was not delivered that the broker had at the last look already."""
        found: list[Feed] = []
        last, self._last = self._last, {}
        for feed in feeds:
            feed.end = ends[feed.place]
            before = last.get(feed.place, _Seen(-1, False, 0))
            has_moved = feed.delivered != before.delivered
            is_behind = ends[feed.place] > feed.seen + 1
            is_standing = not has_moved and is_behind and (before.is_behind or before.stood > 0)
            stood = 0 if has_moved else before.stood + is_standing
            if is_standing:
                found.append(feed)
            self._last[feed.place] = _Seen(feed.delivered, is_behind and not is_standing, stood)
        return found

    def longest(self) -> int:
        """Looks in a row that the worst feed stood still."""
        return max((seen.stood for seen in self._last.values()), default=0)


async def watch_deliveries(host: Host, ends_of: Ends, leave: Callable[[str], None]) -> None:
    """Look every two seconds; `leave` when a feed stood still for five looks in a row."""
    deliveries = Deliveries()
    while True:
        await asyncio.sleep(EVERY_S)
        feeds = host.feeds()
        try:
            async with asyncio.timeout(LOOK_S):
                ends = await ends_of([feed.place for feed in feeds])
        except (KafkaError, TimeoutError) as error:
            log.warning("input_ends_unknown", error=type(error).__name__)
            continue
        for feed in deliveries.look(feeds, ends):
            log.warning("delivery_stopped", place=feed.place)
            feed.read_below(ends[feed.place])
        if deliveries.longest() >= LEAVE_AFTER:
            leave(f"the group's consumer does not deliver: {LEAVE_AFTER} looks in a row")
