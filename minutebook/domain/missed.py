"""Which instants of a schedule that are up run, and which were missed for good: the misfire policy of a job.

Missed is what is more than `GRACE_MS` late, and what a later instant has come up beside. An instant with jitter is late
from the end of the time in which it may be due: a later one may be due before it, and must not make it late.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from minutebook.domain import plans
from minutebook.domain.book import Book
from minutebook.domain.state import NONE_AT, Job, Spec
from minutebook.domain.timing import Timing

GRACE_MS: Final = 60_000
_GRACE_INSTANTS_MAX: Final = GRACE_MS // 1_000 + 1
"""Schedules know no two instants within one second."""


class Stretch(NamedTuple):
    """Instants that do not run: the first, the last, and how many."""

    first_at: int
    last_at: int
    total: int


class Up(NamedTuple):
    """What is up of a schedule: `dropped` comes before `kept`, the instants that are to run; then comes `next_at`."""

    dropped: Stretch | None
    kept: list[int]
    next_at: int


def instants_up(book: Book, tenant: str, job_id: str, job: Job, spec: Spec, now: int) -> Up:
    """The next instant of a recurring job, which is due at `now`, and all that have come up with it.

    In bounded time and memory, however many they are.
    """
    first, late_before = job.next_at, now - job.jitter_ms
    following = plans.next_at(book, tenant, job_id, spec, first)
    if following != NONE_AT and following <= late_before:
        return _several(book, tenant, job_id, first, spec, late_before)
    late_ms = late_before - first
    if late_ms <= GRACE_MS or late_ms <= _made_up_for_ms(spec.timing):
        return Up(None, [first], following)
    return Up(Stretch(first, first, 1), [], following)


def is_dropped_once(timing: Timing, late_ms: int) -> bool:
    """Whether the instant of a job that fires once is missed for good: it runs however late, unless told otherwise."""
    return timing.misfire == "none" and late_ms > GRACE_MS


def _made_up_for_ms(timing: Timing) -> int:
    """How late an instant may be to run all the same."""
    return GRACE_MS if timing.misfire == "none" else timing.misfire_window_ms


def _several(book: Book, tenant: str, job_id: str, first: int, spec: Spec, until: int) -> Up:
    """Instants from `first` to `until`, more than one. `first` counts as one whatever the rule says by now."""
    plan, timing = plans.plan_of(book, tenant, job_id, spec), spec.timing
    most = {"all": timing.misfire_max, "latest": 1, "none": _GRACE_INSTANTS_MAX}[timing.misfire]
    since = until - _made_up_for_ms(timing)
    kept = plan.latest(until, most, max(first, since - 1))
    if first >= since and len(kept) < most:
        kept.insert(0, first)
    following = plans.next_at(book, tenant, job_id, spec, until)
    if kept and kept[0] == first:
        return Up(None, kept, following)
    last = plan.previous(kept[0] if kept else until + 1)
    last = first if last is None else max(first, last)
    return Up(Stretch(first, last, 1 + plan.count(first, last)), kept, following)
