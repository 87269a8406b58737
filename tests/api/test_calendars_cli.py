"""`minutebook calendar` against the API."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from minutebook.cli import calendar, main
from minutebook.client import ClientSettings, SyncClient
from tests.api.memory import Installation

Run = Callable[..., int]
RANGE = {"first": "2026-12-31", "last": "2027-01-01"}


@pytest.fixture
def run(world: Installation, monkeypatch: pytest.MonkeyPatch) -> Run:
    settings = ClientSettings(url="http://api", api_key=SecretStr("key-operator"), retries_max=0)
    client = partial(SyncClient, settings, transport=httpx.ASGITransport(app=world.app))
    monkeypatch.setattr(calendar, "SyncClient", client)

    def running(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["minutebook", "calendar", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.run()
        return int(ended.value.code or 0)

    return running


def test_calendar_is_set_shown_listed_and_deleted(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("set", "c", "2026-12-31..2027-01-01", "2026-12-25", "-o", "json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made == {"name": "c", "version": 1, "dates": ["2026-12-25", RANGE]}
    assert run("show", "c") == 0
    assert "2026-12-25, 2026-12-31..2027-01-01" in capsys.readouterr().out
    assert run("list") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["c", "1", "2026-12-25", "2027-01-01", "3"]
    assert run("delete", "c", "--yes") == 0
    assert run("show", "c") == 3


def test_dates_come_from_a_file_or_stdin(
    run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "# bank holidays\n2026-12-25  # Christmas\n\n2026-12-31 .. 2027-01-01\n"
    file = tmp_path / "dates.txt"
    file.write_text(text)
    assert run("set", "c", "--dates-file", str(file), "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["dates"] == ["2026-12-25", RANGE]
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert run("set", "c", "2026-12-26", "--dates-file", "-", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["dates"] == [
        {"first": "2026-12-25", "last": "2026-12-26"},
        RANGE,
    ]


def test_dry_run_says_what_would_become_of_jobs(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("set", "c", "2026-12-25") == 0
    capsys.readouterr()
    assert run("set", "c", "2026-12-26", "--dry-run", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["jobs"] == 0
    assert run("delete", "c", "--dry-run") == 0
    assert "0 of 0 jobs" in capsys.readouterr().out
    assert run("show", "c", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["dates"] == ["2026-12-25"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("set", "c"), 2, "--dates-file"),
        (("set", "c", "--dates-file", "nowhere.txt"), 2, "cannot be read"),
        (("set", "c", "christmas"), 4, "2026-12-25"),
        (("set", "c", "2026-12-25..2026-12-24"), 4, "swap"),
        (("show", "c"), 3, ""),
        (("delete", "c", "--dry-run"), 3, ""),
        (("delete", "c"), 2, "--yes"),
    ],
    ids=str,
)
def test_what_cannot_be_done_says_why(
    run: Run, arguments: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == code
    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""
