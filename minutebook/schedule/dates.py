"""Which local dates may have instants, and when such a date is on a zone's wall clock.

Days are numbered from 0 = 1970-01-01.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import InitVar, dataclass, field

from minutebook.schedule.tzif import END_S, Timeline

DayRange = tuple[int, int]
"""First and last day, both included."""

_DAY_S = 86_400
_EVERY_DAY: DayRange = (-(1 << 40), 1 << 40)


@dataclass(frozen=True, slots=True)
class Dates:
    """The dates that lie in some range of `included` and in none of `excluded`.

    `included` None: every date; empty: no date. Equal if they allow the same. Raises ValueError for a range that ends
    before it begins.
    """

    excluded: InitVar[Iterable[DayRange]]
    included: InitVar[Iterable[DayRange] | None]
    edges: tuple[int, ...] = field(init=False)
    """Days on which allowed dates begin and, in turn, end: ascending, begin included, end not."""

    def __post_init__(self, excluded: Iterable[DayRange], included: Iterable[DayRange] | None) -> None:
        object.__setattr__(self, "edges", _edges(excluded, (_EVERY_DAY,) if included is None else included))

    def allows(self, day: int) -> bool:
        """Whether `day` may have instants."""
        return bisect_right(self.edges, day) % 2 == 1

    def next_allowed(self, day: int) -> int | None:
        """First allowed day at or after `day`."""
        at = bisect_right(self.edges, day)
        if at % 2:
            return day
        return self.edges[at] if at < len(self.edges) else None

    def previous_allowed(self, day: int) -> int | None:
        """Last allowed day at or before `day`."""
        at = bisect_right(self.edges, day)
        if at % 2:
            return day
        return self.edges[at - 1] - 1 if at else None

    def between(self, first_day: int, end_day: int) -> Iterator[tuple[int, int]]:
        """Stretches of allowed days from `first_day` up to `end_day`, not included: begin, and end not included."""
        at = bisect_right(self.edges, first_day) // 2 * 2
        while at < len(self.edges) and self.edges[at] < end_day:
            yield max(self.edges[at], first_day), min(self.edges[at + 1], end_day)
            at += 2


def next_allowed_s(dates: Dates, line: Timeline, utc_s: int) -> int | None:
    """First second at or after `utc_s` whose local date is allowed; None if there is none before `END_S`."""
    at = bisect_right(line.starts, utc_s)
    while utc_s < END_S:
        offset_s, end_s = line.offsets[at], line.starts[at]
        day = dates.next_allowed((utc_s + offset_s) // _DAY_S)
        # A day beyond this stretch is asked for again: where the clock is set back, a date may return.
        if day is not None and (found_s := max(utc_s, day * _DAY_S - offset_s)) < end_s:
            return found_s
        utc_s, at = end_s, at + 1
    return None


def previous_allowed_s(dates: Dates, line: Timeline, utc_s: int) -> int | None:
    """Last second at or before `utc_s`, which is before `END_S`, whose local date is allowed; None if none is since 1970."""
    at = bisect_right(line.starts, utc_s)
    while utc_s >= 0:
        offset_s, start_s = line.offsets[at], line.starts[at - 1] if at else 0
        day = dates.previous_allowed((utc_s + offset_s) // _DAY_S)
        if day is not None and (found_s := min(utc_s, (day + 1) * _DAY_S - 1 - offset_s)) >= max(start_s, 0):
            return found_s
        utc_s, at = start_s - 1, at - 1
    return None


def allowed_spans_s(dates: Dates, line: Timeline, first_s: int, end_s: int) -> Iterator[tuple[int, int]]:
    """Spans of seconds from `first_s` up to `end_s`, at most `END_S`, whose local dates are allowed; ends not included."""
    at = bisect_right(line.starts, first_s)
    while first_s < end_s:
        offset_s, stop_s = line.offsets[at], min(line.starts[at], end_s)
        for day, end_day in dates.between(
            (first_s + offset_s) // _DAY_S, (stop_s + offset_s - 1) // _DAY_S + 1
        ):
            yield max(day * _DAY_S - offset_s, first_s), min(end_day * _DAY_S - offset_s, stop_s)
        first_s, at = stop_s, at + 1


def _edges(excluded: Iterable[DayRange], included: Iterable[DayRange]) -> tuple[int, ...]:
    """Where it changes whether a day is in some range of `included` and in none of `excluded`."""
    entered, shut = _steps(included), _steps(excluded)
    ins = outs = 0
    edges: list[int] = []
    for day in sorted(entered.keys() | shut.keys()):
        ins, outs = ins + entered[day], outs + shut[day]
        if (ins > 0 and outs == 0) != len(edges) % 2:
            edges.append(day)
    return tuple(edges)


def _steps(ranges: Iterable[DayRange]) -> Counter[int]:
    """By day, how many more ranges it lies in than the day before."""
    steps: Counter[int] = Counter()
    for first, last in ranges:
        if last < first:
            raise ValueError(f"a range of days ends before it begins: {first} to {last}")
        steps[first] += 1
        steps[last + 1] -= 1
    return steps
