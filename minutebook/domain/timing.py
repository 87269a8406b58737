"""How the instants of a job are bounded, spread and made up for, and what a caller may ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from minutebook import ids
from minutebook.schedule import INSTANT_MAX

_DAY_MS: Final = 86_400_000
JITTER_MAX_MS: Final = _DAY_MS
CALENDARS_MAX: Final = 16
MISFIRE_MAX: Final = 10_000
MISFIRE_WINDOW_MAX_MS: Final = 30 * _DAY_MS
INTERVAL_MIN_MS: Final = 1_000
INTERVAL_MAX_MS: Final = 366 * _DAY_MS
AT_MAX: Final = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z: the last instant that RFC 3339 can write."""

CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "gap": ("auto", "run", "skip"),
    "fold": ("auto", "first", "last", "both"),
    "day_match": ("or", "and"),
    "misfire": ("all", "latest", "none"),
    "overlap": ("allow", "skip", "queue_one", "queue_all", "cancel_running"),
}
"""The values of each field that is a choice."""


class Timing(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Of one job. Instants in ms, UTC; durations in ms. The defaults are those of a job that says nothing."""

    start_at: int | None = None  # no instant before
    end_at: int | None = None  # no instant from then on
    max_runs: int | None = None  # instants that become executions, at most
    gap: str = "auto"  # auto, run or skip
    fold: str = "auto"  # auto, first, last or both
    day_match: str = "or"  # or, and
    jitter_ms: int = 0  # an instant is due up to so much later
    exclude: list[str] = []  # calendars whose dates have no instants
    include: list[str] = []  # calendars of which only the dates have instants; empty = any date
    misfire: str = "all"  # all, latest or none
    misfire_window_ms: int = 86400000  # what was missed longer ago does not run
    misfire_max: int = 100  # of what was missed the latest so many run
    overlap: str = "allow"  # allow, skip, queue_one, queue_all or cancel_running
    is_paused_on_failure: bool = False  # when an execution is given up

    @property
    def calendars(self) -> list[str]:
        """Names of the calendars that it depends on."""
        return [*self.exclude, *self.include]


DEFAULT: Final = Timing()

_FIELDS: Final = {"misfire": "misfire/policy", "exclude": "calendars/exclude", "include": "calendars/include"}
"""Name here -> field of the create body, where the two differ."""

_RECURRING_ONLY: Final = (
    "start_at",
    "end_at",
    "max_runs",
    "gap",
    "fold",
    "day_match",
    "exclude",
    "include",
    "overlap",
)
"""What only more than one instant can have."""
RECURRING_ONLY: Final = frozenset(_FIELDS.get(name, name).partition("/")[0] for name in _RECURRING_ONLY)
"""The same, as fields of the create body."""


def faults(timing: Timing) -> Iterator[tuple[str, str]]:
    """(field of the create body, remedy) for each value that is none of its choices or out of bounds."""
    for name, choices in CHOICES.items():
        if getattr(timing, name) not in choices:
            yield _FIELDS.get(name, name), f"must be one of {', '.join(choices)}"
    if timing.start_at is not None and not 0 <= timing.start_at < INSTANT_MAX:
        yield "start_at", "must be from 1970 to 2199"
    if timing.end_at is not None and not (timing.start_at or 0) < timing.end_at <= AT_MAX:
        yield "end_at", "must be later than start_at, and at most in the year 9999"
    if timing.max_runs is not None and timing.max_runs < 1:
        yield "max_runs", "must be 1 or more"
    if not 0 <= timing.jitter_ms <= JITTER_MAX_MS:
        yield "jitter", "must be from PT0S to P1D"
    if not 0 < timing.misfire_window_ms <= MISFIRE_WINDOW_MAX_MS:
        yield "misfire/window", "must be longer than PT0S, at most P30D"
    if not 1 <= timing.misfire_max <= MISFIRE_MAX:
        yield "misfire/max", f"must be from 1 to {MISFIRE_MAX}"
    for name in ("exclude", "include"):
        names = getattr(timing, name)
        if len(names) > CALENDARS_MAX or not all(map(ids.is_name, names)):
            yield _FIELDS[name], f"at most {CALENDARS_MAX} names of 1-128 ASCII letters, digits, . _ -"


def misplaced(timing: Timing) -> Iterator[tuple[str, str]]:
    """(field of the create body, remedy) for each value that a job with one instant cannot have."""
    for name in _RECURRING_ONLY:
        if getattr(timing, name) != getattr(DEFAULT, name):
            yield _FIELDS.get(name, name), "it needs cron or every: a job that fires once has one instant"


def interval_fault(every_ms: int) -> str:
    """What is wrong with an interval, and the remedy; empty if nothing is."""
    is_sound = INTERVAL_MIN_MS <= every_ms <= INTERVAL_MAX_MS
    return "" if is_sound else "must be from PT1S to P366D"
