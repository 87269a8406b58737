"""The list of alerts: the latest first, in pages, for one tenant alone; and where a job says its alerts go."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.notifier.settings import NotifySettings
from api.notifier.targets import Targets
from minutebook.domain import events as facts
from minutebook.domain.view_rows import ALERTS_KEPT
from tests.api.conftest import Callers
from tests.api.memory import NOW, PARTITIONS, Installation
from tests.api.test_dead_letters import give_up, pages
from tests.api.test_http_targets import TARGETS
from tests.api.test_jobs import create

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
URL = "https://hooks.example/alerts?from=minutebook"


@pytest.fixture
def world(world: Installation) -> Installation:
    """An installation in which `acme` has a secret."""
    world.services.targets = Targets(NotifySettings(targets={"acme": {"secret": SECRET}}))  # type: ignore[dict-item]
    return world


async def listed(api: httpx.AsyncClient, query: str = "") -> list[list[str]]:
    """Ids of the jobs on each page."""
    return await pages(api, query, "/v1/alerts")


def raise_one(world: Installation, partition: int, number: int, tenant: str = "acme") -> None:
    alert = facts.AlertRaised(
        tenant, "task_unknown", "", "", f"t{number}", "default", world.clock.now(), "nobody", "", 0, b"{}"
    )
    world.log.append(partition, [alert])


async def test_item_tells_what_happened(api: httpx.AsyncClient, world: Installation) -> None:
    await give_up(world, api, ["a"], payload={"secret": 1}, notify=URL)
    (item,) = (await api.get("/v1/alerts")).json()["items"]
    assert item.pop("id")
    assert item == {
        "kind": "execution_dead",
        "at": "2026-01-01T00:00:00.000Z",
        "job_id": "a",
        "execution_id": f"a:{NOW}",
        "task": "t",
        "queue": "default",
        "text": f"a:{NOW} was given up at attempt 1 (permanent): E: why",
        "left_out": 0,
        "details": {"attempt": 1, "cause": "permanent", "error_type": "E", "generation": 0},
    }


async def test_latest_come_first_and_pages_lose_nothing_at_equal_times(
    api: httpx.AsyncClient, world: Installation
) -> None:
    early, late = [f"e{number:02}" for number in range(15)], [f"l{number:02}" for number in range(15)]
    await give_up(world, api, early)
    world.clock.advance(1)
    await give_up(world, api, late)
    view = world.services.view
    assert {view.partition_of_job("acme", name) for name in early} == set(range(PARTITIONS))
    for limit in (1, 7, 30, 31):
        found = [name for page in await listed(api, f"limit={limit}") for name in page]
        assert sorted(found[:15]) == late
        assert sorted(found[15:]) == early


async def test_what_is_raised_between_pages_comes_before_them(
    api: httpx.AsyncClient, world: Installation
) -> None:
    await give_up(world, api, ["a"])
    world.clock.advance(1)
    await give_up(world, api, ["b"])
    first = (await api.get("/v1/alerts?limit=1")).json()
    world.clock.advance(1)
    await give_up(world, api, ["c"])
    rest = (await api.get("/v1/alerts", params={"cursor": first["next_cursor"]})).json()
    assert [item["job_id"] for item in first["items"] + rest["items"]] == ["b", "a"]


async def test_each_partition_keeps_the_latest_of_a_tenant(
    api: httpx.AsyncClient, callers: Callers, world: Installation
) -> None:
    raise_one(world, 1, 0, tenant="other")
    for number in range(ALERTS_KEPT + 5):
        raise_one(world, 1, number)
        world.clock.advance(1)
    raise_one(world, 2, 1_000)
    tasks = [item["task"] for item in (await api.get("/v1/alerts?limit=1000")).json()["items"]]
    assert tasks == ["t1000", *(f"t{number}" for number in range(ALERTS_KEPT + 4, 4, -1))]
    assert len((await callers["other"].get("/v1/alerts")).json()["items"]) == 1


async def test_kind_is_a_filter(api: httpx.AsyncClient, world: Installation) -> None:
    await give_up(world, api, ["a"])
    raise_one(world, 0, 1)
    assert await listed(api, "kind=execution_dead") == [["a"]]
    assert await listed(api, "kind=task_unknown") == [[None]]
    assert await listed(api, "kind=attempt_stuck") == [[]]


async def test_other_tenant_sees_nothing_and_cannot_use_the_cursor(
    callers: Callers, world: Installation
) -> None:
    api, other = callers["submitter"], callers["other"]
    await give_up(world, api, ["a", "b"])
    assert await listed(other) == [[]]
    cursor = (await api.get("/v1/alerts?limit=1")).json()["next_cursor"]
    for client, query in [(other, {}), (api, {"kind": "execution_dead"})]:
        answer = await client.get("/v1/alerts", params={"cursor": cursor, **query})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "cursor")


@pytest.mark.parametrize("query", ["kind=bored", "task=t", "kind=task_unknown&kind=task_unknown", "limit=0"])
async def test_senseless_query_is_refused(query: str, api: httpx.AsyncClient) -> None:
    answer = await api.get(f"/v1/alerts?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-parameter")


# -- notify


async def test_job_shows_where_its_alerts_go(api: httpx.AsyncClient, world: Installation) -> None:
    await create(api, {"id": "a", "task": "t", "notify": URL})
    await create(api, {"id": "b", "task": "t"})
    assert (await api.get("/v1/jobs/a")).json()["notify"] == URL
    assert (await api.get("/v1/jobs/b")).json()["notify"] == ""


async def test_same_id_with_another_notify_is_another_body(
    api: httpx.AsyncClient, world: Installation
) -> None:
    await create(api, {"id": "a", "task": "t", "notify": URL})
    again = await api.post("/v1/jobs", json={"id": "a", "task": "t", "notify": URL})
    assert again.status_code == 201
    other = await api.post("/v1/jobs", json={"id": "a", "task": "t", "notify": URL + "&x"})
    assert (other.status_code, other.json()["code"]) == (409, "id-exists")


LATER = ("U18 name that changes", "U19 redirect to metadata")
"""Only a connection shows what they are: tests/unit/test_notifier_posts.py."""


@pytest.mark.parametrize("name", sorted(TARGETS.keys() - LATER))
async def test_address_that_must_not_be_called_is_refused(
    name: str, api: httpx.AsyncClient, world: Installation
) -> None:
    answer = await api.post("/v1/jobs", json={"task": "t", "notify": TARGETS[name]})
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/notify"]
    assert world.log.sent == []


MORE: dict[str, Any] = {
    "number": 1,
    "null": None,
    "no URL": "hooks",
    "no host": "https:///x",
    "http": "http://hooks.example/",
    "private": "https://10.1.2.3/",
    "2,049 characters": "https://hooks.example/" + "a" * 2_027,
    "backslash": "https://hooks.example\\@10.0.0.1/",
    "zone of an address": "https://[fe80::1%25eth0]/",
}


@pytest.mark.parametrize("name", MORE)
async def test_notify_that_is_no_public_https_url_is_refused(
    name: str, api: httpx.AsyncClient, world: Installation
) -> None:
    answer = await api.post("/v1/jobs", json={"task": "t", "notify": MORE[name]})
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/notify"]
    assert world.log.sent == []


async def test_longest_notify_is_taken(api: httpx.AsyncClient, world: Installation) -> None:
    longest = "https://hooks.example/" + "a" * 2_026
    assert len(longest) == 2_048
    await create(api, {"id": "a", "task": "t", "notify": longest})


async def test_tenant_without_a_secret_cannot_name_a_target(callers: Callers, world: Installation) -> None:
    answer = await callers["other"].post("/v1/jobs", json={"task": "t", "notify": URL})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["pointer"], "MINUTEBOOK_NOTIFY_TARGETS" in error["detail"]) == ("/notify", True)


async def test_batch_refuses_the_one_alone(api: httpx.AsyncClient, world: Installation) -> None:
    jobs = [{"task": "t", "notify": "https://127.0.0.1/"}, {"task": "t", "notify": URL}]
    answer = await api.post("/v1/jobs/batch", json={"jobs": jobs}, headers={"idempotency-key": "k"})
    assert [item["status"] for item in answer.json()["items"]] == [422, 201]
