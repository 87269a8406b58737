"""Many dead letters redriven by filter, over HTTP: dry run, start, progress, cancel, list; for one tenant alone."""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import Any

import httpx
import pytest

from api import decisions, dry_run
from minutebook.domain import operations as rules
from minutebook.domain.commands import StartOperation
from tests.api.conftest import Callers
from tests.api.memory import NOW, Installation
from tests.api.runs import come, fail, operate, operate_to_the_end
from tests.api.test_dead_letters import give_up, pages

NAMES = [f"j{number:02}" for number in range(12)]


@pytest.fixture
def api(callers: Callers) -> httpx.AsyncClient:
    """An operator's client."""
    return callers["operator"]


async def redrive(api: httpx.AsyncClient, key: str = "k", **body: Any) -> httpx.Response:
    body = {"filter": {}} | body
    return await api.post("/v1/dead-letters/redrive", json=body, headers={"idempotency-key": key})


async def started(api: httpx.AsyncClient, **body: Any) -> str:
    """Id of an operation that was started."""
    answer = await redrive(api, **body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


async def read(api: httpx.AsyncClient, name: str) -> dict[str, Any]:
    answer = await api.get(f"/v1/operations/{name}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_everything_that_fits_runs_again(api: httpx.AsyncClient, world: Installation) -> None:
    await give_up(world, api, NAMES)
    world.clock.advance(5)
    answer = await redrive(api, filter={"task": "t"}, rate_per_s=50, reason="fixed")
    assert answer.status_code == 202, answer.text
    body = answer.json()
    assert answer.headers["location"] == f"/v1/operations/{body['id']}"
    assert answer.headers["minutebook-position"]
    assert body == {
        "id": body["id"],
        "kind": "redrive",
        "state": "running",
        "filter": {"task": "t"},
        "rate_per_s": 50,
        "reason": "fixed",
        "actor": body["actor"],
        "progress": {"matched": None, "done": 0, "refused": 0, "left": None},
        "started_at": "2026-01-01T00:00:00.005Z",
        "ended_at": None,
        "cancelled_by": None,
        "cancel_reason": None,
        "refusal": None,
    }
    world.clock.advance(5)
    operate(world)
    counted = await read(api, body["id"])
    assert counted["progress"] == {"matched": 12, "done": 0, "refused": 0, "left": 12}
    operate_to_the_end(world)
    ended = await read(api, body["id"])
    assert ended["state"] == "completed"
    assert ended["ended_at"] is not None
    assert ended["progress"] == {"matched": 12, "done": 12, "refused": 0, "left": 0}
    assert await pages(api, "") == [[]]
    found = (await api.get(f"/v1/executions/j00:{NOW}")).json()
    assert (found["generation"], found["outcome"], len(found["attempts"])) == (1, None, 2)
    come(world)
    fail(world, f"j00:{NOW}")
    assert await pages(api, "") == [["j00"]]


async def test_dry_run_counts_by_reason_and_changes_nothing(
    callers: Callers, api: httpx.AsyncClient, world: Installation
) -> None:
    await give_up(world, api, ["a", "b"])
    await give_up(world, api, ["c"], task="u")
    world.clock.advance(1_000)
    await give_up(world, api, ["d"])
    sent = len(world.log.sent)
    for wanted, matched, reasons in [
        ({}, 4, [["E", 3], ["u", 1]]),
        ({"task": "u"}, 1, [["u", 1]]),
        ({"job_prefix": "d"}, 1, [["E", 1]]),
        ({"error_type": "E"}, 3, [["E", 3]]),
        ({"cause": "losses"}, 0, []),
        ({"queue": "mail"}, 0, []),
        ({"given_up_until": "2026-01-01T00:00:01Z"}, 3, [["E", 2], ["u", 1]]),
        ({"given_up_from": "2026-01-01T00:00:01Z"}, 1, [["E", 1]]),
    ]:
        answer = await api.post("/v1/dead-letters/redrive", json={"filter": wanted, "dry_run": True})
        assert answer.status_code == 200, answer.text
        shown = [{"cause": "permanent", "error_type": kind, "count": count} for kind, count in reasons]
        assert answer.json() == {"matched": matched, "complete": True, "reasons": shown}, wanted
    assert len(world.log.sent) == sent
    assert (await api.get("/v1/operations")).json()["items"] == []


async def test_dry_run_looks_at_a_bounded_number(
    api: httpx.AsyncClient, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dry_run, "LOOKED_AT_MAX", 3)
    monkeypatch.setattr(dry_run, "_SLICE", 2)
    await give_up(world, api, NAMES)
    answer = await api.post("/v1/dead-letters/redrive", json={"filter": {}, "dry_run": True})
    assert (answer.json()["matched"], answer.json()["complete"]) == (3, False)


async def test_dry_run_and_operation_mean_the_same(api: httpx.AsyncClient, world: Installation) -> None:
    await give_up(world, api, NAMES[:4])
    await give_up(world, api, NAMES[4:], task="u")
    world.clock.advance(1)
    for key, wanted in enumerate(
        [{"job_prefix": "j01"}, {"task": "u", "job_prefix": "j0"}, {"error_type": "E"}, {}]
    ):
        dry = await api.post("/v1/dead-letters/redrive", json={"filter": wanted, "dry_run": True})
        name = await started(api, key=str(key), filter=wanted)
        operate_to_the_end(world)
        assert (await read(api, name))["progress"]["done"] == dry.json()["matched"], wanted


async def test_repeat_with_its_key_starts_nothing(api: httpx.AsyncClient, world: Installation) -> None:
    await give_up(world, api, ["a"])
    first = (await redrive(api)).json()
    again = await redrive(api)
    assert (again.status_code, again.json()) == (202, first)
    assert len([command for command in world.log.sent if isinstance(command, StartOperation)]) == 1
    world.clock.advance(1)
    operate_to_the_end(world)
    assert (await redrive(api)).json()["state"] == "completed"
    other = await redrive(api, filter={"task": "t"})
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")


async def test_key_is_required(api: httpx.AsyncClient) -> None:
    answer = await api.post("/v1/dead-letters/redrive", json={"filter": {}})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "Idempotency-Key")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/filter"),
        ({"filter": None}, "/filter"),
        ({"filter": []}, "/filter"),
        ({"filter": {"tsak": "t"}}, "/filter/tsak"),
        ({"filter": {"task": 1}}, "/filter/task"),
        ({"filter": {"task": 1 << 70}}, "/filter/task"),
        ({"filter": {"task": "no name"}}, "/filter/task"),
        ({"filter": {"queue": ""}}, "/filter/queue"),
        ({"filter": {"error_type": ""}}, "/filter/error_type"),
        ({"filter": {"error_type": "x" * 257}}, "/filter/error_type"),
        ({"filter": {"cause": "bored"}}, "/filter/cause"),
        ({"filter": {"job_prefix": "a:"}}, "/filter/job_prefix"),
        ({"filter": {"given_up_from": "yesterday"}}, "/filter/given_up_from"),
        (
            {"filter": {"given_up_from": "2026-01-02T00:00:00Z", "given_up_until": "2026-01-02T00:00:00Z"}},
            "/filter/given_up_until",
        ),
        ({"filter": {}, "dry_run": "yes"}, "/dry_run"),
        ({"filter": {}, "rate_per_s": 0}, "/rate_per_s"),
        ({"filter": {}, "rate_per_s": 10_001}, "/rate_per_s"),
        ({"filter": {}, "rate_per_s": 1.5}, "/rate_per_s"),
        ({"filter": {}, "rate_per_s": True}, "/rate_per_s"),
        ({"filter": {}, "reason": "x" * 1_001}, "/reason"),
        ({"filter": {}, "payload": {}}, "/payload"),
    ],
)
async def test_senseless_body_is_refused_by_field(
    body: dict[str, Any], pointer: str, api: httpx.AsyncClient
) -> None:
    answer = await api.post("/v1/dead-letters/redrive", json=body, headers={"idempotency-key": "k"})
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert answer.json()["errors"][0]["detail"]


@pytest.mark.parametrize(
    "body", [b'{"filter": {}, "filter": {"task": "t"}}', b'{"filter": {"task": "a", "task": "b"}}']
)
async def test_name_given_twice_is_refused(body: bytes, api: httpx.AsyncClient) -> None:
    headers = {"idempotency-key": "k", "content-type": "application/json"}
    answer = await api.post("/v1/dead-letters/redrive", content=body, headers=headers)
    assert answer.status_code in (400, 422), answer.text


async def test_cancelled_operation_stops(api: httpx.AsyncClient, world: Installation) -> None:
    await give_up(world, api, NAMES)
    world.clock.advance(1)
    name = await started(api, rate_per_s=4)
    for _ in range(6):
        world.clock.advance(100)
        operate(world)
    answer = await api.post(f"/v1/operations/{name}/cancel", json={"reason": "down again"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["state"] == "stopping"
    operate_to_the_end(world)
    found = await read(api, name)
    done = found["progress"]["done"]
    assert 0 < done < 12
    assert found["state"] == "cancelled"
    assert found["progress"] == {"matched": 12, "done": done, "refused": 0, "left": 12 - done}
    assert (found["cancelled_by"], found["cancel_reason"]) == (found["actor"], "down again")
    assert len((await pages(api, ""))[0]) == 12 - done
    again = await api.post(f"/v1/operations/{name}/cancel")
    assert (again.status_code, again.json()["state"]) == (200, "cancelled")


async def test_ended_operation_cannot_be_cancelled(api: httpx.AsyncClient, world: Installation) -> None:
    name = await started(api)
    world.clock.advance(1)
    operate_to_the_end(world)
    answer = await api.post(f"/v1/operations/{name}/cancel")
    assert (answer.status_code, answer.json()["code"]) == (409, "operation-ended")


@pytest.mark.parametrize("name", ["nothing", "a b", "..", "%00"])
async def test_unknown_operation_is_not_found(name: str, api: httpx.AsyncClient) -> None:
    for answer in (
        await api.get(f"/v1/operations/{name}"),
        await api.post(f"/v1/operations/{name}/cancel"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


async def test_other_tenants_operation_is_not_found(
    callers: Callers, api: httpx.AsyncClient, world: Installation
) -> None:
    name = await started(api)
    other = callers["other"]
    assert (await other.get(f"/v1/operations/{name}")).status_code == 404
    assert (await other.get("/v1/operations")).json()["items"] == []
    await started(api, key="two")
    cursor = (await api.get("/v1/operations?limit=1")).json()["next_cursor"]
    answer = await other.get("/v1/operations", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "cursor")


async def test_list_has_the_latest_first_in_pages(api: httpx.AsyncClient, world: Installation) -> None:
    names = []
    for number in range(5):
        names.append(await started(api, key=str(number)))
        world.clock.advance(number % 2)
    where: str | None = "/v1/operations?limit=2"
    found = []
    while where is not None:
        answer = await api.get(where)
        found.append([item["id"] for item in answer.json()["items"]])
        link = answer.headers.get("link")
        where = None if link is None else link[1:].partition(">")[0]
    assert [len(page) for page in found] == [2, 2, 1]
    assert sorted(chain(*found)) == sorted(names)
    assert found[2] == [min(names[0], names[1])]


async def test_wait_answers_with_the_end(api: httpx.AsyncClient, world: Installation) -> None:
    name = await started(api)
    world.clock.advance(1)
    waiting = asyncio.create_task(api.get(f"/v1/operations/{name}?wait=30"))
    await asyncio.sleep(0)
    operate_to_the_end(world)
    assert (await waiting).json()["state"] == "completed"
    assert (await api.get(f"/v1/operations/{name}?wait=30")).json()["state"] == "completed"
    assert (await api.get(f"/v1/operations/{name}?wait=31")).status_code == 400


async def test_operation_that_is_not_decided_in_time_is_pending(
    api: httpx.AsyncClient, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "_WAIT_S", 0)
    world.log.is_held = True
    answer = await redrive(api, reason="r")
    assert (answer.status_code, answer.json()["state"]) == (202, "pending")
    name = answer.json()["id"]
    assert answer.headers["location"] == f"/v1/operations/{name}"
    assert (await api.get(f"/v1/operations/{name}")).status_code == 404
    cancel = await api.post(f"/v1/operations/{name}/cancel")
    assert (cancel.status_code, cancel.json()["outcome"]) == (202, None)
    world.log.release()
    assert (await read(api, name))["state"] == "stopping"


async def test_too_many_open_operations_are_refused(
    api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "OPEN_MAX", 1)
    await started(api)
    answer = await redrive(api, key="two")
    assert (answer.status_code, answer.json()["code"]) == (409, "too-many-operations")


async def test_redrive_of_one_execution_leaves_operations_alone(
    api: httpx.AsyncClient, world: Installation
) -> None:
    await give_up(world, api, ["a", "b"])
    world.clock.advance(1)
    name = await started(api)
    await api.post(f"/v1/executions/a:{NOW}/redrive")
    operate_to_the_end(world)
    assert (await read(api, name))["progress"] == {"matched": 1, "done": 1, "refused": 0, "left": 0}


async def test_everything_that_fits_is_discarded(api: httpx.AsyncClient, world: Installation) -> None:
    await give_up(world, api, NAMES)
    world.clock.advance(5)
    counted = await api.post("/v1/dead-letters/discard", json={"filter": {}, "dry_run": True})
    assert counted.json()["matched"] == len(NAMES)
    body = {"filter": {"task": "t"}, "reason": "no longer wanted"}
    assert (await api.post("/v1/dead-letters/discard", json=body)).status_code == 400, "the key is required"
    answer = await api.post("/v1/dead-letters/discard", json=body, headers={"idempotency-key": "k"})
    assert (answer.status_code, answer.json()["kind"]) == (202, "discard"), answer.text
    world.clock.advance(5)
    operate_to_the_end(world)
    ended = await read(api, answer.json()["id"])
    assert ended["progress"] == {"matched": 12, "done": 12, "refused": 0, "left": 0}
    assert await pages(api, "") == [[]]
    found = (await api.get(f"/v1/executions/j00:{NOW}")).json()["discarded"]
    assert (found["operation"], found["reason"]) == (ended["id"], "no longer wanted")


async def test_dry_run_counts_only_what_owners_remember(api: httpx.AsyncClient, world: Installation) -> None:
    """Ten days later an operation finds none of it, though the view still shows it."""
    await give_up(world, api, ["old"])
    world.clock.advance(10 * 86_400_000)
    await give_up(world, api, ["new"])
    for part in world.services.view.parts:
        part.forgotten_through = NOW // 86_400_000
    assert await pages(api, "") == [["old", "new"]]
    dry = await api.post("/v1/dead-letters/redrive", json={"filter": {}, "dry_run": True})
    assert dry.json()["matched"] == 1
