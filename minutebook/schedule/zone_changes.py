"""What another version of the zone data changes: where two timelines differ, and which instants of a plan move.

Pure, like everything here: both versions come in as values.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from minutebook.schedule.plan import Plan
from minutebook.schedule.tzif import Timeline

STEPS_MAX: Final = 10_000
"""Instants of a plan that are compared in one stretch: what goes on alike for so long goes on so."""
_MARGIN_MS: Final = 2 * 86_400_000
"""No clock is set by more: an instant further before a change does not depend on it."""


class Stretch(NamedTuple):
    """From `start_s` (seconds since the epoch) up to `end_s` two timelines have other offsets, in seconds east of UTC."""

    start_s: int
    end_s: int
    before_s: int
    after_s: int


class Moved(NamedTuple):
    """The first instant (ms) that is another one, with the stretch that makes it so. None = there is none."""

    before_at: int | None
    after_at: int | None
    why: Stretch


def stretches(before: Timeline, after: Timeline, start_s: int, end_s: int) -> Iterator[Stretch]:
    """Where two timelines differ from `start_s` up to `end_s`, not included, in order."""
    edges = sorted({start_s, *_within(before, start_s, end_s), *_within(after, start_s, end_s)})
    for edge_s, next_s in zip(edges, (*edges[1:], end_s), strict=True):
        found = Stretch(edge_s, next_s, before.offset_at(edge_s), after.offset_at(edge_s))
        if found.before_s != found.after_s:
            yield found


def first_moved(plan: Plan, before: Timeline, after: Timeline, start_at: int, end_at: int) -> Moved | None:
    """The first instant of `plan` that another version of its zone moves, adds or removes, from `start_at` up to `end_at`.

    `before` and `after`: its zone in the two versions. None where every instant stays.
    """
    by_before, by_after = plan.by(before), plan.by(after)
    reached = start_at - 1
    for stretch in stretches(before, after, start_at // 1000, -(-end_at // 1000)):
        reached = max(reached, stretch.start_s * 1000 - _MARGIN_MS)
        for _ in range(STEPS_MAX):
            was, will = by_before.next(reached), by_after.next(reached)
            if was != will:
                soonest = min(at for at in (was, will) if at is not None)
                if soonest >= end_at:
                    return None
                return Moved(was, will, stretch)
            if was is None or was >= stretch.end_s * 1000 + _MARGIN_MS:
                break
            reached = was
    return None


def _within(line: Timeline, start_s: int, end_s: int) -> tuple[int, ...]:
    return tuple(edge for edge in line.starts[bisect_right(line.starts, start_s) :] if edge < end_s)
