"""Whether a missing browser skips a test or fails it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import BROWSER, find_chromium


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH; nothing is in it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(BROWSER, raising=False)
    return tmp_path


def test_chromium_is_taken_from_the_path(path: Path) -> None:
    (path / "chromium").touch(mode=0o755)
    assert find_chromium() == path / "chromium"


@pytest.mark.usefixtures("path")
def test_a_missing_chromium_skips_the_test() -> None:
    with pytest.raises(pytest.skip.Exception, match="chromium is not on the PATH"):
        find_chromium()


@pytest.mark.usefixtures("path")
def test_a_missing_chromium_fails_the_test_where_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BROWSER, "required")
    with pytest.raises(pytest.fail.Exception, match=f"apt-get install chromium .*unset {BROWSER}"):
        find_chromium()
