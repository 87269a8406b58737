"""`python -m tests.browser.weight`: what each page weighs, and how soon it shows something, in a browser here.

Bytes are those over the wire, headers included, with an empty cache and again with a full one; those of the documents and
files as they are read are beside them. Times are from the request to the first content, the median of five visits.
"""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import Any, Final

from playwright.sync_api import Page, sync_playwright
from rich.console import Console
from rich.table import Table

from tests.browser.conftest import find_chromium
from tests.browser.scene import play
from tests.browser.served import Served, Visit, serve

PATHS: Final = (
    "/",
    "/upcoming",
    "/jobs",
    "/executions",
    "/queues",
    "/workers",
    "/limits",
    "/operations",
    "/partitions",
    "/dead-letters",
)
_VISITS: Final = 5
_PAINTED: Final = """() => new Promise(done => {
  const painted = () => performance.getEntriesByName("first-contentful-paint")[0];
  if (painted()) return done(painted().startTime);
  new PerformanceObserver(() => painted() && done(painted().startTime)).observe({type: "paint", buffered: true});
})"""
_READ: Final = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .reduce((sum, entry) => sum + entry.decodedBodySize, 0)"""


def measure(page: Page, path: str) -> dict[str, float]:
    """Weigh a page, first without anything kept, then with what the first visit kept."""
    wire: Counter[str] = Counter()
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.clearBrowserCache")
    state = {"is": "first"}

    def finished(event: Any) -> None:
        wire[state["is"]] += int(event["encodedDataLength"])

    session.on("Network.loadingFinished", finished)
    page.goto(path)
    first_ms = page.evaluate(_PAINTED)
    read = page.evaluate(_READ)
    times = []
    for _ in range(_VISITS):
        wire["again"], state["is"] = 0, "again"
        page.goto(path)
        times.append(page.evaluate(_PAINTED))
    session.detach()
    return {
        "read": read,
        "first": wire["first"],
        "again": wire["again"],
        "first_ms": first_ms,
        "again_ms": median(times),
    }


def main() -> None:
    """Weigh all pages of an installation in which much goes on."""
    table = Table("page", *(("read KiB", "first KiB", "first ms", "again KiB", "again ms")), box=None)
    with serve() as served, sync_playwright() as playwright:
        play(served)
        browser = playwright.chromium.launch(
            executable_path=str(find_chromium()), args=["--no-sandbox", "--disable-gpu"]
        )
        page = _page(served, browser)
        for path in PATHS:
            it = measure(page, path)
            sizes = {name: f"{it[name] / 1024:.1f}" for name in ("read", "first", "again")}
            table.add_row(
                path,
                sizes["read"],
                sizes["first"],
                f"{it['first_ms']:.0f}",
                sizes["again"],
                f"{it['again_ms']:.0f}",
            )
        browser.close()
    Console().print(table)


def _page(served: Served, browser: Any) -> Page:
    return Visit(browser, served).log_in().page


if __name__ == "__main__":
    main()
