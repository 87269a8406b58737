"""Pages that follow what happens, as requests: who may see and do what, and the part that is asked for anew."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest

from api.pages.static_files import address
from minutebook.domain.commands import PauseQueue
from tests.api.memory import Installation
from tests.api.test_pages import browser_of, log_in
from tests.api.test_workers import full, pulse

PATHS = ("/upcoming", "/workers", "/queues", "/limits", "/operations", "/workers/w", "/queues/default")
FORMS = {
    "/workers/w": "quiet",
    "/queues/default": "pause",
    "/limits/l": "resume",
    "/tenant-limit": "resume",
    "/operations/none": "cancel",
}


@pytest.fixture
async def browsers(world: Installation) -> AsyncIterator[dict[str, httpx.AsyncClient]]:
    """Browsers with a session, by role."""
    pulse(world.services.workers, "w", said=full())
    async with AsyncExitStack() as stack:
        found = {}
        for role in ("viewer", "operator"):
            found[role] = await stack.enter_async_context(browser_of(world))
            await log_in(found[role], f"key-{role}")
        yield found


async def test_pages_are_for_those_who_may_read(
    browsers: dict[str, httpx.AsyncClient], world: Installation
) -> None:
    for path in PATHS:
        assert (await browsers["viewer"].get(path)).status_code == 200, path
        async with browser_of(world) as nobody:
            answer = await nobody.get(path)
            assert (answer.status_code, answer.headers["location"][:6]) == (303, "/login"), path
    for path in ("/partitions", "/audit"):
        assert (await browsers["viewer"].get(path)).status_code == 403
        assert f'href="{path}"' not in (await browsers["viewer"].get("/")).text
        assert (await browsers["operator"].get(path)).status_code == 200
        assert f'href="{path}"' in (await browsers["operator"].get("/")).text
    for path in ("/workers/nobody", "/queues/none", "/limits/none", "/tenant-limit", "/operations/none"):
        answer = await browsers["operator"].get(path)
        assert (answer.status_code, "Not found" in answer.text) == (404, True), path


async def test_viewer_sees_no_buttons_and_may_not_press_them(
    browsers: dict[str, httpx.AsyncClient], world: Installation
) -> None:
    for path in ("/workers/w", "/queues/default"):
        assert '<form method="post" class="panel"' not in (await browsers["viewer"].get(path)).text
        assert '<form method="post" class="panel"' in (await browsers["operator"].get(path)).text
    for path, what in FORMS.items():
        assert (await browsers["viewer"].post(path, data={"do": what})).status_code == 403, path
    assert world.log.sent == []
    for path in ("/workers/w", "/queues/default"):
        assert (await browsers["operator"].post(path, data={"do": "explode"})).status_code == 400


async def test_who_and_why_are_on_record(browsers: dict[str, httpx.AsyncClient], world: Installation) -> None:
    answer = await browsers["operator"].post("/queues/default", data={"do": "pause", "reason": " it burns "})
    assert (answer.status_code, answer.headers["location"]) == (303, "/queues/default")
    (command,) = world.log.sent
    assert isinstance(command, PauseQueue)
    assert command.reason == "it burns"
    assert "via page from" in command.actor
    shown = await browsers["operator"].get("/queues/default")
    assert "Paused: every partition knows it" in shown.text
    refused = await browsers["operator"].post("/queues/default", data={"do": "resume", "reason": "x" * 2_000})
    assert (refused.status_code, "ends at" in refused.text) == (422, True)


async def test_part_is_what_the_page_holds(browsers: dict[str, httpx.AsyncClient]) -> None:
    for path in PATHS:
        whole = (await browsers["operator"].get(path)).text
        part = (await browsers["operator"].get(path, headers={"hx-request": "true"})).text
        assert "<html" not in part
        assert part.strip() in whole, path


async def test_week_is_shown_by_hours_and_names_are_inert(
    browsers: dict[str, httpx.AsyncClient], world: Installation
) -> None:
    world.clock.advance(5 * 3_600_000)
    shown = (await browsers["viewer"].get("/upcoming?cron=%3Cscript%3E&zone=%22onload")).text
    assert "Thu 01 Jan" in shown
    assert "Thu 08 Jan" in shown
    assert "<script>" not in shown.split("<main")[1]
    assert '""onload' not in shown


async def test_bodies_are_small_for_who_takes_gzip(browsers: dict[str, httpx.AsyncClient]) -> None:
    for path in ("/upcoming", address("htmx.min.js")):
        small = await browsers["viewer"].get(path, headers={"accept-encoding": "br, gzip;q=0.5"})
        whole = await browsers["viewer"].get(path, headers={"accept-encoding": "gzip;q=0, br"})
        assert (small.headers["content-encoding"], "content-encoding" in whole.headers) == ("gzip", False)
        assert small.headers["vary"] == whole.headers["vary"] == "accept-encoding"
        assert int(small.headers["content-length"]) < int(whole.headers["content-length"]) / 2
        assert small.text == whole.text
