"""The forms of the schedule language beyond five plain fields."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice

import pytest

from minutebook.errors import ScheduleError
from minutebook.schedule import (
    ANY_JOB,
    INSTANT_MAX,
    INSTANT_MIN,
    Cron,
    CronRule,
    Every,
    is_hashed,
    next_instant,
    parse_cron,
    parse_schedule,
    previous_instant,
    zone,
)
from minutebook.schedule.rule import values_of

END = datetime(2199, 12, 1, tzinfo=UTC)


def upcoming(cron: Cron, after: str, count: int) -> list[str]:
    """The next instants after an ISO text, on the wall clock of the zone, without seconds that are 0."""
    there = zone(cron.zone)
    found: Iterator[datetime] = islice(cron.between(datetime.fromisoformat(after), END), count)
    return [at.astimezone(there).isoformat().replace(":00+", "+").replace(":00-", "-") for at in found]


def days(cron: Cron, after: str, count: int) -> list[str]:
    return [at[:10] for at in upcoming(cron, after, count)]


# ---- seconds and years


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        ("* * * * * *", "2025-01-01T00:00:00Z", ["00:00:01", "00:00:02", "00:00:03"]),
        ("*/20 * * * * *", "2025-01-01T00:00:00Z", ["00:00:20", "00:00:40", "00:01:00"]),
        ("5,10 59 23 * * *", "2025-01-01T23:59:05Z", ["23:59:10", "23:59:05", "23:59:10"]),
        ("30 0 12 * * ?", "2025-01-01T12:00:29Z", ["12:00:30", "12:00:30"]),
        ("0 30 2 * * *", "2025-01-01T00:00:00Z", ["02:30:00", "02:30:00"]),
    ],
)
@pytest.mark.row("C17")
def test_six_fields_begin_with_the_second(cron: str, after: str, expected: list[str]) -> None:
    found = islice(Cron(cron).between(datetime.fromisoformat(after), END), len(expected))
    assert [at.time().isoformat() for at in found] == expected


def test_six_fields_at_second_zero_are_five() -> None:
    assert parse_cron("0 */5 2 L * MON#1") == parse_cron("*/5 2 L * MON#1") == parse_cron("0 */5 2 L * 1#1 *")


def test_seven_fields_end_with_the_year() -> None:
    found = days(Cron("0 0 0 1 1 * 2026,2030/100"), "2025-06-01T00:00Z", 5)
    assert found == ["2026-01-01", "2030-01-01", "2130-01-01"]


def test_schedule_without_instants_left_says_so() -> None:
    cron = Cron("0 0 12 1 6 ? 2025", "Europe/Berlin")
    due = datetime(2025, 6, 1, 10, tzinfo=UTC)
    assert cron.next(due - timedelta(seconds=1)) == due
    assert cron.next(due) is None
    assert cron.previous(due + timedelta(seconds=1)) == due
    assert cron.previous(due) is None
    assert list(cron.between(due, END)) == []


def test_last_pass_of_a_year_is_not_lost() -> None:
    cron = Cron("0 30 2 26 10 ? 2025", "Europe/Berlin", fold="both")
    assert upcoming(cron, "2025-01-01T00:00Z", 3) == ["2025-10-26T02:30+02:00", "2025-10-26T02:30+01:00"]
    assert cron.previous(END) == datetime(2025, 10, 26, 1, 30, tzinfo=UTC)


# ---- days


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        ("0 0 L * *", "2025-01-15T00:00Z", ["2025-01-31", "2025-02-28", "2025-03-31", "2025-04-30"]),
        ("0 0 l 2 *", "2027-01-01T00:00Z", ["2027-02-28", "2028-02-29"]),
        ("0 0 L-3 * *", "2025-01-15T00:00Z", ["2025-01-28", "2025-02-25", "2025-03-28"]),
        ("0 0 L-30 * *", "2025-01-15T00:00Z", ["2025-03-01", "2025-05-01", "2025-07-01"]),
        ("0 0 L,15 * *", "2025-01-15T00:00Z", ["2025-01-31", "2025-02-15", "2025-02-28"]),
        # 31 May 2025 was a Saturday, 31 August a Sunday, 30 November a Sunday.
        ("0 0 LW 5,8,11,12 *", "2025-01-15T00:00Z", ["2025-05-30", "2025-08-29", "2025-11-28", "2025-12-31"]),
        # 15 February 2025 was a Saturday, 15 June a Sunday.
        ("0 0 15W 1,2,6 *", "2025-01-01T00:00Z", ["2025-01-15", "2025-02-14", "2025-06-16"]),
        # 1 February 2025 was a Saturday, 1 June a Sunday: never moved into another month.
        ("0 0 1w 2,6 *", "2025-01-15T00:00Z", ["2025-02-03", "2025-06-02"]),
        ("0 0 31W * *", "2025-04-01T00:00Z", ["2025-05-30", "2025-07-31", "2025-08-29", "2025-10-31"]),
        # 31 November 2024 would have been a Sunday.
        ("0 0 31W * *", "2024-10-31T00:00Z", ["2024-12-31", "2025-01-31"]),
        ("0 0 28W,29W 2 *", "2026-01-01T00:00Z", ["2026-02-27", "2027-02-26", "2028-02-28", "2028-02-29"]),
        ("0 0 * * 5L", "2025-01-01T00:00Z", ["2025-01-31", "2025-02-28", "2025-03-28"]),
        ("0 0 * * friL", "2025-01-01T00:00Z", ["2025-01-31", "2025-02-28", "2025-03-28"]),
        ("0 0 * * 7L", "2025-01-01T00:00Z", ["2025-01-26", "2025-02-23"]),
        ("0 0 * * MON#1", "2025-01-01T00:00Z", ["2025-01-06", "2025-02-03", "2025-03-03"]),
        ("0 0 * * 0#5", "2025-01-01T00:00Z", ["2025-03-30", "2025-06-29", "2025-08-31"]),
        ("0 0 * * 7#5", "2025-01-01T00:00Z", ["2025-03-30", "2025-06-29", "2025-08-31"]),
        ("0 0 ? * tue#2,5L", "2025-01-01T00:00Z", ["2025-01-14", "2025-01-31", "2025-02-11"]),
        ("0 0 L * mon#1", "2025-01-01T00:00Z", ["2025-01-06", "2025-01-31", "2025-02-03"]),
    ],
)
@pytest.mark.row("C22")
def test_day_forms_name_their_days(cron: str, after: str, expected: list[str]) -> None:
    assert days(Cron(cron), after, len(expected)) == expected
    backwards, at = [], datetime.fromisoformat(expected[-1]).replace(tzinfo=UTC) + timedelta(seconds=1)
    for _ in expected:
        found = Cron(cron).previous(at)
        assert found is not None
        backwards.append(found.date().isoformat())
        at = found
    assert backwards[::-1] == expected


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 0 13 * fri", ["2025-06-13", "2026-02-13", "2026-03-13", "2026-11-13"]),
        ("0 4 1 1 fri", ["2027-01-01", "2038-01-01", "2044-01-01"]),
        ("0 0 25-31 * mon-fri", ["2025-01-27", "2025-01-28", "2025-01-29"]),
    ],
)
@pytest.mark.row("C31")
def test_both_day_fields_must_match_where_asked(cron: str, expected: list[str]) -> None:
    assert days(Cron(cron, day_match="and"), "2025-01-01T12:00Z", len(expected)) == expected


def test_days_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(ScheduleError, match="day-of-week field: no such day of the week among the days"):
        Cron("0 0 1-7 * mon#2", day_match="and")
    assert days(Cron("0 0 1-2 * mon#2"), "2025-01-01T12:00Z", 3) == ["2025-01-02", "2025-01-13", "2025-02-01"]


# ---- macros and intervals


@pytest.mark.parametrize(
    ("macro", "cron"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        (" @Daily ", "0 0 * * *"),
    ],
)
@pytest.mark.row("C26")
def test_macro_stands_for_its_fields(macro: str, cron: str) -> None:
    assert not is_hashed(macro)
    for job_key in (None, "acme/a", "acme/b"):
        assert parse_cron(macro, job_key) == parse_cron(cron)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("@every 1s", 1),
        ("@every 90s", 90),
        ("@Every  1h30m", 5400),
        ("@every 2d1s", 172_801),
        ("@every 366d", 31_622_400),
    ],
)
@pytest.mark.row("C25")
def test_interval_is_a_kind_of_its_own(text: str, seconds: int) -> None:
    assert parse_schedule(text) == Every(seconds * 1000)
    with pytest.raises(ScheduleError, match="is an interval"):
        parse_cron(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("@every 0s", "from 1s to 366d"),
        ("@every 367d", "from 1s to 366d"),
        ("@every 999999999d", "from 1s to 366d"),
        ("@every 1ms", "give whole d, h, m and s"),
        ("@every 1.5s", "give whole d, h, m and s"),
        ("@every -1s", "give whole d, h, m and s"),
        ("@every 9s 1m", "give whole d, h, m and s"),
        ("@every", "give whole d, h, m and s"),
        ("@every \u0661s", "give whole d, h, m and s"),
    ],
)
@pytest.mark.row("C25")
def test_senseless_interval_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ScheduleError, match=reason) as caught:
        parse_schedule(text)
    assert caught.value.field == "cron"


def test_other_texts_are_read_as_cron() -> None:
    assert parse_schedule("H 2 * * *", "acme/a") == parse_cron("H 2 * * *", "acme/a")
    with pytest.raises(ScheduleError, match="empty"):
        parse_schedule("")


# ---- hashed values

# Fixed for ever: a job keeps its time through every release.
KNOWN = {
    ("H H * * *", "acme/nightly"): ([29], [11]),
    ("H H * * *", "acme/weekly"): ([29], [18]),
    ("H(0-29) H(1-4) * * *", "acme/nightly"): ([29], [4]),
    ("H/15 H/6 * * *", "acme/nightly"): ([14, 29, 44, 59], [5, 11, 17, 23]),
    ("H(30-59)/10 3 * * *", "acme/nightly"): ([39, 49, 59], [3]),
}


@pytest.mark.parametrize(("case", "expected"), KNOWN.items(), ids=str)
@pytest.mark.row("C16")
def test_hashed_value_is_fixed_by_the_job(
    case: tuple[str, str], expected: tuple[list[int], list[int]]
) -> None:
    rule = parse_cron(*case)
    assert (values_of(rule.minutes), values_of(rule.hours)) == expected


def test_hashed_values_spread_and_exist_in_every_month() -> None:
    found = [parse_cron("H H H H H", f"acme/{number}") for number in range(2000)]
    assert {values_of(rule.minutes)[0] for rule in found} == set(range(60))
    assert {values_of(rule.hours)[0] for rule in found} == set(range(24))
    assert {values_of(rule.days)[0] for rule in found} == set(range(1, 29))
    assert {values_of(rule.months)[0] for rule in found} == set(range(1, 13))
    assert {values_of(rule.weekdays)[0] for rule in found} == set(range(7))
    # Fields of one job are not the same number again and again.
    assert len({(rule.minutes, rule.seconds) for rule in found}) == 60
    assert len({(rule.minutes, rule.hours) for rule in found}) > 900


def test_any_job_stands_for_all_of_them() -> None:
    rule = parse_cron("H(10-12) H/6 H * *", ANY_JOB)
    assert (values_of(rule.minutes), values_of(rule.hours)) == ([10, 11, 12], list(range(24)))
    assert values_of(rule.days) == list(range(1, 29))
    with pytest.raises(ScheduleError, match="no such day"):
        parse_cron("0 0 H(30-31) 2 *", ANY_JOB)
    assert parse_cron("0 0 H(28-31) 2 *", ANY_JOB)


@pytest.mark.parametrize(
    ("cron", "reason"),
    [
        ("H(0-60) * * * *", "minute field: 60 in '0-60' is not from 0 to 59"),
        ("H(9-5) * * * *", "minute field: '9-5' is a reversed range"),
        ("H(5) * * * *", "minute field: 'H(5)': give H, H(a-b), H/n or H(a-b)/n"),
        ("H/0 * * * *", "minute field: the step in 'H/0' is zero"),
        ("H/61 * * * *", "minute field: the step in 'H/61' is larger than its range, 0-59"),
        ("H(0-9)/x * * * *", "minute field: the step in 'H(0-9)/x' is not a number"),
    ],
)
def test_senseless_hash_is_refused(cron: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_cron(cron, "acme/nightly")
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "cron", ["0 0 * * THU", "0 0 1 MAR *", "@hourly", "@monthly", "0 0 * * *", "", "H" * 257]
)
def test_names_with_an_h_are_not_hashed(cron: str) -> None:
    assert not is_hashed(cron)


@pytest.mark.parametrize("cron", ["H 0 * * *", "0 h * * *", "0 0 1,H * *", "H/5 * * * *", "H(1-2) * * * *"])
def test_expressions_with_an_h_are_hashed(cron: str) -> None:
    assert is_hashed(cron)


# ---- aware datetimes


def test_cron_takes_and_gives_aware_datetimes() -> None:
    cron = Cron("30 2 * * *", zone="Europe/Berlin", gap="auto", fold="auto", day_match="or", job_key=None)
    at = datetime(2025, 1, 1, 4, tzinfo=timezone(timedelta(hours=5)))
    found = cron.next(at)
    assert found == datetime(2025, 1, 1, 1, 30, tzinfo=UTC)
    assert found.tzinfo is UTC
    assert cron.previous(found) == datetime(2024, 12, 31, 1, 30, tzinfo=UTC)


def test_between_takes_the_end_but_not_the_start() -> None:
    cron = Cron("0 * * * *")
    start = datetime(2025, 1, 1, tzinfo=UTC)
    hours = [start + n * timedelta(hours=1) for n in range(4)]
    assert list(cron.between(hours[0], hours[3])) == hours[1:]
    assert list(cron.between(hours[0], hours[3] - timedelta(microseconds=1))) == hours[1:3]
    assert list(cron.between(hours[3], hours[0])) == []


def test_microseconds_are_not_rounded_over_an_instant() -> None:
    cron, due = Cron("0 9 * * *"), datetime(2025, 1, 1, 9, tzinfo=UTC)
    day, micro = timedelta(days=1), timedelta(microseconds=1)
    assert [cron.next(due - micro), cron.next(due), cron.next(due + micro)] == [due, due + day, due + day]
    assert [cron.previous(due + micro), cron.previous(due), cron.previous(due - micro)] == [
        due,
        due - day,
        due - day,
    ]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"expression": "60 * * * *"}, "cron"),
        ({"zone": "Mars/Phobos"}, "zone"),
        ({"gap": "later"}, "gap"),
        ({"fold": "second"}, "fold"),
        ({"day_match": "xor"}, "day_match"),
        ({"expression": "H * * * *"}, "cron"),
    ],
)
def test_refused_schedule_names_the_field(arguments: dict[str, str], field: str) -> None:
    with pytest.raises(ValueError) as caught:
        Cron(**({"expression": "* * * * *"} | arguments))  # type: ignore[arg-type]
    assert isinstance(caught.value, ScheduleError)
    assert caught.value.field == field
    assert caught.value.reason


def test_naive_datetimes_are_refused() -> None:
    cron, naive = Cron("* * * * *"), datetime(2025, 1, 1)
    for name, call in (
        ("after", lambda: cron.next(naive)),
        ("before", lambda: cron.previous(naive)),
        ("start", lambda: cron.between(naive, END)),
        ("end", lambda: cron.between(END, naive)),
    ):
        with pytest.raises(ScheduleError, match="aware") as caught:
            call()
        assert caught.value.field == name


def test_schedules_of_one_meaning_share_their_rule() -> None:
    assert Cron("30 2 * * *", "Europe/Berlin").rule is Cron("30 2 * * *", "Asia/Tokyo").rule
    assert Cron("30 2 * * *") == Cron("30 2 * * *")


# ---- the ends of time


def test_previous_knows_the_ends_of_time() -> None:
    rule: CronRule = parse_cron("* * * * * *")
    for zone_name in ("UTC", "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Pago_Pago"):
        assert previous_instant(rule, zone_name, INSTANT_MIN) is None
        assert previous_instant(rule, zone_name, INSTANT_MAX) == INSTANT_MAX - 1000
        assert previous_instant(rule, zone_name, type(INSTANT_MAX)(10**18)) == INSTANT_MAX - 1000
        second = next_instant(rule, zone_name, INSTANT_MIN)
        assert second is not None
        assert previous_instant(rule, zone_name, second) == INSTANT_MIN
        assert previous_instant(rule, zone_name, type(INSTANT_MIN)(1)) == INSTANT_MIN
