"""Dates that may have instants: the ranges that make them, and where they lie on a zone's clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutebook.schedule import Dates
from minutebook.schedule.dates import DayRange, allowed_spans_s, next_allowed_s, previous_allowed_s
from minutebook.schedule.tzif import END_S
from minutebook.schedule.zones import timeline

DAYS = range(-3, 33)
EDGES = st.integers(0, 30)
RANGES = st.lists(st.tuples(EDGES, EDGES).map(lambda pair: (min(pair), max(pair))), max_size=8)


@pytest.mark.parametrize(
    ("excluded", "included", "allowed"),
    [
        ([], [(3, 5)], [3, 4, 5]),
        ([], [], []),
        ([], [(3, 3), (4, 4), (8, 9)], [3, 4, 8, 9]),
        ([(4, 4)], [(3, 5)], [3, 5]),
        ([(0, 30)], [(3, 5)], []),
        ([(5, 6)], [(1, 5), (4, 8)], [1, 2, 3, 4, 7, 8]),
        ([(3, 3), (2, 4)], [(1, 5)], [1, 5]),
    ],
)
def test_dates_are_the_included_without_the_excluded(
    excluded: list[DayRange], included: list[DayRange], allowed: list[int]
) -> None:
    dates = Dates(excluded, included)
    assert [day for day in DAYS if dates.allows(day)] == allowed


def test_every_date_is_allowed_where_no_range_is_included_by_name() -> None:
    dates = Dates([(10, 19)], None)
    assert [day for day in (-700_000, 9, 10, 19, 20, 100_000) if dates.allows(day)] == [
        -700_000,
        9,
        20,
        100_000,
    ]
    assert (dates.next_allowed(10), dates.previous_allowed(19)) == (20, 9)
    assert (dates.next_allowed(1 << 30), dates.previous_allowed(-(1 << 30))) == (1 << 30, -(1 << 30))


@given(RANGES, st.none() | RANGES)
def test_dates_equal_a_set_of_days(excluded: list[DayRange], included: list[DayRange] | None) -> None:
    dates = Dates(excluded, included)
    allowed = [
        day
        for day in DAYS
        if (included is None or any(first <= day <= last for first, last in included))
        and not any(first <= day <= last for first, last in excluded)
    ]
    assert [day for day in DAYS if dates.allows(day)] == allowed
    for day in DAYS:
        following, before = dates.next_allowed(day), dates.previous_allowed(day)
        assert (
            following == min((other for other in allowed if other >= day), default=None) or included is None
        )
        assert before == max((other for other in allowed if other <= day), default=None) or included is None
    stretches = list(dates.between(2, 20))
    assert [day for first, end in stretches for day in range(first, end)] == [
        day for day in allowed if 2 <= day < 20
    ]


def test_dates_that_allow_the_same_are_equal() -> None:
    assert Dates([], [(1, 2), (3, 4)]) == Dates([], [(3, 4), (1, 3)])
    assert Dates([(5, 9)], [(1, 9)]) == Dates([], [(1, 4)])
    assert Dates([], [(1, 4)]) != Dates([], None)


def test_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ValueError, match="ends before it begins: 5 to 4"):
        Dates([(5, 4)], None)


def test_date_that_returns_when_the_clock_is_set_back_is_found_again() -> None:
    # St. John's, 2006-10-29: at 00:01 the clock goes back to 23:01 of the 28th.
    line, change_s = timeline("America/St_Johns"), 1_162_089_060
    day = 13_449  # 2006-10-28
    dates = Dates([], [(day, day)])
    assert next_allowed_s(dates, line, change_s - 60) == change_s
    assert previous_allowed_s(dates, line, change_s - 1) == change_s - 61
    spans = list(allowed_spans_s(dates, line, change_s - 3600, change_s + 7200))
    assert spans == [(change_s - 3600, change_s - 60), (change_s, change_s + 59 * 60)]


def test_no_date_is_left_beyond_the_last() -> None:
    line = timeline("Europe/Berlin")
    assert next_allowed_s(Dates([], [(100, 200)]), line, 201 * 86_400) is None
    assert previous_allowed_s(Dates([], [(100, 200)]), line, 99 * 86_400) is None
    assert next_allowed_s(Dates([], []), line, 0) is None
    assert list(allowed_spans_s(Dates([], []), line, 0, END_S)) == []
