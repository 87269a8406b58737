"""Queues over HTTP: who sees which, and a pause that every partition knows before the answer."""

from __future__ import annotations

import asyncio

import pytest

from api import decisions
from minutebook.domain import events as facts
from tests.api.conftest import Callers
from tests.api.memory import PARTITIONS, Installation

DEFAULT = {"name": "default", "version": 0, "tenants": [], "open": False, "paused": False, "draining": False}


async def test_default_is_always_there(callers: Callers) -> None:
    viewer = callers["viewer"]
    assert (await viewer.get("/v1/queues")).json() == {"items": [DEFAULT], "next_cursor": None}
    assert (await viewer.get("/v1/queues/default")).json() == DEFAULT


async def test_queues_are_listed_by_name_in_pages(callers: Callers) -> None:
    for name in ("mail", "a", "zoo"):
        await callers["operator"].post("/v1/queues", json={"name": name})
    found = []
    where = "/v1/queues?limit=2"
    while where:
        answer = await callers["viewer"].get(where)
        found.append([item["name"] for item in answer.json()["items"]])
        where = answer.headers.get("link", "")[1:].partition(">")[0]
    assert found == [["a", "default"], ["mail", "zoo"]]


async def test_tenant_sees_its_queues_and_no_other_tenant(callers: Callers) -> None:
    operator, other = callers["operator"], callers["other"]
    await operator.post("/v1/queues", json={"name": "ours", "tenants": ["acme"]})
    await operator.post("/v1/queues", json={"name": "both", "tenants": ["acme", "other"]})
    assert [item["name"] for item in (await other.get("/v1/queues")).json()["items"]] == ["both", "default"]
    assert (await other.get("/v1/queues/both")).json()["tenants"] == ["other"]
    assert (await operator.get("/v1/queues/both")).json()["tenants"] == ["acme", "other"]
    foreign, missing = await other.get("/v1/queues/ours"), await other.get("/v1/queues/nothing")
    assert foreign.status_code == missing.status_code == 404
    assert foreign.json() | {"trace_id": ""} == missing.json() | {"trace_id": ""}


@pytest.mark.parametrize("name", ["default", "mail"])
async def test_paused_queue_is_paused_in_every_partition(
    name: str, callers: Callers, world: Installation
) -> None:
    operator, view = callers["operator"], world.services.view
    await operator.post("/v1/queues", json={"name": "mail", "tenants": ["acme"]})
    for verb, is_paused in [("pause", True), ("pause", True), ("resume", False), ("resume", False)]:
        answer = await operator.post(f"/v1/queues/{name}/{verb}", json={"reason": "night"})
        assert (answer.status_code, answer.json()["paused"]) == (200, is_paused)
        assert answer.headers["minutebook-position"]
        copies = [view.queue(partition, name) for partition in range(PARTITIONS)]
        assert [copy is not None and copy.is_paused for copy in copies] == [is_paused] * PARTITIONS
        assert (await operator.get(f"/v1/queues/{name}")).json() == answer.json()
    assert (await operator.get("/v1/queues/mail")).json()["tenants"] == ["acme"]


async def test_draining_queue_takes_no_job_until_it_is_resumed(callers: Callers) -> None:
    operator, submitter = callers["operator"], callers["submitter"]
    drained = await operator.post("/v1/queues/default/drain", json={"reason": "moved"})
    assert (drained.status_code, drained.json()["draining"]) == (200, True)
    refused = await submitter.post("/v1/jobs", json={"task": "t"})
    assert (refused.status_code, refused.json()["code"]) == (409, "queue-draining")
    assert "resume" in refused.json()["errors"][0]["detail"]
    batch = await submitter.post(
        "/v1/jobs/batch", json={"jobs": [{"task": "t"}]}, headers={"idempotency-key": "k"}
    )
    assert batch.json()["items"][0]["problem"]["code"] == "queue-draining"
    assert (await operator.post("/v1/queues/default/resume")).json()["draining"] is False
    assert (await submitter.post("/v1/jobs", json={"task": "t"})).status_code == 201


async def test_pause_waits_for_the_last_partition(
    callers: Callers, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = callers["operator"]
    append, late = world.log.append, []

    def append_late(partition: int, events: list[facts.Event], command_offset: int = -1) -> int:
        if command_offset < 0:
            late.append((partition, events))
            return -1
        return append(partition, events, command_offset)

    monkeypatch.setattr(world.log, "append", append_late)
    pausing = asyncio.create_task(operator.post("/v1/queues/default/pause"))
    while not world.services.view._waiting and not pausing.done():
        await asyncio.sleep(0)
    assert len(late) == PARTITIONS - 1
    for partition, events in late:
        assert not pausing.done()
        append(partition, events)
    assert (await pausing).json()["paused"] is True
    monkeypatch.setattr(decisions, "_WAIT_S", 0)
    assert (await operator.post("/v1/queues/default/resume")).status_code == 202


async def test_unknown_queue_is_not_paused(callers: Callers) -> None:
    for name in ("nothing", "a%20b", "%00"):
        for verb in ("pause", "resume"):
            answer = await callers["operator"].post(f"/v1/queues/{name}/{verb}")
            assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


async def test_change_of_a_paused_queue_leaves_it_paused(callers: Callers) -> None:
    operator = callers["operator"]
    await operator.post("/v1/queues", json={"name": "mail"})
    await operator.post("/v1/queues/mail/pause")
    answer = await operator.post("/v1/queues", json={"name": "mail", "tenants": ["acme"]})
    assert (answer.status_code, answer.json()["paused"], answer.json()["version"]) == (200, True, 3)
