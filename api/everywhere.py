"""Commands on shared facts: decided at the fact's home, answered once every partition knows what was decided."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from api.decisions import Decision, decide, refusal_of
from api.lanes import Keyed
from api.positions import Token
from api.problems import Refused
from api.services import Services
from minutebook.domain.commands import CalendarCommand, LimitCommand, QueueCommand
from minutebook.domain.subjects import key_of
from minutebook.wire.topics import partition_of


class Spread(NamedTuple):
    """What became of a command. `token`: what a view must have reached to show it everywhere; None = not in time."""

    decision: Decision
    token: Token | None


async def decide_everywhere(
    services: Services,
    command: QueueCommand | LimitCommand | CalendarCommand,
    version_in: Callable[[int], int | None],
    wait_s: float,
) -> Spread:
    """Decide `command`, and wait until every partition has the version that its home has, for `wait_s` seconds at most.

    `version_in` answers the version that a partition knows of the fact, None where it knows none. Raises Refused where
    the home refuses too.
    """
    view, key = services.view, key_of(command)
    home = partition_of(key, view.partitions)
    decision = await decide(services, home, Keyed(key, command), wait_s)
    if decision.row is None:
        return Spread(decision, None)
    if not decision.row.is_accepted:
        raise refusal_of(decision.row)
    version = version_in(home)
    if version is None:
        raise Refused("not-found")

    def is_everywhere() -> bool:
        known = map(version_in, range(view.partitions))
        return all(copy is not None and copy >= version for copy in known)

    if not await view.until(is_everywhere, wait_s):
        return Spread(decision, None)
    return Spread(decision, Token({part.partition: part.cursor.position for part in view.parts}))
