"""Instants and durations as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutebook.times import (
    format_duration,
    format_instant,
    parse_duration,
    parse_instant,
    parse_short_duration,
)

END = 7_258_118_400_000  # 2200-01-01


@given(st.integers(0, END))
def test_instant_survives_its_text(at: int) -> None:
    assert parse_instant(format_instant(at)) == at


@given(st.integers(0, END))
def test_duration_survives_its_text(ms: int) -> None:
    assert parse_duration(format_duration(ms)) == ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("500ms", 500),
        ("30s", 30_000),
        ("2m", 120_000),
        ("1h", 3_600_000),
        ("7d", 604_800_000),
        ("PT2M", 120_000),
    ],
)
def test_short_duration_is_read(text: str, ms: int) -> None:
    assert parse_short_duration(text) == ms


@pytest.mark.parametrize("text", ["", "2", "m", "2 m", "-2m", "2M", "1.5h", "P", "PT", "P1Y", "PT1", "1w"])
def test_senseless_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="give a duration"):
        parse_short_duration(text)


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("2030-01-01T00:00:00Z", "2030-01-01T00:00:00.000Z"),
        ("2030-01-01T01:00:00+01:00", "2030-01-01T00:00:00.000Z"),
        ("2029-12-31T18:30:00.25-05:30", "2030-01-01T00:00:00.250Z"),
        ("1970-01-01t00:00:00.0009z", "1970-01-01T00:00:00.000Z"),
    ],
)
def test_instant_is_shown_in_utc(text: str, again: str) -> None:
    assert format_instant(parse_instant(text)) == again
