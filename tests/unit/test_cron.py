"""The schedule language and the instants that it gives, against tables worked out by hand."""

from datetime import UTC, datetime

import pytest

from minutebook.errors import ScheduleError
from minutebook.ids import Instant
from minutebook.schedule import (
    INSTANT_MAX,
    INSTANT_MIN,
    Fold,
    Gap,
    instants_between,
    next_instant,
    parse_cron,
    previous_instant,
    zone,
)
from minutebook.schedule.cron import TEXT_CHARS_MAX


def instant(text: str) -> Instant:
    return Instant(int(datetime.fromisoformat(text).timestamp() * 1000))


def on_wall_clock(at: Instant | None, zone_name: str) -> str | None:
    if at is None:
        return None
    return datetime.fromtimestamp(at / 1000, UTC).astimezone(zone(zone_name)).isoformat(timespec="minutes")


def upcoming(
    cron: str, zone_name: str, after: str, count: int = 1, gap: Gap = "auto", fold: Fold = "auto"
) -> list[str | None]:
    """The next instants of `cron` after the ISO text `after`, on the wall clock with its offset."""
    found = instants_between(parse_cron(cron), zone_name, instant(after), INSTANT_MAX, count, gap, fold)
    return [on_wall_clock(at, zone_name) for at in found]


def values(bits: int) -> list[int]:
    return [value for value in range(64) if bits >> value & 1]


@pytest.mark.parametrize(
    ("cron", "attribute", "expected"),
    [
        ("* * * * *", "minutes", list(range(60))),
        ("*/15 * * * *", "minutes", [0, 15, 30, 45]),
        ("*/60 * * * *", "minutes", [0]),
        ("5/20 * * * *", "minutes", [5, 25, 45]),
        ("59/1 * * * *", "minutes", [59]),
        ("5-5 * * * *", "minutes", [5]),
        ("5-5/1 * * * *", "minutes", [5]),
        ("10-20/5,3,*/30 * * * *", "minutes", [0, 3, 10, 15, 20, 30]),
        ("007,08 * * * *", "minutes", [7, 8]),
        ("0 9-17/4 * * *", "hours", [9, 13, 17]),
        ("0 0 ? * *", "days", list(range(1, 32))),
        ("0 0 */10 * *", "days", [1, 11, 21, 31]),
        ("0 0 1 jan,Dec *", "months", [1, 12]),
        ("0 0 1 MAR-6/2 *", "months", [3, 5]),
        ("0 0 1 OCT/1 *", "months", [10, 11, 12]),
        ("0 0 * * *", "weekdays", list(range(7))),
        ("0 0 * * 7", "weekdays", [0]),
        ("0 0 * * 0", "weekdays", [0]),
        ("0 0 * * 5-7", "weekdays", [0, 5, 6]),
        ("0 0 * * fri-7", "weekdays", [0, 5, 6]),
        ("0 0 * * 0-7", "weekdays", list(range(7))),
        ("0 0 * * sun-sat", "weekdays", list(range(7))),
        ("0 0 * * Mon-FRI", "weekdays", [1, 2, 3, 4, 5]),
        ("0 0 * * */2", "weekdays", [0, 2, 4, 6]),
        ("0 0 * * */5", "weekdays", [0, 5]),
        ("0 0 * * 5/1", "weekdays", [5, 6]),
        ("0 0 * * 7/1", "weekdays", [0]),
        ("0 0 * * 1-7/2", "weekdays", [0, 1, 3, 5]),
    ],
)
def test_field_gives_its_values(cron: str, attribute: str, expected: list[int]) -> None:
    assert values(getattr(parse_cron(cron), attribute)) == expected


@pytest.mark.parametrize(
    ("cron", "reason"),
    [
        ("", "empty"),
        (" \t ", "empty"),
        (
            "* * * *",
            "give five fields (minute hour day-of-month month day-of-week), six with the second first, or",
        ),
        ("* * * *", "seven with the year last, not 4"),
        ("0 0 0 1 1 * 1969", "year field: 1969 in '1969' is not from 1970 to 2199"),
        ("0 0 0 1 1 * 2200", "year field: 2200 in '2200' is not from 1970 to 2199"),
        ("0 0 0 29 2 * 2027", "year field: no such day in the years that it names; it would never run"),
        ("60 0 0 * * *", "second field: 60 in '60' is not from 0 to 59"),
        ("* * * * *; rm -rf x", "not 8"),
        ("0 0 31 2 *", "day-of-month field: no such day"),
        ("0 0 30 2 *", "day-of-month field: no such day"),
        ("0 0 31 4,6,9,11 *", "day-of-month field: no such day"),
        ("0 0 30,31 feb ?", "day-of-month field: no such day"),
        ("0 0 31 2 */2", "day-of-month field: no such day"),
        ("60 * * * *", "minute field: 60 in '60' is not from 0 to 59"),
        ("* 24 * * *", "hour field: 24"),
        ("* * 0 * *", "day-of-month field: 0"),
        ("* * 32 * *", "day-of-month field: 32"),
        ("* * * 13 *", "month field: 13"),
        ("0 0 32 13 *", "day-of-month field: 32"),
        ("* * * * 8", "day-of-week field: 8"),
        ("-1 * * * *", "minute field: '-1' is not a number from 0 to 59"),
        ("+1 * * * *", "minute field: '+1' is not a number"),
        ("1_0 * * * *", "minute field: '1_0' is not a number"),
        ("1.5 * * * *", "minute field: '1.5' is not a number"),
        ("*/0 * * * *", "minute field: the step in '*/0' is zero"),
        ("*/61 * * * *", "minute field: the step in '*/61' is larger than its range, 0-59"),
        ("*/99999999999 * * * *", "minute field: the step in '*/99999999999' is larger"),
        ("59/15 * * * *", "minute field: the step in '59/15' is larger than its range, 59-59"),
        ("0 0 * * 7/2", "day-of-week field: the step in '7/2' is larger"),
        ("*/x * * * *", "minute field: the step in '*/x' is not a number"),
        ("*/ * * * *", "minute field: the step in '*/' is not a number"),
        ("*/5/5 * * * *", "minute field: the step in '*/5/5' is not a number"),
        ("1-234/5678 * * * *", "minute field: 234 in '1-234'"),
        ("59-0 * * * *", "minute field: '59-0' is a reversed range"),
        ("0 22-2 * * *", "hour field: '22-2' is a reversed range"),
        (
            "0 0 * * sat-sun",
            "day-of-week field: 'sat-sun' is a reversed range; Sunday at the end of a range is 7",
        ),
        ("0 0 * dec-jan *", "month field: 'dec-jan' is a reversed range"),
        ("1-2-3 * * * *", "minute field: '1-2-3' is not a number"),
        ("1, * * * *", "minute field: an item of the list is empty"),
        (",1 * * * *", "minute field: an item of the list is empty"),
        ("*5 * * * *", "minute field: '*5' is not a number"),
        ("jan * * * *", "minute field: 'jan' is not a number"),
        ("0 0 * monday *", "month field: 'monday' is not a number from 1 to 12 or a name (JAN-DEC)"),
        ("0 0 * * mond", "day-of-week field: 'mond' is not a number from 0 to 7 or a name (SUN-SAT)"),
        ("? * * * *", "minute field: ? is accepted only alone"),
        ("0 0 ?/2 * *", "day-of-month field: ? is accepted only alone"),
        ("R R * * *", "minute field: R (random) is not accepted"),
        ("0 R(1-5) * * *", "hour field: R (random) is not accepted"),
        ("H H * * *", "minute field: H takes its value from the job: name the job"),
        ("H(0-7 * * * *", "minute field: 'H(0-7': give H, H(a-b), H/n or H(a-b)/n"),
        ("H-5 * * * *", "minute field: 'H-5': give H, H(a-b), H/n or H(a-b)/n"),
        ("0 0 * * 5#6", "day-of-week field: '5#6': give 5L for the last Friday, 5#2 for the second"),
        ("0 0 * * 5#0", "day-of-week field: '5#0': give 5L"),
        ("0 0 * * mon#", "day-of-week field: 'mon#': give 5L"),
        ("0 0 * * 8#1", "day-of-week field: 8 in '8#1' is not from 0 to 7"),
        ("0 0 * * L5", "day-of-week field: 'L5': give 5L for the last Friday"),
        ("0 0 * * L", "day-of-week field: 'L': give 5L for the last Friday"),
        ("0 0 * * 9L", "day-of-week field: 9 in '9L' is not from 0 to 7"),
        ("0 0 * * frxL", "day-of-week field: 'frxL' is not a number"),
        ("0 0 * * 5W", "day-of-week field: '5W': give 5L for the last Friday"),
        ("0 0 L-0 * *", "day-of-month field: 'L-0' is not from L-1 to L-30"),
        ("0 0 L-31 * *", "day-of-month field: 'L-31' is not from L-1 to L-30"),
        (
            "0 0 L-3W * *",
            "day-of-month field: 'L-3W': give L (the last day), L-3 (three days before it), LW or 15W",
        ),
        ("0 0 15L * *", "day-of-month field: '15L': give L"),
        ("0 0 5#1 * *", "day-of-month field: '5#1': give L"),
        ("0 9 0W * *", "day-of-month field: 0 in '0W' is not from 1 to 31"),
        ("0 9 32W * *", "day-of-month field: 32 in '32W' is not from 1 to 31"),
        ("0 9 31W 2 *", "day-of-month field: no such day"),
        ("0 9 L-29 2 *", "day-of-month field: no such day"),
        ("0 0 10-L * *", "day-of-month field: '10-L' is not a number"),
        ("0 L * * *", "hour field: 'L': L, W and # are accepted in the two day fields only"),
        ("0 0 0 1 1 * H", "year field: H is not accepted here"),
        ("@reboot", "'@reboot' is not accepted: nothing here is booted; give five fields"),
        ("@every 1s", "@every is an interval, not a time on the clock; give fields"),
        ("@often", "'@often' is no macro; give @yearly, @annually, @monthly"),
        ("@daily 5", "'@daily' stands for all fields: give nothing after it"),
        ("TZ=UTC 0 0 * * *", "the zone is a field of its own"),
        ("CRON_TZ=Europe/Berlin 0 0 * * *", "the zone is a field of its own"),
        ("0\u00a00 * * *", "only ASCII"),
        ("\uff0a * * * *", "only ASCII"),
        ("\u0661 * * * *", "only ASCII"),
        ("0 0 * *\n*", "not 4"),
        ("0 0 * * *\n", "day-of-week field: '*\\n' is not a number"),
        ("0\x000 * * * *", "minute field: '0\\x000' is not a number"),
        ("0-59," * 10_000 + " * * * *", "at most 256 characters"),
        ("1," * 250_000 + "1 * * * *", "at most 256 characters"),
    ],
)
def test_expression_is_refused_with_its_reason(cron: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_cron(cron)
    assert caught.value.field == "cron"
    assert reason in caught.value.reason
    assert len(caught.value.reason) < 2 * TEXT_CHARS_MAX
    assert str(caught.value) == f"cron: {caught.value.reason}"
    assert isinstance(caught.value, ValueError)


def test_longest_expression_is_accepted() -> None:
    cron = "0" * (TEXT_CHARS_MAX - 8) + " * * * *"
    assert len(cron) == TEXT_CHARS_MAX
    assert parse_cron(cron) == parse_cron("0 * * * *")


@pytest.mark.parametrize("other", ["0\t0\t*\t*\t7", "  0 0  *  * 0 \t", "00 0 ? * sun", "0,0 0 * jan-dec 7"])
def test_rules_of_one_meaning_are_equal(other: str) -> None:
    rule = parse_cron("0 0 * * 7")
    assert parse_cron(other) == rule
    assert hash(parse_cron(other)) == hash(rule)


def test_rule_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        parse_cron("* * * * *").minutes = 0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        # 2024-09-01 was a Sunday.
        ("0 0 1 * mon", ["2024-09-01", "2024-09-02", "2024-09-09", "2024-09-16"]),
        ("0 0 1,15 * wed", ["2024-09-01", "2024-09-04", "2024-09-11", "2024-09-15"]),
        ("0 0 */2 * 1", ["2024-09-09", "2024-09-23", "2024-10-07", "2024-10-21"]),
        ("0 0 13 * */5", ["2024-09-13", "2024-10-13", "2024-12-13", "2025-04-13"]),
        ("0 0 ? * mon", ["2024-09-02", "2024-09-09", "2024-09-16", "2024-09-23"]),
        ("0 0 31 2 1", ["2025-02-03", "2025-02-10", "2025-02-17", "2025-02-24"]),
        ("0 0 31 * *", ["2024-10-31", "2024-12-31", "2025-01-31", "2025-03-31"]),
    ],
)
def test_day_fields_combine_as_in_debian(cron: str, expected: list[str]) -> None:
    found = upcoming(cron, "UTC", "2024-08-31T12:00Z", len(expected))
    assert found == [f"{day}T00:00+00:00" for day in expected]


def test_leap_day_skips_year_2100() -> None:
    assert upcoming("0 0 29 2 *", "UTC", "2092-03-01T00:00Z", 2) == [
        "2096-02-29T00:00+00:00",
        "2104-02-29T00:00+00:00",
    ]
    assert upcoming("0 0 29 2 *", "Europe/Berlin", "2096-02-29T00:00Z") == ["2104-02-29T00:00+01:00"]


def test_rare_leap_sunday_is_found() -> None:
    assert upcoming("0 0 29 2 */7", "America/New_York", "2088-03-01T00:00Z") == ["2128-02-29T00:00-05:00"]


@pytest.mark.parametrize(
    ("cron", "zone_name", "after", "gap", "expected"),
    [
        # A fixed time inside the gap runs once, at its end; the night after is as always.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2024-03-30T12:00Z",
            "auto",
            ["2024-03-31T03:00+02:00", "2024-04-01T02:30+02:00"],
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2024-03-30T12:00Z",
            "skip",
            ["2024-04-01T02:30+02:00", "2024-04-02T02:30+02:00"],
        ),
        (
            "30 2 * * *",
            "America/New_York",
            "2024-03-09T12:00Z",
            "auto",
            ["2024-03-10T03:00-04:00", "2024-03-11T02:30-04:00"],
        ),
        (
            "30 1 * * *",
            "Europe/London",
            "2024-03-30T12:00Z",
            "auto",
            ["2024-03-31T02:00+01:00", "2024-04-01T01:30+01:00"],
        ),
        # The gap of Lord Howe is 02:00 to 02:30.
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2024-10-05T00:00Z",
            "auto",
            ["2024-10-06T02:30+11:00", "2024-10-07T02:15+11:00"],
        ),
        (
            "30 2 * * *",
            "Australia/Lord_Howe",
            "2024-10-05T00:00+10:30",
            "skip",
            ["2024-10-05T02:30+10:30", "2024-10-06T02:30+11:00"],
        ),
        # Several nominal times in one gap, and one at its end, are one instant.
        (
            "0,15,30 2 * * *",
            "Europe/Berlin",
            "2024-03-30T12:00Z",
            "auto",
            ["2024-03-31T03:00+02:00", "2024-04-01T02:00+02:00"],
        ),
        (
            "30 2,3 * * *",
            "Europe/Berlin",
            "2024-03-30T12:00Z",
            "auto",
            ["2024-03-31T03:00+02:00", "2024-03-31T03:30+02:00"],
        ),
        (
            "0 2,3 * * *",
            "Europe/Berlin",
            "2024-03-30T12:00Z",
            "auto",
            ["2024-03-31T03:00+02:00", "2024-04-01T02:00+02:00"],
        ),
        (
            "0,15,30 2 * * *",
            "Australia/Lord_Howe",
            "2024-10-05T02:30+10:30",
            "auto",
            ["2024-10-06T02:30+11:00", "2024-10-07T02:00+11:00"],
        ),
        # Midnight that does not exist.
        (
            "0 0 * * *",
            "Africa/Cairo",
            "2023-04-27T12:00Z",
            "auto",
            ["2023-04-28T01:00+03:00", "2023-04-29T00:00+03:00"],
        ),
        (
            "0 0 * * *",
            "America/Santiago",
            "2024-09-07T12:00Z",
            "auto",
            ["2024-09-08T01:00-03:00", "2024-09-09T00:00-03:00"],
        ),
        (
            "0 0 * * *",
            "Asia/Beirut",
            "2024-03-30T12:00Z",
            "auto",
            ["2024-03-31T01:00+03:00", "2024-04-01T00:00+03:00"],
        ),
        (
            "0 0 * * *",
            "Asia/Beirut",
            "2024-03-30T12:00Z",
            "skip",
            ["2024-04-01T00:00+03:00", "2024-04-02T00:00+03:00"],
        ),
        # A day that does not exist.
        (
            "0 9 * * *",
            "Pacific/Apia",
            "2011-12-29T12:00-10:00",
            "auto",
            ["2011-12-31T00:00+14:00", "2011-12-31T09:00+14:00"],
        ),
        (
            "0 9 * * *",
            "Pacific/Apia",
            "2011-12-29T12:00-10:00",
            "skip",
            ["2011-12-31T09:00+14:00", "2012-01-01T09:00+14:00"],
        ),
        (
            "0 9 30 12 *",
            "Pacific/Apia",
            "2011-12-29T12:00-10:00",
            "auto",
            ["2011-12-31T00:00+14:00", "2012-12-30T09:00+14:00"],
        ),
        ("0 9 30 12 *", "Pacific/Apia", "2011-12-29T12:00-10:00", "skip", ["2012-12-30T09:00+14:00"]),
        # Elapsed time passes over a gap as if it were not there.
        (
            "*/30 * * * *",
            "Europe/Berlin",
            "2024-03-31T00:30Z",
            "auto",
            ["2024-03-31T03:00+02:00", "2024-03-31T03:30+02:00"],
        ),
        (
            "0 */2 * * *",
            "Europe/Berlin",
            "2024-03-31T00:30Z",
            "auto",
            ["2024-03-31T04:00+02:00", "2024-03-31T06:00+02:00"],
        ),
        (
            "0 */2 * * *",
            "Europe/Berlin",
            "2024-03-31T00:30Z",
            "run",
            ["2024-03-31T03:00+02:00", "2024-03-31T04:00+02:00"],
        ),
        # Offsets that changed for good: Pyongyang at 23:30 on 2018-05-04.
        (
            "45 23 * * *",
            "Asia/Pyongyang",
            "2018-05-04T12:00Z",
            "auto",
            ["2018-05-05T00:00+09:00", "2018-05-05T23:45+09:00"],
        ),
    ],
)
def test_gap_follows_its_policy(cron: str, zone_name: str, after: str, gap: Gap, expected: list[str]) -> None:
    assert upcoming(cron, zone_name, after, len(expected), gap=gap) == expected


@pytest.mark.parametrize(
    ("cron", "zone_name", "after", "fold", "expected"),
    [
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2024-10-26T12:00Z",
            "auto",
            ["2024-10-27T02:30+02:00", "2024-10-28T02:30+01:00"],
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2024-10-26T12:00Z",
            "first",
            ["2024-10-27T02:30+02:00", "2024-10-28T02:30+01:00"],
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2024-10-26T12:00Z",
            "last",
            ["2024-10-27T02:30+01:00", "2024-10-28T02:30+01:00"],
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2024-10-26T12:00Z",
            "both",
            ["2024-10-27T02:30+02:00", "2024-10-27T02:30+01:00"],
        ),
        (
            "30 1 * * *",
            "America/New_York",
            "2024-11-02T12:00Z",
            "auto",
            ["2024-11-03T01:30-04:00", "2024-11-04T01:30-05:00"],
        ),
        # 02:30 comes once that night in New York.
        (
            "30 2 * * *",
            "America/New_York",
            "2024-11-02T12:00Z",
            "both",
            ["2024-11-03T02:30-05:00", "2024-11-04T02:30-05:00"],
        ),
        # The fold of Lord Howe is 01:30 to 02:00.
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2024-04-06T00:00Z",
            "auto",
            ["2024-04-07T01:45+11:00", "2024-04-08T01:45+10:30"],
        ),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2024-04-06T00:00Z",
            "both",
            ["2024-04-07T01:45+11:00", "2024-04-07T01:45+10:30"],
        ),
        # Its two ends: 02:00 comes again at the change, 03:00 does not.
        (
            "0 2 * * *",
            "Europe/Berlin",
            "2024-10-26T12:00Z",
            "last",
            ["2024-10-27T02:00+01:00", "2024-10-28T02:00+01:00"],
        ),
        (
            "0 3 * * *",
            "Europe/Berlin",
            "2024-10-26T12:00Z",
            "both",
            ["2024-10-27T03:00+01:00", "2024-10-28T03:00+01:00"],
        ),
        # Midnight that comes twice.
        (
            "0 0 * * *",
            "America/Havana",
            "2024-11-02T12:00Z",
            "auto",
            ["2024-11-03T00:00-04:00", "2024-11-04T00:00-05:00"],
        ),
        (
            "0 0 * * *",
            "Atlantic/Azores",
            "2024-10-26T12:00Z",
            "auto",
            ["2024-10-27T00:00+00:00", "2024-10-28T00:00-01:00"],
        ),
        # From the second pass on, the first is over.
        ("30 2 * * *", "Europe/Berlin", "2024-10-27T02:00+01:00", "auto", ["2024-10-28T02:30+01:00"]),
        ("30 2 * * *", "Europe/Berlin", "2024-10-27T02:00+01:00", "last", ["2024-10-27T02:30+01:00"]),
        # Elapsed time does not pause.
        (
            "*/15 * * * *",
            "Europe/Berlin",
            "2024-10-27T02:30+02:00",
            "auto",
            ["2024-10-27T02:45+02:00", "2024-10-27T02:00+01:00", "2024-10-27T02:15+01:00"],
        ),
        (
            "0 */2 * * *",
            "Europe/Berlin",
            "2024-10-27T01:00+02:00",
            "auto",
            ["2024-10-27T02:00+02:00", "2024-10-27T02:00+01:00"],
        ),
        ("*/15 * * * *", "Europe/Berlin", "2024-10-27T02:45+02:00", "first", ["2024-10-27T03:00+01:00"]),
        ("*/15 * * * *", "Europe/Berlin", "2024-10-27T01:45+02:00", "last", ["2024-10-27T02:00+01:00"]),
    ],
)
def test_fold_follows_its_policy(
    cron: str, zone_name: str, after: str, fold: Fold, expected: list[str]
) -> None:
    assert upcoming(cron, zone_name, after, len(expected), fold=fold) == expected


def test_five_minutes_stay_five_minutes_through_changes() -> None:
    rule = parse_cron("*/5 * * * *")
    for day in ("2024-03-31", "2024-10-27"):
        start = instant(f"{day}T00:00Z")
        found = instants_between(rule, "Europe/Berlin", start, Instant(start + 86_400_000), 1000)
        assert found == [start + n * 300_000 for n in range(1, 289)]


def test_known_wrong_answers_of_croniter_are_right() -> None:
    berlin = "Europe/Berlin"
    assert upcoming("30 1 * * *", berlin, "2025-03-30T01:45+01:00") == ["2025-03-31T01:30+02:00"]
    assert upcoming("0 0 * * *", berlin, "2025-10-26T00:00:01+02:00") == ["2025-10-27T00:00+01:00"]


def test_next_is_strictly_after_to_the_millisecond() -> None:
    rule, due = parse_cron("0 9 * * *"), instant("2025-01-01T09:00Z")
    assert next_instant(rule, "UTC", Instant(due - 1)) == due
    assert next_instant(rule, "UTC", due) == due + 86_400_000
    assert next_instant(rule, "UTC", Instant(due + 1)) == due + 86_400_000
    gap_end = instant("2024-03-31T01:00Z")
    rule = parse_cron("30 2 * * *")
    assert next_instant(rule, "Europe/Berlin", Instant(gap_end - 1)) == gap_end
    assert next_instant(rule, "Europe/Berlin", gap_end) == instant("2024-04-01T02:30+02:00")


def test_between_takes_until_but_not_after() -> None:
    rule, start = parse_cron("0 * * * *"), instant("2025-01-01T00:00Z")
    hours = [Instant(start + n * 3_600_000) for n in range(6)]
    assert instants_between(rule, "UTC", hours[0], hours[3], 100) == hours[1:4]
    assert instants_between(rule, "UTC", hours[0], Instant(hours[3] - 1), 100) == hours[1:3]
    assert instants_between(rule, "UTC", hours[0], hours[5], 2) == hours[1:3]
    assert instants_between(rule, "UTC", hours[0], hours[5], 0) == []
    assert instants_between(rule, "UTC", hours[0], hours[0], 5) == []


def test_none_comes_at_or_after_the_end() -> None:
    rule = parse_cron("* * * * *")
    for zone_name in ("UTC", "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Pago_Pago"):
        last = next_instant(rule, zone_name, Instant(INSTANT_MAX - 60_001))
        assert last == INSTANT_MAX - 60_000
        assert next_instant(rule, zone_name, last) is None
        assert next_instant(rule, zone_name, Instant(10**18)) is None
    assert next_instant(parse_cron("0 0 29 2 *"), "UTC", instant("2196-02-29T00:00Z")) is None


@pytest.mark.parametrize("zone_name", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_nothing_comes_before_the_epoch(zone_name: str) -> None:
    assert next_instant(parse_cron("* * * * *"), zone_name, Instant(-(10**15))) == INSTANT_MIN


def test_wall_clock_with_odd_seconds_is_followed() -> None:
    # Until 1972-01-07 Monrovia was 44 min 30 s behind.
    assert next_instant(parse_cron("0 * * * *"), "Africa/Monrovia", INSTANT_MIN) == (44 * 60 + 30) * 1000


def test_unknown_policies_and_zones_are_refused() -> None:
    rule, at = parse_cron("* * * * *"), INSTANT_MIN
    with pytest.raises(ScheduleError) as caught:
        next_instant(rule, "UTC", at, gap="later")  # type: ignore[arg-type]
    assert caught.value.field == "gap"
    with pytest.raises(ScheduleError) as caught:
        instants_between(rule, "UTC", at, at, 1, fold="second")  # type: ignore[arg-type]
    assert caught.value.field == "fold"
    with pytest.raises(ScheduleError) as caught:
        previous_instant(rule, "UTC", at, gap="later")  # type: ignore[arg-type]
    assert caught.value.field == "gap"
    with pytest.raises(ScheduleError) as caught:
        parse_cron("* * * * *", day_match="xor")  # type: ignore[arg-type]
    assert caught.value.field == "day_match"
    with pytest.raises(ScheduleError) as caught:
        next_instant(rule, "Mars/Phobos", at)
    assert caught.value.field == "zone"
