"""When a cron rule is due: from rule, zone and clock-change policy to instants.

A zone is cut into stretches of constant offset. Within one the wall clock runs on evenly, so the next matching wall
clock second is found by arithmetic alone; gap and fold are decided where two stretches meet. Everything here is a pure
function of its arguments and the pinned tzdata; the time of day is never asked for.

`gap`: what becomes of wall clock times that a change leaves out. `run`: one instant at the gap's end, however many times
of the rule fell into it, and also if the rule names that end. `skip`: none.
`fold`: which pass of wall clock times that come twice is taken: `first`, `last` or `both`.
`auto`: a rule whose minute or hour field begins with `*` means elapsed time (`skip`, `both`); any other means a fixed
time of day (`run`, `first`), as in Debian's cron.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from minutebook.errors import ScheduleError
from minutebook.ids import Instant
from minutebook.schedule.every import Every
from minutebook.schedule.rule import CronRule
from minutebook.schedule.tzif import END_S, Timeline
from minutebook.schedule.wall_clock import count_wall, next_wall_s, previous_wall_s
from minutebook.schedule.zones import timeline

Gap = Literal["auto", "run", "skip"]
Fold = Literal["auto", "first", "last", "both"]

INSTANT_MIN = Instant(0)
"""1970-01-01T00:00:00Z: the first instant that a rule can have."""
INSTANT_MAX = Instant(END_S * 1000)
"""2200-01-01T00:00:00Z: every instant of a rule is earlier."""

_BEFORE_ALL_S = -(1 << 62)
_AFTER_ALL_S = 1 << 62


def next_instant(
    rule: CronRule, zone_name: str, after: Instant, gap: Gap = "auto", fold: Fold = "auto"
) -> Instant | None:
    """First instant of `rule` strictly later than `after`; None if none comes before `INSTANT_MAX`.

    `after` and the result are milliseconds since the epoch, UTC; an `after` before `INSTANT_MIN` counts as just before
    it. The fields are read on the wall clock of the zone called `zone_name`; a rule without seconds is due at second 0.
    Pure for one tzdata version. Raises ScheduleError (field `zone`, `gap` or `fold`). Source: the module's text for gap
    and fold.
    """
    is_run, passes = resolve(rule, gap, fold)
    found_s = next_s(rule, timeline(zone_name), max(after // 1000 + 1, 0), is_run, passes)
    return None if found_s is None else Instant(found_s * 1000)


def previous_instant(
    rule: CronRule, zone_name: str, before: Instant, gap: Gap = "auto", fold: Fold = "auto"
) -> Instant | None:
    """Last instant of `rule` strictly earlier than `before`; None if there is none from `INSTANT_MIN` on.

    The counterpart of `next_instant`: it names the same instants. Units, purity and errors as there.
    """
    is_run, passes = resolve(rule, gap, fold)
    last_s: int = min((before - 1) // 1000, END_S - 1)
    found_s = previous_s(rule, timeline(zone_name), last_s, is_run, passes)
    return None if found_s is None else Instant(found_s * 1000)


def each_instant(
    rule: CronRule,
    zone_name: str,
    after: Instant,
    until: Instant,
    gap: Gap = "auto",
    fold: Fold = "auto",
) -> Iterator[Instant]:
    """Instants of `rule` with `after` < t <= `until`, ascending, found one by one as they are asked for.

    Units, purity and errors as in `next_instant`.
    """
    is_run, passes = resolve(rule, gap, fold)
    return _each(rule, timeline(zone_name), after, until, is_run, passes)


def instants_between(
    rule: CronRule,
    zone_name: str,
    after: Instant,
    until: Instant,
    limit: int,
    gap: Gap = "auto",
    fold: Fold = "auto",
) -> list[Instant]:
    """Instants of `rule` with `after` < t <= `until`, ascending, the first `limit` at most.

    Units, purity and errors as in `next_instant`.
    """
    return list(islice(each_instant(rule, zone_name, after, until, gap, fold), limit))


def resolve(rule: CronRule | Every, gap: Gap, fold: Fold) -> tuple[bool, Fold]:
    """Whether a gap runs at its end, and the fold policy without `auto`. Raises ScheduleError (`gap` or `fold`).

    An interval is elapsed time, whatever the clock shows: `auto` is `skip` and `both`.
    """
    if gap not in ("auto", "run", "skip"):
        raise ScheduleError("gap", "must be auto, run or skip")
    if fold not in ("auto", "first", "last", "both"):
        raise ScheduleError("fold", "must be auto, first, last or both")
    is_elapsed = isinstance(rule, Every) or rule.is_elapsed
    is_run = not is_elapsed if gap == "auto" else gap == "run"
    if fold == "auto":
        fold = "both" if is_elapsed else "first"
    return is_run, fold


def _each(
    rule: CronRule, line: Timeline, after: Instant, until: Instant, is_run: bool, fold: Fold
) -> Iterator[Instant]:
    start_s: int = max(after // 1000 + 1, 0)
    while True:
        found_s = next_s(rule, line, start_s, is_run, fold)
        if found_s is None or found_s * 1000 > until:
            return
        yield Instant(found_s * 1000)
        start_s = found_s + 1


def _counted(line: Timeline, at: int, fold: Fold) -> tuple[int, int]:
    """Wall clock seconds of stretch `at` that count under `fold`: the first of them, and the one after the last."""
    offset_s, end_s = line.offsets[at], line.starts[at]
    lower, upper = _BEFORE_ALL_S, end_s + offset_s
    if at:
        lower = line.starts[at - 1] + offset_s
        if fold == "first":
            # Wall clock times up to the end of the stretch before have been.
            lower = max(lower, line.starts[at - 1] + line.offsets[at - 1])
    if fold == "last":
        # Those from the beginning of the next stretch on will come again.
        upper = min(upper, end_s + line.offsets[at + 1])
    return lower, upper


def next_s(rule: CronRule, line: Timeline, start_s: int, is_run: bool, fold: Fold) -> int | None:
    """First second of `rule` at or after `start_s`, None if there is none before `END_S`."""
    # From the stretch of the second before: if it ends here, this second may be the end of a gap that runs.
    at = bisect_right(line.starts, start_s - 1)
    wall, asked = _BEFORE_ALL_S, _BEFORE_ALL_S
    while start_s < END_S:
        offset_s, end_s = line.offsets[at], line.starts[at]
        lower, upper = _counted(line, at, fold)
        lower = max(lower, start_s + offset_s)
        if not asked <= lower <= wall:
            found = next_wall_s(rule, lower)
            # None left: yet a clock that is set back may show one of them again.
            wall, asked = _AFTER_ALL_S if found is None else found, lower
        if wall < upper:
            return wall - offset_s
        if is_run and end_s + offset_s <= wall < end_s + line.offsets[at + 1]:
            return end_s
        start_s, at = end_s, at + 1
    return None


def previous_s(rule: CronRule, line: Timeline, last_s: int, is_run: bool, fold: Fold) -> int | None:
    """Last second of `rule` at or before `last_s`, None if there is none from the epoch on."""
    at = bisect_right(line.starts, last_s)
    wall, asked = _BEFORE_ALL_S, _BEFORE_ALL_S
    while last_s >= 0:
        offset_s = line.offsets[at]
        lower, upper = _counted(line, at, fold)
        top = min(upper - 1, last_s + offset_s)
        if not wall <= top <= asked:
            found = previous_wall_s(rule, top)
            wall, asked = _BEFORE_ALL_S if found is None else found, top
        if wall >= max(lower, offset_s):
            return wall - offset_s
        if at == 0:
            return None
        start_s, before_s = line.starts[at - 1], line.offsets[at - 1]
        if is_run and start_s >= 0 and wall >= start_s + before_s and before_s < offset_s:
            return start_s
        last_s, at = start_s - 1, at - 1
    return None


def count_s(rule: CronRule, line: Timeline, first_s: int, end_s: int, is_run: bool, fold: Fold) -> int:
    """How many seconds of `rule` there are from `first_s` up to `end_s`, not included and at most `END_S`."""
    found, at = 0, bisect_right(line.starts, first_s - 1)
    while first_s < end_s:
        offset_s, change_s = line.offsets[at], line.starts[at]
        lower, upper = _counted(line, at, fold)
        found += count_wall(rule, max(lower, first_s + offset_s), min(upper, end_s + offset_s))
        first_s, at = change_s, at + 1
        if is_run and change_s < end_s:
            gap_end = change_s + line.offsets[at]
            if count_wall(rule, max(lower, change_s + offset_s), gap_end):
                # Once, also if the rule names the gap's end.
                found, first_s = found + 1, change_s + 1
    return found
