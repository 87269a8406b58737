"""The browser of these tests: Debian's chromium from the PATH, never one that is downloaded."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

BROWSER = "MINUTEBOOK_TEST_BROWSER"
"""`required` makes a missing browser a failure; `.ci/run` says so."""


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
