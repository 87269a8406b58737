"""Past instants of a job run after all, over HTTP: dry run, start, progress, repeats, refusals; for one tenant alone."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api import backfill as counting
from minutebook.domain.commands import StartOperation
from minutebook.times import format_instant
from tests.api.conftest import Callers
from tests.api.memory import NOW, Installation
from tests.api.runs import come, operate, operate_to_the_end, succeed

HOUR = 3_600_000
DAY = 24 * HOUR
JOB = {"id": "nightly", "task": "t", "cron": "@hourly"}


@pytest.fixture
def api(callers: Callers) -> httpx.AsyncClient:
    """An operator's client."""
    return callers["operator"]


@pytest.fixture
async def job(api: httpx.AsyncClient, world: Installation) -> None:
    """A job created 48 hours ago that ran nothing in the first day, which is skipped: 23 instants; 25 are open."""
    answer = await api.post("/v1/jobs", json=JOB)
    assert answer.status_code == 201, answer.text
    world.clock.advance(48 * HOUR)
    come(world)
    world.clock.advance(1)


def span(first: int, last: int) -> dict[str, Any]:
    """A range by hours after the creation, the last one included."""
    return {"from": format_instant(NOW + first * HOUR), "until": format_instant(NOW + last * HOUR + 1)}


async def start(
    api: httpx.AsyncClient, first: int, last: int, key: str = "k", **given: Any
) -> httpx.Response:
    body = span(first, last) | given
    return await api.post("/v1/jobs/nightly/backfill", json=body, headers={"idempotency-key": key})


async def dry_run(api: httpx.AsyncClient, first: int, last: int) -> dict[str, Any]:
    answer = await api.post("/v1/jobs/nightly/backfill", json=span(first, last) | {"dry_run": True})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def ended(api: httpx.AsyncClient, world: Installation, answer: httpx.Response) -> dict[str, Any]:
    """An operation that was started, at its end."""
    assert answer.status_code == 202, answer.text
    operate_to_the_end(world)
    return dict((await api.get(answer.headers["location"])).json())


async def test_skipped_instants_run(api: httpx.AsyncClient, world: Installation, job: None) -> None:
    answer = await start(api, 3, 5, rate_per_s=10, reason="paused by mistake")
    assert answer.status_code == 202, answer.text
    body = answer.json()
    assert answer.headers["location"] == f"/v1/operations/{body['id']}"
    assert (body["kind"], body["state"], body["rate_per_s"]) == ("backfill", "running", 10)
    assert body["filter"] == {"job_id": "nightly"} | span(3, 5)
    found = await ended(api, world, answer)
    assert found["state"] == "completed"
    assert found["progress"] == {"matched": 3, "done": 3, "refused": 0, "left": 0}
    assert found["refusal"] is None
    name = f"nightly:{NOW + 4 * HOUR}"
    shown = (await api.get(f"/v1/executions/{name}")).json()
    assert (shown["status"], shown["scheduled_at"]) == ("scheduled", format_instant(NOW + 4 * HOUR))
    come(world)
    succeed(world, name)
    assert (await api.get(f"/v1/executions/{name}")).json()["outcome"] == "succeeded"
    assert (await api.get(f"/v1/executions/nightly:{NOW + HOUR}")).json()["outcome"] == "skipped"


async def test_dry_run_says_what_would_run_and_why_not_the_others(
    api: httpx.AsyncClient, world: Installation, job: None
) -> None:
    sent = len(world.log.sent)
    assert await dry_run(api, -5, 48) == {
        "matched": 54,
        "would_run": 29,
        "refused": 25,
        "first_at": format_instant(NOW - 5 * HOUR),
        "last_at": format_instant(NOW + 23 * HOUR),
        "reasons": [
            {"reason": "ran", "would_run": False, "count": 25},
            {"reason": "misfire", "would_run": True, "count": 23},
            {"reason": "before_creation", "would_run": True, "count": 6},
        ],
    }
    assert await dry_run(api, 30, 31) == {
        "matched": 2,
        "would_run": 0,
        "refused": 2,
        "first_at": None,
        "last_at": None,
        "reasons": [{"reason": "ran", "would_run": False, "count": 2}],
    }
    assert len(world.log.sent) == sent
    assert (await api.get("/v1/operations")).json()["items"] == []


@pytest.mark.parametrize(
    ("first", "last"), [(-5, 48), (-5, -1), (3, 5), (20, 30), (40, 48), (0, 0), (-8000, 48)]
)
async def test_dry_run_and_operation_mean_the_same(
    first: int, last: int, api: httpx.AsyncClient, world: Installation, job: None
) -> None:
    counted = await dry_run(api, first, last)
    found = (await ended(api, world, await start(api, first, last)))["progress"]
    assert (found["matched"], found["done"], found["refused"]) == (
        counted["matched"],
        counted["would_run"],
        counted["refused"],
    )
    after = await dry_run(api, first, last)
    assert (after["matched"], after["would_run"]) == (counted["matched"], 0)


async def test_what_was_skipped_too_long_ago_is_unknown_to_both(
    api: httpx.AsyncClient, world: Installation, job: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "_SLICE", 2)
    world.clock.advance(9 * DAY)
    for book in world.log.books:
        for day in book.cursor.days:
            book.drop_day(day)
        book.commit()
    counted = await dry_run(api, 1, 3)
    assert counted["reasons"] == [{"reason": "unknown", "would_run": False, "count": 3}]
    assert (await ended(api, world, await start(api, 1, 3)))["progress"]["refused"] == 3


async def test_what_is_not_decided_yet_is_shown_as_such(
    api: httpx.AsyncClient, world: Installation, job: None
) -> None:
    world.clock.advance(3 * HOUR)
    counted = await dry_run(api, 49, 51)
    assert counted["reasons"] == [{"reason": "undecided", "would_run": False, "count": 3}]


async def test_operations_take_both_kinds(api: httpx.AsyncClient, world: Installation, job: None) -> None:
    body: dict[str, Any] = {"kind": "backfill", "filter": {"job_id": "nightly"} | span(3, 5)}
    dry = await api.post("/v1/operations", json=body | {"dry_run": True})
    assert (dry.status_code, dry.json()["would_run"]) == (200, 3)
    answer = await api.post("/v1/operations", json=body, headers={"idempotency-key": "k"})
    assert (await ended(api, world, answer))["progress"]["done"] == 3
    body = {"kind": "redrive", "filter": {"task": "t"}}
    dry = await api.post("/v1/operations", json=body | {"dry_run": True})
    assert dry.json() == {"matched": 0, "complete": True, "reasons": []}
    answer = await api.post("/v1/operations", json=body, headers={"idempotency-key": "r"})
    found = await ended(api, world, answer)
    assert (found["kind"], found["filter"], found["state"]) == ("redrive", {"task": "t"}, "completed")


async def test_repeat_with_its_key_starts_nothing(
    api: httpx.AsyncClient, world: Installation, job: None
) -> None:
    first = await start(api, 3, 5)
    again = await start(api, 3, 5)
    assert (again.status_code, again.json()) == (202, first.json())
    assert len([command for command in world.log.sent if isinstance(command, StartOperation)]) == 1
    other = await start(api, 3, 6)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    assert (await start(api, 3, 6, key="other")).status_code == 202
    await api.delete("/v1/jobs/nightly")
    operate_to_the_end(world)
    late = await start(api, 3, 5)
    assert (late.status_code, late.json()["id"]) == (202, first.json()["id"])


async def test_key_is_required(api: httpx.AsyncClient, job: None) -> None:
    answer = await api.post("/v1/jobs/nightly/backfill", json=span(3, 5))
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "Idempotency-Key")


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/from", "/until"]),
        ({"from": "2026-01-01T00:00:00Z"}, ["/until"]),
        ({"from": "yesterday", "until": "2026-01-01T00:00:00Z"}, ["/from"]),
        ({"from": 1, "until": "2026-01-01T00:00:00Z"}, ["/from"]),
        ({"from": "1969-12-31T00:00:00Z", "until": "1969-12-31T01:00:00Z"}, ["/from"]),
        ({"from": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}, ["/until"]),
        ({"from": "2026-01-01T00:00:00Z", "until": "2026-02-01T00:00:00Z"}, ["/until"]),
        ({"from": "2024-12-31T00:00:00Z", "until": "2026-01-02T00:00:00Z"}, ["/until"]),
        (span(1, 2) | {"job_id": "nightly"}, ["/job_id"]),
        (span(1, 2) | {"filter": {}}, ["/filter"]),
        (span(1, 2) | {"dry_run": "yes"}, ["/dry_run"]),
        (span(1, 2) | {"rate_per_s": 0}, ["/rate_per_s"]),
        (span(1, 2) | {"reason": "x" * 1_001}, ["/reason"]),
    ],
)
async def test_senseless_body_is_refused_by_field(
    body: dict[str, Any], pointers: list[str], api: httpx.AsyncClient, job: None
) -> None:
    answer = await api.post("/v1/jobs/nightly/backfill", json=body, headers={"idempotency-key": "k"})
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == pointers
    assert all(error["detail"] for error in answer.json()["errors"])


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/kind", "/filter"]),
        ({"kind": "purge", "filter": {}}, ["/kind"]),
        ({"kind": "pause"}, ["/filter"]),
        ({"kind": "pause", "filter": {"cause": "attempts"}}, ["/filter/cause"]),
        ({"kind": "cancel", "filter": {"status": "dead"}}, ["/filter/status"]),
        (
            {"kind": "resume", "filter": {"tag": "a b", "created_from": "1"}},
            ["/filter/created_from", "/filter/tag"],
        ),
        (
            {
                "kind": "pause",
                "filter": {"created_from": span(2, 2)["from"], "created_until": span(1, 1)["from"]},
            },
            ["/filter/created_until"],
        ),
        ({"kind": "redrive", "filter": {"tag": "x"}}, ["/filter/tag"]),
        ({"kind": "backfill"}, ["/filter"]),
        ({"kind": "backfill", "filter": []}, ["/filter"]),
        ({"kind": "backfill", "filter": {}}, ["/filter/job_id", "/filter/from", "/filter/until"]),
        ({"kind": "backfill", "filter": span(1, 2)}, ["/filter/job_id"]),
        ({"kind": "backfill", "filter": span(1, 2) | {"job_id": "a b"}}, ["/filter/job_id"]),
        (
            {"kind": "backfill", "filter": span(1, 2) | {"job_id": "nightly", "task": "t"}},
            ["/filter/task"],
        ),
        ({"kind": "backfill", "filter": span(1, 2000) | {"job_id": "nightly"}}, ["/filter/until"]),
        ({"kind": "redrive", "filter": {"job_id": "nightly"}}, ["/filter/job_id"]),
    ],
)
async def test_senseless_operation_is_refused_by_field(
    body: dict[str, Any], pointers: list[str], api: httpx.AsyncClient, job: None
) -> None:
    answer = await api.post("/v1/operations", json=body, headers={"idempotency-key": "k"})
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == pointers


@pytest.mark.parametrize("is_dry_run", [True, False])
async def test_job_that_cannot_be_filled_is_refused(
    is_dry_run: bool, callers: Callers, api: httpx.AsyncClient, world: Installation, job: None
) -> None:
    await api.post("/v1/jobs", json={"id": "once", "task": "t", "delay": "PT1H"})
    await api.post("/v1/jobs", json={"id": "dense", "task": "t", "cron": "* * * * * *"})
    await api.post("/v1/jobs", json={"id": "over", "task": "t", "cron": "@hourly"})
    await api.delete("/v1/jobs/over")
    for name, status, code, pointer in [
        ("nothing", 404, "not-found", None),
        ("a b", 404, "not-found", None),
        ("once", 422, "invalid", "job_id"),
        ("dense", 422, "invalid", "/until"),
        ("over", 409, "job-closed", None),
    ]:
        body = span(1, 48) | {"dry_run": is_dry_run}
        path = f"/v1/jobs/{name}/backfill"
        answer = await api.post(path, json=body, headers={"idempotency-key": f"k-{name}".replace(" ", "")})
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        if pointer is not None:
            assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert not any(isinstance(command, StartOperation) for command in world.log.sent)


async def test_operation_of_a_job_that_was_closed_meanwhile_says_why(
    api: httpx.AsyncClient, world: Installation, job: None
) -> None:
    answer = await start(api, 1, 20, rate_per_s=1)
    for _ in range(3):
        world.clock.advance(100)
        operate(world)
    await api.delete("/v1/jobs/nightly")
    found = await ended(api, world, answer)
    told = found["progress"]
    assert (told["matched"], told["left"], told["done"] + told["refused"]) == (20, 0, 20)
    assert found["refusal"]["reason"] == "job_closed"
    assert found["refusal"]["detail"]
