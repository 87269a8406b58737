"""When a job is due again and again: a cron rule or an interval, from a start to an end, on the dates that it may use.

A date is that of the instant on the wall clock of the plan's zone: for an interval, too, and for an instant that a clock
change moved to the end of a gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from minutebook.schedule.dates import Dates, allowed_spans_s, next_allowed_s, previous_allowed_s
from minutebook.schedule.every import Every
from minutebook.schedule.instants import (
    INSTANT_MAX,
    INSTANT_MIN,
    Fold,
    Gap,
    count_s,
    next_s,
    previous_s,
    resolve,
)
from minutebook.schedule.rule import CronRule
from minutebook.schedule.tzif import Timeline
from minutebook.schedule.zones import timeline

_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Plan:
    """The instants of a recurring job. All instants are milliseconds since the epoch, UTC.

    `rule`: a cron rule, read on the wall clock of `zone` with `gap` and `fold` (see `instants`); or an interval, whose
    instants are `anchor_at` and every `interval_ms` after it. Those before `start_at`, those from `end_at` on and those
    on a date that `dates` does not allow are left out; None leaves out none. Every instant lies from `INSTANT_MIN` up to
    `INSTANT_MAX`, not included. Pure for one tzdata version. Raises ScheduleError (field `zone`, `gap` or `fold`).
    """

    rule: CronRule | Every
    zone: str = "UTC"
    gap: Gap = "auto"
    fold: Fold = "auto"
    anchor_at: int = 0
    start_at: int | None = None
    end_at: int | None = None
    dates: Dates | None = None
    _line: Timeline = field(init=False, repr=False, compare=False)
    _is_run: bool = field(init=False, repr=False, compare=False)
    _passes: Fold = field(init=False, repr=False, compare=False)
    _first_at: int = field(init=False, repr=False, compare=False)
    _stop_at: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        is_run, passes = resolve(self.rule, self.gap, self.fold)
        stop_at: int = INSTANT_MAX if self.end_at is None else min(self.end_at, INSTANT_MAX)
        first_at: int = INSTANT_MIN if self.start_at is None else max(self.start_at, INSTANT_MIN)
        for name, value in (
            ("_line", timeline(self.zone)),
            ("_is_run", is_run),
            ("_passes", passes),
            ("_first_at", first_at),
            ("_stop_at", stop_at),
        ):
            object.__setattr__(self, name, value)

    def allows(self, at: int) -> bool:
        """Whether `at` lies between start and end and on an allowed date. The rule is not asked."""
        return self._first_at <= at < self._stop_at and self._is_allowed_date(at)

    def on(self, dates: Dates | None) -> Plan:
        """The same plan on `dates`; None = any."""
        return self if dates == self.dates else replace(self, dates=dates)

    def by(self, line: Timeline) -> Plan:
        """The same plan by another version of its zone's data."""
        found = replace(self)
        object.__setattr__(found, "_line", line)
        return found

    def next(self, after: int) -> int | None:
        """First instant strictly later than `after`; None if there is none left."""
        at: int | None = max(after + 1, self._first_at)
        while at is not None:
            at = self._first_from(at)
            if at is None or at >= self._stop_at:
                return None
            if self.dates is None or self._is_allowed_date(at):
                return at
            at = _ms(next_allowed_s(self.dates, self._line, at // 1000))
        return None

    def previous(self, before: int) -> int | None:
        """Last instant strictly earlier than `before`; None if there is none."""
        at: int | None = min(before, self._stop_at) - 1
        while at is not None:
            at = self._last_until(at)
            if at is None or at < self._first_at:
                return None
            if self.dates is None or self._is_allowed_date(at):
                return at
            allowed_s = previous_allowed_s(self.dates, self._line, at // 1000)
            at = None if allowed_s is None else allowed_s * 1000 + 999
        return None

    def each(self, after: int, until: int) -> Iterator[int]:
        """Instants with `after` < t <= `until`, ascending, found one by one as they are asked for."""
        while (at := self.next(after)) is not None and at <= until:
            yield at
            after = at

    def between(self, after: int, until: int, limit: int) -> list[int]:
        """Instants with `after` < t <= `until`, ascending, the first `limit` at most."""
        return list(islice(self.each(after, until), limit))

    def latest(self, until: int, count: int, after: int) -> list[int]:
        """Instants with `after` < t <= `until`, ascending, the last `count` at most."""
        found: list[int] = []
        before = until + 1
        while len(found) < count and (at := self.previous(before)) is not None and at > after:
            found.append(at)
            before = at
        return found[::-1]

    def count(self, after: int, until: int) -> int:
        """How many instants there are with `after` < t <= `until`.

        Takes time by the months, clock changes and stretches of dates between the two, not by the instants.
        """
        first_at, stop_at = max(after + 1, self._first_at), min(until + 1, self._stop_at)
        if first_at >= stop_at:
            return 0
        if self.dates is None:
            return self._count(first_at, stop_at)
        spans_s = allowed_spans_s(self.dates, self._line, first_at // 1000, -(-stop_at // 1000))
        return sum(
            self._count(max(low_s * 1000, first_at), min(high_s * 1000, stop_at)) for low_s, high_s in spans_s
        )

    def _is_allowed_date(self, at: int) -> bool:
        utc_s = at // 1000
        return self.dates is None or self.dates.allows((utc_s + self._line.offset_at(utc_s)) // _DAY_S)

    def _first_from(self, at: int) -> int | None:
        """First instant of the rule alone at or after `at`."""
        if isinstance(self.rule, Every):
            return self.rule.first_from(at, self.anchor_at)
        return _ms(next_s(self.rule, self._line, -(-at // 1000), self._is_run, self._passes))

    def _last_until(self, at: int) -> int | None:
        """Last instant of the rule alone at or before `at`."""
        if isinstance(self.rule, Every):
            return self.rule.last_until(at, self.anchor_at)
        return _ms(previous_s(self.rule, self._line, at // 1000, self._is_run, self._passes))

    def _count(self, first_at: int, stop_at: int) -> int:
        """How many instants the rule alone has from `first_at` up to `stop_at`, not included."""
        if isinstance(self.rule, Every):
            return self.rule.count(first_at, stop_at, self.anchor_at)
        first_s, end_s = -(-first_at // 1000), -(-stop_at // 1000)
        return count_s(self.rule, self._line, first_s, end_s, self._is_run, self._passes)


def _ms(utc_s: int | None) -> int | None:
    return None if utc_s is None else utc_s * 1000
