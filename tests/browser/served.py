"""The real application on the installation in memory, behind a real port, and a browser that looks at it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, ConsoleMessage, Page

from api.server import QuietServer, server_config
from tests.api.memory import Installation, installation
from tests.api.test_history import MemoryRecords

T = TypeVar("T")
WIDTHS = (375, 1280)
THEMES = ("light", "dark")
AXE = """axe.run({resultTypes: ["violations"]}).then(results => results.violations.map(
    found => found.id + ": " + found.nodes.map(node => node.html + " " + node.failureSummary).join("; ")))"""
WIDE = """width => document.documentElement.scrollWidth <= width ? "" : [...document.querySelectorAll("body *")]
    .filter(part => part.getBoundingClientRect().right > width && !part.closest(".table"))
    .map(part => part.outerHTML.slice(0, 120)).join("; ")"""


class Served:
    """An installation at `url`. Whatever changes it is done in the loop that serves it."""

    def __init__(self, world: Installation, url: str, loop: asyncio.AbstractEventLoop) -> None:
        self.world = world
        self.url = url
        self._loop = loop

    def do(self, change: Callable[[Installation], T | Awaitable[T]]) -> T:
        """What `change` answers, called with the installation, awaited where it must be."""

        async def called() -> T:
            found = change(self.world)
            return await found if isinstance(found, Awaitable) else found

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result(timeout=30)

    def api(self, method: str, path: str, key: str = "key-operator", **sent: Any) -> httpx.Response:
        """The answer of the API, which must not be a refusal."""
        headers = {"authorization": f"Bearer {key}"} | sent.pop("headers", {})
        with httpx.Client(base_url=self.url) as client:
            answer = client.request(method, path, headers=headers, **sent)
        assert answer.status_code < 400, answer.text
        return answer


@contextmanager
def serve(**settings: Any) -> Iterator[Served]:
    """An installation that is served until the block ends. `settings`: of the API, beside those of the tests."""
    loop = asyncio.new_event_loop()
    world = installation(**settings)
    world.services.records = MemoryRecords(world)
    server = QuietServer(server_config(world.app, "127.0.0.1", 0))
    thread = threading.Thread(target=lambda: loop.run_until_complete(server.serve()))
    thread.start()
    try:
        ready = threading.Event()
        while not server.started:
            assert thread.is_alive()
            ready.wait(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Served(world, f"http://127.0.0.1:{port}", loop)
    finally:
        loop.call_soon_threadsafe(world.services.live.close)
        loop.call_soon_threadsafe(server.leave)
        thread.join(timeout=30)
        loop.close()


class Visit:
    """A page of a browser whose every complaint is kept: `complaints` are errors of the console and of scripts."""

    def __init__(self, browser: Browser, served: Served, **context: Any) -> None:
        self.context = browser.new_context(base_url=served.url, **context)
        self.context.set_default_timeout(10_000)
        self.served = served
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _on_console(self, message: ConsoleMessage) -> None:
        # A refusal is an answer like any other; the browser reports its status, too.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def log_in(self, key: str = "key-operator") -> Visit:
        """Log in as a person does."""
        self.page.goto("/login?next=/jobs")
        self.page.get_by_label("API key").fill(key)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url("**/jobs")
        return self


def check_page(visit: Visit) -> None:
    """Nothing to find for axe in both themes and widths, nothing wider than the window, no complaint of the browser."""
    page, size = visit.page, visit.page.viewport_size
    found: list[str] = []
    page.evaluate(AXE_SCRIPT)
    for theme in THEMES:
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]  # one of both
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            for fault in page.evaluate(AXE):
                found.append(f"{page.url} {theme} {width}: {fault}")
            wide = page.evaluate(WIDE, width)
            if wide:
                found.append(f"{page.url} {theme} {width}: wider than the window: {wide}")
    page.emulate_media(color_scheme=None, reduced_motion=None)
    if size is not None:
        page.set_viewport_size(size)
    assert not found, "\n".join(found)
    assert not visit.complaints, visit.complaints
