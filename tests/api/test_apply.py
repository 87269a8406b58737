"""`minutebook apply`: jobs of files are put as declared, bad entries are named and leave all as it was."""

from __future__ import annotations

import io
import json
from pathlib import Path

import httpx
import pytest

from minutebook.client import SyncClient
from tests.api.cli_runs import Run, runner
from tests.api.memory import Installation
from tests.docs.pages import ROOT, blocks

YAML = """\
jobs:
- id: nightly
  task: report.build
  cron: 30 2 * * *
  zone: Europe/Berlin
  timeout: 2m
  retry: {max_attempts: 3, first: 10s}
  payload: {since: 2026-01-01, at: 12:30, code: 0123, flag: no}
- id: often
  task: poll
  every: 90s
  misfire:
    policy: latest
    window: 1h
"""


class Api(httpx.AsyncBaseTransport):
    """The API, which is away after so many writes."""

    def __init__(self, world: Installation) -> None:
        self._api = httpx.ASGITransport(app=world.app)
        self.writes_left = 1_000

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "PUT" and not request.url.query:
            self.writes_left -= 1
            if self.writes_left < 0:
                raise httpx.ConnectError("away")
        return await self._api.handle_async_request(request)


@pytest.fixture
def api_(world: Installation) -> Api:
    return Api(world)


@pytest.fixture
def key() -> str:
    return "key-submitter"


@pytest.fixture
def run(api_: Api, key: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(api_, key, monkeypatch)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.yaml"
    path.write_text(YAML)
    return path


def effects(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    return {one["id"]: one["effect"] for one in json.loads(capsys.readouterr().out)}


def test_jobs_are_created_once_and_stay(
    run: Run, world: Installation, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("apply", str(file), "-o", "json") == 0
    assert effects(capsys) == {"nightly": "created", "often": "created"}
    sent = len(world.log.sent)
    world.clock.advance(86_400_000)
    assert run("apply", str(file), "-o", "json") == 0
    assert effects(capsys) == {"nightly": "unchanged", "often": "unchanged"}
    assert len(world.log.sent) == sent
    assert run("job", "show", "nightly", "-o", "json") == 0
    job = json.loads(capsys.readouterr().out)
    assert (job["timeout"], job["retry"]["first"], job["zone"]) == ("PT2M", "PT10S", "Europe/Berlin")
    assert job["payload"] == {"since": "2026-01-01", "at": "12:30", "code": "0123", "flag": "no"}
    assert run("job", "show", "often", "-o", "json") == 0
    job = json.loads(capsys.readouterr().out)
    assert (job["every"], job["misfire"]) == ("PT1M30S", {"policy": "latest", "window": "PT1H", "max": 100})


def test_file_of_the_page_is_taken(run: Run, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks(ROOT / "docs" / "how-to" / "declare-jobs.md", "yaml")
    file.write_text(block.text)
    assert run("apply", str(file), "-o", "json") == 0
    assert effects(capsys) == {"nightly-report": "created", "poll-inbox": "created"}


def test_dry_run_shows_each_field_and_changes_nothing(
    run: Run, world: Installation, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("apply", "--dry-run", str(file)) == 1
    assert "2 created; nothing was written." in capsys.readouterr().err
    assert world.log.sent == []
    assert run("apply", str(file)) == 0
    assert run("apply", "--dry-run", str(file)) == 0
    file.write_text(YAML.replace("30 2 * * *", "45 2 * * *").replace("first: 10s", "first: 20s, factor: 3"))
    sent = len(world.log.sent)
    capsys.readouterr()
    assert run("apply", "--dry-run", str(file), "-o", "json") == 1
    written = capsys.readouterr()
    nightly, often = json.loads(written.out)
    assert {one["field"]: (one["before"], one["after"]) for one in nightly["changes"]} == {
        "cron": ("30 2 * * *", "45 2 * * *"),
        "retry.first": ("PT10S", "PT20S"),
        "retry.factor": (2.0, 3.0),
    }
    assert (nightly["effect"], often["effect"], often["changes"]) == ("changed", "unchanged", [])
    assert run("apply", "--dry-run", str(file)) == 1
    line = next(line for line in capsys.readouterr().out.splitlines() if "retry.first" in line)
    assert line.split() == ["retry.first", "PT10S", "PT20S"]
    assert len(world.log.sent) == sent
    assert run("apply", str(file), "-o", "json") == 0
    assert effects(capsys) == {"nightly": "changed", "often": "unchanged"}


def test_json_is_read_and_its_payload_kept_byte_for_byte(
    run: Run, world: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '{"id": "%s", "task": "t", "delay": "2m", "payload": {"n": 1.00, "m": [ 2 ]}}'
    file = tmp_path / "jobs.json"
    file.write_text(f"[{text % 'a'}, {text % 'b'}]")
    monkeypatch.setattr("sys.stdin", io.StringIO(text % "c"))
    assert run("apply", str(file), "-") == 0
    assert run("apply", str(file)) == 0
    for name in "abc":
        found = world.services.view.job("acme", name)
        assert found is not None
        assert found[0].payload == b'{"n": 1.00, "m": [ 2 ]}'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- id: a\n  task: t\n  priorty: 3\n", "jobs.yaml:3: priorty: unknown field; did you mean priority?"),
        ("- task: t\n", "jobs.yaml:1: id: is required"),
        ("- id: a\n", "jobs.yaml:1: task: is required"),
        ("- id: a\n  task: t\n  every: soon\n", "jobs.yaml:3: every: give a duration"),
        ("- id: a\n  task: t\n  retry:\n    first: 5\n", "jobs.yaml:3: retry.first: give a duration"),
        ("- id: a\n  task: t\n  priority: high\n", "jobs.yaml:3: priority: Expected `int`, got `str`"),
        ("- id: a\n  task: t\n  retry: 3\n", "jobs.yaml:3: retry: Expected `object`, got `int`"),
        ("- {id: a, task: t}\n- {id: a, task: u}\n", "jobs.yaml:2: id: a is declared at "),
        ("- id: a\n  id: b\n", "jobs.yaml:2: id stands here twice"),
        ("- id: a\n  task: t\n  cron: */5 * * * *\n", "jobs.yaml:3: is no YAML"),
        ("- 5\n", "jobs.yaml:1: an entry is the fields of a job"),
        ("", "no jobs"),
        ("- id: a\n  task: t\n  payload: !!binary aGk=\n", "jobs.yaml:1: JSON has no value such as bytes"),
        ("- id: a\n  task: t\n  payload: !!python/name:os.system\n", "jobs.yaml:3: is no YAML"),
        ("- id: a\n  task: t\n  payload: &x [*x]\n", "jobs.yaml:1: nested too deeply"),
        ("- id: a\n  task: t\n  payload: 1e999\n", "jobs.yaml:1: a number is out of range"),
        (
            "- id: a\n  task: t\n  payload: 99999999999999999999\n",
            "jobs.yaml:1: an integer is beyond 64 bits",
        ),
        ("- id: a\n  task: t\n  5: x\n", "jobs.yaml:3: names are texts"),
        ("- id: a b\n  task: t\n", "jobs.yaml:1: id: "),
    ],
)
def test_bad_entry_is_named_by_line_and_field(
    text: str, told: str, run: Run, world: Installation, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    assert run("apply", str(file)) == (2 if text else 0)
    assert told in capsys.readouterr().err
    assert world.log.sent == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[{"id": "a", "task": "t"}, {"id": "b"}]', "jobs.json[1]: task: is required"),
        ('{"jobs": [{"id": "a", "task": "t", "colour": 1}]}', "jobs.json.jobs[0]: colour: unknown field"),
        ('[{"id": "a", "task": "t", "task": "u"}]', "jobs.json: task stands twice"),
        ("[", "jobs.json: is no JSON with jobs"),
        ("[5]", "jobs.json: is no JSON with jobs"),
        ("[" * 5_000 + "]" * 5_000, "jobs.json: is no JSON with jobs"),
    ],
)
def test_bad_entry_of_json_is_named_by_index(
    text: str, told: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "jobs.json"
    file.write_text(text)
    assert run("apply", str(file)) == 2
    assert told in capsys.readouterr().err


def test_every_fault_of_all_files_is_told(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text("- task: t\n---\n- {id: a, task: t, tiemout: 2m}\n")
    other.write_text("{id: a}")
    assert run("apply", str(one), str(other), str(tmp_path / "none.yaml")) == 2
    err = capsys.readouterr().err
    assert err.count("error:") == 4
    assert {"one.yaml:1", "one.yaml:3", "other.yaml:1", "cannot be read"} <= {
        part for part in ("one.yaml:1", "one.yaml:3", "other.yaml:1", "cannot be read") if part in err
    }


def test_nothing_is_written_where_the_api_refuses_one(
    run: Run, world: Installation, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = "- {id: bad, task: t, cron: x}\n- {id: lost, task: t, queue: nowhere}\n"
    file.write_text(YAML + more)
    assert run("apply", str(file)) == 4
    err = capsys.readouterr().err
    assert "jobs.yaml:15: cron: " in err
    assert "jobs.yaml:16: queue: not declared" in err
    assert "Nothing was written." in err
    assert world.log.sent == []


def test_change_in_between_is_not_overwritten(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("apply", str(file)) == 0
    compare = SyncClient.would_put

    def compare_and_lose(client: SyncClient, job_id: str, body: object) -> object:
        found = compare(client, job_id, body)  # type: ignore[arg-type]  # as it came
        if job_id == "nightly":
            client.pause(job_id)
            client.put(job_id, client_body(job_id))
        return found

    def client_body(job_id: str) -> object:
        from minutebook.client import JobRequest

        return JobRequest(task="other", id=job_id, cron="@daily")

    monkeypatch.setattr(SyncClient, "would_put", compare_and_lose)
    file.write_text(YAML.replace("30 2 * * *", "45 2 * * *").replace("every: 90s", "every: 80s"))
    capsys.readouterr()
    assert run("apply", str(file), "-o", "json") == 6
    assert effects(capsys) == {"nightly": "refused", "often": "changed"}


@pytest.mark.parametrize(("writes", "code"), [(0, 5), (1, 6)])
def test_api_that_goes_away_leaves_the_rest_for_a_repeat(
    writes: int, code: int, run: Run, api_: Api, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api_.writes_left = writes
    assert run("apply", str(file), "-o", "json") == code
    assert list(effects(capsys).values()).count("unreached") == 2 - writes
    api_.writes_left = 10
    assert run("apply", str(file), "-o", "json") == 0
    assert list(effects(capsys).values()).count("created") == 2 - writes


def test_undecided_entry_is_pending(
    run: Run,
    world: Installation,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from api import decisions

    monkeypatch.setattr(decisions, "_WAIT_S", 0)
    world.log.is_held = True
    assert run("apply", str(file), "-o", "json") == 6
    assert effects(capsys) == {"nightly": "pending", "often": "pending"}


def test_closed_job_is_told_before(run: Run, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("apply", str(file))
    run("job", "cancel", "often", "--yes")
    file.write_text("[{id: often, task: poll, every: 80s}]")
    capsys.readouterr()
    assert run("apply", str(file), "--dry-run") == 1
    assert "often is cancelled" in capsys.readouterr().err
    assert run("apply", str(file)) == 4


@pytest.mark.parametrize("key", ["key-viewer"])
def test_viewer_is_denied(run: Run, file: Path) -> None:
    assert run("apply", str(file)) == 7
