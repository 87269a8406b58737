"""Who held the permits of a limit in other partitions: the limit's home says to which partition each went, and that one's log
what ran under it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.errors import SettingsError
from minutebook.history.surroundings import Fact
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
    """Permits of `wait.limit` that were out to other partitions than `own` when the wait began; one reason each, a few
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
    away = dict([(permit, one) for permit, one in out.items() if one.partition != own][:NAMED_MAX])
    for partition in sorted({one.partition for one in away.values()}):
        there = {permit: one for permit, one in away.items() if one.partition == partition}
        try:
            runs = _runs_under(log, tenant, wait, partition, until, advance)
        except SettingsError:
            runs = {}
        for permit, one in there.items():
            if permit in runs:
                execution, at, fact = runs[permit]
                text = f"{execution} held a permit of {shown} then, in partition {partition}"
                yield Reason(code="permit_held", text=text, at=at, event_id=fact.event_id(partition))
            else:
                text = f"A permit of {shown} was out to partition {partition} then"
                yield Reason(code="permit_out", text=text, at=one.from_at, event_id=one.fact.event_id(home))


def _out_at(log: Log, tenant: str, wait: Wait, home: int, until: Until, advance: Advance) -> dict[int, _Out]:
    """Permits that were out when the wait began, by the home's account."""
    found: dict[int, _Out] = {}
    for frame in frames_of(log, home, until, advance):
        if frame.now > wait.from_at:
            break
        for number, (event, token) in enumerate(placed(frame)):
            if isinstance(event, facts.PermitsGranted) and (event.tenant, event.limit) == (
                tenant,
                wait.limit,
            ):
                for row, partition in enumerate(event.partitions):
                    fact = Fact(frame.offset, number, row)
                    found[token + row] = _Out(partition, frame.now, fact)
            elif isinstance(event, facts.PermitsReturned) and (event.tenant, event.limit) == (
                tenant,
                wait.limit,
            ):
                for permit in event.permits:
                    found.pop(permit, None)
    return found


def _runs_under(
    log: Log, tenant: str, wait: Wait, partition: int, until: Until, advance: Advance
) -> dict[int, tuple[str, int, Fact]]:
    """What was last granted under each permit before the wait began: execution, when, where."""
    found: dict[int, tuple[str, int, Fact]] = {}
    for frame in frames_of(log, partition, until, advance):
        if frame.now > wait.from_at:
            break
        for number, event in enumerate(frame.events):
            if isinstance(event, facts.ExecutionsGranted):
                permits = zip(event.permit_row, event.permit_limit, event.permit_ids, strict=True)
                for row, limit, permit in permits:
                    if (event.tenants[event.tenant[row]], event.limits[limit]) == (tenant, wait.limit):
                        fact = Fact(frame.offset, number, row)
                        found[permit] = event.executions[row], frame.now, fact
    return found
