"""What a `PUT` would do: the answer to `dry_run`, what is refused as by the PUT itself, and that nothing is written."""

from __future__ import annotations

import httpx
import pytest

from tests.api.memory import Installation
from tests.api.test_job_changes import CRON, code, created

BODY = {name: value for name, value in CRON.items() if name != "id"}
DAY_MS = 86_400_000


async def asked(api: httpx.AsyncClient, body: object, job: str = "a", **headers: str) -> httpx.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return await api.put(f"/v1/jobs/{job}?dry_run=true", json=body, headers=sent)


async def effect(api: httpx.AsyncClient, body: object, job: str = "a") -> dict[str, object]:
    answer = await asked(api, body, job)
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


async def test_a_new_job_would_be_created(api: httpx.AsyncClient, world: Installation) -> None:
    found = await effect(api, BODY)
    assert (found["effect"], found["status"], found["version"], found["before"]) == (
        "created",
        None,
        None,
        None,
    )
    assert found["after"]["cron"] == "0 7 * * *"  # type: ignore[index]  # an object
    assert world.log.sent == []


async def test_the_same_body_would_change_nothing(api: httpx.AsyncClient, world: Installation) -> None:
    await created(api, priority=7, calendars={"exclude": []}, retry={"first": "PT60S"})
    world.clock.advance(DAY_MS)
    found = await effect(api, BODY | {"priority": 7, "retry": {"first": "PT1M"}})
    assert (found["effect"], found["status"], found["version"]) == ("unchanged", "active", 1)
    assert found["before"] == found["after"]
    assert len(world.log.sent) == 1


async def test_another_body_would_change_what_differs(api: httpx.AsyncClient) -> None:
    await created(api, priority=7)
    found = await effect(api, BODY | {"payload": {"n": 2}})
    assert found["effect"] == "changed"
    before, after = found["before"], found["after"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    differ = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert differ == {"payload", "priority"}
    put = await api.put("/v1/jobs/a", json=BODY | {"payload": {"n": 2}})
    assert put.json()["version"] == 2
    assert (await effect(api, BODY | {"payload": {"n": 2}}))["effect"] == "unchanged"


@pytest.mark.parametrize("moment", [{}, {"delay": "PT2M"}, {"run_at": "2026-01-05T00:00:00Z"}])
async def test_a_job_that_fires_once_stays_with_the_same_moment(
    moment: dict[str, str], api: httpx.AsyncClient, world: Installation
) -> None:
    assert (await api.put("/v1/jobs/a", json={"task": "t"} | moment)).status_code == 201
    world.clock.advance(3_000)
    assert (await effect(api, {"task": "t"} | moment))["effect"] == "unchanged"
    assert (await effect(api, {"task": "t", "delay": "PT3M"}))["effect"] == "changed"


async def test_what_the_put_refuses_is_refused(api: httpx.AsyncClient, world: Installation) -> None:
    assert code(await asked(api, BODY | {"cron": "x"})) == "422 invalid"
    assert code(await asked(api, BODY | {"queue": "nowhere"})) == "422 unknown-queue"
    answer = await asked(api, BODY | {"calendars": {"exclude": ["none"]}})
    assert code(answer) == "422 unknown-calendar"
    assert answer.json()["errors"][0]["pointer"] == "/calendars/exclude"
    assert code(await asked(api, BODY, if_match='"3"')) == "412 stale-version"
    assert code(await api.put("/v1/jobs/a?dry_run=yes", json=BODY)) == "400 bad-parameter"
    assert world.log.sent == []


async def test_a_draining_queue_takes_what_it_has(
    api: httpx.AsyncClient, callers: dict[str, httpx.AsyncClient]
) -> None:
    await created(api)
    assert (await callers["operator"].post("/v1/queues/default/drain")).status_code == 200
    assert (await effect(api, BODY))["effect"] == "unchanged"
    assert code(await asked(api, BODY, "b")) == "409 queue-draining"


async def test_a_closed_job_is_told(api: httpx.AsyncClient) -> None:
    await created(api)
    await api.post("/v1/jobs/a/cancel")
    assert (await effect(api, BODY | {"priority": 1}))["status"] == "cancelled"


async def test_another_tenants_job_is_none(callers: dict[str, httpx.AsyncClient]) -> None:
    await created(callers["submitter"])
    assert (await effect(callers["other"], BODY))["effect"] == "created"
