"""Problems: a page behind each type, and the frame that a key's rate is told in."""

from __future__ import annotations

import msgspec
import pytest

from api.problems import TABLE
from api.rates import Rates
from tests.api.conftest import Callers
from tests.api.memory import Installation


@pytest.mark.parametrize("code", TABLE)
async def test_type_of_a_problem_leads_to_its_page(code: str, callers: Callers) -> None:
    page = await callers["nobody"].get(f"/problems/{code}")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert TABLE[code].title in page.text
    assert code in page.text


async def test_unknown_problem_has_no_page(callers: Callers) -> None:
    answer = await callers["nobody"].get("/problems/<script>")
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


def limited(world: Installation, per_s: float, burst: int) -> None:
    world.services.rates = Rates(per_s, burst)


async def test_key_that_asks_too_often_is_told_when_to_come_back(
    callers: Callers, world: Installation
) -> None:
    limited(world, per_s=0.5, burst=2)
    api = callers["submitter"]
    left = [(await api.get("/v1/jobs/a")).headers["ratelimit"] for _ in range(2)]
    assert left == ['"key";r=1;t=2', '"key";r=0;t=4']
    refused = await api.post("/v1/jobs", json={"task": "t"})
    assert (refused.status_code, refused.json()["code"]) == (429, "rate-limited")
    assert refused.headers["retry-after"] == "2"
    assert refused.headers["ratelimit-policy"] == '"key";q=2;w=4'
    assert world.log.sent == []
    assert (await callers["viewer"].get("/v1/jobs/a")).status_code == 404
    world.clock.advance(1_999)
    assert (await api.get("/v1/jobs/a")).status_code == 429
    world.clock.advance(1)
    assert (await api.post("/v1/jobs", json={"task": "t"})).status_code == 201


async def test_bucket_holds_no_more_than_its_burst(callers: Callers, world: Installation) -> None:
    limited(world, per_s=10, burst=3)
    world.clock.advance(3_600_000)
    found = [(await callers["submitter"].get("/v1/jobs/a")).status_code for _ in range(4)]
    assert found == [404, 404, 404, 429]


async def test_nothing_is_told_of_rates_where_none_is_set(callers: Callers, world: Installation) -> None:
    assert world.services.settings.rate_per_s == 0
    assert "ratelimit" not in (await callers["submitter"].get("/v1/jobs/a")).headers


async def test_credential_that_is_unknown_takes_no_room(callers: Callers, world: Installation) -> None:
    limited(world, per_s=1, burst=1)
    for number in range(3):
        answer = await callers["nobody"].get("/v1/jobs/a", headers={"authorization": f"Bearer {number}"})
        assert answer.status_code == 401
    assert (await callers["submitter"].get("/v1/jobs/a")).status_code == 404


async def test_key_of_one_action_means_nothing_for_another(callers: Callers, world: Installation) -> None:
    """Else a run-now after a pause under one key would be answered as done, and nothing would run."""
    api, headers = callers["submitter"], {"idempotency-key": "k"}
    await api.post("/v1/jobs", json={"id": "a", "task": "t", "cron": "0 7 * * *"})
    paused = await api.post("/v1/jobs/a/pause", json={"reason": ""}, headers=headers)
    resumed = await api.post("/v1/jobs/a/resume", json={"reason": ""}, headers=headers)
    edited = await api.patch("/v1/jobs/a", json={"priority": 9}, headers=headers)
    run = await api.post("/v1/jobs/a/run-now", headers=headers)
    assert [answer.json().get("status") for answer in (paused, resumed, edited)] == [
        "paused",
        "active",
        "active",
    ]
    assert edited.json()["priority"] == 9
    job = msgspec.json.decode((await api.get("/v1/jobs/a")).content)
    assert (run.status_code, job["executions"]["open"]) == (200, 1)
    again = await api.post("/v1/jobs/a/run-now", headers=headers)
    assert again.json() == run.json()
