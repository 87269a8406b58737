"""Lists of the command line: the filter as words and options, pages, the overview, and a job's executions as they change."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable

import httpx
import pytest
from pydantic import SecretStr

from api.live import changes as live
from minutebook.cli import filters
from minutebook.client import Client, ClientSettings, JobRequest
from tests.api.cli_runs import Run, runner
from tests.api.memory import NOW, Installation
from tests.api.runs import come, fail, succeed
from tests.api.test_live_calls import url as url  # the fixture
from tests.docs.pages import ROOT

Ids = Callable[..., list[str]]


class Api(httpx.AsyncBaseTransport):
    """The API; `looks` counts lists of executions, and `after` is called when one was asked for."""

    def __init__(self, world: Installation) -> None:
        self._api = httpx.ASGITransport(app=world.app)
        self.looks = 0
        self.after: Callable[[int], None] = lambda _looks: None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await self._api.handle_async_request(request)
        if request.url.path == "/v1/executions":
            self.looks += 1
            self.after(self.looks)
        return answer


@pytest.fixture
def api_(world: Installation) -> Api:
    return Api(world)


@pytest.fixture
def run(api_: Api, monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(api_, "key-operator", monkeypatch)


@pytest.fixture
def ids(run: Run, capsys: pytest.CaptureFixture[str]) -> Ids:
    """Ids that a list writes."""

    def listed(*arguments: str) -> list[str]:
        capsys.readouterr()
        assert run(*arguments, "-o", "jsonl") == 0
        lines = map(json.loads, capsys.readouterr().out.splitlines())
        return [line.get("execution_id") or line["id"] for line in lines]

    return listed


@pytest.fixture
def jobs(run: Run, world: Installation) -> None:
    """Jobs a to e, each a second later; every second one has a tag, c is paused."""
    for number, name in enumerate("abcde"):
        tag = ("--tag", "even") if number % 2 == 0 else ()
        assert run("job", "submit", f"t{number % 2}", "--id", name, "--cron", "@daily", *tag) == 0
        world.clock.advance(1_000)
    assert run("job", "pause", "c") == 0


@pytest.mark.usefixtures("jobs")
def test_filter_is_given_by_words_or_options(ids: Ids) -> None:
    assert ids("job", "list") == ["e", "d", "c", "b", "a"]
    assert ids("job", "list", "tag:even", "status:active") == ["e", "a"]
    assert ids("job", "list", "--tag", "even", "--status", "active") == ["e", "a"]
    assert ids("job", "list", "task:t1", "--order", "created") == ["b", "d"]
    assert ids("job", "list", "from:2026-01-01T00:00:03Z") == ["e", "d"]
    assert ids("job", "list", "--until", "2026-01-01T00:00:01Z") == ["a"]
    assert ids("job", "list", "due_from:2026-01-02T00:00:00Z", "tag:even") == ["a", "e"]
    assert ids("job", "list", "--due-until", "2026-01-02T00:00:00Z") == []
    assert ids("job", "list", "--order", "-due") == ["e", "d", "b", "a"]
    assert ids("execution", "list", "job_id:a", "status:scheduled") == ids("execution", "list", "--job", "a")


@pytest.mark.usefixtures("jobs")
def test_there_is_more_where_the_list_was_cut(
    run: Run, ids: Ids, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ids("job", "list", "--limit", "2") == ["e", "d"]
    assert run("job", "list", "--limit", "2") == 0
    written = capsys.readouterr()
    assert "more than 2" in written.err
    assert "@daily (UTC)" in written.out
    assert run("job", "list", "--limit", "5") == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("minutebook.client.list_calls._PAGE_MAX", 2)
    assert ids("job", "list", "--limit", "4") == ["e", "d", "c", "b"]
    assert ids("job", "list", "--limit", "1", "--all") == ["e", "d", "c", "b", "a"]


@pytest.mark.parametrize(
    "words",
    [
        ("job", "list", "colour:red"),
        ("job", "list", "paused"),
        ("job", "list", "status:"),
        ("job", "list", "job_id:a"),
        ("execution", "list", "tag:x"),
        ("job", "list", "status:paused", "--status", "active"),
        ("job", "list", "status:asleep"),
        ("job", "list", "--limit", "0"),
    ],
)
def test_what_is_no_filter_is_refused(
    words: tuple[str, ...], run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    assert capsys.readouterr().err


def test_grammar_is_that_of_the_api() -> None:
    from api import list_filters

    assert set(filters.JOB_NAMES) == {*list_filters.JOB_FILTERS, "order"}
    assert set(filters.EXECUTION_NAMES) == {*list_filters.EXECUTION_FILTERS, "order"}


def test_executions_are_listed_with_their_errors(
    run: Run, ids: Ids, world: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    run("job", "submit", "t", "--id", "a")
    come(world)
    fail(world, f"a:{NOW}", "LookupError")
    assert ids("execution", "list", "error_type:LookupError") == [f"a:{NOW}"]
    assert ids("execution", "list", "status:succeeded") == []
    assert run("execution", "list") == 0
    assert "LookupError: why" in capsys.readouterr().out


def test_overview_counts(run: Run, world: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    run("job", "submit", "t", "--id", "a")
    run("job", "submit", "t", "--id", "b", "--cron", "@daily")
    come(world)
    succeed(world, f"a:{NOW}")
    capsys.readouterr()
    assert run("overview", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["jobs"]["active"] == 1
    assert run("overview") == 0
    out = capsys.readouterr().out
    assert "1 active" in out
    assert "1 succeeded" in out


def test_tail_tells_each_change_until_it_is_interrupted(
    run: Run, api_: Api, world: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    run("job", "submit", "t", "--id", "a")

    def go_on(looks: int) -> None:
        if looks == 1:
            come(world)
        elif looks == 3:
            succeed(world, f"a:{NOW}")
        elif looks == 5:
            raise KeyboardInterrupt

    api_.after = go_on
    capsys.readouterr()
    assert run("job", "tail", "a", "--every", "1ms", "-o", "jsonl") == 130
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["status"] for line in lines] == ["running", "succeeded"]


def test_tail_begins_with_the_latest(
    run: Run, api_: Api, world: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    run("job", "submit", "t", "--id", "a", "--cron", "@daily")
    names = []
    for _ in range(3):
        assert run("job", "run-now", "a", "-o", "json") == 0
        names.append(json.loads(capsys.readouterr().out.splitlines()[-1])["execution_id"])
        world.clock.advance(1_000)
    api_.after = lambda looks: (_ for _ in ()).throw(KeyboardInterrupt) if looks == 2 else None
    capsys.readouterr()
    assert run("job", "tail", "a", "--every", "1ms", "--lines", "2") == 130
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == names[1:]


def test_upcoming_tells_when_jobs_are_due(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run("job", "submit", "t", "--id", "a", "--cron", "0 7 * * *")
    capsys.readouterr()
    assert run("upcoming", "--by", "hour", "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["at"] for one in found["buckets"] if one["due"]] == ["2026-01-01T07:00:00.000Z"]
    assert run("upcoming", "--by", "day") == 0
    written = capsys.readouterr()
    assert "2026-01-01T00:00:00.000Z" in written.out
    assert "1 jobs are due." in written.err


async def test_watch_prints_what_changes_until_it_is_interrupted(
    url: str, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "TURN_S", 0.01)
    given = {"MINUTEBOOK_CLIENT_URL": url, "MINUTEBOOK_CLIENT_API_KEY": "key-submitter"}
    command = (sys.executable, "-m", "minutebook.cli", "watch", "task:t", "status:active", "-o", "jsonl")
    async with asyncio.timeout(60):
        watching = await asyncio.create_subprocess_exec(
            *command, env=given, cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        assert watching.stdout is not None
        while not len(world.services.live):
            await asyncio.sleep(0.01)
        async with Client(ClientSettings(url=url, api_key=SecretStr("key-submitter"))) as client:
            for name, task in (("a", "t"), ("b", "other"), ("c", "t")):
                await client.submit(JobRequest(id=name, task=task, cron="@daily"))
        lines = [json.loads(await watching.stdout.readline()) for _ in range(2)]
        watching.send_signal(signal.SIGINT)
        assert await watching.wait() == 130
    assert [(line["kind"], line["id"], line["status"]) for line in lines] == [
        ("job", "a", "active"),
        ("job", "c", "active"),
    ]


def test_watch_takes_no_filter_that_the_stream_has_not(run: Run) -> None:
    assert run("watch", "tag:x") == 2


def test_tail_of_no_job_is_not_found(run: Run) -> None:
    assert run("job", "tail", "a") == 3
    assert run("job", "tail", "a", "--every", "soon") == 2
