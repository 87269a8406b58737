"""Many jobs paused, resumed and cancelled by filter, over HTTP: dry run, start, what each job says afterwards."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api import dry_run
from tests.api.conftest import Callers
from tests.api.memory import Installation
from tests.api.runs import operate_to_the_end

RUN_AT = "2026-03-01T00:00:00Z"


@pytest.fixture
async def api(callers: Callers, world: Installation) -> httpx.AsyncClient:
    """An operator's client; there are six jobs."""
    for number in range(6):
        body = {"id": f"j{number}", "task": "send" if number % 2 else "build", "run_at": RUN_AT}
        assert (await callers["submitter"].post("/v1/jobs", json=body)).status_code == 201
    world.clock.advance(5)
    return callers["operator"]


async def start(api: httpx.AsyncClient, key: str = "k", **body: Any) -> httpx.Response:
    return await api.post("/v1/operations", json=body, headers={"idempotency-key": key})


async def ended(api: httpx.AsyncClient, world: Installation, **body: Any) -> dict[str, Any]:
    """An operation that was started, at its end."""
    answer = await start(api, **body)
    assert answer.status_code == 202, answer.text
    operate_to_the_end(world)
    return dict((await api.get(answer.headers["location"])).json())


async def statuses(api: httpx.AsyncClient) -> list[str]:
    return [(await api.get(f"/v1/jobs/j{number}")).json()["status"] for number in range(6)]


async def test_jobs_that_fit_are_paused_resumed_and_cancelled(
    api: httpx.AsyncClient, world: Installation
) -> None:
    wanted = {"task": "send"}
    found = await ended(api, world, key="1", kind="pause", filter=wanted, reason="the server is down")
    assert (found["kind"], found["state"], found["filter"]) == ("pause", "completed", wanted)
    assert found["progress"] == {"matched": 3, "done": 3, "refused": 0, "left": 0}
    assert await statuses(api) == ["active", "paused"] * 3
    paused = (await api.get("/v1/jobs/j1")).json()["paused"]
    assert paused["reason"] == "the server is down"
    world.clock.advance(5)
    assert (await ended(api, world, key="2", kind="resume", filter={}))["progress"]["done"] == 3
    assert await statuses(api) == ["active"] * 6
    world.clock.advance(5)
    assert (await ended(api, world, key="3", kind="cancel", filter={"job_prefix": "j0"}))["progress"][
        "done"
    ] == 1
    assert await statuses(api) == ["cancelled", *["active"] * 5]


async def test_a_dry_run_counts_and_changes_nothing(
    api: httpx.AsyncClient, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = await api.post("/v1/operations", json={"kind": "cancel", "filter": {}, "dry_run": True})
    assert answer.status_code == 200, answer.text
    counts = [
        {"status": "active", "task": task, "queue": "default", "count": 3} for task in ("build", "send")
    ]
    assert answer.json() == {"matched": 6, "complete": True, "jobs": counts}
    assert await statuses(api) == ["active"] * 6
    none = await api.post("/v1/operations", json={"kind": "resume", "filter": {}, "dry_run": True})
    assert none.json() == {"matched": 0, "complete": True, "jobs": []}
    monkeypatch.setattr(dry_run, "LOOKED_AT_MAX", 3)
    monkeypatch.setattr(dry_run, "_SLICE", 2)
    some = await api.post("/v1/operations", json={"kind": "pause", "filter": {}, "dry_run": True})
    assert (some.json()["matched"], some.json()["complete"]) == (3, False)


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"task": "build"},
        {"queue": "mail"},
        {"status": "paused"},
        {"job_prefix": "j1"},
        {"created_until": "2026-01-01T00:00:00Z"},
        {"created_from": "2026-01-01T00:00:00Z"},
    ],
)
async def test_a_dry_run_and_the_operation_mean_the_same(
    wanted: dict[str, str], api: httpx.AsyncClient, world: Installation
) -> None:
    dry = await api.post("/v1/operations", json={"kind": "pause", "filter": wanted, "dry_run": True})
    found = await ended(api, world, kind="pause", filter=wanted)
    assert dry.json()["matched"] == found["progress"]["matched"] == found["progress"]["done"]
    assert found["filter"] == {name: _shown(text) for name, text in wanted.items()}


def _shown(text: str) -> str:
    return text.replace("Z", ".000Z") if text.endswith("Z") else text


async def test_other_tenants_jobs_are_not_meant(
    callers: Callers, api: httpx.AsyncClient, world: Installation
) -> None:
    body = {"id": "theirs", "task": "send", "run_at": RUN_AT}
    assert (await callers["other"].post("/v1/jobs", json=body)).status_code == 201
    world.clock.advance(5)
    assert (await ended(api, world, kind="cancel", filter={}))["progress"]["done"] == 6
    assert (await callers["other"].get("/v1/jobs/theirs")).json()["status"] == "active"


async def test_who_may_not_operate_is_refused(callers: Callers) -> None:
    answer = await start(callers["submitter"], kind="pause", filter={})
    assert answer.status_code == 403
