"""Schedules of a mixed fleet, drawn from a seed: what a job says of when, as fields of its submission."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from minutebook.domain.timing import Timing

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
HALF: Final = HOUR // 2
DAY: Final = 24 * HOUR
START: Final = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000
END: Final = int(datetime(2027, 1, 1, tzinfo=UTC).timestamp()) * 1_000

Fields = dict[str, Any]

ZONES: Final = (
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Los_Angeles",
    "America/St_Johns",
    "America/Havana",
    "America/Santiago",
    "America/Sao_Paulo",
    "Atlantic/Azores",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Asia/Beirut",
    "Asia/Jerusalem",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "Asia/Gaza",
    "Australia/Adelaide",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "Antarctica/Troll",
)
RARE_ZONES: Final = ("Asia/Kathmandu", "Pacific/Chatham")
"""A quarter of an hour off all others: whatever comes due there calls for the owner at a moment of its own."""
ZONES_OF_SECONDS: Final = ("UTC", "Europe/Berlin", "America/New_York")
CALENDARS: Final = ("holidays", "freeze", "fairs")
MINUTES: Final = (0, 0, 0, 30, 30)
BUSY_DAYS: Final = (40, 171, 297)
"""Days of the year on which there is something every minute."""


def daily(chance: random.Random) -> Fields:
    """Once a day, or on some days, at an hour or half of one; nights of clock changes are hit often."""
    hour, minute = chance.choice((0, 1, 2, 2, 2, 3, 6, 9, 12, 18, 23)), chance.choice(MINUTES)
    days = chance.choice(
        ("* * *",) * 3 + ("* * 1-5", "* * 0,6", "*/2 * *", "1-15 * *", "13 * 5", "1,10,20 * 1")
    )
    return {"cron": f"{minute} {hour} {days}", "zone": zone_name(chance)}


def few_a_day(chance: random.Random) -> Fields:
    """Several times a day."""
    cron = chance.choice(
        (
            "0 9,17 * * *",
            "30 0-3 * * *",
            "0 */6 * * *",
            "*/30 2-4 * * *",
            "30 1,2,3 * * *",
            "0 8-18/5 * * 1-5",
        )
    )
    return {"cron": cron, "zone": zone_name(chance)}


def hourly(chance: random.Random) -> Fields:
    """Every hour, or half of one for a part of the day; not a quarter off all others, that would be a moment of its own
    each time."""
    cron = chance.choice(("0 * * * *", "30 * * * *", "@hourly", "*/30 0-5 * * *", "*/30 6-20 * * 1-5"))
    return {"cron": cron, "zone": chance.choice(ZONES)}


def hashed(chance: random.Random) -> Fields:
    """Values of the job's own."""
    cron = chance.choice(
        ("0 H * * *", "30 H(0-5) * * *", "0 H(2-22)/6 * * 1-5", "H H * * 0", "H H(1-3) L * *", "H 2 1-5 * *")
    )
    return {"cron": cron, "zone": zone_name(chance)}


def special(chance: random.Random) -> Fields:
    """Days that are counted: last ones, weekdays near a date, the n-th of the month."""
    days = chance.choice(
        (
            "L * *",
            "L-3 * *",
            "LW * *",
            "15W * *",
            "1W * *",
            "* * 5L",
            "* * MON#1",
            "* * 3#5",
            "29 2 *",
            "1 1,4,7,10 *",
        )
    )
    return {
        "cron": f"{chance.choice(MINUTES)} {chance.choice((0, 2, 12))} {days}",
        "zone": zone_name(chance),
    }


def seconds(chance: random.Random) -> Fields:
    """Six and seven fields."""
    cron = chance.choice(
        (
            "30 15 6 * * MON",
            "15,45 30 2 ? * SUN",
            "0 30 2 ? * MON-FRI 2026",
            "59 59 23 L * ?",
            "10 0 12 ? * 2,4 2025-2027",
        )
    )
    return {"cron": cron, "zone": chance.choice(ZONES_OF_SECONDS)}


def interval(chance: random.Random) -> Fields:
    """An interval, counted from a start on half an hour or from the moment of the submission."""
    every_ms = chance.choice((DAY, DAY, 7 * DAY, 36 * HOUR, 12 * HOUR, 15 * HOUR, 25 * HOUR))
    given: Fields = {"every_ms": every_ms}
    if chance.random() < 0.9:
        given["timing"] = {"start_at": quarter(chance, START, START + 30 * DAY) // HALF * HALF}
    return given


def every_text(chance: random.Random) -> Fields:
    """An interval written as a macro."""
    return {"cron": chance.choice(("@every 24h", "@every 1d12h", "@every 7d"))}


def minutes(chance: random.Random) -> Fields:
    """Every few minutes, for some hours."""
    start = START + chance.choice(BUSY_DAYS) * DAY + chance.randint(0, 4) * HOUR
    timing = {"start_at": start, "end_at": start + chance.randint(2, 10) * HOUR}
    cron = chance.choice(("* * * * *", "*/2 * * * *", "*/5 * * * *", "2-58/4 * * * *"))
    return {"cron": cron, "zone": zone_name(chance), "timing": timing}


def tens_of_seconds(chance: random.Random) -> Fields:
    """Every few seconds, for some minutes."""
    start = quarter(chance, START, END - DAY)
    timing = {"start_at": start, "end_at": start + chance.randint(4, 12) * MINUTE}
    found: Fields = chance.choice(({"every_ms": 7 * SECOND}, {"cron": "*/10 * * * * *"}))
    return found | {"timing": timing}


def once(chance: random.Random) -> Fields:
    """One instant."""
    return {"run_at": quarter(chance, START + HOUR, END - DAY) + chance.choice((0, 0, 1, 59_999))}


def zone_name(chance: random.Random) -> str:
    """A zone of the world."""
    return chance.choice(RARE_ZONES if chance.random() < 0.01 else ZONES)


def quarter(chance: random.Random, first: int, last: int) -> int:
    """A quarter of an hour from `first` to `last`."""
    return chance.randrange(first // (15 * MINUTE), last // (15 * MINUTE)) * 15 * MINUTE


KINDS: Final[tuple[tuple[Callable[[random.Random], Fields], int], ...]] = (
    (daily, 594),
    (few_a_day, 60),
    (hourly, 6),
    (hashed, 50),
    (special, 80),
    (seconds, 30),
    (interval, 70),
    (every_text, 10),
    (minutes, 30),
    (tens_of_seconds, 10),
    (once, 60),
)


def schedule(chance: random.Random) -> Fields:
    """Fields of a submission that say when, its timing among them if it has one."""
    kinds, weights = zip(*KINDS, strict=True)
    (kind,) = chance.choices(kinds, weights)
    found: Fields = kind(chance)
    timing = {**_policies(chance, kind), **found.get("timing", {})}
    return found | {"timing": Timing(**timing) if timing else None}


def _policies(chance: random.Random, kind: Callable[[random.Random], Fields]) -> Fields:
    found: Fields = {}
    if chance.random() < 0.3:
        found["misfire"] = chance.choice(("latest", "none", "all"))
    if kind is not hourly and chance.random() < 0.004:
        found["jitter_ms"] = chance.choice((1, 5 * SECOND, 10 * MINUTE, HOUR))
    if kind is once:
        return found
    if chance.random() < 0.3:
        found["misfire_window_ms"] = chance.choice((10 * SECOND, HOUR, 6 * HOUR, 30 * DAY))
        found["misfire_max"] = chance.choice((1, 2, 7, 500))
    if kind is not hourly and chance.random() < 0.3:
        found["overlap"] = chance.choice(("skip", "queue_one", "queue_all", "cancel_running"))
    if chance.random() < 0.1:
        found["max_runs"] = chance.choice((1, 2, 10, 200))
    if chance.random() < 0.05:
        found["is_paused_on_failure"] = True
    if chance.random() < 0.2:
        found["gap"] = chance.choice(("run", "skip"))
    if chance.random() < 0.2:
        found["fold"] = chance.choice(("first", "last", "both"))
    if chance.random() < 0.2:
        found["day_match"] = "and"
    if "jitter_ms" not in found and chance.random() < 0.15:
        found[chance.choice(("exclude", "exclude", "include"))] = chance.sample(
            CALENDARS, chance.randint(1, 2)
        )
    bound = chance.random()
    if bound < 0.1:
        found["start_at"] = quarter(chance, START, END - 90 * DAY) + chance.choice((0, 0, 1, 7_777))
    elif bound < 0.2:
        found["end_at"] = quarter(chance, START + 200 * DAY, END) + chance.choice((0, 0, 1, 7_777))
    return found
