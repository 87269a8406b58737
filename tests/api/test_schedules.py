"""Previews over HTTP: what an expression means and its next instants; nothing is written."""

from __future__ import annotations

import httpx
import pytest

from minutebook.client.models import PREVIEW_MAX, Preview
from tests.api.conftest import Callers
from tests.api.memory import Installation

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
            },
            {"utc": "2026-03-30T00:30:00Z", "local": "2026-03-30T02:30:00+02:00", "note": None},
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


REFUSED: dict[str, tuple[dict[str, object], str]] = {
    "C16 hashed value without a job": ({"cron": "H H * * *"}, "cron"),
    "C18 seven fields, year past": ({"cron": "0 0 0 1 1 * 1969"}, "cron"),
    "C20 sixth Friday": ({"cron": "0 0 * * 5#6"}, "cron"),
    "C25 interval": ({"cron": "@every 1s"}, "cron"),
    "no cron": ({}, "cron"),
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
