"""Instants of cron rules against croniter and cronsim: where they differ is listed, with the reason."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from croniter import croniter  # type: ignore[import-untyped]  # the package has no types
from cronsim import CronSim, CronSimError

from minutebook.schedule import Cron, zone
from minutebook.schedule.zones import timeline
from tests.property.cron_walk import Fields

# ---- in UTC

COUNT = 40
START = datetime(2024, 6, 1, tzinfo=UTC)
END = datetime(2199, 1, 1, tzinfo=UTC)
LIBRARY_CRONS = (
    "* * * * *",
    "*/7 2 * * *",
    "0,15,30 2 * * *",
    "10-50/20 23,0-3 * * *",
    "45 23 * * sun,5",
    "0 9 * * 1-5",
    "5 0-3 1,30,31 * 6",
    "20 12/1 30 dec *",
    "1 0 28-31 * *",
    "0 0 1 * mon",
    "0 0 * * 7",
    "0 0 29 2 *",
    "0 0 * jan,JUL mon-fri",
    "5/20 9-17/4 1,15 2-12/5 *",
    "30 2 L * *",
    "0 0 * * 5#2,1#1",
    "0 0 * * 5L",
    "0 9 LW * *",
    "0 0 13 * */5",
    "0 0 */2 * 1",
    "15 30 2 * * *",
    "*/20 0 12 * * 1",
    "0 9 15W * *",
    "0 9 L-3 * *",
    "0 0 0 1 1 * 2026-2030",
)
BY_STAR = "a day that matches either field is taken although one begins with *"
REFUSED = "is refused there"
CRONITER_DIFFERS = {
    "0 0 13 * */5": BY_STAR,
    "0 0 */2 * 1": BY_STAR,
    "0 9 LW * *": REFUSED,
    "0 9 15W * *": REFUSED,
    "0 9 L-3 * *": REFUSED,
    "0 0 * * 5L": "is written L5 there",
}
CRONSIM_DIFFERS = {
    "0 9 15W * *": REFUSED,
    "0 9 L-3 * *": REFUSED,
    "0 0 0 1 1 * 2026-2030": "has no field for the year",
}


def upcoming(cron: str, zone_name: str, start: datetime) -> list[datetime]:
    return [at for at, _ in zip(Cron(cron, zone_name).between(start, END), range(COUNT), strict=False)]


def by_cronsim(cron: str, zone_name: str, start: datetime) -> list[datetime]:
    """Empty where it is refused."""
    try:
        theirs = CronSim(cron, start.astimezone(zone(zone_name)))
    except CronSimError:
        return []
    return [at.astimezone(UTC) for at, _ in zip(theirs, range(COUNT), strict=False)]


def by_croniter(cron: str, zone_name: str, start: datetime) -> list[datetime]:
    """Empty where it is refused."""
    there, found = start.astimezone(zone(zone_name)), list[datetime]()
    try:
        theirs = croniter(cron, there, ret_type=datetime, second_at_beginning=True)
        while len(found) < COUNT:
            found.append(theirs.get_next().astimezone(UTC))
    except ValueError:  # none left, too
        pass
    return found


@pytest.mark.parametrize("cron", LIBRARY_CRONS)
def test_cronsim_agrees_in_utc_but_where_listed(cron: str) -> None:
    is_equal = upcoming(cron, "UTC", START) == by_cronsim(cron, "UTC", START)
    assert is_equal == (cron not in CRONSIM_DIFFERS)


@pytest.mark.parametrize("cron", LIBRARY_CRONS)
def test_croniter_agrees_in_utc_but_where_listed(cron: str) -> None:
    is_equal = upcoming(cron, "UTC", START) == by_croniter(cron, "UTC", START)
    assert is_equal == (cron not in CRONITER_DIFFERS)


# ---- around clock changes

CHANGES = (
    ("Africa/Cairo", "2023-04-27"),
    ("America/New_York", "2024-03-10"),
    ("America/New_York", "2024-11-03"),
    ("America/Santiago", "2024-09-07"),
    ("Asia/Beirut", "2024-03-30"),
    ("Asia/Pyongyang", "2018-05-04"),
    ("Australia/Lord_Howe", "2024-04-06"),
    ("Australia/Lord_Howe", "2024-10-05"),
    ("Europe/Berlin", "2024-03-31"),
    ("Europe/Berlin", "2024-10-27"),
    ("Pacific/Apia", "2011-12-30"),
)
CRONS = (
    "30 2 * * *",
    "30 1 * * *",
    "0 0 * * *",
    "15 0 * * *",
    "*/15 * * * *",
    "0 */2 * * *",
    "0 2,3 * * *",
    "0,15,30 2 * * *",
    "45 23 * * *",
    "30 * * * *",
    "* 2 * * *",
    "*/10 1-3 * * *",
    "0 9 30 12 *",
    "0 3 * * *",
    "5 0-4 * * *",
)
LEFT_OUT, NOT_NAMED, AGAIN = "left out", "not named", "again"
CRONITER_CLASSES = {
    LEFT_OUT: "the second pass of an interval, fixed times inside a gap, and what a wrong offset hides",
    NOT_NAMED: "a local time that the expression does not name: an offset from before the change is kept",
    AGAIN: "an instant that is not later than the one before: who asks for the next one never gets on",
}
CRONSIM_LEAVES_OUT = {
    # A clock that moves by half an hour: it is taken to move by whole hours.
    ("Asia/Pyongyang", "2018-05-04"): {"0 */2 * * *"},
    ("Australia/Lord_Howe", "2024-04-06"): {"0 */2 * * *", "30 * * * *", "* 2 * * *"},
    ("Australia/Lord_Howe", "2024-10-05"): {"30 * * * *"},
}


def start_before(zone_name: str, day: str) -> datetime:
    """Six hours before the first change from the UTC day on."""
    day_s = datetime.fromisoformat(day + "T00:00Z").timestamp()
    change_s = next(start for start in timeline(zone_name).starts if start >= day_s)
    return datetime.fromtimestamp(change_s, UTC) - timedelta(hours=6)


def classes(zone_name: str, cron: str, ours: list[datetime], theirs: list[datetime]) -> Iterator[str]:
    """How `theirs` differ from `ours`, as far as both go."""
    end = min(ours[-1], theirs[-1])
    fields, there = Fields(cron), zone(zone_name)
    if any(at <= before for before, at in pairwise(theirs)):
        yield AGAIN
    if {at for at in ours if at <= end} - set(theirs):
        yield LEFT_OUT
    for extra in {at for at in theirs if at <= end} - set(ours):
        is_named = fields.match(extra.astimezone(there).replace(tzinfo=None))
        yield "named" if is_named else NOT_NAMED


@pytest.mark.parametrize(("zone_name", "day"), CHANGES)
def test_cronsim_agrees_around_changes_but_where_listed(zone_name: str, day: str) -> None:
    start = start_before(zone_name, day)
    found = {cron: (upcoming(cron, zone_name, start), by_cronsim(cron, zone_name, start)) for cron in CRONS}
    differing = {
        cron: set(classes(zone_name, cron, *both)) for cron, both in found.items() if both[0] != both[1]
    }
    assert differing == {cron: {LEFT_OUT} for cron in CRONSIM_LEAVES_OUT.get((zone_name, day), ())}


def test_croniter_differs_around_changes_in_the_listed_ways() -> None:
    found: set[str] = set()
    for zone_name, day in CHANGES:
        start = start_before(zone_name, day)
        for cron in CRONS:
            ours, theirs = upcoming(cron, zone_name, start), by_croniter(cron, zone_name, start)
            found.update(classes(zone_name, cron, ours, theirs))
    assert found == set(CRONITER_CLASSES)
