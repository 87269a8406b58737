"""The ledger of one job: which instants its definitions imply, and which of them the log accounts for.

What is implied is expanded here from the definitions alone (schedule, zone, calendars, bounds); what the owner computed
as the next instant is not asked. Instants are milliseconds since the epoch, UTC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from minutebook.domain import plans
from minutebook.domain.known_calendars import Ranges, dates_of
from minutebook.domain.state import NONE_AT, Spec
from minutebook.schedule.plan import Plan

LATE_MS: Final = 60_000
"""What is not on record so long after it was due is missing; before that it is on its way."""
NAMED_MAX: Final = 1_000
"""Missing instants of one stretch that are named one by one."""

RAN: Final = "ran"
MISSING: Final = "missing"
CANCELLED: Final = "cancelled"
MOVED: Final = "moved"
PAUSED: Final = "paused"
PENDING: Final = "pending"

_SCHEDULE: Final = ("start_at", "end_at", "max_runs", "gap", "fold", "day_match", "exclude", "include")


class Range(NamedTuple):
    """From which instant to which, both included, is asked for."""

    first_at: int
    last_at: int

    def holds(self, at: int) -> bool:
        """Whether that instant is asked for."""
        return self.first_at <= at <= self.last_at


class Missing(msgspec.Struct, frozen=True):
    """An instant that is neither run nor explained; where `count` is more than 1, the first of so many in a row."""

    at: int
    count: int
    what: str


class Once:
    """The one instant of a job that fires once, in the shape of a plan."""

    def __init__(self, at: int) -> None:
        self.at = at

    def next(self, after: int) -> int | None:
        """It, if it is later."""
        return self.at if self.at > after else None

    def previous(self, before: int) -> int | None:
        """It, if it is earlier."""
        return self.at if self.at < before else None

    def each(self, after: int, until: int) -> Iterator[int]:
        """It, if it lies in between."""
        return iter((self.at,) if after < self.at <= until else ())

    def count(self, after: int, until: int) -> int:
        """1 if it lies in between."""
        return int(after < self.at <= until)


class _Segment(NamedTuple):
    """Instants up to `until` follow from `plan`."""

    until: int
    plan: Plan | Once


_FOR_EVER: Final = 1 << 62


class Ledger:
    """One job, told what the log says of it in order. `counts`: instants of the range asked for, by how they fared."""

    def __init__(self, asked: Range, calendar: Callable[[str], Ranges | None]) -> None:
        self.counts: Counter[str] = Counter()
        self.missing: list[Missing] = []
        self._asked = asked
        self._calendar = calendar
        self._segments: list[_Segment] = []
        self._through = NONE_AT
        self._runs = 0
        self._is_paused = self._is_closed = self._is_ended = False
        self._spec: Spec | None = None
        self._first_at = NONE_AT
        self._changed_at = self._changed_first = NONE_AT
        self._subject = ("", "")

    # -- definitions

    def define(self, tenant: str, job_id: str, spec: Spec, first_at: int, stamp: int) -> None:
        """The first version, or one that an edit at `stamp` made. `first_at`: the instant of a job that fires once."""
        before, self._spec = self._spec, spec
        self._subject = tenant, job_id
        if before is not None:
            if _is_same(before, spec) and (spec.is_recurring or first_at in (NONE_AT, self._first_at)):
                return
            self._pass(stamp, MOVED)
        self._through = max(self._through, stamp if spec.is_recurring else NONE_AT)
        self._first_at = first_at
        self._segments = [_Segment(_FOR_EVER, self._plan())]
        self._changed_at = NONE_AT  # what a calendar did before concerns other instants
        self._is_ended = False

    def uses(self, calendar: str) -> bool:
        """Whether its instants depend on that calendar."""
        return self._spec is not None and calendar in self._spec.timing.calendars

    def dates_changed(self, now: int, *, is_undecided: bool = False) -> None:
        """A calendar became another one at `now`: what was due by then is decided by the one before, unless a pause holds it
        back, or the job comes from another command of this frame, `is_undecided`: then it follows the new one.
        """
        if self._spec is None or not self._spec.is_recurring or self._is_ended or self._is_closed:
            return
        if now != self._changed_at:
            first = self._first_after(self._through)
            if first is None:
                self._is_ended = True
                return
            self._changed_at, self._changed_first = now, first
        # Of several changes in one frame the last one counts: nothing is decided between them, but a command may come there.
        after = max(now, self._through)
        if self._is_paused or is_undecided:
            after = min(self._changed_first - 1, after)
        kept = [segment for segment in self._segments if segment.until < after]
        current = next(segment.plan for segment in self._segments if segment.until >= after)
        self._segments = [*kept, _Segment(after, current), _Segment(_FOR_EVER, self._plan())]

    def pause(self) -> None:
        """Nothing comes due until it is resumed."""
        self._is_paused = True

    def resume(self) -> None:
        """Instants come due again."""
        self._is_paused = False

    def cancel(self, stamp: int) -> None:
        """No instant after `stamp`; what was due and not yet decided goes with it."""
        self._pass(stamp, CANCELLED)
        self._is_closed = True

    # -- instants on record

    def ran(self, at: int) -> None:
        """An instant became an execution."""
        self._expect(at)
        if self._implies(at, at) != 1:
            self._find(at, 1, "it ran, and no definition implies it")
        self._runs += 1
        self._count(RAN, at, at, 1)
        self._through = max(self._through, at)

    def skipped(self, reason: str, first_at: int, last_at: int, count: int) -> None:
        """A stretch of instants was skipped."""
        self._expect(first_at)
        implied = self._implies(first_at, last_at)
        if implied != count:
            self._find(
                first_at, 1, f"{count} are said to be skipped through {last_at}, {implied} are implied"
            )
        self._count(reason, first_at, last_at, count)
        self._through = max(self._through, last_at)

    def finish(self, now: int) -> None:
        """The log ends at `now`, by the clock of the job's owner."""
        if self._is_closed or self._spec is None:
            return
        late_ms = LATE_MS + self._spec.timing.jitter_ms
        if self._is_paused:
            self._pass(now, PAUSED)
            return
        self._miss(now - late_ms, "it was due, and the log does not say what became of it")
        self._pass(now, PENDING)

    def around(self, at: int) -> tuple[int | None, int | None]:
        """The instants before and after `at` by the definition in force last; where `at` is one of those to come, itself."""
        if self._spec is None or not self._segments:
            return None, None
        previous = None
        for segment in reversed(self._segments):
            previous = segment.plan.previous(min(at, segment.until + 1))
            if previous is not None:
                break
        following = next(
            (
                found
                for segment in self._segments
                if (found := segment.plan.next(at - 1)) is not None and found <= segment.until
            ),
            None,
        )
        if following == at and at <= self._through:
            following = self._first_after(at)
        return previous, following

    # -- inside

    def _plan(self) -> Plan | Once:
        spec = self._spec
        assert spec is not None
        if not spec.is_recurring:
            return Once(self._first_at)
        tenant, job_id = self._subject
        return plans.dated(tenant, job_id, spec, dates_of(spec.timing, self._calendar))

    def _is_spent(self) -> bool:
        spec = self._spec
        if spec is None or self._is_ended:
            return True
        most = spec.timing.max_runs
        return spec.is_recurring and most is not None and self._runs >= most

    def _first_after(self, after: int) -> int | None:
        if self._is_spent():
            return None
        for segment in self._segments:
            at = segment.plan.next(after)
            if at is not None and at <= segment.until:
                return at
            after = max(after, segment.until)
        return None

    def _each(self, after: int, until: int) -> Iterator[int]:
        for segment in self._segments:
            if after < min(segment.until, until):
                yield from segment.plan.each(after, min(segment.until, until))
            after = max(after, segment.until)

    def _implies(self, first_at: int, last_at: int) -> int:
        """How many instants there are from `first_at` through `last_at`."""
        total, after = 0, first_at - 1
        for segment in self._segments:
            if after < min(segment.until, last_at):
                total += segment.plan.count(after, min(segment.until, last_at))
            after = max(after, segment.until)
        return total

    def _expect(self, at: int) -> None:
        """Nothing may lie between what is accounted for and `at`."""
        if at <= self._through:
            self._find(at, 1, "it is on record, and so is a later one before it")
            return
        self._miss(at - 1, "a later one is on record, this one is not")

    def _miss(self, until: int, what: str) -> None:
        """What is implied up to `until` and not accounted for is missing."""
        if self._is_spent() or until <= self._through:
            return
        count = self._implies(self._through + 1, until)
        if count:
            for at in islice(self._each(self._through, until), NAMED_MAX):
                self._find(at, 1, what)
            if count > NAMED_MAX:
                rest = next(islice(self._each(self._through, until), NAMED_MAX, None))
                self._find(rest, count - NAMED_MAX, what)
        self._through = max(self._through, until)

    def _pass(self, until: int, how: str) -> None:
        """What is implied up to `until` and not on record is accounted for all the same: a command took it away, a pause
        holds it back, or it came due a moment ago.
        """
        if not self._is_spent() and until > self._through:
            self._count(how, self._through + 1, until, None)
            self._through = until

    def _count(self, how: str, first_at: int, last_at: int, count: int | None) -> None:
        """Instants of a stretch that are asked for; those of one that lies inside are `count`."""
        low, high = max(first_at, self._asked.first_at), min(last_at, self._asked.last_at)
        if low > high:
            return
        is_inside = (low, high) == (first_at, last_at)
        found = count if is_inside and count is not None else self._implies(low, high)
        if found:
            self.counts[how] += found

    def _find(self, at: int, count: int, what: str) -> None:
        if self._asked.holds(at):
            self.missing.append(Missing(at, count, what))
            self.counts[MISSING] += count


def _is_same(before: Spec, after: Spec) -> bool:
    """Whether an edit left the schedule as it was."""
    if before.is_recurring != after.is_recurring:
        return False
    return _schedule(before) == _schedule(after)


def _schedule(spec: Spec) -> tuple[object, ...]:
    parts = (getattr(spec.timing, name) for name in _SCHEDULE)
    return spec.cron, spec.zone, spec.every_ms, spec.anchor_at, *parts
