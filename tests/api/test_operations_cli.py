"""Bulk operations from the command line: what is asked before, what goes where, which code ends it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial

import httpx
import pytest
from pydantic import SecretStr

from api import decisions
from minutebook.cli import dead_letter, job, main, operation
from minutebook.client import ClientSettings, SyncClient
from minutebook.domain import operations as rules
from tests.api.conftest import Callers
from tests.api.memory import Installation
from tests.api.runs import operate_to_the_end
from tests.api.test_dead_letters import give_up

Run = Callable[..., int]
NAMES = ["a", "b", "c"]


class Working(httpx.AsyncBaseTransport):
    """The API, whose owners go on while somebody looks."""

    def __init__(self, world: Installation) -> None:
        self._world = world
        self._api = httpx.ASGITransport(app=world.app)
        self.looks = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET" and request.url.path.startswith("/v1/operations/"):
            self.looks += 1
            self._world.log.release()
            operate_to_the_end(self._world)
        return await self._api.handle_async_request(request)


@pytest.fixture
async def given_up(callers: Callers, world: Installation) -> None:
    """Three dead executions."""
    await give_up(world, callers["submitter"], NAMES)
    world.clock.advance(1)


@pytest.fixture
def run(world: Installation, given_up: None, monkeypatch: pytest.MonkeyPatch) -> Run:
    settings = ClientSettings(url="http://api", api_key=SecretStr("key-operator"), retries_max=0)
    for module in (dead_letter, job, operation):
        monkeypatch.setattr(module, "SyncClient", partial(SyncClient, settings, transport=Working(world)))

    def running(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["minutebook", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.run()
        return int(ended.value.code or 0)

    return running


def redrive(run: Run, *arguments: str) -> int:
    return run("dead-letter", "redrive", "--task", "t", "--yes", "-o", "json", *arguments)


def test_dry_run_tells_how_many_and_why(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("dead-letter", "redrive", "--all", "--dry-run") == 0
    shown = capsys.readouterr()
    assert "3 dead executions fit; nothing was changed." in shown.err
    assert "permanent" in shown.out
    assert redrive(run, "--dry-run", "--error-type", "Other") == 0
    assert json.loads(capsys.readouterr().out) == {"matched": 0, "complete": True, "reasons": []}
    assert run("operation", "list", "-o", "jsonl") == 0
    assert capsys.readouterr().out == ""


def test_many_are_redriven_and_watched_to_the_end(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert redrive(run, "--rate", "50", "--reason", "fixed", "--watch") == 0
    shown = capsys.readouterr()
    done = json.loads(shown.out)
    assert (done["state"], done["progress"]["done"], done["rate_per_s"]) == ("completed", 3, 50)
    assert shown.err == "", "no bar off a terminal"


def test_bar_is_shown_on_a_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert redrive(run, "--watch") == 0
    shown = capsys.readouterr()
    assert "3/3" in shown.err
    assert json.loads(shown.out)["state"] == "completed"


def test_operation_is_listed_shown_and_cancelled(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert redrive(run, "--rate", "1", "--key", "k") == 0
    shown = capsys.readouterr()
    name = json.loads(shown.out)["id"]
    assert f"minutebook operation show {name} --watch" in shown.err
    assert run("operation", "cancel", name, "--reason", "down again", "--yes", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["state"] == "stopping"
    assert run("operation", "list") == 0
    assert name in capsys.readouterr().out
    assert run("operation", "show", name, "--watch", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["state"] == "cancelled"
    assert redrive(run, "--rate", "1", "--key", "k") == 0
    assert json.loads(capsys.readouterr().out)["id"] == name


def test_pending_operation_is_watched_too(
    run: Run, world: Installation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(decisions, "_WAIT_S", 0)
    world.log.is_held = True
    assert redrive(run, "--watch") == 0
    assert json.loads(capsys.readouterr().out)["state"] == "completed"


def test_pending_operation_that_is_refused_is_told(
    run: Run, world: Installation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(decisions, "_WAIT_S", 0)
    monkeypatch.setattr(rules, "OPEN_MAX", 0)
    world.log.is_held = True
    assert redrive(run, "--watch") == 4
    assert "too_many" in capsys.readouterr().err


def test_jobs_are_counted_and_changed_by_filter(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ("--task", "t", "--from", "2020-01-01T00:00:00Z", "--status", "active")
    assert run("operation", "start", "pause", *wanted, "--dry-run") == 0
    assert "0 jobs would change; nothing was changed." in capsys.readouterr().err
    assert run("job", "submit", "t", "--id", "later", "--delay", "1h", "-o", "json") == 0
    capsys.readouterr()
    assert run("operation", "start", "pause", *wanted, "--dry-run", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["matched"] == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("operation", "start", "pause"), 2),
        (("operation", "start", "stop", "--all"), 2),
        (("operation", "start", "pause", "--task", "t"), 2),
        (("operation", "start", "cancel", "--tag", "a b", "--yes"), 4),
        (("dead-letter", "redrive"), 2),
        (("dead-letter", "redrive", "--yes"), 2),
        (("dead-letter", "redrive", "--task", "t"), 2),
        (("dead-letter", "redrive", "--task", "a b", "--yes"), 4),
        (("dead-letter", "redrive", "--all", "--yes", "--rate", "0"), 2),
        (("dead-letter", "redrive", "--all", "--yes", "--cause", "bored"), 2),
        (("dead-letter", "redrive", "--from", "yesterday", "--dry-run"), 4),
        (("operation", "show", "nothing"), 3),
        (("operation", "show", "nothing", "--watch"), 3),
        (("operation", "cancel", "nothing", "--yes"), 3),
        (("operation", "cancel", "nothing"), 2),
    ],
)
def test_exit_code_tells_what_became_of_it(
    arguments: tuple[str, ...], code: int, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == code
    assert capsys.readouterr().err


def test_looking_can_be_stopped_and_the_operation_goes_on(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(operation, "_seen_again", interrupted)
        assert redrive(run, "--watch") == 130
    shown = capsys.readouterr()
    assert "It goes on." in shown.err
    assert run("operation", "list", "-o", "json") == 0
    assert [item["state"] for item in json.loads(capsys.readouterr().out)] == ["running"]


def test_many_are_discarded_and_watched_to_the_end(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("dead-letter", "discard") == 2
    assert run("dead-letter", "discard", "--all") == 2, "nobody is there to be asked"
    assert run("dead-letter", "discard", "--all", "--dry-run") == 0
    assert "3 dead executions fit; nothing was changed." in capsys.readouterr().err
    assert run("dead-letter", "discard", "--all", "--yes", "--watch", "-o", "json") == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["kind"], done["progress"]["done"]) == ("discard", 3)
    assert run("dead-letter", "list", "-o", "jsonl") == 0
    assert capsys.readouterr().out == ""
