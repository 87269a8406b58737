"""The exit codes of the command line, one test each; what is waited for; and what a terminal changes."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from api import decisions
from minutebook.cli.exits import MEANING, ExitCode
from replay.__main__ import app as audits
from tests.api.cli_runs import Run, runner
from tests.api.memory import NOW, Installation
from tests.api.runs import come, fail, succeed

LINES = {
    ExitCode.DONE: "job show a",
    ExitCode.NO: "execution show a:{now} --wait 1s",
    ExitCode.USAGE: "job show",
    ExitCode.NOT_FOUND: "job show b",
    ExitCode.REFUSED: "job submit t --priority 10",
    ExitCode.UNREACHABLE: "job show a",
    ExitCode.PARTLY_DONE: "job pause c",
    ExitCode.DENIED: "queue create q",
    ExitCode.INTERRUPTED: "job show a",
}
"""Code -> a command line that ends with it, after what `PLANTED` does."""
PLANTED: dict[ExitCode, str] = {
    ExitCode.UNREACHABLE: "away",
    ExitCode.PARTLY_DONE: "held",
    ExitCode.INTERRUPTED: "interrupted",
}


class Api(httpx.AsyncBaseTransport):
    """The API; `do` is called at each request."""

    def __init__(self, world: Installation) -> None:
        self._api = httpx.ASGITransport(app=world.app)
        self.do: Callable[[httpx.Request], None] = lambda _request: None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.do(request)
        return await self._api.handle_async_request(request)


@pytest.fixture
def api_(world: Installation) -> Api:
    return Api(world)


@pytest.fixture
def run(api_: Api, monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(api_, "key-submitter", monkeypatch)


def away(_request: httpx.Request) -> None:
    raise httpx.ConnectError("away")


def interrupted(_request: httpx.Request) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("code", list(ExitCode))
def test_each_code_means_what_the_table_says(
    code: ExitCode, run: Run, api_: Api, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("job", "submit", "t", "--id", "a") == 0
    come(world)
    fail(world, f"a:{NOW}")
    run("job", "submit", "t", "--id", "c", "--cron", "@daily")
    if PLANTED.get(code) == "held":
        monkeypatch.setattr(decisions, "_WAIT_S", 0)
        world.log.is_held = True
    api_.do = {"away": away, "interrupted": interrupted}.get(PLANTED.get(code, ""), api_.do)
    assert run(*LINES[code].format(now=NOW).split()) == code


def test_every_code_has_a_meaning() -> None:
    assert set(MEANING) == set(ExitCode) == set(LINES)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("story", ExitCode.USAGE),
        ("verify --until yesterday", ExitCode.USAGE),
        ("at --tenant acme --job a 0 --files {folder}", ExitCode.USAGE),
        ("verify --files {folder}", ExitCode.NOT_FOUND),
    ],
)
def test_audits_end_with_the_same_codes(line: str, code: ExitCode, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        audits(line.format(folder=tmp_path).split())
    assert ended.value.code == code


# -- --wait


def ends(world: Installation, is_success: bool | None) -> Callable[[httpx.Request], None]:
    """Lets what runs end while somebody waits."""

    def end(request: httpx.Request) -> None:
        if request.method != "GET" or not request.url.query or is_success is None:
            return
        name = request.url.path.rpartition("/")[2]
        come(world)
        (succeed if is_success else fail)(world, name)

    return end


@pytest.mark.parametrize(("is_success", "code"), [(True, 0), (False, 1), (None, 5)])
def test_submit_waits_for_the_outcome(
    is_success: bool | None,
    code: int,
    run: Run,
    api_: Api,
    world: Installation,
    capsys: pytest.CaptureFixture[str],
) -> None:
    api_.do = ends(world, is_success)
    assert run("job", "submit", "t", "--id", "a", "--wait", "1s", "-o", "json") == code
    written = capsys.readouterr()
    found = json.loads(written.out)
    assert (found["execution_id"], found["outcome"]) == (
        f"a:{NOW}",
        {0: "succeeded", 1: "dead", 5: None}[code],
    )
    assert ("No outcome within 1 s" in written.err) == (code == 5)


def test_schedule_is_waited_for_at_its_first_instant(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("job", "submit", "t", "--id", "a", "--cron", "@daily", "--wait", "0s", "-o", "json") == 5
    found = json.loads(capsys.readouterr().out)
    assert (found["execution_id"], found["status"]) == (f"a:{NOW + 86_400_000}", "scheduled")


@pytest.mark.parametrize(("is_success", "code"), [(True, 0), (False, 1)])
def test_run_now_waits_for_the_outcome(
    is_success: bool,
    code: int,
    run: Run,
    api_: Api,
    world: Installation,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run("job", "submit", "t", "--id", "a", "--cron", "@daily")
    capsys.readouterr()
    api_.do = ends(world, is_success)
    assert run("job", "run-now", "a", "--wait", "1m", "-o", "json") == code
    assert json.loads(capsys.readouterr().out)["outcome"] == ("succeeded" if is_success else "dead")


# -- a terminal


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "minutebook.cli", *arguments]
    given = {"TERM": "xterm-256color", "COLUMNS": "120", **environment}
    done = subprocess.run(command, env=given, stdin=theirs, stdout=theirs, stderr=theirs, check=False)
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65_536):
            parts.append(part)
    except OSError:
        pass  # the other end is closed: all is read
    finally:
        os.close(ours)
    assert done.returncode == 0
    return b"".join(parts).decode()


def test_no_color_is_heeded() -> None:
    colour = re.compile(r"\x1b\[(?:\d+;)*3\d")
    assert colour.search(on_a_terminal("job", "show", "--help"))
    assert not colour.search(on_a_terminal("job", "show", "--help", NO_COLOR="1"))
