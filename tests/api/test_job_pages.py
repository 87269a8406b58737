"""Pages of jobs, executions and dead letters below what a browser sees: who may, what is not there, how fast."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest
from fastapi.routing import APIRoute

from api.app import PUBLIC, PUBLIC_PAGES
from api.openapi import scope_of
from api.pages.access import Seen, check_origin
from api.pages.filters import read_filter, show_filter
from api.pages.job_form import create_body, patch_body, values_of
from api.pages.texts import show_age, show_between, show_ms
from api.problems import Refused
from minutebook.client.models import Job
from tests.api import runs
from tests.api.conftest import Callers
from tests.api.memory import NOW, Installation, installation
from tests.api.test_dead_letters import give_up
from tests.api.test_history import MemoryRecords
from tests.api.test_pages import browser_of, log_in

PATHS = ["/jobs", "/jobs/a", "/executions/a:1", "/dead-letters", "/jobs/new", "/jobs/a/edit"]
SCRIPT = "<script>alert(1)</script>"
BIG = 9_007_199_254_740_993


@pytest.fixture
async def browser(world: Installation) -> AsyncIterator[httpx.AsyncClient]:
    async with browser_of(world) as client:
        await log_in(client)
        yield client


async def submit(callers: Callers, **body: object) -> None:
    answer = await callers["submitter"].post("/v1/jobs", json={"task": "t"} | body)
    assert answer.status_code == 201, answer.text


def test_every_page_asks_for_a_session_and_takes_only_our_forms(world: Installation) -> None:
    pages = [
        route
        for route in world.app.routes
        if isinstance(route, APIRoute) and not route.path.startswith("/v1/")
    ]
    assert len(pages) > 15
    for route in pages:
        if route.path in PUBLIC | {"/static/{digest}/{name}"}:
            continue
        calls = [one.call for one in route.dependant.dependencies]
        assert check_origin in calls, route.path
        assert any(isinstance(call, Seen) for call in calls) != (route.path in PUBLIC_PAGES), route.path
        assert not route.include_in_schema
        assert (scope_of(route) is None) == (route.path in PUBLIC_PAGES)


@pytest.mark.parametrize("path", PATHS)
async def test_without_a_session_a_page_leads_to_the_login(path: str, world: Installation) -> None:
    async with browser_of(world) as browser:
        for method in ("GET", "POST"):
            answer = await browser.request(method, path)
            if answer.status_code != 405:
                assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/login")
    assert world.log.sent == []


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/dead-letters"])
async def test_a_viewer_who_sends_a_form_is_refused(path: str, world: Installation, callers: Callers) -> None:
    await submit(callers, id="a", every="PT1H")
    sent = len(world.log.sent)
    async with browser_of(world) as browser:
        await log_in(browser, "key-viewer")
        answer = await browser.post(path, data={"do": "pause", "task": "t", "confirmed": "yes", "id": "a/1"})
    assert answer.status_code == 403
    assert len(world.log.sent) == sent


async def test_who_only_submits_starts_no_operation(world: Installation, callers: Callers) -> None:
    await submit(callers, id="a", every="PT1H")
    sent = len(world.log.sent)
    async with browser_of(world) as browser:
        await log_in(browser, "key-submitter")
        page = (await browser.get("/jobs/a")).text
        assert "Run now" in page
        assert "Backfill" not in page
        form = {"do": "backfill", "from": "2025-01-01T00:00:00Z", "until": "2025-01-02T00:00:00Z"}
        assert (await browser.post("/jobs/a", data=form)).status_code == 403
        assert (await browser.post("/jobs", data={"do": "pause", "scope": "all"})).status_code == 403
    assert len(world.log.sent) == sent


@pytest.mark.parametrize(
    "path", ["/jobs/none", "/jobs/none/edit", "/executions/none:1", "/executions/x", "/jobs/%3Cb%3E"]
)
async def test_what_is_not_there_is_a_page_that_says_so(
    path: str, browser: httpx.AsyncClient, callers: Callers
) -> None:
    for method in ("GET", "POST"):
        answer = await browser.request(
            method, path, data={"do": "pause", "confirmed": "yes"} if method == "POST" else None
        )
        assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")


async def test_the_job_of_another_tenant_is_not_there(world: Installation, callers: Callers) -> None:
    await callers["other"].post("/v1/jobs", json={"id": "theirs", "task": "t"})
    async with browser_of(world) as browser:
        await log_in(browser)
        assert (await browser.get("/jobs/theirs")).status_code == 404
        assert "theirs" not in (await browser.get("/jobs")).text


async def test_a_form_that_is_sent_twice_counts_once(
    browser: httpx.AsyncClient, world: Installation, callers: Callers
) -> None:
    await submit(callers, id="a", every="PT1H")
    form = {"do": "run_now", "key": "once"}
    first, second = [(await browser.post("/jobs/a", data=form)).headers["location"] for _ in range(2)]
    assert first == second
    runs.come(world)
    assert len(list(world.services.view.executions("acme", "a", b""))) == 1


async def test_what_destroys_is_not_done_without_its_tick(
    browser: httpx.AsyncClient, world: Installation, callers: Callers
) -> None:
    await submit(callers, id="a", every="PT1H")
    answer = await browser.post("/jobs/a", data={"do": "cancel", "reason": SCRIPT})
    assert answer.status_code == 422
    assert "nothing was done" in answer.text
    assert SCRIPT not in answer.text
    assert (await callers["viewer"].get("/v1/jobs/a")).json()["status"] == "active"


async def test_who_did_it_stands_with_the_reason_on_record(
    browser: httpx.AsyncClient, world: Installation, callers: Callers
) -> None:
    await submit(callers, id="a", every="PT1H")
    answer = await browser.post("/jobs/a", data={"do": "pause", "reason": " why ", "version": "1"})
    assert answer.status_code == 303
    command = world.log.sent[-1]
    assert (command.reason, command.expected_version) == ("why", 1)  # type: ignore[union-attr]  # a pause
    assert " via page from " in command.actor


async def test_a_selection_is_done_as_far_as_it_can_be(browser: httpx.AsyncClient, callers: Callers) -> None:
    for name in ("a", "b"):
        await submit(callers, id=name, every="PT1H")
    form = {"do": "pause", "id": ["a/1", "b/7", "c/1"]}
    answer = await browser.post("/jobs", data=form)
    assert answer.status_code == 422
    assert "1 of 3 jobs paused." in answer.text
    assert re.findall(r"<code>(\w)</code>: ", answer.text) == ["b", "c"]


async def test_payloads_are_masked_where_that_is_set(callers: Callers) -> None:
    world = installation(is_payload_masked=True)
    async with browser_of(world) as browser:
        headers = {"authorization": "Bearer key-submitter", "accept": "application/json"}
        body = {"id": "a", "task": "t", "payload": {"secret": "hunter2"}}
        await browser.post("/v1/jobs", json=body, headers=headers)
        runs.come(world)
        name = next(iter(world.services.view.executions("acme", "a", b"")))[1]
        runs.succeed(world, name, b'{"secret": "hunter2"}')
        await log_in(browser)
        for path in ("/jobs/a", f"/executions/{name}", f"/executions/{name}/json"):
            answer = await browser.get(path)
            assert answer.status_code == 200
            assert "hunter2" not in answer.text, path


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"every": "PT1H", "start_at": "2026-01-02T00:00:00Z", "end_at": "2026-01-02T00:30:00Z"}, ""),
        ({"run_at": "2026-01-01T00:00:00Z"}, "Its one instant has come"),
    ],
)
async def test_a_job_without_a_next_instant_says_why(
    body: dict[str, str], says: str, browser: httpx.AsyncClient, world: Installation, callers: Callers
) -> None:
    await submit(callers, id="a", **body)
    if not says:
        assert "in 1 d" in (await browser.get("/jobs/a")).text
        return
    runs.come(world)
    assert says in (await browser.get("/jobs/a")).text
    await browser.post("/jobs/a", data={"do": "cancel", "confirmed": "yes", "key": "c"})
    assert "The job is cancelled." in (await browser.get("/jobs/a")).text


async def test_pages_answer_within_300_ms_where_there_is_much(
    browser: httpx.AsyncClient, world: Installation, callers: Callers
) -> None:
    for batch in range(4):
        jobs = [{"id": f"j{batch}-{number}", "task": "t", "every": "PT1M"} for number in range(500)]
        await callers["submitter"].post(
            "/v1/jobs/batch", json={"jobs": jobs}, headers={"idempotency-key": str(batch)}
        )
    for _ in range(3):
        world.clock.advance(60_000)
        runs.come(world)
    for number in range(500):
        runs.fail(world, f"j0-{number}:{NOW + 60_000}")
    paths = (
        "/jobs",
        "/jobs?status=active&task=t",
        "/jobs/j0-1",
        f"/executions/j0-1:{NOW + 60_000}",
        "/dead-letters",
        "/dead-letters/reasons",
    )
    for path in paths:
        await browser.get(path)  # its template is read once
    took = {path: min([await _seconds(browser, path) for _ in range(3)]) for path in paths}
    assert max(took.values()) < 0.3, took


async def _seconds(browser: httpx.AsyncClient, path: str) -> float:
    start = time.perf_counter()
    assert (await browser.get(path)).status_code == 200
    return time.perf_counter() - start


@pytest.mark.parametrize(
    ("query", "to"),
    [
        ("", "created"),
        ("order=created", "-created"),
        ("due_from=2020-01-01T00:00:00Z&order=created", "-created"),
    ],
)
async def test_the_order_of_a_list_can_be_turned(
    query: str, to: str, browser: httpx.AsyncClient, callers: Callers
) -> None:
    await submit(callers, id="turned", task="t", every="PT1H")
    page = (await browser.get(f"/jobs?{query}")).text
    (found,) = re.findall(r'<li class="apart"><a href="([^"]+)"', page)
    assert f"order={to}" in found.replace("&amp;", "&").split("?")[1].split("&")
    turned = (await browser.get(found.replace("&amp;", "&"))).text
    assert "Due last" not in turned


@pytest.mark.parametrize(("query", "is_offered"), [("", True), ("?order=due", False), ("?order=-due", False)])
async def test_all_that_match_is_offered_where_the_list_has_them_all(
    query: str, is_offered: bool, browser: httpx.AsyncClient, callers: Callers
) -> None:
    await submit(callers, id="listed", task="t", every="PT1H")
    page = (await browser.get(f"/jobs{query}")).text
    assert "Select listed" in page
    assert ("All that match" in page) is is_offered


async def test_pages_of_a_list_hold_every_job_once_at_equal_times(
    browser: httpx.AsyncClient, callers: Callers
) -> None:
    jobs = [{"id": f"e{number}", "task": "equal", "every": "PT1H"} for number in range(120)]
    await callers["submitter"].post("/v1/jobs/batch", json={"jobs": jobs}, headers={"idempotency-key": "e"})
    seen: list[str] = []
    path = "/jobs?task=equal"
    while path:
        page = (await browser.get(path)).text
        seen += re.findall(r'<th scope="row"><a href="/jobs/(e\d+)"', page)
        found = re.search(r'rel="next" href="([^"]+)"', page)
        path = found[1].replace("&amp;", "&") if found else ""
    assert sorted(seen) == sorted(f"e{number}" for number in range(120))


def test_a_filter_is_the_same_in_the_bar_and_in_the_address() -> None:
    names = ("status", "task", "error_type")
    query = {"status": "active", "error_type": "Bad thing: x"}
    assert show_filter(query, names) == 'status:active error_type:"Bad thing: x"'
    for one in (query, {"task": "a", "error_type": 'say "no\\" <b>'}):
        assert read_filter(show_filter(one, names), names) == one
    for text in ("active", "colour:red", "status:a status:b", "status:", 'status:"a'):
        with pytest.raises(Refused):
            read_filter(text, names)


def test_no_length_of_time_is_below_zero() -> None:
    assert show_ms(-5) == "0 ms"
    assert show_between("2026-01-01T00:00:01Z", "2026-01-01T00:00:00Z") == "0 ms"
    assert show_age("2026-01-01T00:00:00Z", NOW + 1) == "now"
    assert show_age("2026-01-01T00:00:00Z", NOW + 61_000) == "1 min 1 s ago"
    assert show_age("2026-01-01T00:02:00Z", NOW) == "in 2 min"


async def test_a_form_left_as_it_is_changes_nothing(world: Installation, callers: Callers) -> None:
    await submit(
        callers,
        id="a",
        cron="0 7 * * *",
        zone="Europe/Berlin",
        payload=[BIG],
        priority=3,
        jitter="PT30S",
        tags=["x"],
        misfire={"policy": "latest"},
    )
    job = msgspec.json.decode((await callers["viewer"].get("/v1/jobs/a")).content, type=Job)
    values = values_of(job)
    assert patch_body(values, values) == b"{}"
    changed = values | {
        "priority": "4",
        "max_attempts": "2",
        "more": '{"fold": "both"}',
        "when": "every",
        "every": "90s",
        "jitter": "",
    }
    assert msgspec.json.decode(patch_body(values, changed)) == {
        "priority": 4,
        "retry": {"max_attempts": 2},
        "fold": "both",
        "every": "PT1M30S",
        "jitter": None,
    }


@pytest.mark.parametrize(
    ("field", "text", "says"),
    [
        ("payload", '1, "task": "other"', "is no JSON"),
        ("payload", "{", "is no JSON"),
        ("payload", "NaN", "is no JSON"),
        ("priority", "high", "whole number"),
        ("timeout", "soon", "give a duration"),
        ("more", "[1]", "JSON object"),
        ("more", '{"task": "other"}', "field of its own"),
    ],
)
def test_what_is_typed_wrong_is_named(field: str, text: str, says: str) -> None:
    with pytest.raises(Refused) as caught:
        create_body(values_of(None) | {"task": "t", "when": "now", field: text})
    (error,) = caught.value.errors
    assert (error.pointer, says in error.detail) == (f"/{field}", True)


async def test_the_log_is_read_as_a_page_and_as_a_part_of_one(
    browser: httpx.AsyncClient, world: Installation, callers: Callers
) -> None:
    await submit(callers, id="a", payload={"text": SCRIPT})
    runs.come(world)
    name = next(iter(world.services.view.executions("acme", "a", b"")))[1]
    for step in range(5):
        runs.tell(world, name, step / 10, SCRIPT)
    assert (await browser.get(f"/executions/{name}/why")).status_code == 422
    world.services.records = MemoryRecords(world)
    for path in (f"/executions/{name}/why", f"/executions/{name}/events", "/jobs/a/events"):
        page = (await browser.get(path)).text
        part = (await browser.get(path, headers={"hx-request": "true"})).text
        assert ("<html" in page, "<html" in part) == (True, False)
        assert SCRIPT not in page
    shown = (await browser.get("/jobs/a/events")).text
    assert "5 of the same kind: progressed" in shown
    assert shown.count('id="event-') == 3
    assert (await browser.get("/jobs/b/events")).status_code == 404
    assert (await browser.get("/executions/b:1/why", headers={"hx-request": "true"})).status_code == 404


async def test_a_part_of_a_page_without_a_session_loads_the_page_anew(world: Installation) -> None:
    async with browser_of(world) as browser:
        answer = await browser.get("/executions/a:1/why", headers={"hx-request": "true"})
    assert (answer.status_code, answer.headers["hx-refresh"]) == (401, "true")


async def test_the_buttons_of_one_form_are_not_taken_for_one_another(
    browser: httpx.AsyncClient, callers: Callers, world: Installation
) -> None:
    """A page that is gone back to carries the same key: another button on it is another wish."""
    await give_up(world, callers["operator"], ["a"])
    name = f"a:{NOW}"
    refused = await browser.post(
        "/dead-letters", data={"does": "discard", "id": name, "key": "k", "reason": "x"}
    )
    assert refused.status_code == 303
    again = await browser.post(
        "/dead-letters", data={"does": "redrive", "id": name, "key": "k", "reason": "x"}
    )
    assert "discarded" in again.text, "refused, not answered as a repeat of the discard"
