"""The account of one job: which of its instants must run, which may be skipped and why. Written from the documents.

An instant is missed when it is looked at more than a minute late, or when a later one of its schedule is due by then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from typing import Final

from minutebook.domain.commands import SubmitJob
from minutebook.domain.timing import Timing
from tests.simulation.year.instants import dates_of, instants_of
from tests.simulation.year.schedules import DAY, END

NONE_AT: Final = -1
LATE_MS: Final = 60_000
HOLD_MS: Final = 6_000
"""What is due may wait so long off the record, and a little."""
HELD_MAX: Final = 100
HORIZON: Final = END + DAY
"""Instants are known up to here."""
Calendars = dict[str, set[int]]
"""Days since 1970-01-01 of each calendar of a tenant that is not deleted."""
_SCHEDULE: Final = ("start_at", "end_at", "max_runs", "gap", "fold", "day_match", "exclude", "include")


class Account:
    """One job. Methods yield what is wrong; `now` is the time of the frame, `idle_at` the last moment before it at which
    the owner had looked at all that was due."""

    def __init__(self, command: SubmitJob, accepted_at: int, now: int, calendars: Calendars) -> None:
        self._calendars = calendars
        self.status = "active"
        self.runs = 0
        self.counts: Counter[str] = Counter()
        self.open: set[str] = set()
        """Its open executions, those that are held too."""
        self.held: list[str] = []
        self._through = NONE_AT
        self._known_at: int | None = None
        """The next instant as it was before calendars changed that have not moved it, for it had come due."""
        self._anchor_at = accepted_at
        self._paused_at = self._resumed_at = NONE_AT
        self._define(command, accepted_at, now)

    def _define(self, command: SubmitJob, after: int, now: int) -> None:
        self._command = command
        self.timing = command.timing or Timing()
        self.is_once = command.cron is None and command.every_ms is None
        self.instants = instants_of(command, self._anchor_at, after, HORIZON)
        if self.is_once:  # later than all that is on record
            self.instants = [max(self.instants[0], self._through + 1)]
        self._known_at = None
        self._nominal, self._next, self._since = self.instants, 0, now
        self._dates = dates_of(command, self.instants) if self.timing.calendars else []
        self._choose(after)
        self._ended = self._has_ended

    @property
    def first(self) -> int | None:
        """The first instant that is not accounted for; None if there is none."""
        return self.instants[self._next] if self._next < len(self.instants) and not self.is_spent else None

    @property
    def is_spent(self) -> bool:
        """Whether as many instants ran as may."""
        return self.timing.max_runs is not None and self.runs >= self.timing.max_runs

    def is_next(self, next_at: int) -> bool:
        """Whether that is what the log must say of the next instant."""
        if self.first is not None:
            return next_at == self.first
        return next_at == NONE_AT or (not self._has_ended and next_at >= HORIZON)

    @property
    def _has_ended(self) -> bool:
        """Whether there is no instant beyond the horizon either, where there is none before it: calendars of the year end
        with it."""
        is_bounded = (self.timing.end_at or HORIZON) < HORIZON or (self._command.cron or "").endswith(" 2026")
        has_dates = any(name in self._calendars for name in self.timing.include)
        return self.first is None and (self.is_once or self.is_spent or is_bounded or has_dates)

    # -- calendars

    def dates_changed(self, now: int, *, is_undecided: bool) -> None:
        """A calendar of its tenant is another one. What is due already is decided as such, unless a pause holds it back, or
        the job comes from another command of this frame, `is_undecided`: then from the next instant on, as it was known. A
        schedule that has come to its end stays there; whether it has, is known when all changes that are on record were
        followed."""
        known = self.first if self._known_at is None else self._known_at
        is_held_back = self.status == "paused" or is_undecided
        self._known_at = known if is_held_back and known is not None and known <= now else None
        after = max(now, self._through) if self._known_at is None else self._known_at - 1
        if self._dates and not self._ended:
            self._choose(after)

    def dates_followed(self) -> None:
        """Its next instant was computed anew, by all calendars as they are now."""
        if self.status == "active":
            self._known_at = None
        self._ended = self._ended or self._has_ended

    def _choose(self, after: int) -> None:
        """Of the instants after `after`, those on dates that the calendars allow."""
        if not self._dates:
            return
        known = self.instants[self._next : bisect_right(self.instants, after)]
        rows = zip(self._nominal, self._dates, strict=True)
        self.instants = known + [at for at, day in rows if at > after and self._allows(day)]
        self._next = 0

    def _allows(self, day: int) -> bool:
        exclude, include = (
            [self._calendars[name] for name in names if name in self._calendars]
            for names in (self.timing.exclude, self.timing.include)
        )
        return not any(day in days for days in exclude) and (
            not include or any(day in days for days in include)
        )

    # -- instants

    def ran(self, scheduled_at: int, due_at: int, now: int) -> Iterator[str]:
        """An instant came due and is an execution."""
        yield from self._runs(scheduled_at, due_at, now)
        if now < due_at:
            yield f"is early: it is {now}"
        if self.timing.overlap != "allow" and self.busy:
            yield f"overlaps {sorted(self.open)}"
        self._account(scheduled_at, "run")

    def made_up(self, scheduled_at: int, due_at: int, now: int) -> Iterator[str]:
        """A missed instant became an execution of its own."""
        yield from self._runs(scheduled_at, due_at, now)
        if self._late_ms(scheduled_at, now) <= LATE_MS:
            yield "is made up for, and not late"
        self._account(scheduled_at, "made up for")

    def waits(self, scheduled_at: int, due_at: int, now: int) -> Iterator[str]:
        """An instant became an execution that is held until no other is open."""
        yield from self._runs(scheduled_at, due_at, now)
        if not self.busy:
            yield "is held, and nothing else is open"
        most = {"queue_one": 1, "queue_all": HELD_MAX, "cancel_running": 1}.get(self.timing.overlap, 0)
        if len(self.held) >= most:
            yield f"is held beside {len(self.held)} others under {self.timing.overlap}"
        self._account(scheduled_at, "held")

    def _runs(self, scheduled_at: int, due_at: int, now: int) -> Iterator[str]:
        if self.status != "active":
            yield f"runs while the job is {self.status}"
        if self.timing.max_runs is not None and self.runs >= self.timing.max_runs:
            yield "runs more often than max_runs"
        if not scheduled_at <= due_at <= scheduled_at + self.timing.jitter_ms:
            yield f"is due at {due_at}"
        yield from self._in_order(scheduled_at)
        if scheduled_at < self._first_kept(now, HOLD_MS):
            yield f"runs {self._late_ms(scheduled_at, now)} ms late, against the misfire policy"
        self.runs += not self.is_once

    def skipped(
        self, reason: str, first_at: int, last_at: int, count: int, now: int, idle_at: int
    ) -> Iterator[str]:
        """A stretch of instants was skipped."""
        yield from self._in_order(first_at)
        end = bisect_right(self.instants, last_at)
        found = end - self._next
        if found != count or not end or self.instants[end - 1] != last_at:
            yield f"skips {count} through {last_at}, there are {found}"
        if last_at > now:
            yield f"skips through {last_at} before it is due"
        yield from self._is_true(reason, first_at, last_at, now, idle_at)
        self._account(last_at, reason)

    # -- commands

    def paused(self, idle_at: int) -> Iterator[str]:
        """Nothing comes due from now on."""
        if self.status != "active":
            yield f"is paused while it is {self.status}"
        yield from self._seen(idle_at - HOLD_MS)
        self.status = "paused"
        self._paused_at = idle_at - HOLD_MS

    def resumed(self, now: int, *, is_caught_up: bool) -> Iterator[str]:
        """Instants come due again; those of the pause are made up for, or left out."""
        if self.status != "paused":
            yield f"is resumed while it is {self.status}"
        self.status = "active"
        self._resumed_at = self._since = now
        if not is_caught_up:
            self._known_at = None

    def left_out(self, stamp: int) -> Iterator[str]:
        """Nothing of a pause that ended at `stamp` may be left."""
        if self.first is not None and self.first <= stamp:
            yield f"has an instant of the pause that is not accounted for: {self.first}"

    def edited(self, command: SubmitJob, stamp: int, next_at: int, now: int) -> Iterator[str]:
        """Another schedule from `stamp` on, or the same one with other policies."""
        if self.status not in ("active", "paused"):
            yield f"is edited while it is {self.status}"
        if self._is_same_schedule(command):
            self._command, self.timing = command, command.timing or Timing()
            return
        if self.is_once and self.status == "paused":
            self._account(stamp, "moved")  # held back by the pause, it has another instant instead
        yield from self._seen(stamp)
        if not self._is_same_interval(command):
            self._anchor_at = stamp
        self._define(command, max(stamp, self._through), now)
        if not self.is_next(next_at):
            yield f"comes next at {next_at}, it should be {self.first}"

    def cancelled(self, now: int, idle_at: int) -> Iterator[str]:
        """No instant after this."""
        if self.status == "active":
            yield from self._seen(min(now, idle_at - HOLD_MS))
        self.status = "cancelled"

    def year_over(self, idle_at: int) -> Iterator[str]:
        """Everything that has come due must be accounted for by now."""
        if self.status == "active":
            yield from self._seen(idle_at - HOLD_MS)

    # -- what is open

    @property
    def busy(self) -> bool:
        """Whether an execution is open that is not held."""
        return len(self.open) > len(self.held)

    def ended(self, name: str) -> str | None:
        """An execution is open no more; the held one that may go now, None if there is none."""
        self.open.discard(name)
        if name in self.held:
            self.held.remove(name)
        return self.held.pop(0) if self.held and not self.busy else None

    # -- what is right

    def _is_same_schedule(self, command: SubmitJob) -> bool:
        if self.is_once and command.cron is None and command.every_ms is None:
            return self._command.run_at == command.run_at
        old, new = self.timing, command.timing or Timing()
        same_bounds = all(getattr(old, name) == getattr(new, name) for name in _SCHEDULE)
        return same_bounds and self._command.zone == command.zone and self._is_same_interval(command)

    def _is_same_interval(self, command: SubmitJob) -> bool:
        old, new = self._command, command
        return (old.cron, old.every_ms) == (new.cron, new.every_ms) and (
            self.timing.start_at == (new.timing or Timing()).start_at
        )

    def _in_order(self, at: int) -> Iterator[str]:
        if at != self.first:
            yield f"is not the next instant, that is {self.first}"

    def _account(self, through: int, how: str) -> None:
        end = bisect_right(self.instants, through)
        self.counts[how] += max(0, end - self._next)
        self._next = max(self._next, end)
        self._ended = self._ended or self._has_ended
        self._through = max(self._through, through)
        self._known_at = None

    def _seen(self, through: int) -> Iterator[str]:
        """Nothing that was due by then may be left; jitter may hold it back."""
        first = self.first
        if first is not None and first + self.timing.jitter_ms <= through and self._since <= through:
            yield f"has an instant that is not accounted for: {first}"

    def _late_ms(self, at: int, now: int) -> int:
        """How late an instant is: from the end of the time in which it may be due."""
        return now - self.timing.jitter_ms - at

    def _first_kept(self, now: int, slack_ms: int = 0) -> int:
        """The first of the instants that are up by now, and run; behind all if none does. `slack_ms`: so much earlier the
        decision may have been."""
        timing, until = self.timing, now - self.timing.jitter_ms
        up = self.instants[self._next : max(self._next + 1, bisect_right(self.instants, until))]
        if self.is_once and timing.misfire != "none":
            return up[0]
        if len(up) == 1 and self._late_ms(up[0], now) <= LATE_MS + slack_ms:
            return up[0]
        within_ms = LATE_MS if timing.misfire == "none" else timing.misfire_window_ms
        most = {"all": timing.misfire_max, "latest": 1}.get(timing.misfire, len(up))
        kept = [at for at in up[-most:] if until - at <= within_ms + slack_ms]
        return kept[0] if kept else now + 1

    def _is_true(self, reason: str, first_at: int, last_at: int, now: int, idle_at: int) -> Iterator[str]:
        match reason:
            case "misfire":
                if last_at >= self._first_kept(now):
                    yield "skips what the misfire policy keeps"
                if first_at + self.timing.jitter_ms <= idle_at - HOLD_MS and self._since <= idle_at:
                    yield f"skips what was seen in time, at {idle_at}"
            case "paused":
                if first_at <= self._paused_at:
                    yield f"skips what came due before the pause, at {self._paused_at}"
                if self.status != "paused" and self._resumed_at != now:
                    yield "skips for a pause that is none"
            case "overlap":
                yield from self._is_overlap_true(last_at, now)
            case _:
                yield f"has no reason {reason}"

    def _is_overlap_true(self, last_at: int, now: int) -> Iterator[str]:
        """`cancel_running` runs the latest of those that are up, and skips the others before it."""
        policy, end = self.timing.overlap, bisect_right(self.instants, last_at)
        has_later = end < len(self.instants) and self.instants[end] <= now - self.timing.jitter_ms
        if not (self.busy or (policy == "cancel_running" and has_later)):
            yield "skips for an overlap, and nothing is open"
        if policy == "cancel_running" and not has_later:
            yield "skips the latest, which is to run next"
        most = {"skip": 0, "queue_one": 1, "queue_all": HELD_MAX, "cancel_running": 0}.get(
            policy, HELD_MAX + 1
        )
        if len(self.held) < most:
            yield f"skips for an overlap under {policy}, beside {len(self.held)} that are held"
