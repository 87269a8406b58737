"""The command line against the API: exit codes, and stdout that a script can read."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial

import httpx
import pytest
from pydantic import SecretStr

from api import decisions
from minutebook.cli import (
    alert,
    calendar,
    dead_letter,
    execution,
    job,
    job_changes,
    limit,
    main,
    partition,
    queue,
    task,
    workers,
)
from minutebook.client import ClientSettings, Job, JobChange, SyncClient
from minutebook.domain import events as facts
from minutebook.domain.commands import DeclareTask
from minutebook.domain.records import FullPulse, Pulse, QueueOffer, Report
from minutebook.wire import codec
from minutebook.wire.topics import partition_of
from tests.api.memory import NOW, PARTITIONS, Installation
from tests.api.runs import come, fail, succeed

Run = Callable[..., int]
RUN_AT = "2030-01-01T00:00:00Z"


@pytest.fixture
def key() -> str:
    return "key-operator"


@pytest.fixture
def run(world: Installation, key: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    settings = ClientSettings(url="http://api", api_key=SecretStr(key), retries_max=0)
    for module in (
        partition,
        job,
        job_changes,
        queue,
        limit,
        execution,
        dead_letter,
        alert,
        task,
        workers,
        calendar,
    ):
        client = partial(SyncClient, settings, transport=httpx.ASGITransport(app=world.app))
        monkeypatch.setattr(module, "SyncClient", client)

    def running(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["minutebook", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.run()
        return int(ended.value.code or 0)

    return running


def test_json_output_is_json_alone(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run("job", "submit", "t", "--id", "a", "--payload", '{"n": 1}', "--run-at", RUN_AT, "-o", "json") == 0
    )
    made = capsys.readouterr()
    assert json.loads(made.out)["payload"] == {"n": 1}
    assert made.err == ""
    assert run("job", "show", "a", "-o", "json") == 0
    assert capsys.readouterr().out == made.out


def test_history_is_written_line_by_line(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run("job", "submit", "t", "--id", "a", "--run-at", RUN_AT)
    assert run("job", "run-now", "a", "--key", "k") == 0
    capsys.readouterr()
    assert run("job", "history", "a", "-o", "jsonl") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["status"] for line in lines] == ["scheduled", "scheduled"]
    assert run("job", "history", "a", "-o", "json") == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_table_shows_the_job(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("job", "submit", "t", "--cron", "0 7 * * *", "--zone", "Europe/Berlin", "--timeout", "2m") == 0
    out = capsys.readouterr().out
    assert "0 7 * * * (Europe/Berlin)" in out
    assert "PT2M" in out


def shown(run: Run, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """The job that a command writes."""
    capsys.readouterr()
    assert run("job", *arguments, "-o", "json") == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_a_job_is_edited_paused_and_resumed(
    run: Run, world: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    run("job", "submit", "t", "--id", "a", "--cron", "0 7 * * *", "--deadline", "1h", "--payload", "1")
    edit = ("edit", "a", "--cron", "30 7 * * *", "--zone", "Europe/Berlin", "--payload", "[2]")
    job_ = shown(run, capsys, *edit, "--retry-max-attempts", "2", "--default", "deadline")
    assert (job_["cron"], job_["zone"], job_["payload"]) == ("30 7 * * *", "Europe/Berlin", [2])
    assert (job_["version"], job_["deadline"]) == (2, None)
    more = ("--calendar-exclude", "x", "--misfire", "latest", "--overlap", "skip", "--pause-on-failure")
    assert run("job", "edit", "a", *more) == 4, "no such calendar"
    job_ = shown(run, capsys, "edit", "a", *more[2:], "--misfire-max", "3")
    assert job_["misfire"] == {"policy": "latest", "window": "P1D", "max": 3}
    assert (job_["overlap"], job_["pause_on_failure"]) == ("skip", True)
    assert shown(run, capsys, "edit", "a", "--no-pause-on-failure")["pause_on_failure"] is False
    job_ = shown(run, capsys, "pause", "a", "--reason", "broken feed")
    assert (job_["status"], job_["next_at"]) == ("paused", None)
    capsys.readouterr()
    assert run("job", "show", "a") == 0
    assert "broken feed" in capsys.readouterr().out
    world.clock.advance(2 * 86_400_000)
    assert shown(run, capsys, "resume", "a")["status"] == "active"
    assert run("job", "versions", "a") == 0
    listed = capsys.readouterr().out
    assert "0 7 * * * (UTC)" in listed
    assert "sdk 127.0.0.1" in " ".join(listed.split()), "as the settings of this test name themselves"
    assert shown(run, capsys, "cancel", "a", "--reason", "over", "--yes")["status"] == "cancelled"
    assert run("job", "pause", "a") == 4
    assert run("job", "edit", "none", "--priority", "1") == 3
    assert run("job", "edit", "a") == 2
    assert run("job", "edit", "a", "--default", "colour") == 2


def test_a_change_of_what_somebody_else_changed_meanwhile_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("job", "submit", "t", "--id", "a", "--cron", "0 7 * * *")
    read = SyncClient.get

    def read_and_lose(client: SyncClient, job_id: str) -> Job:
        found = read(client, job_id)
        client.edit(job_id, JobChange(priority=found.version))
        return found

    monkeypatch.setattr(SyncClient, "get", read_and_lose)
    for verb in (
        ("edit", "a", "--cron", "* * * * *"),
        ("pause", "a"),
        ("resume", "a"),
        ("cancel", "a", "-y"),
    ):
        capsys.readouterr()
        assert run("job", *verb) == 4
        assert "Stale version" in capsys.readouterr().err


def test_cancelled_job_is_told(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run("job", "submit", "t", "--id", "a", "--run-at", RUN_AT)
    capsys.readouterr()
    assert run("job", "cancel", "a", "--yes", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["status"] == "cancelled"


def test_queue_is_created_for_named_tenants(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("queue", "create", "mail", "--tenant", "acme", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "name": "mail",
        "version": 1,
        "tenants": ["acme"],
        "open": False,
        "paused": False,
        "draining": False,
    }
    assert run("job", "submit", "t", "--queue", "mail") == 0


def test_open_queue_is_created(run: Run, capsys: pytest.CaptureFixture[str], world: Installation) -> None:
    assert run("queue", "create", "mail", "--open", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["open"] is True
    assert world.due_topics.made == ["mail"]


def test_policy_is_given_by_options(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    policy = (
        "--retry-max-attempts 2 --retry-first 5s --retry-max 1m --max-losses 3 --deadline 1h --start-deadline 10m"
        " --stuck-after 2m --on-stuck stop --priority 9"
    )
    assert run("job", "submit", "t", "--run-at", RUN_AT, *policy.split(), "-o", "json") == 0
    job = json.loads(capsys.readouterr().out)
    assert (job["retry"]["max_attempts"], job["retry"]["first"], job["retry"]["max"]) == (2, "PT5S", "PT1M")
    assert (job["max_losses"], job["deadline"], job["start_deadline"]) == (3, "PT1H", "PT10M")
    assert (job["stuck_after"], job["on_stuck"], job["priority"]) == ("PT2M", "stop", 9)


def test_timing_is_given_by_options(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    timing = (
        "--every 90s --start-at 2030-01-31T08:00:00Z --end-at 2031-01-31T09:00:00+01:00 --max-runs 12"
        " --calendar-exclude holidays --calendar-exclude stocktaking --calendar-include working-days"
        " --misfire latest --misfire-window 2d --misfire-max 7 --overlap queue_one --gap skip --fold last"
        " --day-match and --jitter 5m --pause-on-failure"
    )
    dates = {"holidays": "2030-05-01", "stocktaking": "2030-05-02", "working-days": "2030-02-01..2030-12-31"}
    for name, days in dates.items():
        assert run("calendar", "set", name, days) == 0
    capsys.readouterr()
    assert run("job", "submit", "t", *timing.split(), "-o", "json") == 0
    job = json.loads(capsys.readouterr().out)
    said = {
        "every": "PT1M30S",
        "start_at": "2030-01-31T08:00:00.000Z",
        "end_at": "2031-01-31T08:00:00.000Z",
        "max_runs": 12,
        "calendars": {"exclude": ["holidays", "stocktaking"], "include": ["working-days"]},
        "misfire": {"policy": "latest", "window": "P2D", "max": 7},
        "overlap": "queue_one",
        "gap": "skip",
        "fold": "last",
        "day_match": "and",
        "jitter": "PT5M",
        "pause_on_failure": True,
    }
    assert {name: job[name] for name in said} == said
    assert run("job", "show", job["id"]) == 0
    out = capsys.readouterr().out
    assert (
        "every PT1M30S; from 2030-01-31T08:00:00.000Z; until 2031-01-31T08:00:00.000Z; 12 runs at most" in out
    )
    assert "up to PT5M later; not on holidays, stocktaking; only on working-days" in out
    assert "latest, within P2D, 7 at most" in out
    assert "queue_one" in out
    edit = "--cron @daily --misfire none --calendar-exclude holidays --overlap skip --no-pause-on-failure"
    assert run("job", "edit", job["id"], *edit.split(), "--default", "max_runs", "-o", "json") == 0
    changed = json.loads(capsys.readouterr().out)
    assert (changed["cron"], changed["every"], changed["max_runs"]) == ("@daily", None, None)
    assert changed["misfire"] == {"policy": "none", "window": "P2D", "max": 7}
    assert changed["calendars"] == {"exclude": ["holidays"], "include": ["working-days"]}
    assert (changed["overlap"], changed["pause_on_failure"], changed["jitter"]) == ("skip", False, "PT5M")


def test_refused_timing_names_its_field(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("job", "submit", "t", "--cron", "@daily", "--overlap", "queue", "--misfire-max", "0") == 4
    err = capsys.readouterr().err
    assert "/overlap: must be one of allow, skip, queue_one, queue_all, cancel_running" in err
    assert "/misfire/max: must be from 1 to 10000" in err


def test_alerts_are_listed_and_filtered(
    run: Run, world: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    run("job", "submit", "t", "--id", "a")
    come(world)
    fail(world, f"a:{NOW}", "LookupError")
    capsys.readouterr()
    assert run("alert", "list", "--kind", "execution_dead", "-o", "jsonl") == 0
    assert json.loads(capsys.readouterr().out)["execution_id"] == f"a:{NOW}"
    assert run("alert", "list") == 0
    assert "execution_dead" in capsys.readouterr().out
    assert run("alert", "list", "--kind", "task_unknown", "-o", "jsonl") == 0
    assert capsys.readouterr().out == ""


def test_notify_that_cannot_be_is_refused_with_its_remedy(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("job", "submit", "t", "--notify", "http://hooks.example/") == 4
    assert "must begin with https://" in capsys.readouterr().err


def test_dead_execution_is_found_shown_and_redriven(
    run: Run, world: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    run("job", "submit", "t", "--id", "a")
    come(world)
    fail(world, f"a:{NOW}", "LookupError")
    capsys.readouterr()
    assert run("dead-letter", "list", "--task", "t", "--cause", "permanent", "-o", "jsonl") == 0
    (line,) = capsys.readouterr().out.splitlines()
    name = json.loads(line)["execution_id"]
    assert run("dead-letter", "list", "--error-type", "Other", "-o", "jsonl") == 0
    assert capsys.readouterr().out == ""
    assert run("execution", "show", name) == 0
    assert "LookupError: why" in capsys.readouterr().out
    assert run("execution", "redrive", name, "--payload", '{"n": 2}', "--yes", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["generation"] == 1
    assert run("execution", "redrive", name, "--yes") == 4
    assert run("execution", "discard", name, "--yes") == 4
    come(world)
    fail(world, name, "LookupError")
    assert run("execution", "discard", name, "--reason", "sent by hand", "--yes") == 0
    assert ": sent by hand" in capsys.readouterr().out
    assert run("execution", "redrive", name, "--yes") == 4


def test_execution_is_cancelled(run: Run, world: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    run("job", "submit", "t", "--id", "a")
    come(world, is_granted=False)
    capsys.readouterr()
    assert run("execution", "show", f"a:{NOW}") == 0
    assert "queued (worker)" in capsys.readouterr().out
    assert run("execution", "show", f"a:{NOW}", "--wait", "0s") == 5
    capsys.readouterr()
    assert run("execution", "cancel", f"a:{NOW}", "--reason", "by hand", "--yes", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "cancelled"
    assert run("execution", "cancel", f"a:{NOW}", "--yes") == 4


@pytest.mark.parametrize(("is_success", "code"), [(True, 0), (False, 1), (None, 5)])
def test_waiting_ends_with_the_outcome(
    is_success: bool | None, code: int, run: Run, world: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    run("job", "submit", "t", "--id", "a")
    come(world)
    if is_success:
        succeed(world, f"a:{NOW}", b'{"n": 1}')
    elif is_success is False:
        fail(world, f"a:{NOW}")
    capsys.readouterr()
    assert run("execution", "show", f"a:{NOW}", "--wait", "1s", "-o", "json") == code
    assert json.loads(capsys.readouterr().out)["outcome"] == {0: "succeeded", 1: "dead", 5: None}[code]


def test_queue_is_paused_and_resumed(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("queue", "pause", "default", "--reason", "night", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["paused"] is True
    assert run("queue", "list") == 0
    assert "yes" in capsys.readouterr().out
    assert run("queue", "resume", "default", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["paused"] is False
    assert run("queue", "drain", "default", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["draining"] is True


def test_limit_is_set_paused_and_deleted(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    def shown(*arguments: str) -> dict[str, object]:
        assert run("limit", *arguments, "-o", "json") == 0
        found: dict[str, object] = json.loads(capsys.readouterr().out)
        return found

    assert shown("set", "api", "--concurrency", "3", "--rate", "100/1m") == {
        "name": "api",
        "version": 1,
        "concurrency": 3,
        "rate_count": 100,
        "rate_period": "PT1M",
        "paused_until": None,
        "in_use": 0,
        "waiting": 0,
    }
    assert shown("set", "--tenant-wide")["name"] is None
    assert (
        shown("pause", "api", "--until", "30s", "--reason", "429")["paused_until"]
        == "2026-01-01T00:00:30.000Z"
    )
    until = "2026-01-01T00:00:40Z"
    assert shown("pause", "--tenant-wide", "--until", until)["paused_until"] == "2026-01-01T00:00:40.000Z"
    assert run("limit", "list") == 0
    table = capsys.readouterr().out
    assert "(tenant)" in table
    assert "100 in PT1M" in table
    assert shown("resume", "api")["paused_until"] is None
    assert shown("show", "--tenant-wide")["version"] == 2
    assert run("limit", "delete", "api", "--yes") == 0
    assert run("limit", "list", "-o", "jsonl") == 0
    assert [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()] == [None]


def test_job_is_submitted_under_a_limit(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("job", "submit", "t", "--limit", "api") == 0
    assert "api" in capsys.readouterr().out


def test_command_line_purges_closed_jobs(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("job", "submit", "t", "--id", "a", "--run-at", RUN_AT) == 0
    assert run("job", "purge", "a", "--yes") == 4
    assert run("job", "cancel", "a", "--yes") == 0
    assert run("job", "purge", "a") == 2
    assert run("job", "purge", "a", "--yes", "--reason", "asked to") == 0
    assert "a is purged" in capsys.readouterr().err
    assert run("job", "show", "a") == 3


def test_job_has_the_tags_that_it_is_given(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    at = ("--run-at", "2030-01-01T00:00:00Z")
    assert run("job", "submit", "t", "--id", "a", *at, "--tag", "x", "--tag", "y", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["tags"] == ["x", "y"]
    assert run("job", "show", "a") == 0
    assert "x, y" in capsys.readouterr().out
    assert run("job", "edit", "a", "--tag", "z", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["tags"] == ["z"]
    assert run("job", "edit", "a", "--default", "tags", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["tags"] == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("job", "submit", "t", "--tag", "a b"), 4),
        (("execution", "show", "a:1"), 3),
        (("execution", "cancel", "a:1", "--yes"), 3),
        (("execution", "redrive", "a:1", "--yes"), 3),
        (("execution", "cancel", "a:1"), 2),
        (("execution", "redrive", "a:1"), 2),
        (("execution", "redrive", "a:1", "--yes", "--payload", "{"), 2),
        (("execution", "show", "a:1", "--wait", "soon"), 2),
        (("dead-letter", "list", "--cause", "bored"), 2),
        (("queue", "pause", "nothing"), 3),
        (("limit", "show", "nothing"), 3),
        (("limit", "pause", "nothing", "--until", "1m"), 3),
        (("limit", "resume", "--tenant-wide"), 3),
        (("limit", "delete", "nothing", "--yes"), 3),
        (("limit", "delete", "nothing"), 2),
        (("limit", "set"), 2),
        (("limit", "set", "a", "--tenant-wide"), 2),
        (("limit", "set", "a", "--rate", "100"), 2),
        (("limit", "set", "a", "--rate", "100/soon"), 2),
        (("limit", "set", "a", "--rate", "many/1m"), 2),
        (("limit", "set", "a", "--concurrency", "0"), 4),
        (("limit", "pause", "a", "--until", "soon"), 2),
        (("limit", "pause", "a"), 2),
        (("job", "submit", "t", "--limit", "a b"), 4),
        (("job", "submit", "t", "--priority", "10"), 4),
        (("job", "submit", "t", "--deadline", "soon"), 2),
        (("job", "submit", "t", "--on-stuck", "stop"), 4),
        (("job", "show", "nothing"), 3),
        (("job", "history", "nothing"), 3),
        (("job", "cancel", "nothing", "--yes"), 3),
        (("job", "run-now", "nothing"), 3),
        (("job", "submit", "a b"), 4),
        (("job", "submit", "t", "--queue", "nowhere"), 4),
        (("job", "submit", "t", "--cron", "x"), 4),
        (("job", "submit", "t", "--payload", "{"), 2),
        (("job", "submit", "t", "--payload", "@/nothing"), 2),
        (("job", "submit", "t", "--delay", "soon"), 2),
        (("job", "submit"), 2),
        (("job", "submit", "t", "--nothing"), 2),
        (("job", "cancel", "a"), 2),
        (("nothing",), 2),
    ],
)
def test_exit_code_tells_what_became_of_it(
    arguments: tuple[str, ...], code: int, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == code
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err


@pytest.mark.parametrize("key", ["key-viewer", "nothing"])
def test_denied_is_a_code_of_its_own(run: Run) -> None:
    assert run("job", "submit", "t") == 7


def test_unready_api_is_safe_to_repeat(run: Run, world: Installation) -> None:
    world.ready.reason = "not yet"
    assert run("job", "show", "a") == 5


def test_undecided_command_is_partly_done(
    run: Run, world: Installation, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "_WAIT_S", 0)
    world.log.is_held = True
    assert run("job", "submit", "t", "-o", "json") == 6
    written = capsys.readouterr()
    assert json.loads(written.out)["outcome"] is None
    assert "durable" in written.err


def test_text_from_outside_cannot_move_the_cursor(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("job", "show", "\x1b[2J\u202eabc") == 3
    payload = json.dumps("\x9b31m\u202e", ensure_ascii=False)
    assert run("job", "submit", "t", "--payload", payload) == 0
    written = capsys.readouterr()
    assert not set("\x1b\x9b\u202e") & set(written.out + written.err)


def test_missing_extra_breaks_its_own_noun_alone(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "minutebook.cli.worker", None)
    monkeypatch.delitem(sys.modules, "minutebook.cli.workers")
    assert run("version") == 0
    assert run("--help") == 0
    assert run("worker", "run", "a:b") == 2
    assert "minutebook[worker]" in capsys.readouterr().err
    assert run("worker", "--help") == 0
    assert "quiet" in capsys.readouterr().out


def test_tasks_are_listed_and_shown(
    run: Run, world: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = '{"type":"object"}'
    command = DeclareTask(name="send", command_id="d", issued_at=NOW, actor="worker:w", payload_schema=schema)
    world.log._decide(partition_of("task::send", PARTITIONS), command)
    assert run("task", "list", "-o", "json") == 0
    assert [item["name"] for item in json.loads(capsys.readouterr().out)] == ["send"]
    assert run("task", "show", "send") == 0
    assert schema in capsys.readouterr().out
    assert run("task", "show", "other") == 3
    assert run("job", "submit", "send", "--payload", "5") == 4
    assert "/payload" in capsys.readouterr().err


def test_worker_is_seen_and_asked(run: Run, world: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    full = FullPulse("host-1", "0.1.0", ["t"], [QueueOffer("mail", 2)], 10_000, 3_000, [7])
    world.services.workers.take(0, codec.encode(Report("w1.0", 1, Pulse(3, -1), full)), NOW)
    assert run("worker", "list") == 0
    assert {"w1", "host-1", "active"} <= set(capsys.readouterr().out.split())
    assert run("worker", "show", "w1") == 0
    assert "mail (at most 2)" in capsys.readouterr().out
    assert run("worker", "quiet", "w1", "--reason", "reboot", "-o", "json") == 0
    written = capsys.readouterr()
    assert json.loads(written.out)["id"] == "w1"
    assert "worker show w1" in written.err
    assert run("worker", "resume", "w1") == 0
    assert run("worker", "stop", "w1") == 2
    assert run("worker", "stop", "w1", "--yes") == 0
    assert run("worker", "resume", "w1") == 4
    assert run("worker", "show", "w2") == 3


def test_partition_list_names_owners_and_lag(
    run: Run, world: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    world.log.append(2, [facts.OwnershipTaken("host-1", 1, 0, 0)])
    world.ready.lag = {2: 9}
    assert run("partition", "list", "-o", "json") == 0
    items = json.loads(capsys.readouterr().out)
    assert [(item["owner"], item["lag"]) for item in items] == [(None, 0)] * 2 + [("host-1", 9), (None, 0)]
    world.ready.reason = "the view is still reading the log"
    assert run("partition", "list") == 0
    shown = capsys.readouterr()
    assert "host-1" in shown.out
    assert "still reading" in shown.err
