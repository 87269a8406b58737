"""The fixtures of users' tests, in a pytest of its own; what a scheduler's log folds to."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from minutebook import App
from minutebook.domain import events as facts
from minutebook.testing import InMemoryScheduler, assert_replays
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "test-your-tasks.md"


def pytest_of(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """A pytest that knows nothing of ours but the plugin."""
    (folder / "test_it.py").write_text(text)
    arguments = ["-p", "minutebook.pytest_plugin", "-p", "no:cacheprovider", "-q", str(folder)]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(folder), *arguments],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_fixtures_as_the_page_shows_them(tmp_path: Path) -> None:
    (shown,) = [block for block in blocks(PAGE, "python") if "minutebook_app" in block.text]
    ended = pytest_of(tmp_path, shown.text)
    assert ended.returncode == 0, ended.stdout
    assert "2 passed" in ended.stdout


def test_scheduler_without_an_app_says_what_to_do(tmp_path: Path) -> None:
    ended = pytest_of(tmp_path, "def test_it(scheduler):\n    pass\n")
    assert ended.returncode == 1
    assert "define a fixture `minutebook_app`" in ended.stdout


def test_plugin_costs_nothing_where_it_is_not_used(tmp_path: Path) -> None:
    text = "import sys\n\ndef test_it():\n    assert 'minutebook.worker' not in sys.modules\n"
    assert pytest_of(tmp_path, text).returncode == 0


def test_entry_point_names_the_plugin() -> None:
    assert 'pytest11]\nminutebook = "minutebook.pytest_plugin"' in (ROOT / "pyproject.toml").read_text()


def app() -> App:
    made = App()

    @made.task("flaky")
    async def flaky(payload: int) -> int:
        if payload < 0:
            raise ValueError("negative")
        return payload

    return made


async def busy() -> InMemoryScheduler:
    """A scheduler with something of everything behind it."""
    async with InMemoryScheduler(app()) as scheduler:
        scheduler.submit("flaky", 1, id="a")
        scheduler.submit("flaky", -1, id="b")
        scheduler.submit("flaky", 1, id="c", cron="0 * * * *")
        scheduler.crash_after_next()
        await scheduler.advance(timedelta(hours=3))
        scheduler.cancel("c")
        await scheduler.advance(timedelta(days=1))
    return scheduler


async def test_log_folds_to_the_same_state() -> None:
    assert_replays(await busy())


async def test_state_that_is_not_in_the_log_is_found() -> None:
    scheduler = await busy()
    book = scheduler.partition._book
    book.counts.put(b"x", 1)
    book.commit()
    with pytest.raises(AssertionError, match="another state"):
        assert_replays(scheduler)


async def test_view_that_is_not_in_the_log_is_found() -> None:
    scheduler = await busy()
    partition = scheduler.partition
    partition.view.fold([facts.QueueCopied("q", 1, False, [])], 1, 1)
    partition._view_rows.write(*partition.view.drain())
    with pytest.raises(AssertionError, match="another view"):
        assert_replays(scheduler)
