"""One execution over HTTP: its attempts, what it waits for, its outcome; cancelled, and redriven when it is dead."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from minutebook.domain import events as facts
from minutebook.domain.commands import RedriveExecution, SubmitJob
from minutebook.domain.decide import decide
from minutebook.domain.jitter import due_at
from minutebook.domain.state import NONE_AT
from minutebook.domain.timing import Timing
from minutebook.times import format_instant
from tests.api.conftest import Callers
from tests.api.memory import NOW, Installation
from tests.api.runs import come, fail, succeed, tell
from tests.api.test_jobs import RUN_AT, create

JSON = {"content-type": "application/json"}
AT = "2026-01-01T00:00:00.000Z"
NAME = f"a:{NOW}"


async def show(api: httpx.AsyncClient, name: str = NAME) -> Any:
    answer = await api.get(f"/v1/executions/{name}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def act(api: httpx.AsyncClient, verb: str, name: str = NAME, **sent: Any) -> httpx.Response:
    return await api.post(f"/v1/executions/{name}/{verb}", **sent)


async def dead(api: httpx.AsyncClient, world: Installation, **fields: Any) -> None:
    """Job `a` with one execution, given up."""
    await create(api, {"id": "a", "task": "t", "payload": {"n": 1}, **fields})
    come(world)
    fail(world, NAME)


async def test_execution_shows_its_attempts_oldest_first(api: httpx.AsyncClient, world: Installation) -> None:
    await create(api, {"id": "a", "task": "t"})
    come(world)
    fail(world, NAME, "TimeoutError", is_permanent=False)
    found = await show(api)
    assert [(one["attempt"], one["status"]) for one in found["attempts"]] == [
        (1, "failed"),
        (2, "scheduled"),
    ]
    assert found["attempts"][0]["error"] == {"type": "TimeoutError", "message": "why"}
    assert {name: found[name] for name in ("execution_id", "job_id", "status", "outcome", "generation")} == {
        "execution_id": NAME,
        "job_id": "a",
        "status": "scheduled",
        "outcome": None,
        "generation": 0,
    }
    world.clock.advance(2_000)
    come(world)
    succeed(world, NAME)
    assert ((await show(api))["status"], (await show(api))["outcome"]) == ("succeeded", "succeeded")


async def test_result_and_progress_are_shown(api: httpx.AsyncClient, world: Installation) -> None:
    await create(api, {"id": "a", "task": "t"})
    come(world)
    tell(world, NAME, 0.4, "row 40 of 100")
    (running,) = (await show(api))["attempts"]
    assert running["progress"] == {"fraction": 0.4, "text": "row 40 of 100", "at": AT}
    assert running["result"] is None
    succeed(world, NAME, b'{"sent" : 1.0}')
    answer = await api.get("/v1/jobs/a/executions")
    assert b'"result":{"sent" : 1.0},' in answer.content


async def test_result_that_is_no_json_is_shown_as_text(api: httpx.AsyncClient, world: Installation) -> None:
    await create(api, {"id": "a", "task": "t"})
    come(world)
    succeed(world, NAME, b'{"broken": \xff')
    assert (await show(api))["attempts"][0]["result"] == '{"broken": \ufffd'


async def test_queued_attempt_tells_what_it_waits_for(callers: Callers, world: Installation) -> None:
    api = callers["submitter"]
    await create(api, {"id": "a", "task": "t"})
    assert (await show(api))["attempts"][0]["waiting_for"] is None
    come(world, is_granted=False)
    assert (await show(api))["attempts"][0]["waiting_for"] == "worker"
    await callers["operator"].post("/v1/queues/default/pause")
    assert (await show(api))["attempts"][0]["waiting_for"] == "paused_queue"
    (item,) = (await api.get("/v1/jobs/a/executions")).json()["items"]
    assert item["waiting_for"] == "paused_queue"


async def test_expired_attempt_tells_its_reason_and_no_error(
    api: httpx.AsyncClient, world: Installation
) -> None:
    await create(api, {"id": "a", "task": "t", "start_deadline": "PT1M"})
    come(world, is_granted=False)
    world.clock.advance(61_000)
    come(world)
    found = await show(api)
    assert (found["status"], found["outcome"]) == ("skipped", "skipped")
    assert (found["attempts"][0]["reason"], found["attempts"][0]["error"]) == ("start_deadline", None)


async def test_execution_that_is_not_due_yet_is_shown_like_in_the_list(api: httpx.AsyncClient) -> None:
    await create(api, {"id": "a", "task": "t", "run_at": RUN_AT})
    (item,) = (await api.get("/v1/jobs/a/executions")).json()["items"]
    found = await show(api, item["execution_id"])
    assert (found["status"], found["outcome"], found["attempts"]) == ("scheduled", None, [item])


async def test_every_listed_execution_can_be_read(api: httpx.AsyncClient, world: Installation) -> None:
    await create(api, {"id": "a", "task": "t", "cron": "* * * * *"})
    await api.post("/v1/jobs/a/run-now")
    world.clock.advance(3 * 86_400_000)
    come(world)
    items = (await api.get("/v1/jobs/a/executions?limit=1000")).json()["items"]
    assert {item["status"] for item in items} == {"skipped", "running", "scheduled"}
    for item in items:
        assert (await show(api, item["execution_id"]))["attempts"] == [item]


@pytest.mark.parametrize(
    "name",
    [
        "a:1",
        f"b:{NOW}",
        f"a:0{NOW}",
        "a:",
        "a",
        ":",
        "a:x",
        "a:rnothing",
        f"a%00:{NOW}",
        f"a:+{NOW}",
        "a%2Fb:1",
    ],
)
async def test_unknown_execution_is_not_found(
    name: str, callers: Callers, api: httpx.AsyncClient, world: Installation
) -> None:
    await create(api, {"id": "a", "task": "t"})
    come(world)
    answers = [
        await api.get(f"/v1/executions/{name}"),
        await act(api, "cancel", name),
        await act(callers["operator"], "redrive", name),
        await callers["other"].get(f"/v1/executions/{NAME}"),
        await act(callers["other"], "cancel", NAME),
    ]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.text.replace(answer.json()["trace_id"], "") for answer in answers}) == 1


async def waiting(api: httpx.AsyncClient, world: Installation, name: str) -> asyncio.Task[httpx.Response]:
    """A reader that waits for an outcome, once it does."""
    reading = asyncio.create_task(api.get(f"/v1/executions/{name}?wait=30"))
    while not world.services.view._waiting and not reading.done():
        await asyncio.sleep(0)
    return reading


async def many_turns() -> None:
    """Everything that can go on has gone on."""
    for _ in range(100):
        await asyncio.sleep(0)


async def test_reader_waits_for_the_outcome(api: httpx.AsyncClient, world: Installation) -> None:
    await create(api, {"id": "a", "task": "t"})
    reading = await waiting(api, world, NAME)
    come(world)
    await many_turns()
    assert not reading.done()
    succeed(world, NAME)
    assert (await reading).json()["outcome"] == "succeeded"


async def test_reader_of_an_instant_that_goes_away_is_told(
    api: httpx.AsyncClient, world: Installation
) -> None:
    await create(api, {"id": "a", "task": "t", "run_at": RUN_AT})
    (item,) = (await api.get("/v1/jobs/a/executions")).json()["items"]
    reading = await waiting(api, world, item["execution_id"])
    await api.delete("/v1/jobs/a")
    await many_turns()
    assert reading.done()
    assert (await reading).status_code == 404


@pytest.mark.parametrize("wait", ["31", "-1", "", "1.5", "x", "\u0663"])
async def test_senseless_wait_is_refused(wait: str, api: httpx.AsyncClient) -> None:
    answer = await api.get("/v1/executions/a:1", params={"wait": wait})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "wait")


async def test_cancel_ends_what_waits_and_leaves_the_job(api: httpx.AsyncClient, world: Installation) -> None:
    await create(api, {"id": "a", "task": "t", "cron": "* * * * *"})
    first = f"a:{NOW + 60_000}"
    world.clock.advance(60_000)
    come(world, is_granted=False)
    answer = await act(
        api, "cancel", first, json={"reason": "sent by hand"}, headers={"idempotency-key": "k"}
    )
    assert (answer.status_code, answer.json()["outcome"]) == (200, "cancelled")
    assert answer.json()["attempts"][0]["error"] == {"type": "", "message": "sent by hand"}
    assert answer.headers["minutebook-position"]
    assert (await api.get("/v1/jobs/a")).json()["status"] == "active"
    repeated = await act(api, "cancel", first, headers={"idempotency-key": "k"})
    assert (repeated.status_code, repeated.json()) == (200, answer.json())
    again = await act(api, "cancel", first)
    assert (again.status_code, again.json()["code"]) == (409, "execution-closed")


async def test_cancel_asks_what_runs_to_stop(api: httpx.AsyncClient, world: Installation) -> None:
    await create(api, {"id": "a", "task": "t"})
    come(world)
    for _ in range(2):
        answer = await act(api, "cancel")
        assert (answer.status_code, answer.json()["status"]) == (200, "running")
    fail(world, NAME, is_permanent=False)
    assert (await show(api))["outcome"] == "cancelled"


async def test_cancel_of_what_is_not_due_yet_conflicts(api: httpx.AsyncClient) -> None:
    await create(api, {"id": "a", "task": "t", "run_at": RUN_AT})
    (item,) = (await api.get("/v1/jobs/a/executions")).json()["items"]
    answer = await act(api, "cancel", item["execution_id"])
    assert (answer.status_code, answer.json()["code"]) == (409, "execution-closed")


async def test_dead_execution_runs_again_under_its_id(callers: Callers, world: Installation) -> None:
    await dead(callers["submitter"], world)
    answer = await act(callers["operator"], "redrive")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["execution_id"], found["generation"], found["outcome"]) == (NAME, 1, None)
    assert [one["status"] for one in found["attempts"]] == ["failed", "scheduled"]
    come(world)
    succeed(world, NAME)
    assert (await show(callers["viewer"]))["outcome"] == "succeeded"


async def test_redrive_takes_an_edited_payload_byte_for_byte(callers: Callers, world: Installation) -> None:
    await dead(callers["submitter"], world)
    body = b'{"payload" : {"n":  2.0, "\xc3\xa4":null} ,"reason":"typo"}'
    answer = await act(callers["operator"], "redrive", content=body, headers=JSON)
    assert answer.status_code == 200, answer.text
    command = world.log.sent[-1]
    assert isinstance(command, RedriveExecution)
    assert (command.payload, command.reason) == (b'{"n":  2.0, "\xc3\xa4":null}', "typo")


@pytest.mark.parametrize(("body", "payload"), [({}, None), ({"payload": None}, b"null"), (None, None)])
async def test_payload_left_out_stays(
    body: dict[str, Any] | None, payload: bytes | None, callers: Callers, world: Installation
) -> None:
    await dead(callers["submitter"], world)
    sent = {} if body is None else {"json": body}
    assert (await act(callers["operator"], "redrive", **sent)).status_code == 200
    command = world.log.sent[-1]
    assert isinstance(command, RedriveExecution)
    assert command.payload == payload


async def test_redrive_with_a_key_happens_once(callers: Callers, world: Installation) -> None:
    await dead(callers["submitter"], world)
    operator, key = callers["operator"], {"idempotency-key": "k"}
    assert (await act(operator, "redrive", headers=key)).json()["generation"] == 1
    come(world)
    fail(world, NAME)
    repeated = await act(operator, "redrive", headers=key)
    assert (repeated.status_code, repeated.json()["outcome"], repeated.json()["generation"]) == (
        200,
        "dead",
        1,
    )
    assert (await act(operator, "redrive", headers={"idempotency-key": "l"})).json()["generation"] == 2


async def test_key_of_a_redrive_is_no_key_of_a_run_now(callers: Callers, world: Installation) -> None:
    api, key = callers["submitter"], {"idempotency-key": "k"}
    await create(api, {"id": "a", "task": "t", "cron": "0 0 * * *"})
    name = (await api.post("/v1/jobs/a/run-now", headers=key)).json()["execution_id"]
    come(world)
    fail(world, name)
    assert (await act(callers["operator"], "redrive", name, headers=key)).json()["generation"] == 1


async def test_redrive_of_what_is_not_dead_conflicts(callers: Callers, world: Installation) -> None:
    await create(callers["submitter"], {"id": "a", "task": "t"})
    come(world)
    answer = await act(callers["operator"], "redrive")
    assert (answer.status_code, answer.json()["code"]) == (409, "not-dead")
    assert "running" in answer.json()["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        (b'{"reason": 1}', 422, "/reason"),
        (b'{"reason": "' + b"a" * 1001 + b'"}', 422, "/reason"),
        (b'{"why": "x"}', 422, "/why"),
        (b'{"payload": 18446744073709551616}', 422, "/payload"),
        (b'{"payload": {"a":1,"a":2}}', 400, None),
        (b'{"payload": "' + b"a" * 262_143 + b'"}', 413, "/payload"),
        (b"[]", 400, None),
        (b"{", 400, None),
    ],
)
async def test_senseless_redrive_writes_nothing(
    body: bytes, status: int, pointer: str | None, callers: Callers, world: Installation
) -> None:
    await dead(callers["submitter"], world)
    before = len(world.log.sent)
    answer = await act(callers["operator"], "redrive", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == ([pointer] if pointer else [])
    assert len(world.log.sent) == before


async def test_cancel_takes_no_payload(api: httpx.AsyncClient, world: Installation) -> None:
    await create(api, {"id": "a", "task": "t"})
    answer = await act(api, "cancel", json={"payload": 1})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/payload")


async def test_undecided_redrive_names_its_command(callers: Callers, world: Installation) -> None:
    await dead(callers["submitter"], world)
    world.log.is_held = True
    answer = await act(callers["operator"], "redrive", headers={"prefer": "respond-async"})
    assert answer.status_code == 202
    world.log.release()
    assert (await callers["operator"].get(answer.headers["location"])).json()["outcome"] == "accepted"


async def test_held_attempt_waits_for_others_of_its_job(api: httpx.AsyncClient, world: Installation) -> None:
    await create(api, {"id": "a", "task": "t", "cron": "* * * * *"})
    world.clock.advance(60_000)
    come(world)
    at = NOW + 120_000
    event = facts.ExecutionsPlaced("acme", "a", "overlap", 1, [at], [at], [NONE_AT], at + 60_000)
    world.log.append(world.services.view.partition_of_job("acme", "a"), [event])
    (held,) = (await show(api, f"a:{at}"))["attempts"]
    assert (held["status"], held["waiting_for"]) == ("scheduled", "overlap")
    running, _, upcoming = (await api.get("/v1/jobs/a/executions")).json()["items"]
    assert (running["status"], running["waiting_for"]) == ("running", None)
    assert (upcoming["status"], upcoming["waiting_for"]) == ("scheduled", None)


async def test_upcoming_instant_shows_when_it_is_due(api: httpx.AsyncClient, world: Installation) -> None:
    at = NOW + 60_000
    command = SubmitJob(
        tenant="acme",
        job_id="a",
        command_id="c",
        issued_at=NOW,
        task="t",
        payload=b"1",
        cron="* * * * *",
        timing=Timing(jitter_ms=600_000),
    )
    partition = world.services.view.partition_of_job("acme", "a")
    world.log.append(partition, decide(world.log.books[partition], command, NOW))
    (upcoming,) = (await api.get("/v1/jobs/a/executions")).json()["items"]
    due = format_instant(due_at("acme", "a", at, 600_000))
    assert (upcoming["scheduled_at"], upcoming["due_at"]) == (format_instant(at), due)
    assert (await show(api, f"a:{at}"))["attempts"] == [upcoming]
    assert due > format_instant(at)
