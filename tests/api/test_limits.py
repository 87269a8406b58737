"""Limits over HTTP: of a tenant and of jobs that name them, known to every partition before the answer."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from api import decisions
from minutebook.domain import events as facts
from tests.api.conftest import Callers
from tests.api.memory import NOW, PARTITIONS, Installation
from tests.api.runs import come

KEYED = "/v1/limits/mail.example"
TENANT_WIDE = "/v1/tenant-limit"
BOUNDS = {"concurrency": 3, "rate_count": 100, "rate_period": "PT1M"}


def limit(name: str | None, version: int, **more: object) -> dict[str, object]:
    nothing = {"concurrency": None, "rate_count": None, "rate_period": None, "paused_until": None}
    return {"name": name, "version": version, **nothing, "in_use": 0, "waiting": 0, **more}


def known_everywhere(world: Installation, tenant: str, name: str) -> list[int]:
    """The version that each partition's view and owner know; they agree."""
    copies = [part.limit(tenant, name) for part in world.services.view.parts]
    owners = [book.limits.get(f"{tenant}\0{name}".encode()) for book in world.log.books]
    versions = [0 if copy is None else copy.version for copy in copies]
    assert versions == [0 if row is None else row.version for row in owners]
    return versions


@pytest.fixture
def operator(callers: Callers) -> httpx.AsyncClient:
    return callers["operator"]


@pytest.mark.parametrize(("path", "name"), [(KEYED, "mail.example"), (TENANT_WIDE, None)])
async def test_limit_is_declared_changed_and_deleted_in_every_partition(
    path: str, name: str | None, operator: httpx.AsyncClient, world: Installation
) -> None:
    made = await operator.put(path, json=BOUNDS)
    assert (made.status_code, made.json()) == (201, limit(name, 1, **BOUNDS))
    assert made.headers["minutebook-position"]
    assert known_everywhere(world, "acme", name or "") == [1] * PARTITIONS
    again = await operator.put(path, json=BOUNDS)
    assert (again.status_code, again.json()) == (200, made.json())
    changed = await operator.put(path, json={})
    assert (changed.status_code, changed.json()) == (200, limit(name, 2))
    assert (await operator.get(path)).json() == changed.json()
    for _ in range(2):
        deleted = await operator.delete(path)
        assert (deleted.status_code, deleted.content) == (204, b"")
        assert deleted.headers["minutebook-position"]
    assert known_everywhere(world, "acme", name or "") == [3] * PARTITIONS
    assert (await operator.get(path)).status_code == 404
    assert (await operator.put(path, json={})).status_code == 201


@pytest.mark.parametrize("path", [KEYED, TENANT_WIDE])
async def test_pause_ends_by_itself_or_when_resumed(
    path: str, operator: httpx.AsyncClient, world: Installation
) -> None:
    await operator.put(path, json={"concurrency": 3})
    for until in ("PT30S", "2026-01-01T01:00:30+01:00"):
        paused = await operator.post(f"{path}/pause", json={"until": until, "reason": "429"})
        assert (paused.status_code, paused.json()["paused_until"]) == (200, "2026-01-01T00:00:30.000Z")
        assert paused.json()["concurrency"] == 3
    resumed = await operator.post(f"{path}/resume", json={"reason": "it answers again"})
    assert (resumed.status_code, resumed.json()["paused_until"]) == (200, None)
    await operator.post(f"{path}/pause", json={"until": "PT30S"})
    world.clock.advance(30_000)
    assert (await operator.get(path)).json()["paused_until"] is None


async def test_answer_waits_for_the_last_partition(
    operator: httpx.AsyncClient, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, late = world.log.append, []

    def append_late(partition: int, events: list[facts.Event], command_offset: int = -1) -> int:
        if command_offset < 0:
            late.append((partition, events))
            return -1
        return append(partition, events, command_offset)

    monkeypatch.setattr(world.log, "append", append_late)
    declaring = asyncio.create_task(operator.put(KEYED, json=BOUNDS))
    while not world.services.view._waiting and not declaring.done():
        await asyncio.sleep(0)
    assert len(late) == PARTITIONS - 1
    for partition, events in late:
        assert not declaring.done()
        append(partition, events)
    assert (await declaring).status_code == 201
    monkeypatch.setattr(decisions, "_WAIT_S", 0)
    later = await operator.delete(KEYED)
    assert later.status_code == 202
    command = (await operator.get(later.headers["location"])).json()
    assert (command["outcome"], command["job_id"]) == ("accepted", "limit:mail.example")


async def test_limits_are_listed_by_name_in_pages_the_tenants_first(
    operator: httpx.AsyncClient, world: Installation
) -> None:
    for path in ("/v1/limits/b", "/v1/limits/a", TENANT_WIDE, "/v1/limits/c", "/v1/limits/gone"):
        await operator.put(path, json={"concurrency": 1})
    await operator.delete("/v1/limits/gone")
    copy = facts.LimitCopied("acme2", "other", 1, 1, -1, -1, -1, False)
    for partition in range(PARTITIONS):
        world.log.append(partition, [copy])
    found = []
    where = "/v1/limits?limit=2"
    while where:
        answer = await operator.get(where)
        found.append([item["name"] for item in answer.json()["items"]])
        where = answer.headers.get("link", "")[1:].partition(">")[0]
    assert found == [[None, "a"], ["b", "c"]]


async def test_tenant_sees_its_limits_alone(callers: Callers) -> None:
    await callers["operator"].put(KEYED, json=BOUNDS)
    await callers["operator"].put(TENANT_WIDE, json=BOUNDS)
    other = callers["other"]
    assert (await other.get("/v1/limits")).json() == {"items": [], "next_cursor": None}
    for path in (KEYED, TENANT_WIDE):
        assert (await other.get(path)).status_code == 404
        assert (await callers["viewer"].get(path)).status_code == 200


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"concurrency": 0}, "/concurrency"),
        ({"concurrency": 100_001}, "/concurrency"),
        ({"concurrency": "3"}, "/concurrency"),
        ({"concurrency": True}, "/concurrency"),
        ({"concurrency": None}, "/concurrency"),
        ({"rate_count": 1_001, "rate_period": "PT1M"}, "/rate_count"),
        ({"rate_count": 1, "rate_period": "PT0.9S"}, "/rate_period"),
        ({"rate_count": 1, "rate_period": "soon"}, "/rate_period"),
        ({"rate_count": 1}, "/rate_period"),
        ({"rate_period": "PT1M"}, "/rate_count"),
        ({"name": "a"}, "/name"),
    ],
    ids=str,
)
async def test_senseless_bounds_are_refused_by_name(
    body: dict[str, object], pointer: str, operator: httpx.AsyncClient, world: Installation
) -> None:
    answer = await operator.put(KEYED, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert world.log.sent == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"until": 30},
        {"until": "soon"},
        {"until": "2020-01-01T00:00:00Z"},
        {"until": "PT0S"},
        {"until": "P1000D"},
    ],
    ids=str,
)
async def test_senseless_pause_is_refused_by_name(
    body: dict[str, object], operator: httpx.AsyncClient
) -> None:
    await operator.put(KEYED, json={})
    answer = await operator.post(f"{KEYED}/pause", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/until"]
    assert (await operator.get(KEYED)).json()["version"] == 1


async def test_unknown_limit_is_not_found(operator: httpx.AsyncClient) -> None:
    for name in ("nothing", "a%20b", "%00"):
        path = f"/v1/limits/{name}"
        answers = [
            await operator.get(path),
            await operator.delete(path),
            await operator.post(f"{path}/pause", json={"until": "PT1S"}),
            await operator.post(f"{path}/resume"),
        ]
        assert [answer.json()["code"] for answer in answers] == ["not-found"] * 4
    assert (await operator.put("/v1/limits/a%20b", json={})).status_code == 404


async def test_limit_shows_what_is_used_and_asked_for_at_its_home(
    operator: httpx.AsyncClient, world: Installation
) -> None:
    await operator.put(KEYED, json={"concurrency": 3})
    name, home = "mail.example", world.services.view.partition_of_limit("acme", "mail.example")

    async def shown() -> tuple[int, int]:
        found = (await operator.get(KEYED)).json()
        assert (await operator.get("/v1/limits")).json()["items"] == [found]
        return found["in_use"], found["waiting"]

    for partition, count in ((0, 2), (1, 3)):
        world.log.append(home, [facts.PermitsDemanded("acme", name, 1, partition, count, 5)])
    assert await shown() == (0, 5)
    offset = world.log.append(home, [facts.PermitsGranted("acme", name, 1, [0, 1, 0])])
    assert await shown() == (3, 2)
    world.log.append(home, [facts.PermitsReturned("acme", name, [offset << 16])])
    assert await shown() == (2, 2)
    await operator.put(KEYED, json={"concurrency": 4})
    assert await shown() == (2, 0)


@pytest.mark.parametrize("name", ["", "k"])
async def test_queued_execution_says_whether_it_waits_for_a_permit(
    name: str, operator: httpx.AsyncClient, world: Installation
) -> None:
    await operator.post("/v1/jobs", json={"id": "a", "task": "t", "limit": "k"})
    come(world, is_granted=False)
    path, here = f"/v1/executions/a:{NOW}", world.services.view.partition_of_job("acme", "a")

    async def waiting_for() -> str:
        (item,) = (await operator.get(path)).json()["attempts"]
        assert (await operator.get("/v1/jobs/a/executions")).json()["items"] == [item]
        return str(item["waiting_for"])

    limit_path = f"/v1/limits/{name}" if name else TENANT_WIDE
    await operator.put(limit_path, json={"concurrency": 3})
    assert await waiting_for() == "worker"
    world.log.append(here, [facts.PermitsAsked("acme", name, 1, 0, 2, 5)])
    assert await waiting_for() == "permit"
    world.log.append(here, [facts.PermitsReceived("acme", name, 1, [7])])
    assert await waiting_for() == "permit"
    world.log.append(here, [facts.PermitsReceived("acme", name, 1, [8])])
    assert await waiting_for() == "worker"
    await operator.post(f"{limit_path}/pause", json={"until": "PT30S"})
    assert await waiting_for() == "permit"
    world.clock.advance(30_000)
    assert await waiting_for() == "worker"
    world.log.append(here, [facts.PermitsAsked("acme", name, 2, 0, 1, 5)])
    await operator.post("/v1/queues/default/pause")
    assert await waiting_for() == "paused_queue"
    await operator.post("/v1/queues/default/resume")
    assert await waiting_for() == "permit"
    await operator.delete(limit_path)
    assert await waiting_for() == "worker"


async def test_job_shows_the_limit_that_it_names(api: httpx.AsyncClient) -> None:
    named = (await api.post("/v1/jobs", json={"id": "a", "task": "t", "limit": "mail.example"})).json()
    plain = (await api.post("/v1/jobs", json={"id": "b", "task": "t"})).json()
    assert (named["limit"], plain["limit"]) == ("mail.example", None)
    assert (await api.get("/v1/jobs/a")).json()["limit"] == "mail.example"
    other = await api.post("/v1/jobs", json={"id": "a", "task": "t", "limit": "other"})
    assert (other.status_code, other.json()["code"]) == (409, "id-exists")


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, None, 1], ids=str)
async def test_job_with_a_senseless_limit_is_refused(name: object, api: httpx.AsyncClient) -> None:
    answer = await api.post("/v1/jobs", json={"task": "t", "limit": name})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/limit")
