"""The fields of a create body that say when and what else may run: taken, shown again, and refused by name."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutebook.domain.commands import SubmitJob
from minutebook.domain.timing import AT_MAX, DEFAULT, Timing
from minutebook.times import format_duration, format_instant
from tests.api.conftest import Callers
from tests.api.memory import NOW, Installation, installation

CRON = {"cron": "0 0 * * *"}
HOURLY = {"every": "PT1H"}
LATER, LATEST = "2030-01-01T00:00:00.000Z", "2031-01-01T00:00:00.000Z"

DEFAULTS: dict[str, Any] = {
    "every": None,
    "start_at": None,
    "end_at": None,
    "max_runs": None,
    "calendars": {"exclude": [], "include": []},
    "misfire": {"policy": "all", "window": "P1D", "max": 100},
    "overlap": "allow",
    "gap": "auto",
    "fold": "auto",
    "day_match": "or",
    "jitter": "PT0S",
    "pause_on_failure": False,
}
EVERYTHING: dict[str, Any] = {
    "cron": "30 2 1 * FRI",
    "zone": "Europe/Berlin",
    "start_at": LATER,
    "end_at": LATEST,
    "max_runs": 12,
    "calendars": {"exclude": ["holidays", "stocktaking"], "include": ["working-days"]},
    "misfire": {"policy": "latest", "window": "P2D", "max": 7},
    "overlap": "queue_one",
    "gap": "skip",
    "fold": "last",
    "day_match": "and",
    "jitter": "PT1M30S",
    "pause_on_failure": True,
}


async def created(api: httpx.AsyncClient, fields: dict[str, Any]) -> dict[str, Any]:
    answer = await api.post("/v1/jobs", json={"task": "t"} | fields)
    assert answer.status_code == 201, answer.text
    shown = await api.get(answer.headers["location"])
    assert shown.json() == answer.json()
    found: dict[str, Any] = shown.json()
    return found


async def refused(api: httpx.AsyncClient, fields: dict[str, Any]) -> list[str]:
    answer = await api.post("/v1/jobs", json={"task": "t"} | fields)
    assert answer.status_code == 422, answer.text
    errors = answer.json()["errors"]
    assert all(error["detail"] for error in errors)
    return [error["pointer"] for error in errors]


def timing_of(world: Installation) -> Timing | None:
    (command,) = world.log.sent
    assert isinstance(command, SubmitJob)
    return command.timing


@pytest.mark.parametrize("fields", [{}, CRON, {"run_at": LATER}, CRON | {"gap": "auto", "max_runs": 1}])
async def test_what_is_left_out_has_its_default(fields: dict[str, Any], api: httpx.AsyncClient) -> None:
    job = await created(api, fields)
    assert {name: job[name] for name in DEFAULTS} == DEFAULTS | {
        name: fields[name] for name in DEFAULTS if name in fields
    }


async def test_defaults_that_are_said_make_the_same_job(api: httpx.AsyncClient, world: Installation) -> None:
    said = {name: value for name, value in DEFAULTS.items() if value is not None}
    first = await api.post("/v1/jobs", json={"task": "t", "id": "a"} | CRON | said)
    assert timing_of(world) is None
    again = await api.post("/v1/jobs", json={"task": "t", "id": "a"} | CRON)
    assert (first.status_code, again.status_code) == (201, 201)
    other = await api.post("/v1/jobs", json={"task": "t", "id": "a", "overlap": "skip"} | CRON)
    assert (other.status_code, other.json()["code"]) == (409, "id-exists")


async def test_job_of_a_batch_is_like_one_created_alone(api: httpx.AsyncClient, world: Installation) -> None:
    jobs = [{"task": "t", "overlap": "skip"} | CRON, {"task": "t", "misfire": {"max": 0}}, {"task": "t"}]
    answer = await api.post("/v1/jobs/batch", json={"jobs": jobs}, headers={"idempotency-key": "k"})
    items = answer.json()["items"]
    assert [item["status"] for item in items] == [201, 422, 201]
    assert items[1]["problem"]["errors"][0]["pointer"] == "/misfire/max"
    assert (await api.get(f"/v1/jobs/{items[0]['id']}")).json()["overlap"] == "skip"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "Z27 end before start": (CRON | {"start_at": LATEST, "end_at": LATER}, "end_at"),
    "end at the start": (CRON | {"start_at": LATER, "end_at": LATER}, "end_at"),
    "end that is past": (CRON | {"end_at": "2025-12-31T00:00:00Z"}, "end_at"),
    "end before the first instant": (CRON | {"end_at": "2026-01-02T00:00:00Z"}, "end_at"),
    "interval that ends before it began": (HOURLY | {"end_at": "2026-01-01T01:00:00Z"}, "end_at"),
    "start before 1970": (CRON | {"start_at": "1969-12-31T23:59:59Z"}, "start_at"),
    "start after all instants": (HOURLY | {"start_at": "2200-01-01T00:00:00Z"}, "start_at"),
    "naive start": (CRON | {"start_at": "2030-01-01T00:00:00"}, "start_at"),
    "start as a number": (CRON | {"start_at": 1893456000000}, "start_at"),
    "Z28 interval 0 s": ({"every": "PT0S"}, "every"),
    "Z29 interval 1 ms": ({"every": "PT0.001S"}, "every"),
    "Z30 interval of a year": ({"every": "P1Y"}, "every"),
    "Z30 interval of a month": ({"every": "P1M"}, "every"),
    "interval beyond a year": ({"every": "P366DT1S"}, "every"),
    "interval beyond 64 bits": ({"every": "P999999999D"}, "every"),
    "interval as a number": ({"every": 90}, "every"),
    "interval as people type it": ({"every": "90s"}, "every"),
    "interval and cron": ({"every": "PT1H", "cron": "@daily"}, "every"),
    "interval and delay": ({"every": "PT1H", "delay": "PT1S"}, "every"),
    "C25 interval of 0 s by cron": ({"cron": "@every 0s"}, "cron"),
    "C25 interval of 1 ms by cron": ({"cron": "@every 1ms"}, "cron"),
    "interval by cron beyond a year": ({"cron": "@every 367d"}, "cron"),
    "no run at all": (CRON | {"max_runs": 0}, "max_runs"),
    "fewer runs than none": (CRON | {"max_runs": -1}, "max_runs"),
    "runs beyond 64 bits": (CRON | {"max_runs": 1 << 63}, "max_runs"),
    "half a run": (CRON | {"max_runs": 1.5}, "max_runs"),
    "runs as true": (CRON | {"max_runs": True}, "max_runs"),
    "gap": (CRON | {"gap": "later"}, "gap"),
    "fold": (CRON | {"fold": "second"}, "fold"),
    "fold as null": (CRON | {"fold": None}, "fold"),
    "day_match": (CRON | {"day_match": "xor"}, "day_match"),
    "overlap": (CRON | {"overlap": "queue"}, "overlap"),
    "overlap as a list": (CRON | {"overlap": ["skip"]}, "overlap"),
    "jitter beyond a day": (CRON | {"jitter": "P1DT1S"}, "jitter"),
    "negative jitter": (CRON | {"jitter": "-PT1S"}, "jitter"),
    "misfire as a text": (CRON | {"misfire": "latest"}, "misfire"),
    "misfire as null": (CRON | {"misfire": None}, "misfire"),
    "misfire policy": (CRON | {"misfire": {"policy": "some"}}, "misfire/policy"),
    "misfire window of nothing": (CRON | {"misfire": {"window": "PT0S"}}, "misfire/window"),
    "misfire window beyond 30 days": (CRON | {"misfire": {"window": "P30DT1S"}}, "misfire/window"),
    "misfire max of none": (CRON | {"misfire": {"max": 0}}, "misfire/max"),
    "misfire max beyond 10,000": (CRON | {"misfire": {"max": 10_001}}, "misfire/max"),
    "unknown part of misfire": (CRON | {"misfire": {"jitter": 1}}, "misfire/jitter"),
    "odd part of misfire": (CRON | {"misfire": {"a/b~": 1}}, "misfire/a~1b~0"),
    "calendars as a list": (CRON | {"calendars": ["holidays"]}, "calendars"),
    "calendar as a text": (CRON | {"calendars": {"exclude": "holidays"}}, "calendars/exclude"),
    "calendar that is no name": (CRON | {"calendars": {"include": ["a b"]}}, "calendars/include"),
    "17 calendars": (CRON | {"calendars": {"exclude": [f"c{n}" for n in range(17)]}}, "calendars/exclude"),
    "unknown part of calendars": (CRON | {"calendars": {"only": []}}, "calendars/only"),
    "pause as a text": (CRON | {"pause_on_failure": "true"}, "pause_on_failure"),
    "pause as a number": (CRON | {"pause_on_failure": 1}, "pause_on_failure"),
    "start without a rule": ({"start_at": LATER}, "start_at"),
    "end of one instant": ({"run_at": LATER, "end_at": LATEST}, "end_at"),
    "overlap of one instant": ({"delay": "PT1S", "overlap": "skip"}, "overlap"),
    "calendar of one instant": ({"run_at": LATER, "calendars": {"exclude": ["a"]}}, "calendars/exclude"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_refused_field_is_named(name: str, api: httpx.AsyncClient, world: Installation) -> None:
    fields, field = REFUSED[name]
    assert await refused(api, fields) == [f"/{field}"]
    assert world.log.sent == []


async def test_every_field_at_fault_is_named_at_once(api: httpx.AsyncClient) -> None:
    fields = {
        "every": "PT0S",
        "start_at": LATEST,
        "end_at": LATER,
        "max_runs": 0,
        "calendars": {"exclude": "a", "only": []},
        "misfire": {"policy": "some", "window": "x", "max": 0},
        "overlap": "some",
        "gap": 1,
        "jitter": "P2D",
        "pause_on_failure": 1,
        "pause_on_success": True,
    }
    at_fault = {
        *fields,
        "calendars/exclude",
        "calendars/only",
        "misfire/policy",
        "misfire/window",
        "misfire/max",
    }
    at_fault -= {"start_at", "calendars", "misfire"}
    assert sorted(await refused(api, fields)) == sorted(f"/{field}" for field in at_fault)


async def test_name_given_twice_inside_is_refused(api: httpx.AsyncClient) -> None:
    content = b'{"task": "t", "cron": "@daily", "misfire": {"max": 1, "max": 2}}'
    answer = await api.post("/v1/jobs", content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed-json")


TAKEN: dict[str, dict[str, Any]] = {
    "shortest interval": {"every": "PT1S"},
    "longest interval": {"every": "P366D"},
    "interval to the ms": {"every": "PT1.5S"},
    "most runs": CRON | {"max_runs": (1 << 63) - 1},
    "start long ago": CRON | {"start_at": "1970-01-01T00:00:00.000Z"},
    "end of the calendar": CRON | {"end_at": "9999-12-31T23:59:59.999Z"},
    "longest jitter": CRON | {"jitter": "P1D"},
    "jitter of one instant": {"run_at": LATER, "jitter": "PT5M"},
    "misfire at its bounds": CRON | {"misfire": {"policy": "none", "window": "P30D", "max": 10_000}},
    "misfire of one instant": {"run_at": LATER, "misfire": {"policy": "none", "window": "PT1S", "max": 1}},
    "pause of one instant": {"run_at": LATER, "pause_on_failure": True},
}


@pytest.mark.parametrize("name", TAKEN)
async def test_value_at_its_bound_comes_back_as_sent(name: str, api: httpx.AsyncClient) -> None:
    fields = TAKEN[name]
    job = await created(api, fields)
    assert {field: job[field] for field in fields} == fields


async def declare(callers: Callers, **days: str) -> None:
    for name, day in days.items():
        path = f"/v1/calendars/{name.replace('_', '-')}"
        made = await callers["operator"].put(path, json={"dates": [day]})
        assert made.status_code == 201, made.text


async def test_every_field_comes_back_as_sent(callers: Callers) -> None:
    await declare(callers, holidays="2030-12-25", stocktaking="2030-12-31", working_days="2030-03-01")
    job = await created(callers["submitter"], EVERYTHING)
    assert {field: job[field] for field in EVERYTHING} == EVERYTHING
    assert EVERYTHING.keys() == (DEFAULTS.keys() - {"every"}) | {"cron", "zone"}


async def test_calendar_that_is_not_there_is_refused(callers: Callers) -> None:
    await declare(callers, holidays="2030-12-25")
    fields = CRON | {"calendars": {"exclude": ["holidays"], "include": ["nowhere"]}}
    assert await refused(callers["submitter"], fields) == ["/calendars/include"]


async def test_change_lays_over_what_is_there(api: httpx.AsyncClient) -> None:
    said = {"misfire": {"policy": "latest", "max": 7}, "overlap": "skip", "jitter": "PT1M"}
    job = await created(api, HOURLY | said | {"id": "a"})
    changed = await api.patch("/v1/jobs/a", json={"misfire": {"max": 8}, "overlap": None, "max_runs": 3})
    assert changed.status_code == 200, changed.text
    assert changed.json()["misfire"] == {"policy": "latest", "window": "P1D", "max": 8}
    assert (changed.json()["overlap"], changed.json()["max_runs"]) == ("allow", 3)
    assert (changed.json()["jitter"], changed.json()["next_at"]) == ("PT1M", job["next_at"])
    fault = await api.patch("/v1/jobs/a", json={"misfire": {"max": 0}, "every": "PT0S"})
    assert sorted(error["pointer"] for error in fault.json()["errors"]) == ["/every", "/misfire/max"]


async def test_change_to_one_instant_drops_what_only_several_have(api: httpx.AsyncClient) -> None:
    bounds = {"start_at": LATER, "max_runs": 3, "overlap": "skip", "jitter": "PT1M"}
    await created(api, HOURLY | bounds | {"id": "a"})
    changed = await api.patch("/v1/jobs/a", json={"run_at": LATEST})
    assert changed.status_code == 200, changed.text
    job = changed.json()
    assert (job["every"], job["start_at"], job["max_runs"], job["overlap"]) == (None, None, None, "allow")
    assert (job["run_at"], job["jitter"]) == (LATEST, "PT1M")


@pytest.mark.parametrize("name", ["allow", "skip", "queue_one", "queue_all", "cancel_running"])
async def test_each_overlap_is_taken(name: str, api: httpx.AsyncClient) -> None:
    assert (await created(api, CRON | {"overlap": name}))["overlap"] == name


@pytest.mark.parametrize(("field", "values"), [("gap", "auto run skip"), ("fold", "auto first last both")])
async def test_each_rule_for_clock_changes_is_taken(field: str, values: str, api: httpx.AsyncClient) -> None:
    for value in values.split():
        assert (await created(api, CRON | {field: value}))[field] == value


async def test_interval_counts_from_the_create(api: httpx.AsyncClient) -> None:
    job = await created(api, {"every": "PT90S"})
    assert (job["next_at"], job["run_at"], job["cron"]) == (format_instant(NOW + 90_000), None, None)


async def test_interval_counts_from_its_start(api: httpx.AsyncClient) -> None:
    ahead = await created(api, {"every": "P1D", "start_at": "2026-03-01T07:30:00Z"})
    assert ahead["next_at"] == "2026-03-01T07:30:00.000Z"
    behind = await created(api, {"every": "P1D", "start_at": "2020-02-29T07:30:00Z"})
    assert behind["next_at"] == "2026-01-01T07:30:00.000Z"


async def test_interval_may_be_said_by_cron(api: httpx.AsyncClient) -> None:
    job = await created(api, {"cron": "@every 90s"})
    assert (job["cron"], job["every"], job["next_at"]) == ("@every 90s", None, format_instant(NOW + 90_000))


async def test_start_holds_a_cron_back(api: httpx.AsyncClient) -> None:
    job = await created(api, CRON | {"start_at": "2027-06-05T00:00:00Z"})
    assert job["next_at"] == "2027-06-05T00:00:00.000Z"


@pytest.mark.row("C31")
async def test_both_days_must_match_where_asked(api: httpx.AsyncClient) -> None:
    job = await created(api, {"cron": "0 4 1 1 fri", "day_match": "and"})
    assert job["next_at"] == "2027-01-01T04:00:00.000Z"


@pytest.mark.row("Z14", "Z15")
async def test_gap_and_fold_of_a_job_are_its_own(api: httpx.AsyncClient) -> None:
    night = {"cron": "30 1 29 3 *", "zone": "Europe/London"}
    assert (await created(api, night))["next_at"] == "2026-03-29T01:00:00.000Z"
    assert (await created(api, night | {"gap": "skip"}))["next_at"] == "2027-03-29T00:30:00.000Z"
    autumn = {"cron": "30 1 25 10 *", "zone": "Europe/London"}
    assert (await created(api, autumn))["next_at"] == "2026-10-25T00:30:00.000Z"
    assert (await created(api, autumn | {"fold": "last"}))["next_at"] == "2026-10-25T01:30:00.000Z"


def choice(*values: str) -> st.SearchStrategy[str]:
    return st.sampled_from(values)


TIMINGS = st.builds(
    Timing,
    start_at=st.none() | st.integers(0, 4_000_000_000_000),
    end_at=st.none() | st.integers(6_000_000_000_000, AT_MAX),
    max_runs=st.none() | st.integers(1, (1 << 63) - 1),
    gap=choice("auto", "run", "skip"),
    fold=choice("auto", "first", "last", "both"),
    day_match=choice("or", "and"),
    jitter_ms=st.integers(0, 86_400_000),
    misfire=choice("all", "latest", "none"),
    misfire_window_ms=st.integers(1, 30 * 86_400_000),
    misfire_max=st.integers(1, 10_000),
    overlap=choice("allow", "skip", "queue_one", "queue_all", "cancel_running"),
    is_paused_on_failure=st.booleans(),
)


def fields_of(timing: Timing) -> dict[str, Any]:
    said = {
        "start_at": None if timing.start_at is None else format_instant(timing.start_at),
        "end_at": None if timing.end_at is None else format_instant(timing.end_at),
        "max_runs": timing.max_runs,
        "gap": timing.gap,
        "fold": timing.fold,
        "day_match": timing.day_match,
        "jitter": format_duration(timing.jitter_ms),
        "misfire": {
            "policy": timing.misfire,
            "window": format_duration(timing.misfire_window_ms),
            "max": timing.misfire_max,
        },
        "overlap": timing.overlap,
        "pause_on_failure": timing.is_paused_on_failure,
    }
    return {name: value for name, value in said.items() if value is not None}


@given(timing=TIMINGS, every_ms=st.integers(1_000, 366 * 86_400_000))
@settings(max_examples=60, deadline=None)
def test_what_is_sent_reaches_the_command_and_comes_back(timing: Timing, every_ms: int) -> None:
    async def both_ways() -> None:
        world = installation()
        headers = {"authorization": "Bearer key-submitter"}
        transport = httpx.ASGITransport(app=world.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://api", headers=headers) as api:
            fields = fields_of(timing) | {"every": format_duration(every_ms)}
            job = await created(api, fields)
            assert {name: job[name] for name in fields} == fields
            assert timing_of(world) == (None if timing == DEFAULT else timing)

    asyncio.run(both_ways())
