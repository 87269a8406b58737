"""Plans of recurring jobs: start, end, dates, intervals, and how many instants there are."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from minutebook.errors import ScheduleError
from minutebook.schedule import (
    INSTANT_MAX,
    CronRule,
    Dates,
    Every,
    Fold,
    Gap,
    Plan,
    parse_cron,
    parse_schedule,
)

DAY_MS = 86_400_000
FAR = INSTANT_MAX


def at(text: str) -> int:
    """Milliseconds of an instant in UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1000


def day(text: str) -> int:
    return date.fromisoformat(text).toordinal() - date(1970, 1, 1).toordinal()


def shown(instants: list[int]) -> list[str]:
    return [datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S") for at in instants]


def only(*days: str) -> Dates:
    return Dates([], [(day(text), day(text)) for text in days])


def without(*days: str) -> Dates:
    return Dates([(day(text), day(text)) for text in days], None)


def all_ways(plan: Plan, after: int, until: int) -> list[int]:
    """The instants from each way to ask for them, which agree."""
    found = list(plan.each(after, until))
    assert plan.between(after, until, len(found) + 1) == found
    assert plan.latest(until, len(found) + 1, after) == found
    assert plan.count(after, until) == len(found)
    assert all(map(plan.allows, found))
    return found


# ---- start and end


def test_start_is_the_first_moment_and_end_is_none_any_more() -> None:
    plan = Plan(parse_cron("0 * * * *"), start_at=at("2030-01-01T09:00"), end_at=at("2030-01-01T12:00"))
    expected = ["2030-01-01T09:00:00", "2030-01-01T10:00:00", "2030-01-01T11:00:00"]
    assert shown(all_ways(plan, 0, FAR)) == expected
    assert plan.next(at("2030-01-01T11:00")) is None
    assert plan.previous(at("2030-01-01T09:00")) is None
    assert plan.allows(at("2030-01-01T09:00"))
    assert not plan.allows(at("2030-01-01T09:00") - 1)
    assert plan.allows(at("2030-01-01T12:00") - 1)
    assert not plan.allows(at("2030-01-01T12:00"))


def test_end_at_or_before_the_start_leaves_nothing() -> None:
    for end in ("2030-01-01T09:00", "2029-01-01T00:00"):
        plan = Plan(parse_cron("* * * * *"), start_at=at("2030-01-01T09:00"), end_at=at(end))
        assert all_ways(plan, 0, FAR) == []
        assert plan.next(0) is None
        assert plan.previous(FAR) is None


def test_instants_lie_between_1970_and_2200() -> None:
    plan = Plan(parse_cron("0 0 1 1 *"), start_at=-(1 << 60), end_at=1 << 60)
    assert plan.next(-(1 << 60)) == 0
    assert plan.previous(1 << 60) == at("2199-01-01T00:00")
    assert plan.count(-(1 << 60), 1 << 60) == 230
    assert plan.next(at("2199-01-01T00:00")) is None


def test_bounds_between_two_seconds_are_kept_to_the_millisecond() -> None:
    plan = Plan(parse_cron("* * * * * *"), start_at=1_001, end_at=4_001)
    assert all_ways(plan, -5, 10_000) == [2_000, 3_000, 4_000]
    assert all_ways(plan, 2_000, 3_999) == [3_000]


# ---- intervals


def test_interval_counts_from_its_anchor_for_ever() -> None:
    plan = Plan(parse_schedule("@every 90s"), anchor_at=1_234)
    assert plan.between(-1, FAR, 3) == [1_234, 91_234, 181_234]
    assert plan.next(91_234) == 181_234
    assert plan.previous(91_234) == 1_234
    assert plan.previous(1_234) is None
    assert all_ways(plan, 1_234, 181_234) == [91_234, 181_234]
    assert plan.count(-1, FAR) == len(range(1_234, FAR, 90_000))


def test_interval_has_no_instant_before_its_anchor() -> None:
    plan = Plan(Every(60_000), anchor_at=at("2030-01-02T00:00"))
    before = at("2030-01-01T00:00")
    assert plan.next(before) == at("2030-01-02T00:00")
    assert plan.count(before, at("2030-01-01T12:00")) == 0
    assert plan.count(before, at("2030-01-02T00:01")) == 2


def test_interval_keeps_its_anchor_whatever_its_start() -> None:
    plan = Plan(Every(3_600_000), anchor_at=at("2030-01-01T00:10"), start_at=at("2030-01-01T05:00"))
    assert shown(plan.between(0, FAR, 2)) == ["2030-01-01T05:10:00", "2030-01-01T06:10:00"]


def test_interval_has_the_dates_of_its_zone() -> None:
    plan = Plan(
        Every(6 * 3_600_000), "Asia/Tokyo", anchor_at=at("2030-01-01T00:00"), dates=only("2030-01-02")
    )
    assert shown(all_ways(plan, 0, FAR)) == [
        "2030-01-01T18:00:00",
        "2030-01-02T00:00:00",
        "2030-01-02T06:00:00",
        "2030-01-02T12:00:00",
    ]


def test_last_repeat_of_a_day_may_lie_in_its_last_second() -> None:
    plan = Plan(Every(1_000), anchor_at=at("2030-01-01T00:00") + 500, dates=only("2030-01-02"))
    assert plan.previous(at("2030-01-09T00:00")) == at("2030-01-03T00:00") - 500
    assert plan.count(0, FAR) == 86_400


# ---- dates


def test_dates_are_those_of_the_wall_clock() -> None:
    plan = Plan(parse_cron("0 */12 * * *"), "America/New_York", dates=without("2030-07-04"))
    found = all_ways(plan, at("2030-07-03T15:00"), at("2030-07-05T16:00"))
    assert shown(found) == ["2030-07-03T16:00:00", "2030-07-05T04:00:00", "2030-07-05T16:00:00"]


def test_instant_moved_out_of_a_gap_has_the_date_on_which_the_gap_ends() -> None:
    # In Apia there was no 2011-12-30: the clock went from the end of the 29th to the 31st.
    rule, after, until = parse_cron("30 9 30 12 *"), at("2011-12-01T00:00"), at("2012-01-31T00:00")
    for dates, expected in (
        (without("2011-12-30"), ["2011-12-30T10:00:00"]),
        (only("2011-12-31"), ["2011-12-30T10:00:00"]),
        (without("2011-12-31"), []),
        (only("2011-12-30"), []),
    ):
        assert shown(all_ways(Plan(rule, "Pacific/Apia", "run", dates=dates), after, until)) == expected


def test_date_that_returns_when_the_clock_is_set_back_is_left_out_twice() -> None:
    # St. John's, 2006-10-29: at 00:01 the clock goes back to 23:01 of the 28th.
    rule, after, until = parse_cron("*/30 * * * *"), at("2006-10-29T01:45"), at("2006-10-29T03:45")
    every = ["02:00:00", "02:30:00", "03:00:00", "03:30:00"]
    of_day = {"2006-10-28": ["02:00:00", "03:00:00"], "2006-10-29": ["02:30:00", "03:30:00"]}
    whole = Plan(rule, "America/St_Johns")
    assert shown(all_ways(whole, after, until)) == ["2006-10-29T" + time for time in every]
    for name, times in of_day.items():
        plan = Plan(rule, "America/St_Johns", dates=only(name))
        assert shown(all_ways(plan, after, until)) == ["2006-10-29T" + time for time in times]


def test_leap_over_a_clock_change_ends_on_the_other_clock() -> None:
    plan = Plan(parse_cron("30 0,23 * * *"), "Europe/Berlin", dates=only("2024-03-20", "2024-04-10"))
    found = all_ways(plan, at("2024-03-01T00:00"), at("2024-05-01T00:00"))
    assert shown(found) == [
        "2024-03-19T23:30:00",
        "2024-03-20T22:30:00",
        "2024-04-09T22:30:00",
        "2024-04-10T21:30:00",
    ]


def test_no_instant_is_found_where_no_date_is_left() -> None:
    now = at("2030-01-01T00:00")
    scattered = [(first, first + 3) for first in range(day("2030-01-01"), day("2049-01-01"), 7)]
    past = Dates([], [(0, day("2029-12-31"))])
    for rule in (parse_cron("* * * * * *"), Every(1_000)):
        assert Plan(rule, "Europe/Berlin", dates=past).next(now) is None
        assert Plan(rule, "Europe/Berlin", dates=Dates([], [])).next(now) is None
        assert Plan(rule, "Europe/Berlin", dates=Dates([], [])).previous(now) is None
        found = Plan(rule, "Europe/Berlin", dates=Dates(scattered, None)).next(now)
        assert found == at("2030-01-04T23:00")


# ---- how many


@pytest.mark.parametrize(
    ("cron", "zone", "gap", "fold", "after", "until", "count"),
    [
        ("* * * * * *", "UTC", "auto", "auto", "2020-01-01T00:00", "2030-01-01T00:00", 3653 * 86_400),
        ("* * * * * *", "Europe/Berlin", "auto", "auto", "2020-01-01", "2030-01-01", 3653 * 86_400),
        ("* * * * * *", "Europe/Berlin", "skip", "first", "2020-01-01", "2030-01-01", 3653 * 86_400 - 36_000),
        ("30 2 * * *", "Europe/Berlin", "run", "first", "2020-01-01", "2030-01-01", 3653),
        ("30 2 * * *", "Europe/Berlin", "skip", "both", "2020-01-01", "2030-01-01", 3653),
        ("30 2 * * *", "Europe/Berlin", "skip", "last", "2020-01-01", "2030-01-01", 3643),
        ("0,30 2 * * *", "Europe/Berlin", "run", "first", "2024-03-30T12:00", "2024-03-31T12:00", 1),
        # The gap's end is itself a time of the rule: still once.
        ("0 2,3 * * *", "Europe/Berlin", "run", "first", "2024-03-30T12:00", "2024-03-31T12:00", 1),
        ("0 2,3 * * *", "Europe/Berlin", "run", "first", "2024-03-30T12:00", "2024-03-31T01:00", 1),
        ("0 2,3 * * *", "Europe/Berlin", "run", "first", "2024-03-30T12:00", "2024-03-31T00:59", 0),
        ("0 0 29 2 *", "UTC", "auto", "auto", "1970-01-01", "2199-12-31", 56),
        ("30 12 * * 5L", "Australia/Lord_Howe", "auto", "auto", "2024-01-01", "2026-01-01", 24),
        ("0 0 0 1 1 ? 2024/2", "UTC", "auto", "auto", "2020-01-01", "2030-01-02", 4),
    ],
)
def test_instants_are_counted(
    cron: str, zone: str, gap: Gap, fold: Fold, after: str, until: str, count: int
) -> None:
    assert Plan(parse_cron(cron), zone, gap, fold).count(at(after), at(until)) == count


def test_count_leaves_out_dates_that_are_not_allowed() -> None:
    plan = Plan(
        parse_cron("* * * * * *"),
        "Europe/Berlin",
        dates=Dates([(day("2024-12-24"), day("2024-12-26")), (day("2024-03-31"), day("2024-03-31"))], None),
    )
    # 2024 has 366 days of 86,400 s on average; the day of the change to summer time has 23 hours.
    year = (at("2023-12-31T23:00") - 1, at("2024-12-31T23:00") - 1)
    assert plan.count(*year) == 366 * 86_400 - 3 * 86_400 - 23 * 3_600


def test_latest_are_the_last_ones_ascending() -> None:
    plan = Plan(parse_cron("0 * * * *"))
    until = at("2030-01-01T12:30")
    assert shown(plan.latest(until, 2, 0)) == ["2030-01-01T11:00:00", "2030-01-01T12:00:00"]
    assert shown(plan.latest(at("2030-01-01T12:00"), 5, at("2030-01-01T11:00"))) == ["2030-01-01T12:00:00"]
    assert plan.latest(until, 0, 0) == []


# ---- what makes a plan


@pytest.mark.parametrize(
    ("zone", "gap", "fold", "field"),
    [
        ("Europe/Nowhere", "auto", "auto", "zone"),
        ("UTC", "jump", "auto", "gap"),
        ("UTC", "auto", "no", "fold"),
    ],
)
@pytest.mark.parametrize("rule", [parse_cron("@daily"), Every(60_000)])
def test_plan_refuses_what_it_does_not_know(
    rule: CronRule | Every, zone: str, gap: Gap, fold: Fold, field: str
) -> None:
    with pytest.raises(ScheduleError) as caught:
        Plan(rule, zone, gap, fold)
    assert caught.value.field == field


def test_equal_plans_are_one_key() -> None:
    plans = {Plan(parse_cron("@daily"), dates=without("2030-01-01")) for _ in range(2)}
    assert len(plans) == 1
    assert Plan(parse_cron("@daily")) != Plan(parse_cron("@daily"), end_at=5)
