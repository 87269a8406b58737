"""`Cron`: a schedule for Python programs, with aware datetimes in place of milliseconds."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from minutebook.errors import ScheduleError
from minutebook.ids import Instant
from minutebook.schedule.cron import DayMatch, parse_cron
from minutebook.schedule.instants import Fold, Gap, each_instant, next_instant, previous_instant, resolve
from minutebook.schedule.rule import CronRule
from minutebook.schedule.zones import check_zone_name

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Cron:
    """A cron expression in a zone, with its rules for clock changes. It never changes and can be shared.

    `expression`: see the page "Say when"; `zone`: an IANA name of the pinned tzdata; `gap`, `fold`: what becomes of
    local times that a clock change leaves out or shows twice; `day_match`: whether one of two restricted day fields is
    enough; `job_key`: `<tenant>/<job id>`, which `H` takes its values from. Raises ScheduleError, a ValueError with
    `field` and `reason`.
    """

    expression: str
    zone: str = "UTC"
    gap: Gap = "auto"
    fold: Fold = "auto"
    day_match: DayMatch = "or"
    job_key: str | None = None
    rule: CronRule = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_zone_name(self.zone)
        object.__setattr__(self, "rule", parse_cron(self.expression, self.job_key, self.day_match))
        resolve(self.rule, self.gap, self.fold)

    def next(self, after: datetime) -> datetime | None:
        """First instant strictly later than `after`, in UTC; None if there is none left before the year 2200.

        `after` is aware, else ScheduleError (field `after`).
        """
        found = next_instant(self.rule, self.zone, _floor_ms(after, "after"), self.gap, self.fold)
        return None if found is None else _datetime(found)

    def previous(self, before: datetime) -> datetime | None:
        """Last instant strictly earlier than `before`, in UTC; None if there is none since 1970.

        `before` is aware, else ScheduleError (field `before`).
        """
        # Rounded up, so that an instant in the same millisecond is still before it.
        at = Instant(-((_EPOCH - _aware(before, "before")) // _MS))
        found = previous_instant(self.rule, self.zone, at, self.gap, self.fold)
        return None if found is None else _datetime(found)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Instants with `start` < t <= `end`, ascending, in UTC, found one by one as they are asked for.

        Both are aware, else ScheduleError (field `start` or `end`).
        """
        after, until = _floor_ms(start, "start"), _floor_ms(end, "end")
        return map(_datetime, each_instant(self.rule, self.zone, after, until, self.gap, self.fold))


def _aware(at: datetime, name: str) -> datetime:
    if at.utcoffset() is None:
        raise ScheduleError(name, "give an aware datetime: without an offset it is no instant")
    return at


def _floor_ms(at: datetime, name: str) -> Instant:
    return Instant((_aware(at, name) - _EPOCH) // _MS)


def _datetime(at: Instant) -> datetime:
    return _EPOCH + timedelta(milliseconds=at)
