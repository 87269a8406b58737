"""Intervals: `@every 90s`. They count from the start of their job and know neither wall clock nor zone."""

import re
from dataclasses import dataclass

from minutebook.errors import ScheduleError

INTERVAL_MS_MIN = 1_000
INTERVAL_MS_MAX = 366 * 86_400_000

_WORD = "@every"
_LENGTH = re.compile(r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?", re.ASCII)
_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1_000)


@dataclass(frozen=True, slots=True)
class Every:
    """An interval of `interval_ms`, from 1 second to 366 days. It repeats from an anchor on, an instant in ms."""

    interval_ms: int

    def first_from(self, at: int, anchor_at: int) -> int:
        """First repeat at or after `at`."""
        return anchor_at + max(-((anchor_at - at) // self.interval_ms), 0) * self.interval_ms

    def last_until(self, at: int, anchor_at: int) -> int | None:
        """Last repeat at or before `at`; None before the anchor."""
        return at - (at - anchor_at) % self.interval_ms if at >= anchor_at else None

    def count(self, first_at: int, end_at: int, anchor_at: int) -> int:
        """How many repeats there are from `first_at` up to `end_at`, not included."""
        span_ms = end_at - self.first_from(first_at, anchor_at)
        return max(-(-span_ms // self.interval_ms), 0)


def is_every(text: str) -> bool:
    """Whether `text` asks for an interval: it begins with `@every`."""
    words = text.split(maxsplit=1)
    return bool(words) and words[0].lower() == _WORD


def parse_every(text: str) -> Every:
    """Interval of `@every` and whole days, hours, minutes and seconds, such as `@every 90s` or `@every 1h30m`.

    Raises ScheduleError (field `cron`).
    """
    words = text.split()
    found = _LENGTH.fullmatch(words[1].lower()) if len(words) == 2 and is_every(text) else None
    if found is None:
        raise ScheduleError(
            "cron", "after @every give whole d, h, m and s, such as @every 90s or @every 1h30m"
        )
    interval_ms = sum(int(count or 0) * unit for count, unit in zip(found.groups(), _UNITS_MS, strict=True))
    if not INTERVAL_MS_MIN <= interval_ms <= INTERVAL_MS_MAX:
        raise ScheduleError("cron", "an interval is from 1s to 366d")
    return Every(interval_ms)
