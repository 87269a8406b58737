"""The account of one job: which of its instants must run, which may be skipped and why. Written from the documents.

An instant is missed when it is looked at more than a minute late, or when a later one of its schedule is due by then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from minutebook.domain.commands import SubmitJob
from minutebook.domain.timing import Timing
from tests.simulation.year.instants import instants_of
from tests.simulation.year.schedules import DAY, END

NONE_AT: Final = -1
LATE_MS: Final = 60_000
HOLD_MS: Final = 6_000
"""What is due may wait so long off the record, and a little."""
HORIZON: Final = END + DAY
"""Instants are known up to here."""


class Account:
    """One job. Methods yield what is wrong; `now` is the time of the frame, `idle_at` the last moment before it at which
    the owner had looked at all that was due."""

    def __init__(self, command: SubmitJob, accepted_at: int, now: int) -> None:
        self.status = "active"
        self.runs = 0
        self.counts: dict[str, int] = {}
        self._define(command, accepted_at, now)

    def _define(self, command: SubmitJob, accepted_at: int, now: int) -> None:
        self.timing = command.timing or Timing()
        self.is_once = command.cron is None and command.every_ms is None
        if self.is_once:
            at = accepted_at if command.run_at is None else command.run_at
            self.instants = [at]
        else:
            self.instants = instants_of(command, accepted_at, HORIZON)
        self._next = 0
        self._since = now

    @property
    def first(self) -> int | None:
        """The first instant that is not accounted for; None if there is none."""
        return self.instants[self._next] if self._next < len(self.instants) else None

    def is_next(self, next_at: int) -> bool:
        """Whether that is what the log must say of the next instant."""
        first = None if self.is_spent else self.first
        if first is None:
            is_known = self.is_once or self.is_spent or (self.timing.end_at or HORIZON) < HORIZON
            return next_at == NONE_AT or (not is_known and next_at >= HORIZON)
        return next_at == first

    @property
    def is_spent(self) -> bool:
        """Whether as many instants ran as may."""
        return self.timing.max_runs is not None and self.runs >= self.timing.max_runs

    # -- what the log says

    def ran(self, scheduled_at: int, due_at: int, now: int) -> Iterator[str]:
        """An instant became an execution."""
        if self.status != "active":
            yield f"runs while the job is {self.status}"
        if self.is_spent:
            yield "runs more often than max_runs"
        if not scheduled_at <= due_at <= scheduled_at + self.timing.jitter_ms:
            yield f"is due at {due_at}"
        if now < due_at:
            yield f"is early: it is {now}"
        yield from self._in_order(scheduled_at)
        if now - due_at > LATE_MS and not self._is_kept(scheduled_at, now):
            yield f"runs {now - due_at} ms late, against the misfire policy"
        self._account(scheduled_at, "run")
        self.runs += 1

    def skipped(
        self, reason: str, first_at: int, last_at: int, count: int, now: int, idle_at: int
    ) -> Iterator[str]:
        """A stretch of instants was skipped."""
        yield from self._in_order(first_at)
        end = bisect_right(self.instants, last_at)
        found = end - self._next
        if found != count or not end or self.instants[end - 1] != last_at:
            yield f"skips {count} through {last_at}, there are {found}"
        yield from self._is_true(reason, first_at, last_at, now, idle_at)
        self._account(last_at, reason)

    def cancelled(self, now: int, idle_at: int) -> Iterator[str]:
        """No instant after this."""
        yield from self._seen(min(now, idle_at - HOLD_MS))
        self.status = "cancelled"

    def year_over(self, idle_at: int) -> Iterator[str]:
        """Everything that has come due must be accounted for by now."""
        if self.status == "active":
            yield from self._seen(idle_at - HOLD_MS)

    # -- what is right

    def _in_order(self, at: int) -> Iterator[str]:
        if at != self.first:
            yield f"is not the next instant, that is {self.first}"

    def _account(self, through: int, how: str) -> None:
        end = bisect_right(self.instants, through)
        self.counts[how] = self.counts.get(how, 0) + max(0, end - self._next)
        self._next = max(self._next, end)

    def _seen(self, through: int) -> Iterator[str]:
        """Nothing that was due by then may be left; jitter may hold it back."""
        first = None if self.is_spent else self.first
        if first is not None and first + self.timing.jitter_ms <= through and self._since <= through:
            yield f"has an instant that is not accounted for: {first}"

    def _is_kept(self, at: int, now: int) -> bool:
        """Whether the policy makes up for a missed instant."""
        if self.is_once:
            return self.timing.misfire != "none"
        return at >= self._first_kept(now, HOLD_MS)

    def _first_kept(self, now: int, slack_ms: int = 0) -> int:
        """The first of the missed instants that runs; behind all if none does."""
        timing = self.timing
        missed = self.instants[self._next : bisect_right(self.instants, now - timing.jitter_ms)]
        if timing.misfire == "none":
            return now - LATE_MS - slack_ms
        most = 1 if timing.misfire == "latest" else timing.misfire_max
        kept = [at for at in missed[-most:] if now - at <= timing.misfire_window_ms + slack_ms]
        return kept[0] if kept else now + 1

    def _is_true(self, reason: str, first_at: int, last_at: int, now: int, idle_at: int) -> Iterator[str]:
        match reason:
            case "misfire":
                if last_at >= self._first_kept(now):
                    yield "skips what the misfire policy keeps"
                if first_at + self.timing.jitter_ms <= idle_at - HOLD_MS and self._since <= idle_at:
                    yield f"skips what was seen in time, at {idle_at}"
            case _:
                yield f"has no reason {reason}"
