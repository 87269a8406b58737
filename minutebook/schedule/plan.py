"""The instants of a recurring job: its rule within its bounds."""

from __future__ import annotations

from dataclasses import dataclass

from minutebook.ids import Instant
from minutebook.schedule.every import Every
from minutebook.schedule.instants import Fold, Gap, next_instant
from minutebook.schedule.rule import CronRule


@dataclass(frozen=True, slots=True)
class Plan:
    """The instants of a recurring job: its rule within its bounds. Instants in ms, UTC."""

    rule: CronRule | Every
    zone: str = "UTC"
    gap: Gap = "auto"
    fold: Fold = "auto"
    anchor_at: int = 0
    start_at: int | None = None
    end_at: int | None = None
    dates: None = None

    def next(self, after: int) -> int | None:
        """The first instant strictly later than `after`; None if there is none."""
        if self.start_at is not None:
            after = max(after, self.start_at - 1)
        if isinstance(self.rule, Every):
            step = self.rule.interval_ms
            found: int | None = max(self.anchor_at, after + step - (after - self.anchor_at) % step)
        else:
            found = next_instant(self.rule, self.zone, Instant(after), self.gap, self.fold)
        return None if found is None or (self.end_at is not None and found >= self.end_at) else found
