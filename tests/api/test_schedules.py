"""Previews over HTTP: what an expression means and its next instants; nothing is written."""

from __future__ import annotations

import httpx
import pytest

from api.crowding import CROWDED_MIN
from minutebook.client.preview_models import PREVIEW_MAX, Preview
from minutebook.domain.jitter import due_at
from minutebook.times import parse_instant
from tests.api.conftest import Callers
from tests.api.memory import Installation
from tests.api.runs import come

DAY_MS = 86_400_000
PATH = "/v1/schedules/preview"


async def test_preview_tells_meaning_and_instants(callers: Callers, world: Installation) -> None:
    body = {"cron": "30 2 * * *", "zone": "Europe/Berlin", "after": "2026-03-28T13:00:00+01:00", "count": 2}
    answer = await callers["viewer"].post(PATH, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "description": "At 02:30",
        "items": [
            {
                "utc": "2026-03-29T01:00:00Z",
                "local": "2026-03-29T03:00:00+02:00",
                "note": "the clock goes from 2026-03-29 02:00:00 to 03:00:00: once, here, for the times left out",
                "due_in_minute": 0,
            },
            {
                "utc": "2026-03-30T00:30:00Z",
                "local": "2026-03-30T02:30:00+02:00",
                "note": None,
                "due_in_minute": 0,
            },
        ],
    }
    assert world.log.sent == []


async def test_preview_begins_now_and_shows_ten(api: httpx.AsyncClient) -> None:
    answer = (await api.post(PATH, json={"cron": "@daily"})).json()
    assert [item["utc"] for item in answer["items"]] == [
        f"2026-01-{day:02}T00:00:00Z" for day in range(2, 12)
    ]
    assert Preview(**answer).description == "At 00:00"


@pytest.mark.row("C17")
async def test_preview_shows_every_second(api: httpx.AsyncClient) -> None:
    answer = (await api.post(PATH, json={"cron": "* * * * * *", "count": 2})).json()
    assert [item["utc"] for item in answer["items"]] == ["2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"]


@pytest.mark.row("C23", "C31")
async def test_preview_says_whether_either_day_or_both(api: httpx.AsyncClient) -> None:
    body = {"cron": "0 4 1 1 fri", "count": 1}
    either = (await api.post(PATH, json=body)).json()
    assert either["description"] == "At 04:00, on day 1 of the month or on Friday, in January"
    both = (await api.post(PATH, json=body | {"day_match": "and"})).json()
    assert both["description"] == "At 04:00, on day 1 of the month if it is Friday, in January"
    assert both["items"][0]["utc"] == "2027-01-01T04:00:00Z"


async def test_gap_and_fold_are_chosen(api: httpx.AsyncClient) -> None:
    body = {"cron": "30 2 * * *", "zone": "Europe/Berlin", "count": 1}
    skipped = (await api.post(PATH, json=body | {"after": "2026-03-28T12:00:00Z", "gap": "skip"})).json()
    assert skipped["items"][0]["utc"] == "2026-03-30T00:30:00Z"
    last = (await api.post(PATH, json=body | {"after": "2026-10-24T12:00:00Z", "fold": "last"})).json()
    assert last["items"][0]["utc"] == "2026-10-25T01:30:00Z"


@pytest.mark.row("Z11")
async def test_preview_shows_the_offset_of_a_zone_without_summer_time(api: httpx.AsyncClient) -> None:
    body = {"cron": "0 12 1 1,7 *", "zone": "EST", "count": 2}
    answer = (await api.post(PATH, json=body)).json()
    assert [(item["local"], item["note"]) for item in answer["items"]] == [
        ("2026-01-01T12:00:00-05:00", None),
        ("2026-07-01T12:00:00-05:00", None),
    ]


@pytest.mark.row("C19", "C26")
@pytest.mark.parametrize(("cron", "other"), [("0 0 * * 7", "0 0 * * 0"), ("@yearly", "0 0 1 1 *")])
async def test_preview_of_one_meaning_is_one_for_every_job(
    cron: str, other: str, api: httpx.AsyncClient
) -> None:
    answers = [
        (await api.post(PATH, json={"cron": text, "job_id": job_id})).json()
        for text in (cron, other)
        for job_id in ("a", "b")
    ]
    assert all(answer == answers[0] for answer in answers)
    assert len(answers[0]["items"]) == 10


@pytest.mark.row("C16")
async def test_preview_of_a_hashed_value_is_the_instant_of_the_job(api: httpx.AsyncClient) -> None:
    seen = (await api.post(PATH, json={"cron": "H H * * *", "job_id": "nightly", "count": 1})).json()
    made = await api.post("/v1/jobs", json={"task": "t", "id": "nightly", "cron": "H H * * *"})
    assert made.json()["next_at"] == seen["items"][0]["utc"].replace("Z", ".000Z")


async def test_interval_counts_from_its_start_or_else_from_after(api: httpx.AsyncClient) -> None:
    body: dict[str, object] = {"every": "PT90M", "after": "2026-06-01T10:00:00Z", "count": 2}
    answer = (await api.post(PATH, json=body)).json()
    assert answer["description"] == "Every 1 hour 30 minutes"
    assert [item["utc"] for item in answer["items"]] == ["2026-06-01T11:30:00Z", "2026-06-01T13:00:00Z"]
    bounds = {"start_at": "2026-06-02T00:15:00Z", "end_at": "2026-06-02T01:45:00Z"}
    bounded = (await api.post(PATH, json=body | bounds)).json()
    assert [item["utc"] for item in bounded["items"]] == ["2026-06-02T00:15:00Z"]
    del body["every"]
    same = (await api.post(PATH, json=body | {"cron": "@every 90m"})).json()
    assert same["items"] == answer["items"]


async def test_jitter_is_that_of_the_job(api: httpx.AsyncClient) -> None:
    body = {"cron": "@hourly", "jitter": "PT10M", "count": 3}
    unnamed = (await api.post(PATH, json=body)).json()
    assert unnamed["description"] == "At minute 0 of every hour, each up to 10 minutes later"
    assert all("due_at" not in item for item in unnamed["items"])
    named = (await api.post(PATH, json=body | {"job_id": "tick"})).json()
    for item in named["items"]:
        at = parse_instant(item["utc"])
        assert parse_instant(item["due_at"]) == due_at("acme", "tick", at, 600_000)


async def test_preview_counts_what_is_due_in_the_minute(callers: Callers, world: Installation) -> None:
    api, midnight = callers["submitter"], "2026-01-02T00:00:30Z"
    for _ in range(2):
        await api.post("/v1/jobs", json={"task": "t", "run_at": midnight})
    made = await api.post("/v1/jobs", json={"task": "t", "cron": "@daily"})
    await callers["other"].post("/v1/jobs", json={"task": "t", "run_at": midnight})
    items = (await api.post(PATH, json={"cron": "@daily", "count": 2})).json()["items"]
    assert [item["due_in_minute"] for item in items] == [3, 0]
    assert all("hint" not in item for item in items)
    await api.delete(made.headers["location"])
    world.clock.advance(DAY_MS + 60_000)
    come(world)
    body = {"cron": "@daily", "count": 2, "after": "2026-01-01T00:00:00Z"}
    assert [item["due_in_minute"] for item in (await api.post(PATH, json=body)).json()["items"]] == [0, 0]


async def test_dates_that_calendars_leave_out_have_no_instants(callers: Callers) -> None:
    await callers["operator"].put("/v1/calendars/holidays", json={"dates": ["2026-01-03"]})
    await callers["operator"].put(
        "/v1/calendars/early", json={"dates": [{"first": "2026-01-01", "last": "2026-01-04"}]}
    )
    body = {"cron": "@daily", "calendars": {"exclude": ["holidays"], "include": ["early"]}}
    items = (await callers["submitter"].post(PATH, json=body)).json()["items"]
    assert [item["utc"][:10] for item in items] == ["2026-01-02", "2026-01-04"]
    answer = await callers["other"].post(PATH, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown-calendar")
    pointers = [error["pointer"] for error in answer.json()["errors"]]
    assert pointers == ["/calendars/exclude", "/calendars/include"]


async def test_crowded_minute_has_a_hint(api: httpx.AsyncClient) -> None:
    def jobs(cron: str, count: int) -> list[dict[str, str]]:
        return [{"task": "t", "cron": cron} for _ in range(count)]

    async def hints(cron: str) -> list[str | None]:
        body = {"cron": cron, "zone": "Asia/Kathmandu", "count": 2}
        return [item.get("hint") for item in (await api.post(PATH, json=body)).json()["items"]]

    batch = jobs("15 7 * * *", CROWDED_MIN - 1) + jobs("14 7 * * *", 1) + jobs("16 7 * * *", 2)
    await api.post("/v1/jobs/batch", json={"jobs": batch}, headers={"idempotency-key": "k"})
    assert await hints("0 13 * * *") == [None, None]
    await api.post("/v1/jobs", json={"task": "t", "cron": "15 7 * * *"})
    # In Nepal it is 5 h 45 min later; the next day has no job yet.
    assert await hints("0 13 * * *") == [
        "busy minute: try 07:13Z, where 0 are due, or spread it by jitter",
        None,
    ]


REFUSED: dict[str, tuple[dict[str, object], str]] = {
    "C16 hashed value without a job": ({"cron": "H H * * *"}, "cron"),
    "C18 seven fields, year past": ({"cron": "0 0 0 1 1 * 1969"}, "cron"),
    "C20 sixth Friday": ({"cron": "0 0 * * 5#6"}, "cron"),
    "C25 interval of nothing": ({"cron": "@every 0s"}, "cron"),
    "no rule": ({}, "cron"),
    "two rules": ({"cron": "@daily", "every": "PT1H"}, "every"),
    "Z28 interval 0 s": ({"every": "PT0S"}, "every"),
    "Z30 interval of a month": ({"every": "P1M"}, "every"),
    "Z27 end before start": (
        {"every": "PT1H", "start_at": "2031-01-01T00:00:00Z", "end_at": "2030-01-01T00:00:00Z"},
        "end_at",
    ),
    "jitter": ({"cron": "@daily", "jitter": "P2D"}, "jitter"),
    "overlap": ({"cron": "@daily", "overlap": "skip"}, "overlap"),
    "null": ({"cron": None}, "cron"),
    "zone that is not": ({"cron": "@daily", "zone": "Mars/Base"}, "zone"),
    "zone that is no text": ({"cron": "@daily", "zone": 1}, "zone"),
    "naive start": ({"cron": "@daily", "after": "2026-01-01T00:00:00"}, "after"),
    "too many": ({"cron": "@daily", "count": PREVIEW_MAX + 1}, "count"),
    "none": ({"cron": "@daily", "count": 0}, "count"),
    "half": ({"cron": "@daily", "count": 1.5}, "count"),
    "gap": ({"cron": "@daily", "gap": "later"}, "gap"),
    "fold": ({"cron": "@daily", "fold": "second"}, "fold"),
    "day_match": ({"cron": "@daily", "day_match": "xor"}, "day_match"),
    "job_id": ({"cron": "@daily", "job_id": "a/b"}, "job_id"),
    "unknown": ({"cron": "@daily", "task": "t"}, "task"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_refused_preview_names_the_field(name: str, api: httpx.AsyncClient) -> None:
    body, field = REFUSED[name]
    answer = await api.post(PATH, json=body)
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/{field}"]
    assert answer.json()["errors"][0]["detail"]


async def test_name_given_twice_is_refused(api: httpx.AsyncClient) -> None:
    content = b'{"cron": "@daily", "cron": "@hourly"}'
    answer = await api.post(PATH, content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed-json")
