"""What `minutebook doctor` says of an API: away, not ready, another server, a key that it does not know."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.api.cli_runs import Run, runner
from tests.api.memory import Installation


class Foreign(httpx.AsyncBaseTransport):
    """Another server at that address, or none."""

    def __init__(self, is_there: bool) -> None:
        self._is_there = is_there

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if not self._is_there:
            raise httpx.ConnectError("no")
        return httpx.Response(404, text="nginx")


def states(run: Run, capsys: pytest.CaptureFixture[str], code: int) -> dict[str, str]:
    assert run("doctor", "--no-kafka", "-o", "json") == code
    found = json.loads(capsys.readouterr().out)
    assert all(one["remedy"] for one in found if one["state"] != "ok")
    return {one["check"]: one["state"] for one in found if one["check"].startswith("API")}


@pytest.mark.parametrize(
    ("key", "wanted", "code"),
    [("key-viewer", {"API": "ok", "API key": "ok"}, 0), ("none", {"API": "ok", "API key": "fail"}, 1)],
)
def test_key_is_tried(
    key: str,
    wanted: dict[str, str],
    code: int,
    world: Installation,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = runner(httpx.ASGITransport(app=world.app), key, monkeypatch)
    assert states(run, capsys, code) == wanted


def test_api_that_is_not_ready_fails(
    world: Installation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world.ready.reason = "the view is behind"
    run = runner(httpx.ASGITransport(app=world.app), "key-viewer", monkeypatch)
    assert states(run, capsys, 1) == {"API": "fail"}


@pytest.mark.parametrize("is_there", [True, False])
def test_api_that_is_elsewhere_fails(
    is_there: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runner(Foreign(is_there), "key-viewer", monkeypatch)
    assert states(run, capsys, 1) == {"API": "fail"}
