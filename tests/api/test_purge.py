"""Purging over HTTP: by operators, of closed jobs, once."""

from __future__ import annotations

import httpx
import pytest

from tests.api.conftest import Callers
from tests.api.memory import Installation
from tests.api.test_jobs import create

AT = "2030-01-01T00:00:00Z"


@pytest.fixture
def operator(callers: Callers) -> httpx.AsyncClient:
    return callers["operator"]


async def closed(api: httpx.AsyncClient, job_id: str = "a") -> None:
    await create(api, {"id": job_id, "task": "t", "run_at": AT, "tags": ["x"]})
    assert (await api.delete(f"/v1/jobs/{job_id}")).status_code == 204


async def test_purged_job_is_found_nowhere(api: httpx.AsyncClient, operator: httpx.AsyncClient) -> None:
    await closed(api)
    answer = await operator.post("/v1/jobs/a/purge", json={"reason": "asked to"})
    assert (answer.status_code, answer.content) == (204, b"")
    after = {"minutebook-after": answer.headers["minutebook-position"]}
    assert (await api.get("/v1/jobs/a", headers=after)).status_code == 404
    assert (await api.get("/v1/jobs/a/executions")).status_code == 404
    assert (await api.get("/v1/jobs?tag=x")).json()["items"] == []


async def test_purge_again_is_done_already(api: httpx.AsyncClient, operator: httpx.AsyncClient) -> None:
    await closed(api)
    keyed = {"idempotency-key": "k"}
    answers = [(await operator.post("/v1/jobs/a/purge", headers=keyed)).status_code for _ in range(2)]
    assert [*answers, (await operator.post("/v1/jobs/a/purge")).status_code] == [204, 204, 204]


async def test_what_is_not_closed_is_not_purged(api: httpx.AsyncClient, operator: httpx.AsyncClient) -> None:
    await create(api, {"id": "a", "task": "t", "run_at": AT})
    answer = await operator.post("/v1/jobs/a/purge")
    assert (answer.status_code, answer.json()["code"]) == (409, "not-closed")
    assert (await operator.post("/v1/jobs/b/purge")).status_code == 404
    assert (await operator.post("/v1/jobs/a%20b/purge")).status_code == 404


async def test_id_of_a_purged_job_is_taken(api: httpx.AsyncClient, operator: httpx.AsyncClient) -> None:
    await closed(api)
    await operator.post("/v1/jobs/a/purge")
    answer = await create(api, {"id": "a", "task": "t", "run_at": AT, "tags": ["x"]})
    assert (answer.status_code, answer.json()["code"]) == (409, "id-exists")


async def test_purge_that_takes_long_is_a_command(
    api: httpx.AsyncClient, operator: httpx.AsyncClient, world: Installation
) -> None:
    await closed(api)
    world.log.is_held = True
    answer = await operator.post("/v1/jobs/a/purge", headers={"prefer": "respond-async"})
    assert answer.status_code == 202
    world.log.release()
    assert (await operator.get(answer.headers["location"])).json()["outcome"] == "accepted"
