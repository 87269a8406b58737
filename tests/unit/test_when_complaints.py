"""Complaints that people have brought to other schedulers, and when such a job runs here.

Each row is one complaint: zone, expression, the moment from which it is asked, what was chosen for gap, fold and day
fields, and the next instants, on the wall clock and in UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

import pytest

from minutebook.schedule import INSTANT_MAX, Cron, DayMatch, Fold, Gap, Plan, zone

END = datetime(2199, 12, 1, tzinfo=UTC)


class Asked(NamedTuple):
    """An expression and the instants that must follow: `local = UTC`."""

    zone: str
    cron: str
    after: str
    expected: list[str]
    gap: Gap = "auto"
    fold: Fold = "auto"
    day_match: DayMatch = "or"


# ---- nights on which the clock is moved

NIGHTS: dict[str, Asked] = {
    # Berlin leaves out 02:00 to 03:00 in March and shows it twice in October.
    "half past two was skipped when summer time began": Asked(
        "Europe/Berlin",
        "30 2 * * *",
        "2025-03-29 12:00Z",
        [
            "2025-03-30 03:00+02:00 = 2025-03-30 01:00Z",
            "2025-03-31 02:30+02:00 = 2025-03-31 00:30Z",
        ],
    ),
    "half past two must not run in the night without it": Asked(
        "Europe/Berlin",
        "30 2 * * *",
        "2025-03-29 12:00Z",
        [
            "2025-03-31 02:30+02:00 = 2025-03-31 00:30Z",
            "2025-04-01 02:30+02:00 = 2025-04-01 00:30Z",
        ],
        gap="skip",
    ),
    "half past two ran twice when summer time ended": Asked(
        "Europe/Berlin",
        "30 2 * * *",
        "2025-10-25 12:00Z",
        [
            "2025-10-26 02:30+02:00 = 2025-10-26 00:30Z",
            "2025-10-27 02:30+01:00 = 2025-10-27 01:30Z",
        ],
    ),
    "the second half past two is the right one for us": Asked(
        "Europe/Berlin",
        "30 2 * * *",
        "2025-10-25 12:00Z",
        [
            "2025-10-26 02:30+01:00 = 2025-10-26 01:30Z",
            "2025-10-27 02:30+01:00 = 2025-10-27 01:30Z",
        ],
        fold="last",
    ),
    "we want both of them": Asked(
        "Europe/Berlin",
        "30 2 * * *",
        "2025-10-25 12:00Z",
        [
            "2025-10-26 02:30+02:00 = 2025-10-26 00:30Z",
            "2025-10-26 02:30+01:00 = 2025-10-26 01:30Z",
            "2025-10-27 02:30+01:00 = 2025-10-27 01:30Z",
        ],
        fold="both",
    ),
    "quarter hours paused for an hour in the fold": Asked(
        "Europe/Berlin",
        "*/15 * * * *",
        "2025-10-26 00:30Z",
        [
            "2025-10-26 02:45+02:00 = 2025-10-26 00:45Z",
            "2025-10-26 02:00+01:00 = 2025-10-26 01:00Z",
            "2025-10-26 02:15+01:00 = 2025-10-26 01:15Z",
            "2025-10-26 02:30+01:00 = 2025-10-26 01:30Z",
            "2025-10-26 02:45+01:00 = 2025-10-26 01:45Z",
            "2025-10-26 03:00+01:00 = 2025-10-26 02:00Z",
        ],
    ),
    "quarter hours came in a burst after the gap": Asked(
        "Europe/Berlin",
        "*/15 * * * *",
        "2025-03-30 00:30Z",
        [
            "2025-03-30 01:45+01:00 = 2025-03-30 00:45Z",
            "2025-03-30 03:00+02:00 = 2025-03-30 01:00Z",
            "2025-03-30 03:15+02:00 = 2025-03-30 01:15Z",
        ],
    ),
    "every two hours fell into the gap and was made up for": Asked(
        "Europe/Berlin",
        "0 */2 * * *",
        "2025-03-29 22:30Z",
        [
            "2025-03-30 00:00+01:00 = 2025-03-29 23:00Z",
            "2025-03-30 04:00+02:00 = 2025-03-30 02:00Z",
        ],
    ),
    "a job of four times a day ran four times in one gap": Asked(
        "Europe/Berlin",
        "0,15,30,45 2 * * *",
        "2025-03-29 12:00Z",
        [
            "2025-03-30 03:00+02:00 = 2025-03-30 01:00Z",
            "2025-03-31 02:00+02:00 = 2025-03-31 00:00Z",
        ],
    ),
    "a monthly job ran on the last day of March, too": Asked(
        "Europe/Berlin",
        "0 0 1 * *",
        "2024-02-23 00:00Z",
        [
            "2024-03-01 00:00+01:00 = 2024-02-29 23:00Z",
            "2024-04-01 00:00+02:00 = 2024-03-31 22:00Z",
            "2024-05-01 00:00+02:00 = 2024-04-30 22:00Z",
        ],
    ),
    "midnight after the change was an hour late": Asked(
        "Europe/Warsaw",
        "0 0 * * *",
        "2017-03-25 23:00Z",
        [
            "2017-03-27 00:00+02:00 = 2017-03-26 22:00Z",
            "2017-03-28 00:00+02:00 = 2017-03-27 22:00Z",
        ],
    ),
    "two o'clock was refused in the week before the change": Asked(
        "Europe/Copenhagen",
        "0 2 * * *",
        "2018-10-27 12:00Z",
        [
            "2018-10-28 02:00+02:00 = 2018-10-28 00:00Z",
            "2018-10-29 02:00+01:00 = 2018-10-29 01:00Z",
        ],
    ),
    "the next time was searched for ever in Amsterdam": Asked(
        "Europe/Amsterdam",
        "30 2 * * 0",
        "2023-03-25 12:00Z",
        [
            "2023-03-26 03:00+02:00 = 2023-03-26 01:00Z",
            "2023-04-02 02:30+02:00 = 2023-04-02 00:30Z",
        ],
    ),
    "every minute stood still for an hour in Rome": Asked(
        "Europe/Rome",
        "* * * * *",
        "2024-10-27 00:58Z",
        [
            "2024-10-27 02:59+02:00 = 2024-10-27 00:59Z",
            "2024-10-27 02:00+01:00 = 2024-10-27 01:00Z",
            "2024-10-27 02:01+01:00 = 2024-10-27 01:01Z",
        ],
    ),
    "every fifteen seconds stood still for an hour in London": Asked(
        "Europe/London",
        "*/15 * * * * *",
        "2025-10-26 00:59:30Z",
        [
            "2025-10-26 01:59:45+01:00 = 2025-10-26 00:59:45Z",
            "2025-10-26 01:00+00:00 = 2025-10-26 01:00Z",
            "2025-10-26 01:00:15+00:00 = 2025-10-26 01:00:15Z",
        ],
    ),
    "Z14 half past one in London was skipped": Asked(
        "Europe/London",
        "30 1 * * *",
        "2024-03-30 12:00Z",
        [
            "2024-03-31 02:00+01:00 = 2024-03-31 01:00Z",
            "2024-04-01 01:30+01:00 = 2024-04-01 00:30Z",
        ],
    ),
    "Z14 half past one in London must be skipped": Asked(
        "Europe/London",
        "30 1 * * *",
        "2024-03-30 12:00Z",
        ["2024-04-01 01:30+01:00 = 2024-04-01 00:30Z"],
        gap="skip",
    ),
    "a job in UTC was lost when the server's own clock went back": Asked(
        "UTC",
        "30 1 * * *",
        "2022-10-29 12:00Z",
        [
            "2022-10-30 01:30+00:00 = 2022-10-30 01:30Z",
            "2022-10-31 01:30+00:00 = 2022-10-31 01:30Z",
        ],
    ),
    # New York leaves out 02:00 to 03:00, and shows 01:00 to 02:00 twice.
    "half past two was skipped in New York": Asked(
        "America/New_York",
        "30 2 * * *",
        "2025-03-08 12:00Z",
        [
            "2025-03-09 03:00-04:00 = 2025-03-09 07:00Z",
            "2025-03-10 02:30-04:00 = 2025-03-10 06:30Z",
        ],
    ),
    "half past two was run an hour early in New York": Asked(
        "America/New_York",
        "30 2 * * *",
        "2025-11-01 12:00Z",
        [
            "2025-11-02 02:30-05:00 = 2025-11-02 07:30Z",
            "2025-11-03 02:30-05:00 = 2025-11-03 07:30Z",
        ],
    ),
    "half past one ran twice in New York": Asked(
        "America/New_York",
        "30 1 * * *",
        "2025-11-01 12:00Z",
        [
            "2025-11-02 01:30-04:00 = 2025-11-02 05:30Z",
            "2025-11-03 01:30-05:00 = 2025-11-03 06:30Z",
        ],
    ),
    "a backup at two ran at one and at three": Asked(
        "America/Toronto",
        "0 2 * * *",
        "2019-03-09 12:00Z",
        [
            "2019-03-10 03:00-04:00 = 2019-03-10 07:00Z",
            "2019-03-11 02:00-04:00 = 2019-03-11 06:00Z",
        ],
    ),
    # Lord Howe moves its clock by half an hour: 02:00 to 02:30 is left out, 01:30 to 02:00 comes twice.
    "half past two on Lord Howe is the very end of the gap": Asked(
        "Australia/Lord_Howe",
        "30 2 * * *",
        "2025-10-04 12:00Z",
        [
            "2025-10-05 02:30+11:00 = 2025-10-04 15:30Z",
            "2025-10-06 02:30+11:00 = 2025-10-05 15:30Z",
        ],
    ),
    "a quarter past two on Lord Howe was an hour late": Asked(
        "Australia/Lord_Howe",
        "15 2 * * *",
        "2025-10-04 12:00Z",
        [
            "2025-10-05 02:30+11:00 = 2025-10-04 15:30Z",
            "2025-10-06 02:15+11:00 = 2025-10-05 15:15Z",
        ],
    ),
    "half past two on Lord Howe comes once in April": Asked(
        "Australia/Lord_Howe",
        "30 2 * * *",
        "2025-04-05 12:00Z",
        [
            "2025-04-06 02:30+10:30 = 2025-04-05 16:00Z",
            "2025-04-07 02:30+10:30 = 2025-04-06 16:00Z",
        ],
    ),
    # Places where the clock is moved at midnight.
    "the daily job of Cairo had no midnight": Asked(
        "Africa/Cairo",
        "@daily",
        "2025-04-24 12:00Z",
        [
            "2025-04-25 01:00+03:00 = 2025-04-24 22:00Z",
            "2025-04-26 00:00+03:00 = 2025-04-25 21:00Z",
        ],
    ),
    "the daily job of Santiago had no midnight": Asked(
        "America/Santiago",
        "@daily",
        "2025-09-06 12:00Z",
        [
            "2025-09-07 01:00-03:00 = 2025-09-07 04:00Z",
            "2025-09-08 00:00-03:00 = 2025-09-08 03:00Z",
        ],
    ),
    "the daily job of Beirut had no midnight": Asked(
        "Asia/Beirut",
        "@daily",
        "2025-03-29 12:00Z",
        [
            "2025-03-30 01:00+03:00 = 2025-03-29 22:00Z",
            "2025-03-31 00:00+03:00 = 2025-03-30 21:00Z",
        ],
    ),
    "six in the morning was searched for ever in Santiago": Asked(
        "America/Santiago",
        "0 6 * * *",
        "2018-08-11 12:00Z",
        [
            "2018-08-12 06:00-03:00 = 2018-08-12 09:00Z",
            "2018-08-13 06:00-03:00 = 2018-08-13 09:00Z",
        ],
    ),
    "a Sunday without midnight was left out in Sao Paulo": Asked(
        "America/Sao_Paulo",
        "0 0 1 * * 0",
        "2018-11-03 12:00Z",
        [
            "2018-11-04 01:00-02:00 = 2018-11-04 03:00Z",
            "2018-11-11 01:00-02:00 = 2018-11-11 03:00Z",
        ],
    ),
    "a date without midnight came a year late in Sao Paulo": Asked(
        "America/Sao_Paulo",
        "0 0 1 4 11 *",
        "2018-11-04 02:00Z",
        [
            "2018-11-04 01:00-02:00 = 2018-11-04 03:00Z",
            "2019-11-04 01:00-03:00 = 2019-11-04 04:00Z",
        ],
    ),
    "noon on two dates was searched for ever in Sao Paulo": Asked(
        "America/Sao_Paulo",
        "0 0 12 11,26 * *",
        "2014-10-12 12:00Z",
        [
            "2014-10-26 12:00-02:00 = 2014-10-26 14:00Z",
            "2014-11-11 12:00-02:00 = 2014-11-11 14:00Z",
        ],
    ),
    "a zone of half hours never came to its minute": Asked(
        "Asia/Kolkata",
        "25 0 * * *",
        "2014-05-13 11:49Z",
        ["2014-05-14 00:25+05:30 = 2014-05-13 18:55Z"],
    ),
}

# ---- days that are not in every month or week

DAYS: dict[str, Asked] = {
    "C6 the leap day was searched for ever": Asked(
        "UTC",
        "0 0 29 2 *",
        "2095-01-01 00:00Z",
        [
            "2096-02-29 00:00+00:00 = 2096-02-29 00:00Z",
            "2104-02-29 00:00+00:00 = 2104-02-29 00:00Z",
        ],
    ),
    "the 31st was moved into months of 30 days": Asked(
        "Asia/Tokyo",
        "0 0 31 * *",
        "2025-01-31 00:00Z",
        [
            "2025-03-31 00:00+09:00 = 2025-03-30 15:00Z",
            "2025-05-31 00:00+09:00 = 2025-05-30 15:00Z",
            "2025-07-31 00:00+09:00 = 2025-07-30 15:00Z",
            "2025-08-31 00:00+09:00 = 2025-08-30 15:00Z",
        ],
    ),
    "the last day of the month cannot be said": Asked(
        "Europe/Berlin",
        "0 18 L * *",
        "2028-01-01 00:00Z",
        [
            "2028-01-31 18:00+01:00 = 2028-01-31 17:00Z",
            "2028-02-29 18:00+01:00 = 2028-02-29 17:00Z",
            "2028-03-31 18:00+02:00 = 2028-03-31 16:00Z",
        ],
    ),
    # 31 May 2025 was a Saturday, 31 August and 30 November were Sundays.
    "the last working day fell on a weekend": Asked(
        "Europe/Berlin",
        "0 18 LW 5,8,11 *",
        "2025-01-01 00:00Z",
        [
            "2025-05-30 18:00+02:00 = 2025-05-30 16:00Z",
            "2025-08-29 18:00+02:00 = 2025-08-29 16:00Z",
            "2025-11-28 18:00+01:00 = 2025-11-28 17:00Z",
        ],
    ),
    "the last Friday came twice, or not at all": Asked(
        "America/New_York",
        "0 9 * * 5L",
        "2021-01-01 00:00Z",
        [
            "2021-01-29 09:00-05:00 = 2021-01-29 14:00Z",
            "2021-02-26 09:00-05:00 = 2021-02-26 14:00Z",
            "2021-03-26 09:00-04:00 = 2021-03-26 13:00Z",
            "2021-04-30 09:00-04:00 = 2021-04-30 13:00Z",
        ],
    ),
    "a last day that is a Friday came on every last Friday": Asked(
        "UTC",
        "0 0 L * FRIL",
        "2021-12-01 00:00Z",
        [
            "2021-12-31 00:00+00:00 = 2021-12-31 00:00Z",
            "2022-09-30 00:00+00:00 = 2022-09-30 00:00Z",
            "2023-03-31 00:00+00:00 = 2023-03-31 00:00Z",
        ],
        day_match="and",
    ),
    "Friday the 13th came on every Friday": Asked(
        "UTC",
        "0 0 0 13 * 5",
        "2023-01-01 00:00Z",
        [
            "2023-01-13 00:00+00:00 = 2023-01-13 00:00Z",
            "2023-10-13 00:00+00:00 = 2023-10-13 00:00Z",
            "2024-09-13 00:00+00:00 = 2024-09-13 00:00Z",
            "2024-12-13 00:00+00:00 = 2024-12-13 00:00Z",
        ],
        day_match="and",
    ),
    "every Friday and every 13th came on Fridays the 13th alone": Asked(
        "UTC",
        "0 0 13 * 5",
        "2023-01-01 00:00Z",
        [
            "2023-01-06 00:00+00:00 = 2023-01-06 00:00Z",
            "2023-01-13 00:00+00:00 = 2023-01-13 00:00Z",
            "2023-01-20 00:00+00:00 = 2023-01-20 00:00Z",
            "2023-01-27 00:00+00:00 = 2023-01-27 00:00Z",
            "2023-02-03 00:00+00:00 = 2023-02-03 00:00Z",
            "2023-02-10 00:00+00:00 = 2023-02-10 00:00Z",
            "2023-02-13 00:00+00:00 = 2023-02-13 00:00Z",
        ],
    ),
    "new year came a day late on the far side of the date line": Asked(
        "Pacific/Kiritimati",
        "@yearly",
        "2025-06-01 00:00Z",
        [
            "2026-01-01 00:00+14:00 = 2025-12-31 10:00Z",
            "2027-01-01 00:00+14:00 = 2026-12-31 10:00Z",
        ],
    ),
    "new year came five hours early in New York": Asked(
        "America/New_York",
        "@yearly",
        "2025-01-01 05:00Z",
        [
            "2026-01-01 00:00-05:00 = 2026-01-01 05:00Z",
            "2027-01-01 00:00-05:00 = 2027-01-01 05:00Z",
        ],
    ),
}

COMPLAINTS = NIGHTS | DAYS


def shown(at: datetime, there: str) -> str:
    """An instant as it stands in the tables."""
    local, utc = at.astimezone(zone(there)).isoformat(sep=" "), at.isoformat(sep=" ")
    return f"{_short(local)} = {_short(utc).removesuffix('+00:00')}Z"


def _short(text: str) -> str:
    """Without seconds that are 0."""
    return text[:16] + text[16:].removeprefix(":00") if text[16:19] == ":00" else text


@pytest.mark.parametrize("name", COMPLAINTS)
def test_job_runs_when_it_should(name: str) -> None:
    asked = COMPLAINTS[name]
    cron = Cron(asked.cron, asked.zone, asked.gap, asked.fold, asked.day_match)
    after = datetime.fromisoformat(asked.after)
    found = list(islice(cron.between(after, END), len(asked.expected)))
    assert [shown(at, asked.zone) for at in found] == asked.expected


@pytest.mark.parametrize("name", COMPLAINTS)
def test_runs_are_the_same_backwards_and_in_number(name: str) -> None:
    asked = COMPLAINTS[name]
    rule = Cron(asked.cron, asked.zone, asked.gap, asked.fold, asked.day_match).rule
    plan = Plan(rule, asked.zone, asked.gap, asked.fold)
    after = int(datetime.fromisoformat(asked.after).timestamp() * 1000)
    until = plan.between(after, INSTANT_MAX, len(asked.expected))[-1]
    found = [datetime.fromtimestamp(at / 1000, UTC) for at in plan.latest(until, 1_000, after)]
    assert [shown(at, asked.zone) for at in found] == asked.expected
    assert plan.count(after, until) == len(asked.expected)
