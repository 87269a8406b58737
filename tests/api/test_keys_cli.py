"""`minutebook key` and `minutebook audit` against the API, and what the command line finds by itself."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from minutebook import __version__
from minutebook.cli import audit, key, main, surroundings
from minutebook.client import Client, ClientSettings, JobChange, JobRequest, LimitRequest, SyncClient
from tests.api.memory import Installation

Run = Callable[..., int]


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"api_key": SecretStr("key-admin")}


@pytest.fixture
def run(world: Installation, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Run:
    def client() -> SyncClient:
        found = ClientSettings(url="http://api", retries_max=0, **settings)
        return SyncClient(found, transport=httpx.ASGITransport(app=world.app))

    for module in (key, audit):
        monkeypatch.setattr(module, "SyncClient", client)

    def running(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["minutebook", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.run()
        return int(ended.value.code or 0)

    return running


def created(run: Run, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run("key", "create", *arguments, "-o", "json") == 0
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    return made


def test_a_key_is_created_shown_rotated_and_revoked(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    made = created(run, capsys, "deploy", "--role", "submitter", "--expires", "90d", "--reason", "pipeline")
    assert made["api_key"].startswith(f"mb_{made['id']}_")
    assert made["expires_at"] == "2026-04-01T00:00:00.000Z"
    assert run("key", "show", made["id"], "-o", "json") == 0
    assert made["api_key"] not in (shown := capsys.readouterr().out)
    assert json.loads(shown)["status"] == "live"
    assert run("key", "rotate", made["id"], "--old-expires-in", "2d", "-o", "json") == 0
    rotated = capsys.readouterr()
    new = json.loads(rotated.out)
    assert (new["label"], new["old"]["expires_at"]) == ("deploy", "2026-01-03T00:00:00.000Z")
    assert f"{made['id']} is good until 2026-01-03" in rotated.err
    assert run("key", "revoke", made["id"]) == 2  # nobody can be asked here
    assert run("key", "revoke", made["id"], "--yes", "--reason", "lost", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["status"] == "revoked"
    assert run("key", "list") == 0
    listed = capsys.readouterr().out
    assert made["id"] in listed
    assert "revoked" in listed


def test_a_key_is_written_once_and_people_are_told(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("key", "create", "deploy", "--role", "viewer") == 0
    told = capsys.readouterr()
    assert "mb_" in told.out
    assert "mb_" not in told.err
    assert "shown this once" in told.err


@pytest.mark.parametrize("arguments", [("--role", "root"), (), ("--role", "viewer", "--expires", "soon")])
def test_a_senseless_key_is_wrong_usage(arguments: tuple[str, ...], run: Run) -> None:
    assert run("key", "create", "deploy", *arguments) == 2


def test_a_role_that_may_not_is_denied(run: Run, settings: dict[str, Any]) -> None:
    settings["api_key"] = SecretStr("key-operator")
    assert run("key", "list") == 7
    assert run("key", "create", "a", "--role", "admin") == 7


def test_the_own_key_is_revoked_with_yes(
    run: Run, settings: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    made = created(run, capsys, "admin", "--role", "admin")
    settings["api_key"] = SecretStr(made["api_key"])
    assert run("key", "revoke", made["id"]) == 2
    assert run("key", "revoke", made["id"], "--yes") == 0
    assert run("key", "list") == 7


def test_unknown_and_foreign_keys_are_not_found(run: Run, settings: dict[str, Any], capsys: Any) -> None:
    made = created(run, capsys, "deploy", "--role", "viewer")
    settings["api_key"] = SecretStr("key-other-admin")
    for name in (made["id"], "none"):
        assert run("key", "show", name) == 3
        assert run("key", "revoke", name, "--yes") == 3


def test_the_audit_log_names_the_command_line(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    made = created(run, capsys, "deploy", "--role", "viewer", "--reason", "tab\there")
    run("key", "revoke", "none", "--yes")
    run("key", "revoke", made["id"], "--yes", "--reason", "lost")
    capsys.readouterr()
    assert run("audit", "list", "--subject", made["id"], "-o", "jsonl") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(item["command"], item["via"], item["address"], item["reason"]) for item in found] == [
        ("RevokeKey", "cli", "127.0.0.1", "lost"),
        ("DeclareKey", "cli", "127.0.0.1", "tab\there"),
    ]
    assert run("audit", "list", "--limit", "1") == 0
    table = capsys.readouterr().out
    assert "RevokeKey" in table
    assert "DeclareKey" not in table
    assert run("audit", "list", "--refused", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == []
    assert run("audit", "list", "--command", "Nothing") == 2


# -- what it finds by itself


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / ".minutebook"
    folder.mkdir()
    (folder / "dev.json").write_text(json.dumps({"api_url": "http://127.0.0.1:9", "api_key": "mb_1_x"}))
    return folder


FOUND = {"MINUTEBOOK_CLIENT_URL": "http://127.0.0.1:9", "MINUTEBOOK_CLIENT_API_KEY": "mb_1_x"}


def test_a_dev_of_the_folder_is_found(dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert surroundings.dev_settings({}) == FOUND
    monkeypatch.chdir("/")
    assert surroundings.dev_settings({}) == {}
    assert surroundings.dev_settings({"MINUTEBOOK_DEV_DATA": str(dev)}) == FOUND


@pytest.mark.parametrize("name", ["URL", "API_KEY", "API_KEY_FILE"])
@pytest.mark.usefixtures("dev")
def test_what_the_environment_says_of_the_api_goes_before(name: str) -> None:
    assert surroundings.dev_settings({f"MINUTEBOOK_CLIENT_{name}": "x"}) == {}


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"api_url": "x"}'])
def test_a_file_that_says_nothing_is_no_dev(dev: Path, text: str) -> None:
    (dev / "dev.json").write_text(text)
    assert surroundings.dev_settings({}) == {}


@pytest.mark.usefixtures("dev")
def test_inside_a_client_is_the_command_lines_and_afterwards_all_is_as_it_was() -> None:
    before = dict(os.environ)
    with surroundings.entered():
        settings = ClientSettings()
        assert (settings.url, settings.key()) == ("http://127.0.0.1:9", "mb_1_x")
        assert settings.user_agent == f"minutebook-cli/{__version__}"
        surroundings.become_worker()
        assert ClientSettings().user_agent == f"minutebook-worker/{__version__}"
    assert dict(os.environ) == before
    assert ClientSettings().user_agent == f"minutebook-python/{__version__}"


def test_an_agent_of_the_environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINUTEBOOK_CLIENT_USER_AGENT", "ours/1")
    with surroundings.entered():
        surroundings.become_worker()
        assert ClientSettings().user_agent == "ours/1"
    assert os.environ["MINUTEBOOK_CLIENT_USER_AGENT"] == "ours/1"


# -- the client


async def test_the_client_says_who_it_is_and_lists_what_it_did(world: Installation) -> None:
    settings = ClientSettings(url="http://api", api_key=SecretStr("key-admin"), retries_max=0)
    async with Client(settings, transport=httpx.ASGITransport(app=world.app)) as client:
        assert (await client.me()).tenant == "acme"
        made = await client.create_api_key("deploy", "viewer", expires_at="2026-06-01T00:00:00Z")
        rotated = await client.rotate_api_key(made.id, old_expires_in="PT1H", reason="yearly")
        await client.revoke_api_key(made.id, reason="at once")
        assert (await client.api_key(made.id)).status == "revoked"
        ids = [item.id async for item in client.api_keys() if item.source == "log"]
        assert ids == sorted([made.id, rotated.id])
        entries = [item async for item in client.audit_log(accepted=True, command="DeclareKey")]
        assert [(item.via, item.subject, item.reason) for item in entries if item.reason] == [
            ("sdk", item.subject, "yearly") for item in entries if item.reason
        ]
        assert len(entries) == 3
        assert [item.name async for item in client.tenants()] == ["acme"]


def test_the_sync_client_does_the_same(world: Installation) -> None:
    settings = ClientSettings(url="http://api", api_key=SecretStr("key-admin"), retries_max=0)
    made_by = partial(SyncClient, settings, transport=httpx.ASGITransport(app=world.app))
    with made_by() as client:
        made = client.create_api_key("deploy", "viewer", expires_in="P1D")
        rotated = client.rotate_api_key(made.id)
        assert client.revoke_api_key(rotated.id).id == rotated.id  # type: ignore[union-attr]  # decided at once here
        assert client.api_key(rotated.id).status == "revoked"
        assert {item.id for item in client.api_keys()} > {made.id, rotated.id}
        assert [item.command for item in client.audit_log(subject=rotated.id)] == ["RevokeKey", "DeclareKey"]
        assert [item.name for item in client.tenants()] == [client.me().tenant]


async def test_reasons_of_requests_without_a_field_for_one_are_kept(world: Installation) -> None:
    settings = ClientSettings(url="http://api", api_key=SecretStr("key-admin"), retries_max=0)
    why = "caf\u00e9 100%\nclosed"
    async with Client(settings, transport=httpx.ASGITransport(app=world.app)) as client:
        await client.submit(JobRequest(task="t", id="a", cron="0 * * * *"))
        await client.limits.set("api", LimitRequest(concurrency=1))
        await client.calendars.set("c", ["2026-12-25"])
        await client.run_now("a", reason=why)
        await client.edit("a", JobChange(cron="5 * * * *"), reason=why)
        await client.put("a", JobRequest(task="u"), reason=why)
        await client.limits.delete("api", reason=why)
        await client.calendars.delete("c", reason=why)
        found = {item.command: item.reason async for item in client.audit_log()}
    assert {command for command, reason in found.items() if reason == why} == {
        "RunJobNow",
        "EditJob",
        "DeleteLimit",
        "DeleteCalendar",
    }
