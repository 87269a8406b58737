"""The browser of these tests: Debian's chromium from the PATH, never one that is downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.served import Served, Visit, serve

BROWSER = "MINUTEBOOK_TEST_BROWSER"
"""`required` makes a missing browser a failure; `.ci/run` says so."""

FAILED = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def chromium_path() -> Path:
    """Where chromium is. Without it a test is skipped, and fails where a browser is required."""
    return find_chromium()


def find_chromium() -> Path:
    """Chromium on the PATH, or the end of the test."""
    found = shutil.which("chromium")
    if found is not None:
        return Path(found)
    missing = "chromium is not on the PATH; install it (Debian: apt-get install chromium fonts-dejavu-core)"
    if os.environ.get(BROWSER) == "required":
        pytest.fail(f"{missing}, or unset {BROWSER}", pytrace=False)
    pytest.skip(missing)


@pytest.fixture(scope="package")
def browser(chromium_path: Path) -> Iterator[Browser]:
    """One browser for these tests; not for the whole run, whose other tests want the thread's event loop."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=str(chromium_path),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"],
        )
        yield started
        started.close()


@pytest.fixture(scope="package")
def served() -> Iterator[Served]:
    """One installation for these tests: each makes things of its own names."""
    with serve(environment="staging") as started:
        yield started


@pytest.fixture
def visit(
    browser: Browser, served: Served, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Visit]:
    """A browser's page without a session; of a failed test a trace is kept where pytest keeps its files."""
    made = Visit(browser, served)
    made.context.tracing.start(screenshots=True, snapshots=True)
    yield made
    has_failed = request.node.stash.get(FAILED, False)
    made.context.tracing.stop(path=str(tmp_path / "trace.zip") if has_failed else None)
    made.context.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note what failed, for the trace."""
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report
