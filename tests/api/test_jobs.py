"""Jobs over HTTP: create, read, cancel, run now, and what is idempotent about them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx
import pytest

from minutebook.domain import events as facts
from minutebook.domain.commands import SubmitJob
from minutebook.ids import job_id_from_key
from tests.api.conftest import Callers
from tests.api.memory import NOW, Installation

RUN_AT = "2030-01-01T00:00:00Z"


async def create(api: httpx.AsyncClient, body: Mapping[str, object], **headers: str) -> httpx.Response:
    return await api.post(
        "/v1/jobs", json=body, headers={name.replace("_", "-"): v for name, v in headers.items()}
    )


def finish(world: Installation, tenant: str, job_id: str, at: int) -> None:
    """Run the job's execution at `at` to success."""
    partition = world.services.view.partition_of_job(tenant, job_id)
    execution = f"{job_id}:{at}"
    granted = facts.ExecutionsDueGranted(
        [tenant],
        ["default"],
        ["t"],
        [0],
        [0],
        [0],
        [execution],
        [1],
        [at],
        [at],
        [-1],
        [1],
        [5],
        ["w.1"],
        [0],
        [],
    )
    started = facts.SessionStarted("w.1", "worker-1", ["t"], 10_000, 3_000)
    offset = world.log.append(partition, [started, granted])
    token = (offset << 16) + 1
    world.log.append(partition, [facts.AttemptsSucceeded([tenant], [0], [execution], [token], [1], [1])])


async def test_create_answers_with_job_as_decided(api: httpx.AsyncClient) -> None:
    answer = await api.post(
        "/v1/jobs",
        content=b'{"task":"t","payload": {"x" : [1,  -0.0]} ,"run_at":"2030-01-01T01:00:00.5+01:00"}',
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 201
    job = answer.json()
    assert b'"payload":{"x" : [1,  -0.0]}' in answer.content
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    assert answer.headers["etag"].startswith('"1-')
    assert answer.headers["minutebook-position"]
    assert job["status"] == "active"
    assert job["run_at"] == job["next_at"] == "2030-01-01T00:00:00.500Z"
    assert job["created_at"] == "2026-01-01T00:00:00.000Z"
    assert (await api.get(answer.headers["location"])).content == answer.content


async def test_create_without_instant_is_due_at_once(api: httpx.AsyncClient) -> None:
    assert (await create(api, {"task": "t"})).json()["next_at"] == "2026-01-01T00:00:00.000Z"


async def test_cron_job_shows_its_schedule(api: httpx.AsyncClient) -> None:
    job = (await create(api, {"task": "t", "cron": "0 7 * * *", "zone": "Europe/Berlin"})).json()
    assert (job["cron"], job["zone"], job["run_at"]) == ("0 7 * * *", "Europe/Berlin", None)
    assert job["next_at"] == "2026-01-01T06:00:00.000Z"


async def test_job_shows_its_policy_with_the_defaults(api: httpx.AsyncClient) -> None:
    plain = (await create(api, {"task": "t", "run_at": RUN_AT})).json()
    policy = {
        "retry": {
            "max_attempts": 5,
            "first": "PT1S",
            "max": "PT1H",
            "factor": 2.0,
            "jitter": 0.25,
            "non_retryable": [],
        },
        "max_losses": 10,
        "deadline": None,
        "start_deadline": None,
        "stuck_after": None,
        "on_stuck": "report",
        "priority": 5,
    }
    assert {name: plain[name] for name in policy} == policy
    given = {
        "retry": {
            "max_attempts": 2,
            "first": "PT2S",
            "max": "P1D",
            "factor": 1.5,
            "jitter": 0.0,
            "non_retryable": ["ValueError"],
        },
        "max_losses": 3,
        "deadline": "PT1H30M",
        "start_deadline": "PT30S",
        "stuck_after": "PT10M",
        "on_stuck": "stop",
        "priority": 9,
    }
    job = (await create(api, {"task": "t", "run_at": RUN_AT, **given})).json()
    assert {name: job[name] for name in given} == given
    partly = (await create(api, {"task": "t", "run_at": RUN_AT, "retry": {"max_attempts": 1}})).json()
    assert partly["retry"] == policy["retry"] | {"max_attempts": 1}  # type: ignore[operator]  # both are objects


async def test_policy_left_out_is_no_policy_in_the_log(api: httpx.AsyncClient, world: Installation) -> None:
    await create(api, {"task": "t", "priority": 7})
    await create(api, {"task": "t", "retry": {"max_attempts": 5}, "max_losses": 10})
    assert [command.policy for command in world.log.sent if isinstance(command, SubmitJob)] == [None, None]


async def test_repeated_key_and_body_give_first_answer(api: httpx.AsyncClient, world: Installation) -> None:
    first = await create(api, {"task": "t", "run_at": RUN_AT}, idempotency_key="k1")
    again = await create(api, {"task": "t", "run_at": RUN_AT}, idempotency_key="k1")
    assert first.status_code == again.status_code == 201
    assert first.content == again.content
    assert first.json()["id"] == job_id_from_key("acme", "k1")


@pytest.mark.row("D27")
async def test_repeated_key_with_other_body_is_refused(api: httpx.AsyncClient) -> None:
    await create(api, {"task": "t", "run_at": RUN_AT}, idempotency_key="k1")
    other = await create(api, {"task": "u", "run_at": RUN_AT}, idempotency_key="k1")
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")


@pytest.mark.row("D27")
async def test_existing_id_with_other_body_conflicts(api: httpx.AsyncClient) -> None:
    assert (await create(api, {"id": "a", "task": "t", "run_at": RUN_AT})).status_code == 201
    assert (await create(api, {"id": "a", "task": "t", "run_at": RUN_AT})).status_code == 201
    other = await create(api, {"id": "a", "task": "u", "run_at": RUN_AT})
    assert (other.status_code, other.json()["code"]) == (409, "id-exists")


@pytest.mark.row("D29")
async def test_hundred_creates_with_one_key_make_one_job(api: httpx.AsyncClient, world: Installation) -> None:
    answers = await asyncio.gather(
        *(create(api, {"task": "t", "run_at": RUN_AT}, idempotency_key="k") for _ in range(100))
    )
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1


@pytest.mark.row("D22")
async def test_ids_that_differ_in_case_are_two_jobs(api: httpx.AsyncClient) -> None:
    for name in ("Job", "job"):
        await create(api, {"id": name, "task": name, "run_at": RUN_AT})
    assert (await api.get("/v1/jobs/Job")).json()["task"] == "Job"
    assert (await api.get("/v1/jobs/job")).json()["task"] == "job"


async def test_cancel_is_idempotent_and_final(api: httpx.AsyncClient) -> None:
    job_id = (await create(api, {"task": "t", "run_at": RUN_AT})).json()["id"]
    for _ in range(2):
        answer = await api.delete(f"/v1/jobs/{job_id}")
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers["minutebook-position"]
    job = (await api.get(f"/v1/jobs/{job_id}")).json()
    assert (job["status"], job["next_at"]) == ("cancelled", None)


async def test_cancel_of_completed_job_conflicts(api: httpx.AsyncClient, world: Installation) -> None:
    job_id = (await create(api, {"task": "t"})).json()["id"]
    finish(world, "acme", job_id, NOW)
    assert (await api.get(f"/v1/jobs/{job_id}")).json()["status"] == "completed"
    answer = await api.delete(f"/v1/jobs/{job_id}")
    assert (answer.status_code, answer.json()["code"]) == (409, "job-closed")


async def test_run_now_adds_one_execution_per_key(api: httpx.AsyncClient) -> None:
    job_id = (await create(api, {"task": "t", "run_at": RUN_AT})).json()["id"]
    answers = [
        await api.post(f"/v1/jobs/{job_id}/run-now", headers={"idempotency-key": key})
        for key in ("a", "a", "b")
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    first, again, other = (answer.json()["execution_id"] for answer in answers)
    assert first == again != other
    items = (await api.get(f"/v1/jobs/{job_id}/executions")).json()["items"]
    assert sorted(item["execution_id"] for item in items[:2]) == sorted([first, other])
    assert [item["status"] for item in items] == ["scheduled"] * 3


@pytest.mark.row("A5")
async def test_other_tenant_sees_nothing(callers: Callers) -> None:
    await create(callers["submitter"], {"id": "a", "task": "t", "run_at": RUN_AT})
    other = callers["other"]
    for method, path in [
        ("GET", "/v1/jobs/{}"),
        ("DELETE", "/v1/jobs/{}"),
        ("GET", "/v1/jobs/{}/executions"),
        ("POST", "/v1/jobs/{}/run-now"),
    ]:
        foreign = await other.request(method, path.format("a"))
        missing = await other.request(method, path.format("b"))
        assert foreign.status_code == missing.status_code == 404
        assert {**foreign.json(), "trace_id": ""} == {**missing.json(), "trace_id": ""}
    assert (await create(other, {"id": "a", "task": "u", "run_at": RUN_AT})).status_code == 201


async def test_undecided_create_is_answered_with_its_command(
    api: httpx.AsyncClient, world: Installation
) -> None:
    world.log.is_held = True
    answer = await create(api, {"task": "t", "run_at": RUN_AT}, prefer="respond-async")
    assert answer.status_code == 202
    where = answer.headers["location"]
    assert (await api.get(where)).json()["outcome"] is None
    job = f"/v1/jobs/{answer.json()['job_id']}"
    assert (await api.get(job)).status_code == 404
    after = {"minutebook-after": answer.headers["minutebook-position"], "prefer": "wait=1"}
    behind = await api.get(job, headers=after)
    assert (behind.status_code, behind.json()["code"]) == (503, "view-behind")
    assert behind.headers["retry-after"]
    world.log.release()
    assert (await api.get(job, headers=after)).status_code == 200
    assert (await api.get(where)).json()["outcome"] == "accepted"


async def test_rejected_command_tells_its_reason(api: httpx.AsyncClient, world: Installation) -> None:
    world.log.is_held = True
    answer = await api.delete("/v1/jobs/nothing", headers={"prefer": "respond-async"})
    assert answer.status_code == 202
    world.log.release()
    command = (await api.get(answer.headers["location"])).json()
    assert (command["outcome"], command["reason"], command["job_id"]) == ("rejected", "not_found", "nothing")


async def test_command_of_other_tenant_is_not_found(callers: Callers, world: Installation) -> None:
    world.log.is_held = True
    answer = await callers["submitter"].delete("/v1/jobs/a", headers={"prefer": "respond-async"})
    for is_released in (False, True):
        assert (await callers["other"].get(answer.headers["location"])).status_code == 404
        if not is_released:
            world.log.release()


async def test_broker_that_does_not_acknowledge_is_no_success(
    api: httpx.AsyncClient, world: Installation
) -> None:
    world.log.is_broken = True
    answer = await create(api, {"task": "t"})
    assert (answer.status_code, answer.json()["code"]) == (503, "not-durable")
    assert answer.headers["retry-after"]


async def test_batch_answers_each_item_alone(api: httpx.AsyncClient) -> None:
    body = {"jobs": [{"task": "t", "run_at": RUN_AT}, {"task": ""}, {"task": "t", "queue": "nowhere"}]}
    first = await api.post("/v1/jobs/batch", json=body, headers={"idempotency-key": "k"})
    assert first.status_code == 200
    items = first.json()["items"]
    assert [item["status"] for item in items] == [201, 422, 422]
    assert items[0]["id"] == job_id_from_key("acme", "k/0")
    assert items[1]["problem"]["errors"][0]["pointer"] == "/task"
    assert items[2]["problem"]["code"] == "unknown-queue"
    again = await api.post("/v1/jobs/batch", json=body, headers={"idempotency-key": "k"})
    assert again.json()["items"][0]["id"] == items[0]["id"]


async def test_batch_without_key_is_refused(api: httpx.AsyncClient) -> None:
    answer = await api.post("/v1/jobs/batch", json={"jobs": [{"task": "t"}]})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "Idempotency-Key")


async def test_batch_bounds_are_kept(api: httpx.AsyncClient) -> None:
    for jobs in ([], [{"task": "t"}] * 501, "text", {"task": "t"}):
        answer = await api.post("/v1/jobs/batch", json={"jobs": jobs}, headers={"idempotency-key": "k"})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/jobs")


async def test_history_lists_attempts_in_pages(api: httpx.AsyncClient, world: Installation) -> None:
    job_id = (await create(api, {"task": "t", "cron": "* * * * *"})).json()["id"]
    partition = world.services.view.partition_of_job("acme", job_id)
    first_at = NOW + 60_000
    for number in range(5):
        at = first_at + number * 60_000
        world.log.append(
            partition,
            [
                facts.ExecutionsDueGranted(
                    ["acme"], ["default"], ["t"], [0], [0], [0], [f"{job_id}:{at}"], [1], [at], [at], [at + 60_000],
                    [1], [5], ["w.1"], [0], [],
                )
            ],
        )  # fmt: skip
    seen: list[str] = []
    query = "limit=2"
    while True:
        page = await api.get(f"/v1/jobs/{job_id}/executions?{query}")
        assert page.status_code == 200
        seen += [item["execution_id"] for item in page.json()["items"]]
        if page.json()["next_cursor"] is None:
            break
        assert page.headers["link"].endswith('rel="next"')
        query = f"limit=2&cursor={page.json()['next_cursor']}"
    assert seen == [f"{job_id}:{first_at + number * 60_000}" for number in range(6)]


async def test_history_item_tells_all_about_an_attempt(api: httpx.AsyncClient, world: Installation) -> None:
    job_id = (await create(api, {"task": "t"})).json()["id"]
    finish(world, "acme", job_id, NOW)
    now = "2026-01-01T00:00:00.000Z"
    assert (await api.get(f"/v1/jobs/{job_id}/executions")).json()["items"] == [
        {
            "execution_id": f"{job_id}:{NOW}",
            "attempt": 1,
            "status": "succeeded",
            "scheduled_at": now,
            "due_at": now,
            "queued_at": now,
            "started_at": now,
            "ended_at": now,
            "waiting_for": None,
            "worker": "worker-1",
            "progress": None,
            "result": None,
            "error": None,
        }
    ]


@pytest.mark.row("R19", "R20")
async def test_cursor_of_other_list_is_refused_like_a_forged_one(
    callers: Callers, api: httpx.AsyncClient
) -> None:
    for name in ("a", "b"):
        await create(api, {"id": name, "task": "t", "run_at": RUN_AT})
        await api.post(f"/v1/jobs/{name}/run-now")
    await create(callers["other"], {"id": "a", "task": "t", "run_at": RUN_AT})
    cursor = (await api.get("/v1/jobs/a/executions?limit=1")).json()["next_cursor"]
    texts = []
    for client, path, given in [
        (api, "/v1/jobs/b/executions", cursor),
        (callers["other"], "/v1/jobs/a/executions", cursor),
        (api, "/v1/jobs/a/executions", "garbage"),
        (api, "/v1/jobs/a/executions", "\u00e4"),
    ]:
        answer = await client.get(path, params={"cursor": given})
        assert answer.status_code == 400
        texts.append({**answer.json(), "trace_id": ""})
    assert texts[0]["errors"][0]["pointer"] == "cursor"
    assert all(text == texts[0] for text in texts)


async def test_queue_is_known_everywhere_before_the_answer(callers: Callers, world: Installation) -> None:
    operator, api = callers["operator"], callers["submitter"]
    assert (await create(api, {"task": "t", "queue": "mail"})).json()["code"] == "unknown-queue"
    answer = await operator.post("/v1/queues", json={"name": "mail", "tenants": ["acme"]})
    assert (answer.status_code, answer.json()) == (
        201,
        {
            "name": "mail",
            "version": 1,
            "tenants": ["acme"],
            "open": False,
            "paused": False,
            "draining": False,
        },
    )
    again = await operator.post("/v1/queues", json={"name": "mail", "tenants": ["acme"]})
    assert (again.status_code, again.json()["version"]) == (200, 1)
    for number in range(10):
        body = {"id": f"j{number}", "task": "t", "queue": "mail", "run_at": RUN_AT}
        assert (await create(api, body)).status_code == 201
    foreign = await create(callers["other"], {"task": "t", "queue": "mail"})
    assert (foreign.status_code, foreign.json()["code"]) == (422, "unknown-queue")
    assert (await operator.post("/v1/queues", json={"name": "mail"})).json()["version"] == 2


async def test_queue_body_is_checked_by_field(callers: Callers) -> None:
    answer = await callers["operator"].post(
        "/v1/queues", json={"name": "a b", "open": "yes", "tenants": "x", "y": 0}
    )
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/y", "/name", "/open", "/tenants"]


async def test_open_queue_is_declared_once_its_due_topic_is_there(
    callers: Callers, world: Installation
) -> None:
    operator, queue = callers["operator"], {"name": "mail", "open": True}
    world.due_topics.is_broken = True
    answer = await operator.post("/v1/queues", json=queue)
    assert (answer.status_code, answer.json()["code"]) == (503, "not-durable")
    assert world.log.sent == []
    world.due_topics.is_broken = False
    answer = await operator.post("/v1/queues", json=queue)
    assert (answer.status_code, answer.json()) == (
        201,
        {"name": "mail", "version": 1, "tenants": [], "open": True, "paused": False, "draining": False},
    )
    assert world.due_topics.made == ["mail"]
    assert (await operator.post("/v1/queues", json={"name": "mail"})).json()["open"] is False
    assert world.due_topics.made == ["mail"]


async def test_nothing_is_answered_before_the_view_has_caught_up(
    api: httpx.AsyncClient, world: Installation
) -> None:
    world.ready.reason = "the view is still reading the log, 7 records left"
    world.ready.is_caught_up = False
    world.ready.catch_up.note(0.0, {0: 0}, {0: 1_000})
    world.ready.catch_up.note(2.0, {0: 200}, {0: 800})
    for path in ("/v1/jobs/a", "/readyz", "/startupz"):
        answer = await api.get(path)
        assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")
        assert answer.headers["retry-after"] == "8"
        assert "7 records left" in answer.json()["detail"]
    assert (await api.get("/livez")).status_code == 200
