"""Due counts over HTTP, by minute, hour and day; and the partitions."""

from __future__ import annotations

import httpx
import pytest

from api.positions import decode_token
from minutebook.domain import events as facts
from minutebook.log.port import RawRecord
from tests.api.conftest import Callers
from tests.api.memory import NOW, PARTITIONS, Installation
from tests.api.runs import come

START = "2026-01-01T00:00:00.000Z"


async def buckets(api: httpx.AsyncClient, query: str = "") -> dict[str, int]:
    answer = await api.get(f"/v1/upcoming{query}")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["total"] == sum(bucket["due"] for bucket in body["buckets"])
    return {bucket["at"][:16]: bucket["due"] for bucket in body["buckets"] if bucket["due"]}


async def test_jobs_are_counted_at_their_next_instants(callers: Callers, world: Installation) -> None:
    api = callers["submitter"]
    for at in ("00:05:00", "00:05:59", "02:00:00"):
        await api.post("/v1/jobs", json={"task": "t", "run_at": f"2026-01-01T{at}Z"})
    await api.post("/v1/jobs", json={"task": "t", "cron": "0 6 * * *"})
    await callers["other"].post("/v1/jobs", json={"task": "t", "run_at": "2026-01-01T00:05:00Z"})
    assert await buckets(api) == {"2026-01-01T00:05": 2, "2026-01-01T02:00": 1}
    assert await buckets(api, "?by=hour") == {
        "2026-01-01T00:00": 2,
        "2026-01-01T02:00": 1,
        "2026-01-01T06:00": 1,
    }
    assert await buckets(api, "?by=day") == {"2026-01-01T00:00": 4}
    world.clock.advance(7 * 3_600_000)
    come(world)
    assert await buckets(api, "?by=day") == {"2026-01-02T00:00": 1}
    assert await buckets(api, "?by=hour&from=2026-01-02T05:59:59Z&until=2026-01-02T06:00:01Z") == {
        "2026-01-02T06:00": 1
    }


@pytest.mark.parametrize(("by", "count"), [("minute", 180), ("hour", 168), ("day", 92)])
async def test_range_is_whole_bounded_and_full_of_buckets(
    by: str, count: int, api: httpx.AsyncClient
) -> None:
    body = (await api.get(f"/v1/upcoming?by={by}")).json()
    assert (body["by"], len(body["buckets"]), body["buckets"][0]["at"]) == (by, count, START)
    odd = await api.get(f"/v1/upcoming?by={by}&from=2026-01-01T00:00:30Z&until=2026-01-01T00:00:31Z")
    assert [bucket["at"] for bucket in odd.json()["buckets"]] == [START]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("by=second", "by"),
        ("from=soon", "from"),
        ("from=1969-12-31T00:00:00Z", "from"),
        ("from=9999-12-31T00:00:00Z", "from"),
        ("from=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "until"),
        ("from=2026-01-01T00:00:00Z&until=2026-01-01T03:00:01Z", "until"),
        ("by=hour&until=2027-01-01T00:00:00Z", "until"),
        ("until=", "until"),
        ("tz=UTC", "tz"),
    ],
)
async def test_senseless_range_is_refused_by_name(query: str, name: str, api: httpx.AsyncClient) -> None:
    answer = await api.get(f"/v1/upcoming?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-parameter")
    assert [error["pointer"] for error in answer.json()["errors"]] == [name]


async def test_partitions_say_who_owns_them_and_how_far_they_are_read(
    callers: Callers, world: Installation
) -> None:
    operator = callers["operator"]
    untouched = (await operator.get("/v1/partitions")).json()["items"][1]
    assert (untouched["owner"], untouched["owned_since"], untouched["ahead_of_broker_ms"]) == (
        None,
        None,
        None,
    )
    assert (untouched["applied_offset"], untouched["end_offset"]) == (-1, 0)
    world.services.view.take(0, RawRecord(0, NOW, None, b"no frame"))
    assert (await operator.get("/v1/partitions")).json()["items"][0]["void_frames"] == 1
    world.clock.advance(5)
    world.log.append(1, [facts.OwnershipTaken("host-1", 1, 0, 0)])
    world.ready.lag = {1: 7}
    world.ready.catch_up.note(0.0, {1: 1}, {1: 17})
    world.ready.catch_up.note(2.0, {1: 11}, {1: 7})
    world.ready.reason = "the view is still reading the log"
    body = (await operator.get("/v1/partitions")).json()
    assert len(body["items"]) == PARTITIONS
    assert body["items"][1] == {
        "id": 1,
        "owner": "host-1",
        "epoch": 1,
        "owned_since": "2026-01-01T00:00:00.005Z",
        "applied_offset": 0,
        "end_offset": 8,
        "lag": 7,
        "read_per_s": 5.0,
        "ready_in_s": 2,
        "commands_through": -1,
        "void_frames": 0,
        "last_decided_at": "2026-01-01T00:00:00.005Z",
        "last_stamped_at": "2026-01-01T00:00:00.005Z",
        "ahead_of_broker_ms": 0,
    }
    assert (body["view_store_bytes"], body["view_unready"]) == (None, world.ready.reason)
    assert decode_token(body["position"], PARTITIONS).events == {0: 0, 1: 0}
    assert world.clock.now() == NOW + 5
