"""Who held the permits of a limit in other partitions: the limit's home says to which partition each went, and that one's log
what ran under it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.errors import SettingsError
from minutebook.history.surroundings import Fact, Holding, Surroundings
from minutebook.history.why import NAMED_MAX, Reason, Wait
from minutebook.wire.frames import placed
from minutebook.wire.topics import partition_of
from replay.frames import frames_of
from replay.reading import TO_THE_END, Advance, Log, Until, unheard


class _Out(NamedTuple):
    """A permit that is out, as the home has it."""

    partition: int
    from_at: int
    fact: Fact


def held_elsewhere(
    log: Log, tenant: str, wait: Wait, own: int, until: Until = TO_THE_END, advance: Advance = unheard
) -> Iterator[Reason]:
    """Permits of `wait.limit` that were out to other partitions than `own` while it waited; one reason each, a few
    at most. Where a partition is not at hand, that is said. Raises LogError, KafkaError.
    """
    limit = wait.limit or ""
    shown = f"the limit {limit}" if limit else "the tenant's limit"
    home = partition_of(ids.limit_key(tenant, limit), len(log.partitions()))
    try:
        out = _out_at(log, tenant, wait, home, until, advance)
    except SettingsError as error:
        text = f"Who held permits of {shown} in other partitions, only its home tells: {error}"
        yield Reason(code="permits_untold", text=text)
        return
    for partition in sorted({one.partition for one in out.values()} - {own}):
        there = [one for one in out.values() if one.partition == partition]
        held = _held_at(log, tenant, wait, partition, until, advance)
        for holding in held[:NAMED_MAX]:
            text = f"{holding.execution} held a permit of {shown} meanwhile, in partition {partition}"
            event_id = holding.fact.event_id(partition)
            yield Reason(code="permit_held", text=text, at=holding.from_at, event_id=event_id)
        if len(there) > len(held):
            text = f"{len(there)} permits of {shown} were out to partition {partition} meanwhile"
            event_id = there[-1].fact.event_id(home)
            yield Reason(code="permit_out", text=text, at=there[-1].from_at, event_id=event_id)


def _out_at(log: Log, tenant: str, wait: Wait, home: int, until: Until, advance: Advance) -> dict[int, _Out]:
    """Permits that were out while it waited, by the home's account."""
    found: dict[int, _Out] = {}
    for frame in frames_of(log, home, until, advance):
        if frame.now > wait.settled_at:
            break
        for number, (event, token) in enumerate(placed(frame)):
            match event:
                case facts.PermitsGranted(tenant=whose, limit=wait.limit) if whose == tenant:
                    for row, partition in enumerate(event.partitions):
                        found[token + row] = _Out(partition, frame.now, Fact(frame.offset, number, row))
                case facts.PermitsReturned(tenant=whose, limit=wait.limit) if whose == tenant:
                    for permit in event.permits:
                        found.pop(permit, None)
                case _:
                    pass
    return found


def _held_at(
    log: Log, tenant: str, wait: Wait, partition: int, until: Until, advance: Advance
) -> list[Holding]:
    """What ran in a partition under permits of the limit while it waited; nothing where it is not at hand."""
    around = Surroundings(tenant)
    try:
        for frame in frames_of(log, partition, until, advance):
            if frame.now > wait.settled_at:
                break
            around.take(frame)
    except SettingsError:
        return []
    return around.holders_at(wait.limit or "", wait.settled_at)
