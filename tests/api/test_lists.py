"""Lists over all jobs and executions, and the overview: filtered, in order, in pages, for one tenant alone."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api import lists
from minutebook.times import format_instant
from tests.api.conftest import Callers
from tests.api.memory import NOW, Installation
from tests.api.runs import come, fail, succeed
from tests.api.test_jobs import create

HOUR = 3_600_000


async def items(api: httpx.AsyncClient, where: str) -> list[Any]:
    """All items of a list, by the links from page to page; every page says the same of the next one twice."""
    found: list[Any] = []
    following: str | None = where
    while following is not None:
        answer = await api.get(following)
        assert answer.status_code == 200, answer.text
        found += answer.json()["items"]
        link = answer.headers.get("link")
        assert (link is None) == (answer.json()["next_cursor"] is None)
        following = None if link is None else link[1:].partition(">")[0]
    return found


async def jobs(api: httpx.AsyncClient, query: str = "") -> list[str]:
    return [item["id"] for item in await items(api, f"/v1/jobs?{query}")]


async def executions(api: httpx.AsyncClient, query: str = "") -> list[str]:
    return [item["job_id"] for item in await items(api, f"/v1/executions?{query}")]


async def made(world: Installation, api: httpx.AsyncClient, *names: str, **fields: Any) -> None:
    """Jobs that are due at once, a second apart."""
    for name in names:
        answer = await create(api, {"id": name, "task": "t", **fields})
        assert answer.status_code == 201, answer.text
        world.clock.advance(1_000)


# -- jobs


@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_jobs_are_listed_by_creation(api: httpx.AsyncClient, world: Installation, limit: int) -> None:
    await made(world, api, "b", "a", "d", "c", "e")
    assert await jobs(api, f"limit={limit}") == ["e", "c", "d", "a", "b"]
    assert await jobs(api, f"order=created&limit={limit}") == ["b", "a", "d", "c", "e"]


async def test_item_is_the_job_as_it_stands(api: httpx.AsyncClient, world: Installation) -> None:
    await made(world, api, "a", tags=["x"], cron="0 0 * * *")
    assert await items(api, "/v1/jobs") == [(await api.get("/v1/jobs/a")).json()]


async def test_jobs_are_filtered(api: httpx.AsyncClient, world: Installation) -> None:
    await made(world, api, "a", "b", tags=["x", "y"])
    await made(world, api, "c", task="u", tags=["y"])
    come(world)
    succeed(world, f"a:{NOW}")
    assert await jobs(api, "status=completed") == ["a"]
    assert await jobs(api, "status=active") == ["c", "b"]
    assert await jobs(api, "task=u") == ["c"]
    assert await jobs(api, "tag=y") == ["c", "b", "a"]
    assert await jobs(api, "tag=x&status=active") == ["b"]
    assert await jobs(api, "tag=y&task=t&status=completed") == ["a"]
    assert await jobs(api, "queue=default&task=t") == ["b", "a"]
    assert await jobs(api, "queue=other") == []
    assert await jobs(api, "from=2026-01-01T00:00:01Z") == ["c", "b"]
    assert await jobs(api, "from=2026-01-01T00:00:01Z&until=2026-01-01T00:00:02Z") == ["b"]


def at(seconds: int) -> str:
    """The instant so long after the start, as it stands in an address."""
    return format_instant(NOW + seconds * 1_000)


@pytest.mark.parametrize("limit", [1, 100])
async def test_jobs_are_listed_by_their_next_instant(
    api: httpx.AsyncClient, world: Installation, limit: int
) -> None:
    for name, seconds in (("c", 300), ("a", 600), ("b", 300), ("late", 660), ("paused", 400)):
        await made(world, api, name, run_at=at(seconds), tags=["x"] if name == "a" else [])
    await made(world, api, "hourly", cron="0 * * * *")
    await api.post("/v1/jobs/paused/pause", json={})
    window = f"due_from={at(300)}&due_until={at(660)}&limit={limit}"
    assert await jobs(api, window) == ["b", "c", "a"]
    assert await jobs(api, f"{window}&order=-due") == ["a", "c", "b"]
    assert await jobs(api, f"{window}&tag=x") == ["a"]
    assert await jobs(api, f"{window}&order=created") == ["c", "a", "b"]
    assert await jobs(api, f"{window}&from={at(1)}") == ["b", "a"]
    assert await jobs(api, f"order=due&limit={limit}") == ["b", "c", "a", "late", "hourly"]
    world.clock.advance(NOW + 300_000 - world.clock.now())
    come(world)
    assert await jobs(api, window) == ["a"]
    assert await jobs(api, f"due_from={at(660)}") == ["late", "hourly"]
    await api.patch("/v1/jobs/late", json={"run_at": at(500)})
    await api.post("/v1/jobs/paused/resume", json={})
    await api.delete("/v1/jobs/a")
    assert await jobs(api, window) == ["paused", "late"]


async def test_edited_job_is_found_by_what_it_is_now(api: httpx.AsyncClient, world: Installation) -> None:
    await made(world, api, "a", tags=["x"], run_at="2030-01-01T00:00:00Z")
    answer = await api.patch("/v1/jobs/a", json={"task": "u", "tags": ["z"]})
    assert answer.json()["tags"] == ["z"]
    assert await jobs(api, "tag=x") == await jobs(api, "task=t") == []
    assert await jobs(api, "tag=z") == await jobs(api, "task=u") == ["a"]
    assert (await api.patch("/v1/jobs/a", json={"tags": None})).json()["tags"] == []
    assert await jobs(api, "tag=z") == []


@pytest.mark.parametrize(
    ("tags", "pointer"),
    [
        ([f"t{number}" for number in range(17)], "/tags"),
        (["a", "b c"], "/tags/1"),
        ([""], "/tags/0"),
        (["a", "b", "a"], "/tags/2"),
        ("a", "/tags"),
        ([1], "/tags"),
        (None, "/tags"),
    ],
)
async def test_senseless_tags_are_refused(
    api: httpx.AsyncClient, world: Installation, tags: object, pointer: str
) -> None:
    answer = await create(api, {"task": "t", "tags": tags})
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert world.log.sent == []


async def test_sixteen_tags_are_kept_in_order(api: httpx.AsyncClient) -> None:
    tags = [f"t{number}" for number in range(16, 0, -1)]
    assert (await create(api, {"id": "a", "task": "t", "tags": tags})).json()["tags"] == tags


# -- executions


async def test_executions_are_listed_by_instant(api: httpx.AsyncClient, world: Installation) -> None:
    await made(world, api, "b", "a", "c")
    come(world)
    assert await executions(api, "limit=2") == ["c", "a", "b"]
    assert await executions(api, "order=scheduled&limit=1") == ["b", "a", "c"]


async def test_item_tells_where_an_execution_stands(api: httpx.AsyncClient, world: Installation) -> None:
    await made(world, api, "a")
    come(world)
    fail(world, f"a:{NOW}", "Boom")
    at, then = "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.000Z"
    assert await items(api, "/v1/executions") == [
        {
            "execution_id": f"a:{NOW}",
            "job_id": "a",
            "task": "t",
            "queue": "default",
            "status": "failed",
            "outcome": "dead",
            "attempt": 1,
            "scheduled_at": at,
            "due_at": at,
            "queued_at": then,
            "started_at": then,
            "ended_at": then,
            "worker": "worker-1",
            "error": {"type": "Boom", "message": "why"},
            "reason": None,
            "count": None,
        }
    ]


@pytest.mark.parametrize("of_job", ["", "&job_id=a"])
async def test_executions_are_filtered(api: httpx.AsyncClient, world: Installation, of_job: str) -> None:
    await made(world, api, "a", cron="* * * * *", retry={"max_attempts": 1})
    for outcome in ("succeeded", "Boom", "Bang", "running"):
        world.clock.advance(60_000 - world.clock.now() % 60_000)
        come(world)
        name = f"a:{world.clock.now()}"
        if outcome == "succeeded":
            succeed(world, name)
        elif outcome != "running":
            fail(world, name, outcome)
        world.clock.advance(1_000)

    async def listed(query: str) -> list[int]:
        found = await items(api, f"/v1/executions?{query}{of_job}&limit=1")
        return [(int(item["execution_id"][2:]) - NOW) // 60_000 for item in found]

    assert await listed("") == [4, 3, 2, 1]
    assert await listed("order=scheduled") == [1, 2, 3, 4]
    assert await listed("status=succeeded") == [1]
    assert await listed("status=failed") == [3, 2]
    assert await listed("status=running") == [4]
    assert await listed("error_type=Boom") == [2]
    assert await listed("error_type=Boom&status=succeeded") == []
    assert await listed("task=t&queue=default&order=scheduled") == [1, 2, 3, 4]
    assert await listed("task=u") == await listed("queue=u") == []
    assert await listed("from=2026-01-01T00:02:00Z&until=2026-01-01T00:04:00Z") == [3, 2]


async def test_run_now_is_listed_under_its_id(api: httpx.AsyncClient, world: Installation) -> None:
    await made(world, api, "a", cron="0 0 1 1 *")
    answer = await api.post("/v1/jobs/a/run-now")
    found = await items(api, "/v1/executions?status=scheduled")
    assert [item["execution_id"] for item in found] == [answer.json()["execution_id"]]
    assert await items(api, "/v1/executions?job_id=a") == found


async def test_page_ends_early_where_few_fit(
    api: httpx.AsyncClient, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "LOOKED_AT_MAX", 2)
    await made(world, api, *"abcdefg")
    come(world)
    succeed(world, f"a:{NOW}")
    page = (await api.get("/v1/executions?task=t&status=succeeded")).json()
    assert len(page["items"]) == 1
    assert await jobs(api, "task=t&status=completed") == await executions(api, "job_id=a") == ["a"]


# -- both


async def test_lists_are_of_one_tenant(callers: Callers, world: Installation) -> None:
    await made(world, callers["submitter"], "a", "b")
    await made(world, callers["other"], "c")
    come(world)
    for api, found in ((callers["viewer"], ["b", "a"]), (callers["other"], ["c"])):
        assert await jobs(api) == await executions(api) == found
        assert (await api.get("/v1/overview")).json()["jobs"] == {"active": len(found)}


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("/v1/jobs?status=open", "status"),
        ("/v1/jobs?order=id", "order"),
        ("/v1/jobs?job_id=a", "job_id"),
        ("/v1/jobs?tag=a%20b", "tag"),
        ("/v1/jobs?task=", "task"),
        ("/v1/jobs?from=yesterday", "from"),
        ("/v1/jobs?limit=0", "limit"),
        ("/v1/jobs?status=active&status=dead", "status"),
        ("/v1/jobs?due_from=2026-01-01", "due_from"),
        ("/v1/executions?order=due", "order"),
        ("/v1/executions?due_from=2026-01-01T00:00:00Z", "due_from"),
        ("/v1/executions?status=active", "status"),
        ("/v1/executions?order=created", "order"),
        ("/v1/executions?tag=a", "tag"),
        ("/v1/executions?error_type=", "error_type"),
        (f"/v1/executions?error_type={'a' * 257}", "error_type"),
        ("/v1/executions?until=2026-01-01", "until"),
        ("/v1/overview?status=active", "status"),
    ],
)
async def test_senseless_query_is_refused(api: httpx.AsyncClient, where: str, name: str) -> None:
    answer = await api.get(where)
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [name]


async def test_cursor_is_good_for_its_list_alone(callers: Callers, world: Installation) -> None:
    await made(world, callers["submitter"], "a", "b")
    api = callers["submitter"]
    cursor = (await api.get("/v1/jobs?limit=1")).json()["next_cursor"]
    assert (await api.get(f"/v1/jobs?limit=5&cursor={cursor}")).status_code == 200
    assert (await api.get(f"/v1/jobs?order=created&cursor={cursor}")).status_code == 400
    assert (await api.get(f"/v1/jobs?status=active&cursor={cursor}")).status_code == 400
    assert (await api.get(f"/v1/executions?cursor={cursor}")).status_code == 400
    assert (await callers["other"].get(f"/v1/jobs?cursor={cursor}")).status_code == 400


# -- overview


async def test_overview_counts(api: httpx.AsyncClient, world: Installation) -> None:
    await made(world, api, "a", "b", "c")
    await made(world, api, "soon", run_at="2026-01-01T00:03:00Z")
    await made(world, api, "later", run_at="2026-01-01T00:30:00Z")
    come(world)
    succeed(world, f"a:{NOW}")
    fail(world, f"b:{NOW + 1_000}")
    found = (await api.get("/v1/overview")).json()
    assert found["jobs"] == {"active": 3, "completed": 1, "dead": 1}
    assert found["executions"] == {"succeeded": 1, "failed": 1, "running": 1}
    assert found["due"] == {"in_1m": 0, "in_5m": 1, "in_60m": 2}
    assert found["started_per_min"] == [0] * 59 + [3]
    # They started 5, 4 and 3 s after they were due.
    late = found["lateness"]
    assert (late["p50_ms"] // 1_000, late["p99_ms"] // 1_000, late["of_last_s"]) == (4, 5, 3_600)
    assert found["oldest_overdue_at"] is None


async def test_overview_of_nothing(api: httpx.AsyncClient) -> None:
    found = (await api.get("/v1/overview")).json()
    assert (found["jobs"], found["executions"], found["oldest_overdue_at"]) == ({}, {}, None)
    assert found["lateness"] == {"p50_ms": None, "p99_ms": None, "of_last_s": 3_600}


async def test_oldest_overdue_waits_in_a_queue_or_for_its_owner(
    api: httpx.AsyncClient, world: Installation
) -> None:
    await made(world, api, "a")
    come(world, is_granted=False)
    assert (await api.get("/v1/overview")).json()["oldest_overdue_at"] == "2026-01-01T00:00:00.000Z"
    world.clock.advance(HOUR)
    await made(world, api, "b", run_at="2025-12-31T23:59:00Z")
    assert (await api.get("/v1/overview")).json()["oldest_overdue_at"] == "2025-12-31T23:59:00.000Z"
