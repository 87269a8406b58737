"""Changes of jobs over HTTP: edit, replace, pause, resume, cancel; versions, and who wins when two change one job."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx
import pytest

from minutebook.client.change_models import JobChange, RetryChange
from minutebook.client.models import Job, JobRequest, RetryRequest
from minutebook.domain import events as facts
from minutebook.domain.commands import EditJob
from tests.api.conftest import Callers
from tests.api.memory import NOW, Installation

CRON = {"task": "t", "id": "a", "payload": {"n": 1}, "cron": "0 7 * * *", "zone": "Europe/Berlin"}
RUN_AT = "2030-01-01T00:00:00.000Z"
DAY_MS = 86_400_000


async def created(api: httpx.AsyncClient, **more: object) -> dict[str, object]:
    answer = await api.post("/v1/jobs", json=CRON | more)
    assert answer.status_code == 201, answer.text
    found: dict[str, object] = answer.json()
    return found


async def patch(
    api: httpx.AsyncClient, body: Mapping[str, object], match: str | None = None, **headers: str
) -> httpx.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if match is not None:
        sent["if-match"] = match
    return await api.patch("/v1/jobs/a", json=body, headers=sent)


def code(answer: httpx.Response) -> str:
    found: str = answer.json()["code"]
    return f"{answer.status_code} {found}"


# -- edits


async def test_an_edit_changes_what_it_names_and_keeps_the_rest(api: httpx.AsyncClient) -> None:
    before = await created(api, priority=7, retry={"max_attempts": 2, "first": "PT2S"})
    answer = await patch(api, {"cron": "30 7 * * *", "retry": {"max_attempts": 3}})
    assert answer.status_code == 200
    assert answer.headers["minutebook-position"]
    job = answer.json()
    assert job == before | {
        "cron": "30 7 * * *",
        "retry": before["retry"] | {"max_attempts": 3},  # type: ignore[operator]  # an object
        "version": 2,
        "next_at": "2026-01-01T06:30:00.000Z",
    }
    assert (await api.get("/v1/jobs/a")).json() == job


async def test_an_edit_of_nothing_changes_nothing(api: httpx.AsyncClient, world: Installation) -> None:
    before = await created(
        api,
        retry={"max_attempts": 2, "factor": 3.5, "non_retryable": ["ValueError"]},
        max_losses=2,
        deadline="PT1H",
        start_deadline="PT5M",
        stuck_after="PT1M",
        on_stuck="stop",
        priority=0,
        limit="l",
        timeout="PT1M30.5S",
    )
    world.clock.advance(5)
    for body in ({}, {"payload": {"n": 1}}, {"cron": "0 7 * * *"}, {"retry": {}}):
        answer = await patch(api, body)
        assert (answer.status_code, answer.json()) == (200, before)


async def test_a_payload_is_replaced_as_a_whole_and_kept_byte_for_byte(api: httpx.AsyncClient) -> None:
    await created(api, payload={"keep": 1})
    answer = await api.patch(
        "/v1/jobs/a", content=b'{"payload": {"x" :  1.0}}', headers={"content-type": "application/json"}
    )
    assert b'"payload":{"x" :  1.0}' in answer.content
    assert (await patch(api, {"payload": None})).json()["payload"] is None


async def test_null_brings_a_default_back(api: httpx.AsyncClient) -> None:
    await created(api, deadline="PT1H", priority=9, retry={"max_attempts": 2, "first": "PT2S"})
    job = (await patch(api, {"deadline": None, "priority": None, "retry": {"first": None}})).json()
    assert (job["deadline"], job["priority"]) == (None, 5)
    assert (job["retry"]["max_attempts"], job["retry"]["first"]) == (2, "PT1S")
    assert (await patch(api, {"retry": None})).json()["retry"]["max_attempts"] == 5


async def test_another_moment_takes_the_place_of_the_one_that_was_there(api: httpx.AsyncClient) -> None:
    await created(api)
    once = (await patch(api, {"run_at": RUN_AT})).json()
    assert (once["run_at"], once["cron"], once["next_at"]) == (RUN_AT, None, RUN_AT)
    again = (await patch(api, {"cron": "* * * * *"})).json()
    assert (again["run_at"], again["cron"]) == (None, "* * * * *")


async def test_a_moment_cannot_be_taken_away(api: httpx.AsyncClient) -> None:
    await created(api)
    answer = await patch(api, {"cron": None})
    assert code(answer) == "422 invalid"
    assert answer.json()["errors"][0]["pointer"] == "/cron"


@pytest.mark.parametrize(
    ("body", "problem", "pointer"),
    [
        ({"cron": "nonsense"}, "422 invalid", "/cron"),
        ({"colour": "red"}, "422 invalid", "/colour"),
        ({"id": "b"}, "422 invalid", "/id"),
        ({"retry": {"max_attempts": 0}}, "422 invalid", "/retry/max_attempts"),
        ({"retry": {"colour": 1}}, "422 invalid", "/retry/colour"),
        ({"queue": "nowhere"}, "422 unknown-queue", "/queue"),
        ({"run_at": RUN_AT, "cron": "* * * * *"}, "422 invalid", "/cron"),
    ],
    ids=str,
)
async def test_a_senseless_edit_is_refused_with_its_field(
    api: httpx.AsyncClient, body: dict[str, object], problem: str, pointer: str
) -> None:
    await created(api)
    answer = await patch(api, body)
    assert code(answer) == problem
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]


async def test_a_name_that_comes_twice_is_refused(api: httpx.AsyncClient) -> None:
    await created(api)
    for content in (b'{"priority":1,"priority":2}', b'{"retry":{"max_losses":1,"max_losses":2}}'):
        answer = await api.patch("/v1/jobs/a", content=content, headers={"content-type": "application/json"})
        assert code(answer) == "400 malformed-json"


async def test_an_instant_that_is_past_stands_in_no_way_of_an_edit(
    api: httpx.AsyncClient, world: Installation
) -> None:
    await api.post("/v1/jobs", json={"task": "t", "id": "a", "run_at": "2026-01-01T00:00:01Z"})
    await api.post("/v1/jobs/a/pause")
    world.clock.advance(3 * DAY_MS)
    answer = await patch(api, {"priority": 9})
    assert (answer.status_code, answer.json()["late"]) == (200, "refuse")


async def test_a_one_off_that_is_due_gets_no_other_instant(
    api: httpx.AsyncClient, world: Installation
) -> None:
    await api.post("/v1/jobs", json={"task": "t", "id": "a", "delay": "PT1S"})
    world.clock.advance(1_000)
    assert code(await patch(api, {"delay": "PT1H"})) == "409 already-due"


async def test_what_is_not_there_or_closed_cannot_be_edited(api: httpx.AsyncClient, callers: Callers) -> None:
    assert code(await patch(api, {"priority": 1})) == "404 not-found"
    await created(api)
    assert code(await patch(callers["other"], {"priority": 1})) == "404 not-found"
    await api.delete("/v1/jobs/a")
    assert code(await patch(api, {"priority": 1})) == "409 job-closed"


# -- versions


async def test_a_version_that_is_no_more_is_refused_and_the_one_that_is_there_told(
    api: httpx.AsyncClient,
) -> None:
    await created(api)
    tag = (await api.get("/v1/jobs/a")).headers["etag"]
    assert (await patch(api, {"priority": 1}, tag)).status_code == 200
    requests = [
        api.patch("/v1/jobs/a", json={"priority": 2}, headers={"if-match": tag}),
        api.put("/v1/jobs/a", json=CRON, headers={"if-match": tag}),
        api.post("/v1/jobs/a/pause", headers={"if-match": tag}),
        api.post("/v1/jobs/a/resume", headers={"if-match": tag}),
        api.post("/v1/jobs/a/cancel", headers={"if-match": tag}),
        api.delete("/v1/jobs/a", headers={"if-match": '"1"'}),
    ]
    for request in requests:
        answer = await request
        assert code(answer) == "412 stale-version"
        (error,) = answer.json()["errors"]
        assert error["pointer"] == "If-Match"
        assert "version 2" in error["detail"]
    assert (await api.get("/v1/jobs/a")).json()["version"] == 2
    assert (await api.delete("/v1/jobs/a", headers={"if-match": '"2"'})).status_code == 204


@pytest.mark.parametrize("tag", ["1", '"x"', 'W/"1"', '"0"', '"1", "2"', '"1-zz"'])
async def test_what_is_no_version_is_refused(api: httpx.AsyncClient, tag: str) -> None:
    await created(api)
    answer = await patch(api, {"priority": 1}, tag)
    assert code(answer) == "400 bad-parameter"
    assert answer.json()["errors"][0]["pointer"] == "If-Match"


async def test_a_star_matches_any_version(api: httpx.AsyncClient) -> None:
    await created(api)
    assert (await patch(api, {"priority": 1}, "*")).json()["version"] == 2


async def test_edits_at_once_without_a_version_all_count(api: httpx.AsyncClient) -> None:
    await created(api)
    bodies = [{"priority": 1}, {"max_losses": 2}, {"timeout": "PT7S"}]
    answers = await asyncio.gather(*(patch(api, body) for body in bodies))
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    job = (await api.get("/v1/jobs/a")).json()
    assert (job["priority"], job["max_losses"], job["timeout"], job["version"]) == (1, 2, "PT7S", 4)


async def test_of_edits_at_once_from_one_version_one_counts(api: httpx.AsyncClient) -> None:
    await created(api)
    answers = await asyncio.gather(*(patch(api, {"priority": number}, '"1"') for number in range(3)))
    assert sorted(answer.status_code for answer in answers) == [200, 412, 412]


async def test_an_edit_waits_for_the_version_that_it_names(
    api: httpx.AsyncClient, world: Installation
) -> None:
    await created(api)
    assert code(await patch(api, {"priority": 1}, '"2"', prefer="wait=1")) == "503 view-behind"
    world.log.is_held = True
    await patch(api, {"max_losses": 2}, prefer="respond-async")
    waiting = asyncio.create_task(patch(api, {"priority": 1}, '"2"'))
    while not world.services.view._waiting:
        await asyncio.sleep(0)
    world.log.release()
    job = (await waiting).json()
    assert (job["max_losses"], job["priority"], job["version"]) == (2, 1, 3)


async def test_an_entity_tag_changes_with_the_answer_and_saves_pollers_the_body(
    api: httpx.AsyncClient,
) -> None:
    await created(api)
    first = await api.get("/v1/jobs/a")
    tag = first.headers["etag"]
    assert tag.startswith('"1-')
    for match in (tag, f'"x", W/{tag}', "*"):
        answer = await api.get("/v1/jobs/a", headers={"if-none-match": match})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    await api.post("/v1/jobs/a/pause")
    answer = await api.get("/v1/jobs/a", headers={"if-none-match": tag})
    assert (answer.status_code, answer.json()["status"]) == (200, "paused")
    assert answer.headers["etag"].startswith('"1-')


async def test_versions_are_listed_the_latest_first_page_by_page(
    api: httpx.AsyncClient, world: Installation
) -> None:
    await created(api)
    for priority in (1, 2):
        world.clock.advance(1_000)
        await patch(api, {"priority": priority})
    page = (await api.get("/v1/jobs/a/versions", params={"limit": 2})).json()
    shown = [(item["version"], item["changed_at"], item["body"].get("priority", 5)) for item in page["items"]]
    assert shown == [(3, "2026-01-01T00:00:02.000Z", 2), (2, "2026-01-01T00:00:01.000Z", 1)]
    last = (await api.get("/v1/jobs/a/versions", params={"cursor": page["next_cursor"]})).json()
    (item,) = last["items"]
    assert {name: item["body"].get(name, "a") for name in CRON} == CRON
    assert last["next_cursor"] is None
    job = (await api.get("/v1/jobs/a")).json()
    assert job["created_at"] == "2026-01-01T00:00:00.000Z"
    assert code(await api.get("/v1/jobs/b/versions")) == "404 not-found"


async def test_versions_say_who_made_them_from_where_and_why(callers: Callers) -> None:
    await created(callers["submitter"])
    agent = {"user-agent": "minutebook-cli/1", "minutebook-reason": "urgent"}
    answer = await callers["operator"].patch("/v1/jobs/a", json={"priority": 1}, headers=agent)
    assert answer.status_code == 200, answer.text
    second, first = (await callers["submitter"].get("/v1/jobs/a/versions")).json()["items"]
    assert second["key_id"] != first["key_id"]
    assert (first["via"], second["via"]) == ("api", "cli")
    assert (first["reason"], second["reason"]) == ("", "urgent")
    for item in (first, second):
        assert item["address"] == "127.0.0.1"
        assert item["actor"] == f"key:{item['key_id']} via {item['via']} from 127.0.0.1"
        assert item["operation_id"] is None


def test_a_change_may_name_every_field_of_a_create_body_but_the_id() -> None:
    assert set(JobChange.__struct_fields__) == set(JobRequest.__struct_fields__) - {"id"}
    assert set(RetryChange.__struct_fields__) == set(RetryRequest.__struct_fields__)


def test_a_job_shows_every_field_of_a_create_body_but_the_delay() -> None:
    """Else an edit would lose it."""
    assert set(JobRequest.__struct_fields__) - {"delay"} <= set(Job.__struct_fields__)


# -- create or replace


async def test_a_put_creates_and_the_same_again_changes_nothing(api: httpx.AsyncClient) -> None:
    for body in (CRON, {"task": "t", "delay": "PT1H"}, {"task": "t"}):
        path = f"/v1/jobs/put-{len(body)}"
        body = {name: value for name, value in body.items() if name != "id"}
        first, again = await api.put(path, json=body), await api.put(path, json=body)
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.headers["location"] == path
        assert first.json() == again.json()


async def test_a_put_replaces_all_of_a_job(api: httpx.AsyncClient) -> None:
    await created(api, priority=9, deadline="PT1H")
    body = {"task": "u", "cron": "* * * * *"}
    answer = await api.put("/v1/jobs/a", json=body)
    job = answer.json()
    assert answer.status_code == 200
    assert (job["task"], job["priority"], job["deadline"], job["version"]) == ("u", 5, None, 2)
    assert (await api.put("/v1/jobs/a", json=body)).json() == job


async def test_a_put_of_a_closed_job_leaves_it_closed(api: httpx.AsyncClient) -> None:
    await created(api)
    await api.delete("/v1/jobs/a")
    assert (await api.put("/v1/jobs/a", json=CRON)).json()["status"] == "cancelled"
    assert code(await api.put("/v1/jobs/a", json=CRON | {"priority": 1})) == "409 job-closed"


async def test_a_put_that_names_a_version_creates_nothing(api: httpx.AsyncClient) -> None:
    answer = await api.put("/v1/jobs/a", json=CRON, headers={"if-match": '"1"'})
    assert code(answer) == "404 not-found"


async def test_a_put_under_another_id_is_refused(api: httpx.AsyncClient) -> None:
    answer = await api.put("/v1/jobs/b", json=CRON)
    assert code(answer) == "422 invalid"
    assert answer.json()["errors"][0]["pointer"] == "/id"


async def test_a_put_replaces_what_its_view_does_not_show_yet(
    api: httpx.AsyncClient, world: Installation
) -> None:
    world.log.is_held = True
    await api.post("/v1/jobs", json=CRON, headers={"prefer": "respond-async"})
    waiting = asyncio.create_task(api.put("/v1/jobs/a", json=CRON | {"priority": 1}))
    while len(world.log.sent) < 2:
        await asyncio.sleep(0)
    world.log.release()
    answer = await waiting
    assert (answer.status_code, answer.json()["priority"], answer.json()["version"]) == (200, 1, 2)


# -- pause, resume, cancel


async def test_a_pause_and_its_end_are_shown_with_their_reason(
    api: httpx.AsyncClient, world: Installation
) -> None:
    await created(api)
    world.clock.advance(1_000)
    paused = (await api.post("/v1/jobs/a/pause", json={"reason": "broken feed"})).json()
    assert paused["paused"] == {
        "at": "2026-01-01T00:00:01.000Z",
        "cause": "command",
        "reason": "broken feed",
    }
    assert (paused["status"], paused["next_at"]) == ("paused", None)
    assert (await api.get("/v1/jobs/a/executions")).json()["items"] == []
    assert (await api.post("/v1/jobs/a/pause")).json() == paused
    world.clock.advance(2 * DAY_MS)
    job = (await api.post("/v1/jobs/a/resume", json={"reason": "mended"})).json()
    assert (job["status"], job["paused"], job["next_at"]) == ("active", None, "2026-01-03T06:00:00.000Z")
    skipped, coming = (await api.get("/v1/jobs/a/executions")).json()["items"]
    assert (skipped["status"], skipped["reason"], skipped["count"]) == ("skipped", "paused", 2)
    assert coming["status"] == "scheduled"


async def test_a_resume_may_catch_up(api: httpx.AsyncClient, world: Installation) -> None:
    await created(api)
    await api.post("/v1/jobs/a/pause")
    world.clock.advance(2 * DAY_MS)
    job = (await api.post("/v1/jobs/a/resume", json={"catch_up": True})).json()
    assert job["next_at"] == "2026-01-01T06:00:00.000Z"
    assert code(await api.post("/v1/jobs/a/resume", json={"catch_up": 1})) == "422 invalid"


async def test_a_cancel_with_a_reason_answers_with_the_job(api: httpx.AsyncClient) -> None:
    await created(api)
    answer = await api.post("/v1/jobs/a/cancel", json={"reason": "no longer wanted"})
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    for verb in ("pause", "resume"):
        assert code(await api.post(f"/v1/jobs/a/{verb}")) == "409 job-closed"
        assert code(await api.post(f"/v1/jobs/b/{verb}")) == "404 not-found"


async def test_a_repeat_with_the_same_key_changes_nothing(api: httpx.AsyncClient) -> None:
    """The first answer was lost: the repeat names the version before its own change."""
    await created(api)
    for _ in range(2):
        answer = await patch(api, {"priority": 1}, '"1"', idempotency_key="k")
        assert (answer.status_code, answer.json()["version"]) == (200, 2)
        answer = await api.put("/v1/jobs/b", json={"task": "t"}, headers={"idempotency-key": "k"})
        assert answer.json()["version"] == 1


async def test_an_edit_under_way_is_answered_with_its_command(
    api: httpx.AsyncClient, world: Installation
) -> None:
    await created(api)
    world.log.is_held = True
    answer = await patch(api, {"priority": 1}, prefer="respond-async")
    assert answer.status_code == 202
    world.log.release()
    found = await api.get(answer.headers["location"])
    assert found.json()["outcome"] == "accepted"
    assert isinstance(world.log.sent[-1], EditJob)


async def test_an_open_execution_shows_the_version_that_it_runs_with(
    api: httpx.AsyncClient, world: Installation
) -> None:
    await created(api)
    at = NOW + 6 * 3_600_000
    world.clock.advance(6 * 3_600_000)
    partition = world.services.view.partition_of_job("acme", "a")
    row = (["acme"], ["default"], ["t"], [0], [0], [0], [f"a:{at}"], [1], [at], [at], [at + DAY_MS], [1], [5])
    world.log.append(partition, [facts.ExecutionsQueued(*row)])
    await patch(api, {"payload": 2})
    assert (await api.get(f"/v1/executions/a:{at}")).json()["version"] == 1
    assert (await api.get(f"/v1/executions/a:{at + DAY_MS}")).json()["version"] == 2


# -- with everything that a schedule can say

FULL = {
    "task": "t",
    "id": "a",
    "every": "PT2H",
    "start_at": "2026-01-02T00:00:00.000Z",
    "end_at": "2027-01-01T00:00:00.000Z",
    "max_runs": 9,
    "zone": "Asia/Kathmandu",
    "gap": "skip",
    "fold": "both",
    "day_match": "and",
    "jitter": "PT5M",
    "misfire": {"policy": "latest", "window": "PT1H", "max": 3},
    "overlap": "queue_one",
    "pause_on_failure": True,
}


async def test_an_edit_keeps_all_that_a_schedule_says(api: httpx.AsyncClient, world: Installation) -> None:
    before = (await api.post("/v1/jobs", json=FULL)).json()
    assert {name: before[name] for name in FULL} == FULL
    world.clock.advance(5)
    assert (await patch(api, {})).json() == before
    job = (await patch(api, {"misfire": {"max": 7}, "overlap": None, "jitter": None})).json()
    assert job["misfire"] == {"policy": "latest", "window": "PT1H", "max": 7}
    assert (job["overlap"], job["jitter"], job["every"], job["version"]) == ("allow", "PT0S", "PT2H", 2)
    assert job["next_at"] == before["next_at"]


async def test_what_only_a_schedule_has_goes_with_it(api: httpx.AsyncClient) -> None:
    await api.post("/v1/jobs", json=FULL)
    job = (await patch(api, {"run_at": RUN_AT})).json()
    assert (job["run_at"], job["every"], job["max_runs"], job["overlap"]) == (RUN_AT, None, None, "allow")
    assert (job["jitter"], job["misfire"]["policy"], job["pause_on_failure"]) == ("PT5M", "latest", True)
    assert code(await patch(api, {"max_runs": 3})) == "422 invalid"


async def test_an_interval_becomes_a_cron_within_the_same_bounds(api: httpx.AsyncClient) -> None:
    await api.post("/v1/jobs", json=FULL)
    job = (await patch(api, {"cron": "0 7 * * *"})).json()
    assert (job["cron"], job["every"], job["max_runs"]) == ("0 7 * * *", None, 9)
    assert job["next_at"] == "2026-01-02T01:15:00.000Z"


async def test_an_edit_names_calendars_that_are_there(api: httpx.AsyncClient) -> None:
    await api.post("/v1/jobs", json=FULL)
    answer = await patch(api, {"calendars": {"exclude": ["none"]}})
    assert code(answer) == "422 unknown-calendar"
