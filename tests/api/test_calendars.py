"""Calendars over HTTP: known to every partition before the answer, and what a change of one would do."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import httpx
import pytest

from api import calendar_effect, decisions
from minutebook.domain import keys
from minutebook.domain.calendars import RANGES_MAX
from minutebook.domain.commands import SubmitJob
from minutebook.domain.timing import Timing
from minutebook.ids import job_key
from minutebook.wire.topics import partition_of
from tests.api.conftest import Callers
from tests.api.memory import NOW, PARTITIONS, Installation

PATH = "/v1/calendars/holidays"
TODAY = NOW // keys.DAY_MS
DATES = ["2026-12-25", {"first": "2026-12-31", "last": "2027-01-01"}]
NOON = "0 12 * * *"


@pytest.fixture
def operator(callers: Callers) -> httpx.AsyncClient:
    return callers["operator"]


def text(ahead: int) -> str:
    """The date so many days from today."""
    return date.fromordinal(date(1970, 1, 1).toordinal() + TODAY + ahead).isoformat()


def declared(version: int, dates: list[Any]) -> dict[str, Any]:
    return {"name": "holidays", "version": version, "dates": dates}


def known_everywhere(world: Installation) -> list[int]:
    """The version that each partition's view and owner know; they agree."""
    copies = [part.calendar("acme", "holidays") for part in world.services.view.parts]
    owners = [book.calendars.get(b"acme\0holidays") for book in world.log.books]
    versions = [0 if copy is None else copy.version for copy in copies]
    assert versions == [0 if row is None else row.version for row in owners]
    return versions


async def submit(world: Installation, job_id: str, **more: Any) -> None:
    """A job at noon, every day but those of `holidays` unless its fields say otherwise."""
    fields = {"task": "t", "payload": b"1", "cron": NOON, "timing": Timing(exclude=["holidays"])} | more
    command = SubmitJob(tenant="acme", job_id=job_id, command_id=f"c-{job_id}", issued_at=NOW, **fields)
    partition = partition_of(job_key("acme", job_id), PARTITIONS)
    before = len(world.log.sent)
    world.log._decide(partition, command)
    assert len(world.log.sent) == before + 1
    assert world.services.view.job("acme", job_id) is not None


async def test_calendar_is_declared_changed_and_deleted_in_every_partition(
    operator: httpx.AsyncClient, world: Installation
) -> None:
    made = await operator.put(PATH, json={"dates": list(reversed(DATES)), "reason": "2026"})
    assert (made.status_code, made.json()) == (201, declared(1, DATES))
    assert known_everywhere(world) == [1] * PARTITIONS
    assert (await operator.get(PATH)).json() == declared(1, DATES)
    again = await operator.put(PATH, json={"dates": DATES})
    assert (again.status_code, again.json()) == (200, declared(1, DATES))
    changed = await operator.put(PATH, json={"dates": ["2026-12-25", "2026-12-26", "2026-12-27"]})
    merged = [{"first": "2026-12-25", "last": "2026-12-27"}]
    assert (changed.status_code, changed.json()) == (200, declared(2, merged))
    # What is read can be sent back.
    assert (await operator.put(PATH, json={"dates": changed.json()["dates"]})).json()["version"] == 2
    gone = await operator.delete(PATH)
    assert (gone.status_code, gone.content) == (204, b"")
    assert known_everywhere(world) == [3] * PARTITIONS
    assert (await operator.get(PATH)).status_code == 404
    assert (await operator.delete(PATH)).status_code == 204


async def test_answer_waits_for_the_last_partition(
    operator: httpx.AsyncClient, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.log, "_append_elsewhere", lambda partition, copy: None)
    answer = await operator.put(PATH, json={"dates": DATES}, headers={"prefer": "wait=0"})
    assert answer.status_code == 202
    assert answer.headers["location"].startswith("/v1/commands/")
    assert sorted(known_everywhere(world)) == [0] * (PARTITIONS - 1) + [1]


async def test_calendars_are_listed_by_name_page_after_page(
    operator: httpx.AsyncClient, callers: Callers
) -> None:
    names = ["c", "a", "b"]
    for name in names:
        await operator.put(f"/v1/calendars/{name}", json={"dates": DATES})
    first = await operator.get("/v1/calendars?limit=2")
    entry = {"version": 1, "first": "2026-12-25", "last": "2027-01-01", "count": 3}
    assert first.json()["items"] == [{"name": name, **entry} for name in "ab"]
    rest = await operator.get(f"/v1/calendars?limit=2&cursor={first.json()['next_cursor']}")
    assert rest.json() == {"items": [{"name": "c", **entry}], "next_cursor": None}
    await operator.delete("/v1/calendars/a")
    assert [item["name"] for item in (await operator.get("/v1/calendars")).json()["items"]] == ["b", "c"]
    foreign = await operator.get("/v1/calendars?cursor=" + first.json()["next_cursor"][::-1])
    assert foreign.json()["code"] == "bad-parameter"


async def test_other_tenants_see_nothing_of_it(operator: httpx.AsyncClient, callers: Callers) -> None:
    await operator.put(PATH, json={"dates": DATES})
    other = callers["other"]
    assert (await other.get(PATH)).status_code == 404
    assert (await other.get("/v1/calendars")).json() == {"items": [], "next_cursor": None}
    assert (await callers["viewer"].get(PATH)).status_code == 200


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/dates"),
        ({"dates": None}, "/dates"),
        ({"dates": "2026-12-25"}, "/dates"),
        ({"dates": []}, "/dates"),
        ({"dates": [{"first": "2026-12-25", "last": "2026-12-24"}]}, "/dates"),
        ({"dates": [f"{1970 + n // 12}-{n % 12 + 1:02}-15" for n in range(RANGES_MAX + 1)]}, "/dates"),
        ({"dates": ["2026-12-25", "2026-02-30"]}, "/dates/1"),
        ({"dates": ["25.12.2026"]}, "/dates/0"),
        ({"dates": ["20261225"]}, "/dates/0"),
        ({"dates": ["2026-W52-5"]}, "/dates/0"),
        ({"dates": ["2026-12-25T00:00:00Z"]}, "/dates/0"),
        ({"dates": ["1969-12-31"]}, "/dates/0"),
        ({"dates": ["2201-01-01"]}, "/dates/0"),
        ({"dates": ["\u0662026-12-25"]}, "/dates/0"),
        ({"dates": [20261225]}, "/dates/0"),
        ({"dates": [None]}, "/dates/0"),
        ({"dates": [{"first": "2026-12-25"}]}, "/dates/0"),
        ({"dates": [{"first": "2026-12-25", "last": "2026-12-25", "x": 1}]}, "/dates/0"),
        ({"dates": [{"first": "2026-12-25", "last": "x"}]}, "/dates/0/last"),
        ({"dates": DATES, "reason": "x" * 1001}, "/reason"),
        ({"dates": DATES, "name": "a"}, "/name"),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_senseless_dates_are_refused_by_name(
    body: dict[str, Any], pointer: str, operator: httpx.AsyncClient, world: Installation
) -> None:
    answer = await operator.put(PATH, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]
    assert known_everywhere(world) == [0] * PARTITIONS


async def test_a_name_twice_in_one_range_is_refused(operator: httpx.AsyncClient) -> None:
    body = '{"dates": [{"first": "2026-12-25", "last": "2026-12-25", "last": "2026-12-26"}]}'
    answer = await operator.put(PATH, content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed-json")


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("query", ["dry_run=yes", "dry_run=", "dry_run=true&dry_run=true", "dryrun=true"])
async def test_senseless_query_is_refused(method: str, query: str, operator: httpx.AsyncClient) -> None:
    answer = await operator.request(method, f"{PATH}?{query}", json={"dates": DATES})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-parameter")


# -- what a change would do


async def test_dry_run_says_what_becomes_of_coming_instants_and_changes_nothing(
    operator: httpx.AsyncClient, world: Installation
) -> None:
    await operator.put(PATH, json={"dates": [text(2), text(3), text(400)]})
    await submit(world, "daily")
    await submit(world, "twice", cron="0 9,17 * * *")
    await submit(world, "plain", timing=None)
    answer = await operator.put(f"{PATH}?dry_run=true", json={"dates": [text(1), text(2), text(500)]})
    assert answer.status_code == 200
    assert answer.json() == {
        "name": "holidays",
        "until": datetime.fromtimestamp(NOW / 1000 + 366 * 86_400, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "jobs": 2,
        "complete": True,
        "removed": {"instants": 1 + 2, "jobs": 2},
        "added": {"instants": 1 + 2, "jobs": 2},
        "moved": 0,
        "ended": 0,
    }  # fmt: skip
    assert known_everywhere(world) == [1] * PARTITIONS
    gone = (await operator.delete(f"{PATH}?dry_run=true")).json()
    assert (gone["removed"], gone["added"]) == (
        {"instants": 0, "jobs": 0},
        {"instants": 2 + 4, "jobs": 2},
    )
    assert known_everywhere(world) == [1] * PARTITIONS


async def test_dry_run_counts_moved_and_ended_jobs(operator: httpx.AsyncClient, world: Installation) -> None:
    await operator.put(PATH, json={"dates": [text(5), text(6)]})
    await submit(world, "moves", timing=Timing(include=["holidays"]))
    end_at = (TODAY + 7) * keys.DAY_MS
    await submit(world, "ends", timing=Timing(include=["holidays"], end_at=end_at))
    effect = (await operator.put(f"{PATH}?dry_run=true", json={"dates": [text(9)]})).json()
    assert (effect["moved"], effect["ended"]) == (1, 1)
    assert effect["removed"] == {"instants": 4, "jobs": 2}
    assert effect["added"] == {"instants": 1, "jobs": 1}
    freed = (await operator.delete(f"{PATH}?dry_run=true")).json()
    assert (freed["moved"], freed["ended"], freed["removed"]) == (2, 0, {"instants": 0, "jobs": 0})


async def test_dry_run_of_a_calendar_that_no_job_names_says_so(operator: httpx.AsyncClient) -> None:
    effect = (await operator.put(f"{PATH}?dry_run=true", json={"dates": DATES})).json()
    assert (effect["jobs"], effect["complete"]) == (0, True)
    assert (await operator.delete(f"{PATH}?dry_run=true")).status_code == 404


async def test_dry_run_leaves_out_closed_jobs(operator: httpx.AsyncClient, world: Installation) -> None:
    await operator.put(PATH, json={"dates": [text(5)]})
    await submit(world, "a")
    await operator.delete("/v1/jobs/a")
    assert (await operator.delete(f"{PATH}?dry_run=true")).json()["jobs"] == 0


async def test_dry_run_says_where_it_stopped(
    operator: httpx.AsyncClient, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calendar_effect, "JOBS_MAX", 2)
    await operator.put(PATH, json={"dates": [text(5)]})
    for number in range(3):
        await submit(world, f"j{number}")
    effect = (await operator.delete(f"{PATH}?dry_run=true")).json()
    assert (effect["jobs"], effect["complete"]) == (2, False)
    monkeypatch.setattr(calendar_effect, "JOBS_MAX", 3)
    effect = (await operator.delete(f"{PATH}?dry_run=true")).json()
    assert (effect["jobs"], effect["complete"]) == (3, True)


async def test_refusal_of_an_unknown_calendar_is_a_problem_of_its_own(world: Installation) -> None:
    command = SubmitJob(
        tenant="acme",
        job_id="a",
        command_id="c",
        issued_at=NOW,
        task="t",
        payload=b"1",
        cron=NOON,
        timing=Timing(exclude=["nothing"]),
    )
    partition = partition_of(job_key("acme", "a"), PARTITIONS)
    world.log._decide(partition, command)
    row = world.services.view.parts[partition].command("acme", "c", "a")
    assert row is not None
    refused = decisions.refusal_of(row)
    assert refused.code == "unknown-calendar"
    assert [(fault.pointer, "minutebook calendar set" in fault.detail) for fault in refused.errors] == [
        ("/calendars/exclude", True)
    ]
