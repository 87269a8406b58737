"""What a schedule will do next, and where a clock change has a hand in it: for people who check an expression."""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import NamedTuple

from minutebook.ids import Instant
from minutebook.schedule.datetimes import Cron
from minutebook.schedule.instants import INSTANT_MAX, Fold, each_instant, resolve
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


def preview(cron: Cron, after: Instant, count: int) -> list[Coming]:
    """The first `count` instants of `cron` strictly later than `after`; fewer where no more are left before 2200.

    Pure for one tzdata version.
    """
    line = timeline(cron.zone)
    is_run, passes = resolve(cron.rule, cron.gap, cron.fold)
    found: list[Coming] = []
    last_s = int(max(after // 1000, 0))
    instants = each_instant(cron.rule, cron.zone, after, INSTANT_MAX, cron.gap, cron.fold)
    for at in islice(instants, count):
        utc_s = int(at // 1000)
        notes = _gaps(cron.rule, line, last_s, utc_s, is_run=is_run) + _passes(line, utc_s, passes)
        offset_s = line.offset_at(utc_s)
        local = f"{_clock(utc_s + offset_s)}{_offset(offset_s)}"
        found.append(Coming(f"{_clock(utc_s)}Z", local, "; ".join(notes) or None))
        last_s = utc_s
    return found


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
