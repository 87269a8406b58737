"""Server-sent events: what listeners are told, what they miss and get again, and that none holds up the fold."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import httpx
import pytest

from api.live import changes as live
from api.positions import Token, encode_token
from minutebook.domain import events as facts
from tests.api.conftest import Callers
from tests.api.memory import Installation, installation
from tests.api.runs import SESSION, come, fail, succeed
from tests.api.streams import Reader

MINUTE_MS = 60_000


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "TURN_S", 0.01)


def reader(world: Installation, query: str = "", key: str = "key-viewer", last: str | None = None) -> Reader:
    return Reader(world.app, key, query, last)


async def create(api: httpx.AsyncClient, name: str, **more: object) -> None:
    answer = await api.post("/v1/jobs", json={"id": name, "task": "t", **more})
    assert answer.status_code == 201, answer.text


async def test_listener_is_told_how_everything_stands_after_each_turn(
    api: httpx.AsyncClient, callers: Callers, world: Installation
) -> None:
    async with reader(world) as stream:
        assert (await stream.next()).name == "position"
        assert (stream.status, stream.headers["content-type"][:17]) == (200, "text/event-stream")
        await create(api, "a")
        assert await stream.changes() == [("job", "a", "active")]
        world.clock.advance(MINUTE_MS)
        come(world)
        name = (await api.get("/v1/jobs/a/executions")).json()["items"][0]["execution_id"]
        assert ("execution", name, "running") in await stream.changes()
        fail(world, name)
        event = await stream.next("changes")
        told = {change["kind"]: change for change in event.data["changes"]}
        assert told["execution"] | {"position": "", "at": ""} == {
            "kind": "execution",
            "id": name,
            "status": "failed",
            "outcome": "dead",
            "job_id": "a",
            "at": "",
            "position": "",
        }
        assert (told["job"]["status"], told["job"]["position"]) == ("dead", told["execution"]["position"])
        assert event.id == encode_token(world.services.view.reached())


async def test_several_changes_of_a_subject_are_one(api: httpx.AsyncClient, world: Installation) -> None:
    async with reader(world) as stream:
        await stream.next("position")
        world.log.is_held = True
        for name in ("a", "b"):
            await api.post("/v1/jobs", json={"id": name, "task": "t"}, headers={"prefer": "respond-async"})
        await api.delete("/v1/jobs/a", headers={"prefer": "respond-async"})
        world.log.release()
        assert sorted(await stream.changes()) == [("job", "a", "cancelled"), ("job", "b", "active")]


async def test_purged_job_is_told(callers: Callers, world: Installation) -> None:
    await create(callers["submitter"], "a")
    await callers["submitter"].delete("/v1/jobs/a")
    async with reader(world) as stream:
        await stream.next("position")
        answer = await callers["operator"].post("/v1/jobs/a/purge", json={"reason": "on request"})
        assert answer.status_code == 204, answer.text
        assert await stream.changes() == [("job", "a", "purged")]


async def test_tenants_are_kept_apart_and_queues_shown_to_those_who_may_use_them(
    callers: Callers, world: Installation
) -> None:
    async with (
        reader(world) as ours,
        reader(world, key="key-other") as others,
        reader(world, key="key-operator") as operators,
    ):
        for stream in (ours, others, operators):
            await stream.next("position")
        await callers["operator"].post("/v1/queues", json={"name": "q", "tenants": ["other"]})
        await create(callers["other"], "theirs", queue="q")
        await create(callers["submitter"], "mine")
        assert await operators.changes() == [("queue", "q", "open")]
        told = {change for _ in range(2) for change in await others.changes()}
        assert told == {("queue", "q", "open"), ("job", "theirs", "active")}
        assert await ours.changes() == [("job", "mine", "active")]
        assert await operators.changes() == [("job", "mine", "active")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("job_id=a", {("job", "a", "active"), ("execution", "a", "running")}),
        ("task=t2", {("job", "b", "active"), ("execution", "b", "running")}),
        ("queue=q", {("job", "b", "active"), ("execution", "b", "running"), ("queue", "q", "open")}),
        ("status=running", {("execution", "a", "running"), ("execution", "b", "running")}),
    ],
)
async def test_filter_leaves_out_what_was_not_asked_for(
    query: str, expected: set[tuple[str, str, str]], callers: Callers, world: Installation
) -> None:
    async with reader(world, query) as stream:
        await stream.next("position")
        await callers["operator"].post("/v1/queues", json={"name": "q"})
        await create(callers["submitter"], "a")
        await create(callers["submitter"], "b", task="t2", queue="q")
        world.clock.advance(MINUTE_MS)
        come(world)
        told: set[tuple[str, str, str]] = set()
        while not told >= expected:
            told |= {(kind, name.partition(":")[0], status) for kind, name, status in await stream.changes()}
        assert told == expected


async def test_who_comes_back_is_told_what_it_missed(api: httpx.AsyncClient, world: Installation) -> None:
    async with reader(world) as stream:
        await stream.next("position")
        await create(api, "a")
        await stream.changes()
        seen = stream.last_id
    async with reader(world) as staying:
        await staying.next("position")
        for name in ("b", "c"):
            await create(api, name)
            await staying.changes()
        async with reader(world, last=seen) as again:
            assert sorted(await again.changes()) == [("job", "b", "active"), ("job", "c", "active")]
            seen = again.last_id
        async with reader(world, last=seen) as again:
            assert (await again.next()).name == "position"


async def test_what_is_no_longer_kept_is_told_as_a_reset(
    api: httpx.AsyncClient, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "KEPT_MAX", 1)
    async with reader(world) as stream:
        seen = (await stream.next("position")).id
        for name in ("a", "b", "c"):
            await create(api, name)
            await stream.changes()
        latest = stream.last_id
        for last in (seen, "senseless", encode_token(Token())):
            async with reader(world, last=last) as again:
                event = await again.next()
                assert (event.name, event.id) == ("reset", latest)


async def test_too_many_changes_at_once_are_told_as_a_reset(
    api: httpx.AsyncClient, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "TOLD_MAX", 1)
    async with reader(world) as stream:
        await stream.next("position")
        await api.post(
            "/v1/jobs/batch",
            json={"jobs": [{"id": f"j{n}", "task": "t"} for n in range(40)]},
            headers={"idempotency-key": "k"},
        )
        event = await stream.next("reset")
        assert event.data == {"reason": "too much has changed at once"}


async def test_slow_listener_loses_messages_is_told_so_and_holds_up_nobody(
    api: httpx.AsyncClient, world: Installation
) -> None:
    async with reader(world) as slow, reader(world) as quick:
        for stream in (slow, quick):
            await stream.next("position")
        slow.taking.clear()
        for number in range(live.QUEUED_MAX + 4):
            await create(api, f"j{number}")
            await quick.changes()
        slow.taking.set()
        assert await slow.changes() == [("job", "j0", "active")]
        event = await slow.next()
        assert (event.name, event.data) == ("reset", {"reason": "this listener is too slow"})
        await create(api, "last")
        while ("job", "last", "active") not in await slow.changes():
            pass


async def test_fold_is_left_alone_while_nobody_listens(
    api: httpx.AsyncClient, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LINGER_S", 0.01)
    view = world.services.view
    assert view.heard is None
    async with reader(world) as stream:
        await stream.next("position")
        assert view.heard is not None
    world.clock.advance(1_000)
    async with asyncio.timeout(10):
        while view.heard is not None:
            await asyncio.sleep(0.01)
    assert len(world.services.live) == 0


async def test_quiet_stream_is_kept_alive_and_says_where_it_is(
    api: httpx.AsyncClient, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "KEEP_ALIVE_S", 0.05)
    async with reader(world, "job_id=nothing") as stream:
        first = (await stream.next("position")).id
        await create(api, "a")
        while stream.last_id == first:
            assert (await stream.next()).data is None


async def test_stream_ends_with_the_process_and_after_its_time(world: Installation) -> None:
    async with reader(world) as stream:
        await stream.next("position")
        world.services.live.close()
        with pytest.raises(EOFError):
            await stream.next()
    async with reader(world) as stream:
        await stream.next("position")
        world.clock.advance(15 * MINUTE_MS)
        world.log.append(0, [facts.SessionStarted(SESSION, "w", ["t"], 10_000, 3_000)])
        assert await stream.changes() == [("worker", "w", "changed")]
        with pytest.raises(EOFError):
            await stream.next()


async def test_fifty_streams_are_told_the_same(api: httpx.AsyncClient, world: Installation) -> None:
    async with AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(reader(world)) for _ in range(50)]
        for stream in streams:
            await stream.next("position")
        assert len(world.services.live) == 50
        await create(api, "a")
        world.clock.advance(MINUTE_MS)
        assert {tuple(await stream.changes()) for stream in streams} == {(("job", "a", "active"),)}
        come(world)
        name = (await api.get("/v1/jobs/a/executions")).json()["items"][0]["execution_id"]
        succeed(world, name)
        for stream in streams:
            while ("execution", name, "succeeded") not in await stream.changes():
                pass
    assert len(world.services.live) == 0


async def test_more_streams_than_set_are_refused() -> None:
    world = installation()
    world.services.settings = world.services.settings.model_copy(update={"streams_max": 1})
    async with reader(world) as stream:
        await stream.next("position")
        async with reader(world) as refused:
            assert (await refused.next()).data is None
            assert (refused.status, refused.headers["retry-after"]) == (503, "15")


@pytest.mark.parametrize("query", ["job_id=a%20b", "task=", "status=" + "a" * 33, "x=1", "job_id=a&job_id=b"])
async def test_senseless_filter_is_refused_by_name(query: str, api: httpx.AsyncClient) -> None:
    answer = await api.get(f"/v1/stream?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-parameter")
    assert [error["pointer"] for error in answer.json()["errors"]] == [query.partition("=")[0]]
