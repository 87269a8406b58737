"""The audit log over the API: who, when, from where, why and what became of it; tenants apart, bounded, page by page."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api import audit
from api.settings import key_hash
from tests.api.conftest import Callers
from tests.api.memory import Installation

KEY_ID = {name: key_hash(f"key-{name}")[:12] for name in ("submitter", "operator", "admin", "other-admin")}


async def entries(api: httpx.AsyncClient, **query: str) -> list[dict[str, Any]]:
    answer = await api.get("/v1/audit-log", params=query)
    assert answer.status_code == 200, answer.text
    assert answer.json()["next_cursor"] is None
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def commands(api: httpx.AsyncClient, **query: str) -> list[str]:
    return [item["command"] for item in await entries(api, **query)]


@pytest.fixture
async def day(callers: Callers, world: Installation) -> None:
    """A job of acme paused and resumed, a queue of nobody, a refusal, and another tenant at work."""
    job = {"id": "a", "task": "t", "cron": "0 * * * *"}
    for name in ("submitter", "other"):
        await callers[name].post("/v1/jobs", json=job)
    steps = [
        ("submitter", "POST", "/v1/jobs/a/pause", {"reason": "host is down"}),
        ("operator", "POST", "/v1/jobs/a/resume", None),
        ("submitter", "POST", "/v1/jobs/b/cancel", None),
        ("operator", "POST", "/v1/queues", {"name": "mail"}),
        ("operator", "POST", "/v1/queues/mail/pause", {"reason": "full"}),
        ("other-admin", "POST", "/v1/jobs/a/pause", {"reason": "theirs"}),
        ("other-admin", "PUT", "/v1/limits/api", {"concurrency": 3}),
    ]
    for name, method, path, body in steps:
        world.clock.advance(1_000)
        await callers[name].request(method, path, json=body)


@pytest.mark.usefixtures("day")
async def test_an_entry_says_who_when_from_where_why_and_what(callers: Callers) -> None:
    found = await entries(callers["operator"])
    assert [item["command"] for item in found] == ["CancelJob", "ResumeJob", "PauseJob"]
    partition = found[2]["position"]["partition"]
    assert found[2] == {
        "at": "2026-01-01T00:00:01.000Z",
        "tenant": "acme",
        "actor": f"key:{KEY_ID['submitter']} via api from 127.0.0.1",
        "key_id": KEY_ID["submitter"],
        "via": "api",
        "address": "127.0.0.1",
        "operation_id": None,
        "reason": "host is down",
        "command": "PauseJob",
        "command_id": found[2]["command_id"],
        "subject_kind": "job",
        "subject": "a",
        "execution_id": None,
        "accepted": True,
        "code": None,
        "detail": None,
        "version": 1,
        "position": {
            "partition": partition,
            "offset": 2 if partition == found[1]["position"]["partition"] else 1,
        },
    } | {"position": found[2]["position"]}
    refused = found[0]
    assert (refused["accepted"], refused["code"], refused["subject"]) == (False, "not-found", "b")


@pytest.mark.usefixtures("day")
async def test_a_position_names_the_frame_that_decided(callers: Callers, world: Installation) -> None:
    for item in await entries(callers["admin"]):
        where = item["position"]
        assert 0 <= where["offset"] < len(world.log.logs[where["partition"]])
        record = world.log.logs[where["partition"]][where["offset"]]
        assert record.value is not None
        assert item["command_id"].encode() in record.value


@pytest.mark.usefixtures("day")
async def test_what_belongs_to_no_tenant_shows_to_admins_alone(callers: Callers) -> None:
    of_nobody = [item for item in await entries(callers["admin"]) if item["tenant"] is None]
    assert [
        (item["command"], item["subject_kind"], item["subject"], item["reason"]) for item in of_nobody
    ] == [
        ("PauseQueue", "queue", "mail", "full"),
        ("DeclareQueue", "queue", "mail", ""),
    ]
    assert "DeclareQueue" not in await commands(callers["operator"])


@pytest.mark.usefixtures("day")
async def test_commands_of_another_tenant_never_show(callers: Callers) -> None:
    ours = await entries(callers["admin"])
    theirs = await entries(callers["other-admin"])
    assert {item["tenant"] for item in ours} == {"acme", None}
    assert {item["tenant"] for item in theirs} == {"other", None}
    assert [item["command"] for item in theirs if item["tenant"]] == ["DeclareLimit", "PauseJob"]
    assert await entries(callers["admin"], key=KEY_ID["other-admin"]) == []
    assert await entries(callers["operator"], subject="api") == []


@pytest.mark.usefixtures("day")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"key": KEY_ID["submitter"]}, ["CancelJob", "PauseJob"]),
        ({"command": "ResumeJob"}, ["ResumeJob"]),
        ({"subject": "b"}, ["CancelJob"]),
        ({"subject": "mail"}, ["PauseQueue", "DeclareQueue"]),
        ({"accepted": "false"}, ["CancelJob"]),
        ({"accepted": "true", "subject": "a"}, ["ResumeJob", "PauseJob"]),
        ({"from": "2026-01-01T00:00:02Z", "until": "2026-01-01T00:00:04Z"}, ["CancelJob", "ResumeJob"]),
        ({"until": "2026-01-01T00:00:01Z"}, []),
        ({"from": "2026-01-01T00:00:06Z"}, []),
        ({"until": "2000-01-01T00:00:00Z"}, []),
        ({"until": "1960-01-01T00:00:00Z"}, []),
    ],
)
async def test_filters_leave_what_fits(query: dict[str, str], found: list[str], callers: Callers) -> None:
    assert await commands(callers["admin"], **query) == found


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"command": "Cancel"}, "command"),
        ({"accepted": "yes"}, "accepted"),
        ({"from": "yesterday"}, "from"),
        ({"until": "2026-01-01"}, "until"),
        ({"limit": "0"}, "limit"),
        ({"key": "k" * 129}, "key"),
        ({"key": "[k]"}, "key"),
        ({"key": ""}, "key"),
        ({"subject": ""}, "subject"),
        ({"subject": "k" * 301}, "subject"),
        ({"actor": "x"}, "actor"),
        ({"cursor": "AAAA"}, "cursor"),
    ],
)
async def test_a_senseless_query_is_refused(query: dict[str, str], pointer: str, callers: Callers) -> None:
    answer = await callers["operator"].get("/v1/audit-log", params=query)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, pointer)


async def pages(api: httpx.AsyncClient, **query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        page = (await api.get("/v1/audit-log", params=query)).json()
        found += page["items"]
        if page["next_cursor"] is None:
            return found
        query["cursor"] = page["next_cursor"]


@pytest.mark.usefixtures("day")
async def test_pages_skip_and_repeat_nothing_at_equal_times(callers: Callers, world: Installation) -> None:
    for number in range(7):
        await callers["admin"].post(f"/v1/jobs/j{number}/cancel")
        await callers["admin"].post("/v1/queues", json={"name": f"q{number}"})
    whole = await entries(callers["admin"])
    assert len(whole) == 5 + 14
    assert await pages(callers["admin"], limit="2") == whole
    assert [item["at"] for item in whole] == sorted((item["at"] for item in whole), reverse=True)
    one = (await callers["admin"].get("/v1/audit-log", params={"limit": "2"})).json()["next_cursor"]
    for name, more in (("operator", {}), ("other-admin", {}), ("admin", {"accepted": "false"})):
        answer = await callers[name].get("/v1/audit-log", params={"cursor": one, **more})
        assert answer.status_code == 400


@pytest.mark.usefixtures("day")
async def test_a_filter_that_fits_little_is_worked_through_in_pieces(
    callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "SCANNED_MAX", 2)
    first = (await callers["admin"].get("/v1/audit-log", params={"command": "PauseJob"})).json()
    assert first["items"] == []
    assert first["next_cursor"] is not None
    assert [item["command"] for item in await pages(callers["admin"], command="PauseJob")] == ["PauseJob"]


async def test_submissions_are_left_to_their_jobs(callers: Callers, world: Installation) -> None:
    await callers["submitter"].post("/v1/jobs", json={"id": "a", "task": "t"})
    await callers["submitter"].post("/v1/jobs", json={"id": "a", "task": "u"})
    assert [(item["command"], item["code"]) for item in await entries(callers["operator"])] == [
        ("SubmitJob", "id-exists")
    ]


# -- reasons

REASON = {"minutebook-reason": "caf%C3%A9%20is%20closed"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/v1/jobs/a"),
        ("POST", "/v1/jobs/a/run-now"),
        ("POST", "/v1/jobs/a/pause"),
        ("POST", "/v1/jobs/a/cancel"),
        ("PATCH", "/v1/jobs/a"),
        ("PUT", "/v1/jobs/a"),
        ("DELETE", "/v1/limits/api"),
        ("DELETE", "/v1/tenant-limit"),
        ("POST", "/v1/limits/api/resume"),
        ("PUT", "/v1/calendars/new"),
        ("DELETE", "/v1/calendars/c"),
        ("POST", "/v1/queues/default/pause"),
        ("POST", "/v1/operations"),
        ("POST", "/v1/keys"),
    ],
)
async def test_a_reason_in_the_header_is_kept(method: str, path: str, callers: Callers) -> None:
    bodies: dict[str, Any] = {
        "PATCH": {"cron": "5 * * * *"},
        "PUT": {"task": "u", "cron": "0 * * * *"},
        "/v1/calendars/new": {"dates": ["2026-12-25"]},
        "/v1/operations": {"kind": "redrive", "filter": {}},
        "/v1/keys": {"label": "x", "role": "viewer"},
    }
    await callers["submitter"].post("/v1/jobs", json={"id": "a", "task": "t", "cron": "0 * * * *"})
    await callers["admin"].put("/v1/limits/api", json={"concurrency": 1})
    await callers["admin"].put("/v1/tenant-limit", json={"concurrency": 1})
    await callers["admin"].put("/v1/calendars/c", json={"dates": ["2026-12-25"]})
    body = bodies.get(path, bodies.get(method))
    headers = REASON | {"idempotency-key": "k"}
    before = {item["command_id"] for item in await entries(callers["admin"])}
    answer = await callers["admin"].request(method, path, headers=headers, json=body)
    assert answer.status_code < 400, answer.text
    (item,) = [one for one in await entries(callers["admin"]) if one["command_id"] not in before]
    assert item["reason"] == "caf\u00e9 is closed"


async def test_a_reason_in_the_body_goes_before_the_header(callers: Callers) -> None:
    await callers["submitter"].post("/v1/jobs", json={"id": "a", "task": "t", "cron": "0 * * * *"})
    await callers["submitter"].post("/v1/jobs/a/pause", json={"reason": "body"}, headers=REASON)
    assert (await entries(callers["operator"]))[0]["reason"] == "body"


@pytest.mark.parametrize("text", ["%ff", "%ED%A0%80", "x" * 1_001, "%C3%A9" * 1_001])
async def test_a_senseless_reason_is_refused(text: str, callers: Callers, world: Installation) -> None:
    answer = await callers["submitter"].delete("/v1/jobs/a", headers={"minutebook-reason": text})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "Minutebook-Reason")
    assert world.log.sent == []


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/queues", {"name": "mail"}),
        ("PUT", "/v1/limits/api", {"concurrency": 1}),
        ("PUT", "/v1/tenant-limit", {"concurrency": 1}),
        ("POST", "/v1/jobs", {"task": "t"}),
    ],
)
async def test_a_reason_that_would_be_lost_is_refused(
    method: str, path: str, body: dict[str, Any], callers: Callers, world: Installation
) -> None:
    answer = await callers["operator"].request(method, path, json=body, headers=REASON)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "Minutebook-Reason")
    assert world.log.sent == []
