"""The past over HTTP: events of a job with their places, and why something ran or did not; for one tenant alone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from api import history
from minutebook.errors import LogGapError
from minutebook.log.port import RawRecord
from minutebook.times import format_instant
from tests.api.conftest import Callers
from tests.api.memory import NOW, Installation
from tests.api.runs import come, fail, succeed

MINUTE = 60_000


class MemoryRecords:
    """The logs in memory; `is_away`: the broker is not there."""

    def __init__(self, world: Installation) -> None:
        self._world = world
        self.is_away = False

    async def read(self, partition: int, end: int) -> AsyncIterator[RawRecord]:
        if self.is_away:
            raise LogGapError("away")
        for record in self._world.log.logs[partition][:end]:
            yield record


@pytest.fixture
def records(world: Installation) -> MemoryRecords:
    found = world.services.records = MemoryRecords(world)
    return found


@pytest.fixture
async def nightly(callers: Callers, world: Installation, records: MemoryRecords) -> str:
    """A minutely job that ran, failed, and was paused."""
    api = callers["operator"]
    body = {"id": "nightly", "task": "t", "cron": "* * * * *", "retry": {"max_attempts": 1}}
    assert (await api.post("/v1/jobs", json=body)).status_code == 201
    world.clock.advance(MINUTE)
    come(world)
    succeed(world, f"nightly:{NOW + MINUTE}", b'{"rows": 7}')
    world.clock.advance(MINUTE)
    come(world)
    fail(world, f"nightly:{NOW + 2 * MINUTE}")
    answer = await api.post("/v1/jobs/nightly/pause", json={"reason": "the feed is broken"})
    assert answer.status_code == 200
    return "nightly"


async def test_events_of_a_job_are_told_in_order_in_pages(callers: Callers, nightly: str) -> None:
    api = callers["viewer"]
    whole = (await api.get(f"/v1/jobs/{nightly}/events")).json()
    kinds = [item["kind"] for item in whole["items"]]
    assert kinds[:3] == ["submitted", "due_granted", "succeeded"]
    assert kinds[-1] == "paused"
    assert "dead" in kinds
    assert whole["items"][-1]["text"].endswith(": the feed is broken")
    assert whole["items"][2]["said"]["result"] == '{"rows": 7}'
    assert len({item["id"] for item in whole["items"]}) == len(kinds)
    found, url = [], f"/v1/jobs/{nightly}/events?limit=2"
    while True:
        page = (await api.get(url)).json()
        found += page["items"]
        if page["next_cursor"] is None:
            break
        url = f"/v1/jobs/{nightly}/events?limit=2&cursor={page['next_cursor']}"
    assert found == whole["items"]


@pytest.mark.parametrize(
    ("at", "verdict", "codes"),
    [
        (NOW + MINUTE, "ran", ["definition", "succeeded"]),
        (NOW + 2 * MINUTE, "dead", ["definition", "failed", "dead"]),
        (NOW + 2 * MINUTE + 1, "not_an_instant", ["definition", "not_an_instant"]),
        (NOW - MINUTE, "before_the_job", ["definition", "submitted"]),
    ],
)
async def test_why_is_answered(
    at: int, verdict: str, codes: list[str], callers: Callers, nightly: str
) -> None:
    answer = await callers["viewer"].get(f"/v1/jobs/{nightly}/why", params={"at": format_instant(at)})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["verdict"], [reason["code"] for reason in found["reasons"]]) == (verdict, codes)
    if verdict in ("ran", "dead"):
        same = (await callers["viewer"].get(f"/v1/executions/{found['execution_id']}/why")).json()
        assert same == found


async def test_why_of_what_was_asked_for_now(callers: Callers, nightly: str, world: Installation) -> None:
    started = await callers["submitter"].post(f"/v1/jobs/{nightly}/run-now")
    name = started.json()["execution_id"]
    found = (await callers["viewer"].get(f"/v1/executions/{name}/why")).json()
    assert (found["verdict"], found["reasons"][1]["code"]) == ("waiting", "requested")
    come(world)
    succeed(world, name)
    assert (await callers["viewer"].get(f"/v1/executions/{name}/why")).json()["verdict"] == "ran"


async def test_what_is_asked_wrongly_is_refused(callers: Callers, nightly: str) -> None:
    api = callers["viewer"]
    assert (await api.get(f"/v1/jobs/{nightly}/why")).status_code == 400
    assert (await api.get(f"/v1/jobs/{nightly}/why?at=soon")).status_code == 400
    for path in ("/v1/jobs/none/events", "/v1/executions/none:5/why", "/v1/executions/x/why"):
        assert (await api.get(path)).status_code == 404
    for path in (f"/v1/jobs/{nightly}/events", f"/v1/executions/{nightly}:{NOW + MINUTE}/why"):
        assert (await callers["other"].get(path)).status_code == 404
    assert (await api.get("/v1/executions/nightly:rnone/why")).status_code == 404


async def test_a_log_that_cannot_be_read_is_said(
    callers: Callers,
    nightly: str,
    records: MemoryRecords,
    monkeypatch: pytest.MonkeyPatch,
    world: Installation,
) -> None:
    api, path = callers["viewer"], f"/v1/jobs/{nightly}/events"
    records.is_away = True
    answer = await api.get(path)
    assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")
    records.is_away = False
    monkeypatch.setattr(history, "RECORDS_MAX", 2)
    answer = await api.get(path)
    assert (answer.status_code, answer.json()["code"]) == (422, "history-too-long")
    monkeypatch.undo()
    assert (await api.get(path)).status_code == 200
    world.services.records = None
    assert (await api.get(path)).json()["code"] == "history-too-long"
