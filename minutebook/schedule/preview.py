"""What a schedule will do next, and where a clock change has a hand in it: for people who check one."""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import NamedTuple

from minutebook.schedule.every import Every
from minutebook.schedule.instants import INSTANT_MAX, Fold, resolve
from minutebook.schedule.plan import Plan
from minutebook.schedule.rule import CronRule
from minutebook.schedule.tzif import Timeline
from minutebook.schedule.wall_clock import next_wall_s
from minutebook.schedule.zones import timeline

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Coming(NamedTuple):
    """One instant of a preview: `utc` and `local` (with its offset) in ISO 8601, and what a clock change does to it."""

    utc: str
    local: str
    note: str | None


def preview(plan: Plan, after: int, count: int) -> dict[int, Coming]:
    """The first `count` instants of `plan` strictly later than `after`; fewer where no more are left before 2200.

    Keys are the instants (ms, UTC), ascending. Pure for one tzdata version.
    """
    line = timeline(plan.zone)
    found: dict[int, Coming] = {}
    last_s = max(after, 0 if plan.start_at is None else plan.start_at - 1, 0) // 1000
    for at in islice(plan.each(after, INSTANT_MAX), count):
        utc_s, ms = divmod(at, 1000)
        offset_s = line.offset_at(utc_s)
        part = f".{ms:03}" if ms else ""
        local = f"{_clock(utc_s + offset_s)}{part}{_offset(offset_s)}"
        found[at] = Coming(f"{_clock(utc_s)}{part}Z", local, _note(plan, line, last_s, utc_s))
        last_s = utc_s
    return found


def _note(plan: Plan, line: Timeline, last_s: int, utc_s: int) -> str | None:
    """What clock changes do to an instant whose predecessor is `last_s`; nothing to an interval."""
    if isinstance(plan.rule, Every):
        return None
    is_run, passes = resolve(plan.rule, plan.gap, plan.fold)
    notes = _gaps(plan.rule, line, last_s, utc_s, is_run=is_run) + _passes(line, utc_s, passes)
    return "; ".join(notes) or None


def _gaps(rule: CronRule, line: Timeline, last_s: int, utc_s: int, *, is_run: bool) -> list[str]:
    """Notes on the gaps after `last_s` and up to `utc_s` into which the rule fell."""
    effect = "once, here, for the times left out" if is_run else "no run for the times left out"
    notes: list[str] = []
    fallen: int | None = None
    for at in range(bisect_right(line.starts, last_s), bisect_right(line.starts, utc_s)):
        low, high = line.starts[at] + line.offsets[at], line.starts[at] + line.offsets[at + 1]
        if low < high and (fallen is None or fallen < low):
            fallen = next_wall_s(rule, low)
        if fallen is not None and low <= fallen < high:
            notes.append(f"{_leap(low, high)}: {effect}")
    return notes


def _passes(line: Timeline, utc_s: int, fold: Fold) -> list[str]:
    """Note on a local time that comes twice."""
    at = bisect_right(line.starts, utc_s)
    wall = utc_s + line.offsets[at]
    if at and wall < line.starts[at - 1] + line.offsets[at - 1]:
        this, other = "second", "first"
    elif wall >= line.starts[at] + line.offsets[at + 1]:
        this, other = "first", "second"
    else:
        return []
    alone = "" if fold == "both" else f", the {other} has no run"
    return [f"{_time(wall)} comes twice: {this} time{alone}"]


def _leap(low: int, high: int) -> str:
    before, after = _clock(low).split("T"), _clock(high).split("T")
    there = after[1] if after[0] == before[0] else " ".join(after)
    return f"the clock goes from {' '.join(before)} to {there}"


def _clock(wall_s: int) -> str:
    return (_EPOCH + timedelta(seconds=wall_s)).isoformat()[:19]


def _time(wall_s: int) -> str:
    return _clock(wall_s).partition("T")[2].removesuffix(":00")


def _offset(offset_s: int) -> str:
    return str(datetime.min.replace(tzinfo=timezone(timedelta(seconds=offset_s))))[19:]
