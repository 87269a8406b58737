"""Backfills from the command line: what is asked before, what goes where, which code ends it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial

import pytest
from pydantic import SecretStr

from minutebook.cli import backfill, main
from minutebook.client import ClientSettings, SyncClient
from minutebook.times import format_instant
from tests.api.conftest import Callers
from tests.api.memory import NOW, Installation
from tests.api.test_operations_cli import Working

Run = Callable[..., int]
HOUR = 3_600_000
RANGE = ("--from", format_instant(NOW - 5 * HOUR), "--until", format_instant(NOW + 1))


@pytest.fixture
async def job(callers: Callers, world: Installation) -> None:
    """A job that could have run six times before it was created."""
    answer = await callers["submitter"].post("/v1/jobs", json={"id": "a", "task": "t", "cron": "@hourly"})
    assert answer.status_code == 201, answer.text
    world.clock.advance(HOUR)


@pytest.fixture
def run(world: Installation, job: None, monkeypatch: pytest.MonkeyPatch) -> Run:
    settings = ClientSettings(url="http://api", api_key=SecretStr("key-operator"), retries_max=0)
    monkeypatch.setattr(backfill, "SyncClient", partial(SyncClient, settings, transport=Working(world)))

    def running(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["minutebook", "job", "backfill", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.run()
        return int(ended.value.code or 0)

    return running


def test_dry_run_tells_how_many_and_why(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("a", *RANGE, "--dry-run") == 0
    shown = capsys.readouterr()
    assert f"6 of 6 instants would run, from {RANGE[1]} to {format_instant(NOW)}; nothing was" in shown.err
    assert shown.out.split() == ["reason", "would", "run", "count", "before_creation", "yes", "6"]
    assert run("a", *RANGE, "--dry-run", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["would_run"] == 6


def test_instants_are_filled_and_watched_to_the_end(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("a", *RANGE, "--rate", "5", "--reason", "late", "--yes", "--watch", "-o", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["kind"], shown["state"], shown["reason"], shown["rate_per_s"]) == (
        "backfill",
        "completed",
        "late",
        5,
    )
    assert shown["progress"]["done"] == 6
    assert run("a", *RANGE, "--dry-run") == 0
    assert "0 of 6 instants would run; nothing" in capsys.readouterr().err


def test_repeat_with_its_key_starts_nothing(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for _ in range(2):
        assert run("a", *RANGE, "--key", "k", "--yes", "-o", "json") == 0
        shown = capsys.readouterr()
        found.append(json.loads(shown.out)["id"])
        assert f"minutebook operation show {found[0]} --watch" in shown.err
    assert found[0] == found[1]


def test_nobody_to_ask_needs_yes(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("a", *RANGE) == 2
    assert "--yes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nothing", *RANGE, "--yes"), 3),
        (("a", *RANGE[:2], "--until", "2030-01-01T00:00:00Z", "--yes"), 4),
        (("a", *RANGE[:2], "--yes"), 2),
        (("a", *RANGE, "--rate", "0", "--yes"), 2),
    ],
)
def test_refusals_have_their_codes(arguments: tuple[str, ...], code: int, run: Run) -> None:
    assert run(*arguments) == code
