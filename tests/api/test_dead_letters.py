"""The list of what was given up: over all partitions, in one order, in pages, filtered, for one tenant alone."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.routes import dead_letters
from tests.api.conftest import Callers
from tests.api.memory import NOW, PARTITIONS, Installation
from tests.api.runs import come, fail
from tests.api.test_jobs import create

AT = "2026-01-01T00:00:00.000Z"


async def give_up(world: Installation, api: httpx.AsyncClient, names: list[str], **fields: Any) -> None:
    """Jobs whose one execution is given up now."""
    at = world.clock.now()
    for name in names:
        await create(api, {"id": name, "task": "t", **fields})
    come(world)
    for name in names:
        fail(world, f"{name}:{at}", fields.get("task", "E"))


async def pages(api: httpx.AsyncClient, query: str, path: str = "/v1/dead-letters") -> list[list[str]]:
    """Ids of the jobs on each page, by the links from one to the next."""
    found = []
    where: str | None = f"{path}?{query}"
    while where is not None:
        answer = await api.get(where)
        assert answer.status_code == 200, answer.text
        found.append([item["job_id"] for item in answer.json()["items"]])
        link = answer.headers.get("link")
        assert (link is None) == (answer.json()["next_cursor"] is None)
        where = None if link is None else link[1:].partition(">")[0]
    return found


async def test_item_tells_what_was_given_up_and_why(api: httpx.AsyncClient, world: Installation) -> None:
    await give_up(world, api, ["a"], payload={"secret": 1})
    answer = await api.get("/v1/dead-letters")
    assert answer.json()["items"] == [
        {
            "execution_id": f"a:{NOW}",
            "job_id": "a",
            "task": "t",
            "queue": "default",
            "given_up_at": AT,
            "cause": "permanent",
            "error": {"type": "E", "message": "why"},
            "attempt": 1,
            "generation": 0,
        }
    ]


async def test_pages_repeat_and_lose_nothing_at_equal_times(
    api: httpx.AsyncClient, world: Installation
) -> None:
    names = [f"j{number:02}" for number in range(30)]
    await give_up(world, api, names)
    view = world.services.view
    assert {view.partition_of_job("acme", name) for name in names} == set(range(PARTITIONS))
    for limit in (1, 7, 30, 31):
        found = await pages(api, f"limit={limit}")
        assert [name for page in found for name in page] == names
        assert all(len(page) == limit for page in found[:-1])


async def test_earliest_come_first_whatever_their_names_and_partitions(
    api: httpx.AsyncClient, world: Installation
) -> None:
    order = ["z", "m", "a", "q", "c"]
    for name in order:
        await give_up(world, api, [name])
        world.clock.advance(1)
    assert await pages(api, "limit=2") == [["z", "m"], ["a", "q"], ["c"]]


async def test_what_is_given_up_between_pages_comes_at_the_end(
    api: httpx.AsyncClient, world: Installation
) -> None:
    await give_up(world, api, ["a", "b", "c"])
    first = (await api.get("/v1/dead-letters?limit=2")).json()
    world.clock.advance(1)
    await give_up(world, api, ["aa"])
    rest = (await api.get("/v1/dead-letters", params={"cursor": first["next_cursor"]})).json()
    assert [item["job_id"] for item in rest["items"]] == ["c", "aa"]


async def test_redriven_one_is_listed_no_more(callers: Callers, world: Installation) -> None:
    api = callers["submitter"]
    await give_up(world, api, ["a", "b"])
    first = (await api.get("/v1/dead-letters?limit=1")).json()
    await callers["operator"].post(f"/v1/executions/b:{NOW}/redrive")
    rest = await api.get("/v1/dead-letters", params={"cursor": first["next_cursor"]})
    assert rest.json() == {"items": [], "next_cursor": None}
    assert await pages(api, "") == [["a"]]


async def test_filters_name_task_queue_error_and_cause(callers: Callers, world: Installation) -> None:
    api = callers["submitter"]
    await callers["operator"].post("/v1/queues", json={"name": "mail"})
    await give_up(world, api, ["a"], task="x")
    await give_up(world, api, ["b"], task="y", queue="mail")
    for query, names in [
        ("task=x", ["a"]),
        ("queue=mail", ["b"]),
        ("error_type=y", ["b"]),
        ("cause=permanent", ["a", "b"]),
        ("cause=losses", []),
        ("task=x&queue=mail", []),
        ("error_type=a%26b%3D", []),
    ]:
        assert await pages(api, query) == [names], query


async def test_page_of_a_rare_filter_ends_early_and_goes_on(
    api: httpx.AsyncClient, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "LOOKED_AT_MAX", 2)
    await give_up(world, api, ["a", "b", "c"])
    await give_up(world, api, ["d"], task="rare")
    assert await pages(api, "task=rare") == [[], ["d"]]


async def test_other_tenant_sees_nothing_and_cannot_use_the_cursor(
    callers: Callers, world: Installation
) -> None:
    api, other = callers["submitter"], callers["other"]
    await give_up(world, api, ["a", "b"])
    assert await pages(other, "") == [[]]
    cursor = (await api.get("/v1/dead-letters?limit=1")).json()["next_cursor"]
    for client, query in [(other, {}), (api, {"task": "t"}), (api, {"cause": "losses"})]:
        answer = await client.get("/v1/dead-letters", params={"cursor": cursor, **query})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "cursor")


@pytest.mark.parametrize("query", ["cause=bored", "status=dead", "task=a&task=b", "limit=0"])
async def test_senseless_query_is_refused(query: str, api: httpx.AsyncClient) -> None:
    answer = await api.get(f"/v1/dead-letters?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-parameter")


async def test_a_discarded_one_leaves_the_list_and_the_overview_and_stays_on_record(
    callers: Callers, world: Installation
) -> None:
    api = callers["operator"]
    await give_up(world, api, ["a", "b"])
    name = f"a:{NOW}"
    answer = await api.post(f"/v1/executions/{name}/discard", json={"reason": "sent by hand"})
    assert answer.status_code == 200, answer.text
    assert answer.json() == (await api.get(f"/v1/executions/{name}")).json()
    assert answer.json()["outcome"] == "dead"
    told = answer.json()["discarded"]
    assert (told["at"], told["reason"], told["operation"]) == (AT, "sent by hand", None)
    assert told["actor"]
    assert await pages(api, "") == [["b"]]
    overview = (await api.get("/v1/overview")).json()
    assert (overview["dead_letters"], overview["executions"]) == (1, {"failed": 2})
    refused = await api.post(f"/v1/executions/{name}/redrive")
    assert (refused.status_code, refused.json()["code"]) == (409, "discarded")
    again = await api.post(f"/v1/executions/{name}/discard", json={"reason": "once more"})
    assert again.json()["discarded"] == told


async def test_what_is_not_dead_is_not_discarded(callers: Callers, world: Installation) -> None:
    api = callers["operator"]
    await create(api, {"id": "a", "task": "t"})
    come(world)
    refused = await api.post(f"/v1/executions/a:{NOW}/discard")
    assert (refused.status_code, refused.json()["code"]) == (409, "not-dead")
    assert (await api.post("/v1/executions/b:1/discard")).status_code == 404
