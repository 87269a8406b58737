"""The README: its example runs, and its commands, like those of the other pages, are there as written."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from typing import Any

import msgspec
import pytest
import typer

from api.submission import read_submission
from minutebook import App, Context
from minutebook.cli.exits import ExitCode
from minutebook.cli.main import app as cli
from minutebook.client.calendar_models import CalendarRequest
from minutebook.client.change_models import JobChange, ResumeRequest
from minutebook.client.key_models import KeyRequest
from minutebook.client.models import LimitRequest, PauseRequest, ReasonRequest, RedriveRequest
from minutebook.client.operation_models import (
    BackfillRequest,
    DiscardManyRequest,
    OperationRequest,
    RedriveManyRequest,
)
from minutebook.client.preview_models import PreviewRequest
from minutebook.domain.notify import fault
from minutebook.worker.context import Phase
from minutebook.worker.run import Run
from tests.docs.pages import PAGES, ROOT, Block, blocks, prose, shell_lines, spans
from tests.docs.test_pages import run

README = ROOT / "README.md"
SUBMIT = ROOT / "docs" / "how-to" / "submit-jobs.md"
ROUTES = json.loads((ROOT / "docs" / "reference" / "openapi.json").read_text())["paths"]
PATH_PARTS = (
    (r"/nightly:\d+\b", "/{execution_id}"),
    (r"/nightly\b", "/{job_id}"),
    (r"/queues/mail\b", "/queues/{name}"),
    (r"/limits/api\.example\b", "/limits/{name}"),
    (r"/calendars/holidays\b", "/calendars/{name}"),
    (r"/operations/[0-9a-f-]{36}", "/operations/{operation_id}"),
)
ACTIONS: dict[str, type[msgspec.Struct]] = {
    "/v1/executions/{execution_id}/redrive": RedriveRequest,
    "/v1/dead-letters/redrive": RedriveManyRequest,
    "/v1/executions/{execution_id}/discard": ReasonRequest,
    "/v1/dead-letters/discard": DiscardManyRequest,
    "/v1/jobs/{job_id}/backfill": BackfillRequest,
    "/v1/operations": OperationRequest,
    "/v1/jobs/{job_id}": JobChange,
    "/v1/jobs/{job_id}/pause": ReasonRequest,
    "/v1/jobs/{job_id}/resume": ResumeRequest,
    "/v1/queues/{name}/pause": ReasonRequest,
    "/v1/limits/{name}": LimitRequest,
    "/v1/limits/{name}/pause": PauseRequest,
    "/v1/tenant-limit": LimitRequest,
    "/v1/calendars/{name}": CalendarRequest,
    "/v1/keys": KeyRequest,
    "/v1/schedules/preview": PreviewRequest,
}
VERBS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
MINUTEBOOK = [(block, line) for block, line in shell_lines() if line.startswith("minutebook ")]
CURL = [(block, line) for block, line in shell_lines() if line.startswith("curl ")]


def context(task: str) -> Context:
    made = Run(
        tenant="acme",
        execution="monthly:1767225600000",
        task=task,
        queue="default",
        attempt=1,
        token=7,
        partition=0,
        session=0,
        scheduled_at=1_767_225_600_000,
        due_at=1_767_225_600_000,
        timeout_ms=1_000,
        payload=b"null",
        start_by=0.0,
    )
    return Context(made, 1_000, 1_767_225_600_000, Phase(), lambda _: None)


def test_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) < 200


async def test_example_registers_a_task_that_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks(README, "python")
    app = run(block)["app"]
    assert isinstance(app, App)
    (task,) = app.tasks.values()
    payload = json.loads(options_of("report.build")["payload"])
    assert await task(task.read(msgspec.json.encode(payload)), context(task.name)) is None
    assert capsys.readouterr().out == "report for 2026-06, once per monthly:1767225600000, attempt 1\n"


def options_of(task: str) -> dict[str, Any]:
    """What the README's submit command gives."""
    (line,) = [line for block, line in MINUTEBOOK if block.page == README and f"submit {task}" in line]
    return parsed(line)


def parsed(line: str) -> dict[str, Any]:
    """Parameters of a command of ours. Fails where a noun, verb or option is not there."""
    command: Any = typer.main.get_command(cli)
    words = shlex.split(line, comments=True)[1:]
    context = command.make_context("minutebook", words, resilient_parsing=False)
    while hasattr(command, "commands"):
        name, command, words = command.resolve_command(context, words)
        context = command.make_context(name, words, parent=context)
    return dict(context.params)


@pytest.mark.parametrize(("block", "line"), MINUTEBOOK, ids=str)
def test_command_is_there_with_its_options(block: Block, line: str) -> None:
    parsed(line)


def test_command_that_is_not_there_is_found() -> None:
    with pytest.raises(Exception, match="No such option"):
        parsed("minutebook job submit a --colour red")
    with pytest.raises(Exception, match="No such command"):
        parsed("minutebook job paint a")


def test_make_verbs_are_there() -> None:
    lines = [line for _, line in shell_lines()] + [span for page in PAGES for span in spans(page)]
    named = {line.split()[1] for line in lines if line.startswith("make ")}
    assert {"demo", "test"} <= named <= VERBS


def test_modules_that_are_started_are_there() -> None:
    for page in PAGES:
        for name in re.findall(r"python -m ([\w.]+\w)", page.read_text()):
            found = importlib.util.find_spec(name)
            assert found is not None, f"{page.name}: there is no module {name}"


@pytest.mark.parametrize(("block", "line"), CURL, ids=str)
def test_request_has_a_route_and_a_body_that_is_taken(block: Block, line: str) -> None:
    words = shlex.split(line)
    url = next(word for word in words if word.startswith("$API"))
    path = url.removeprefix("$API").partition("?")[0]
    for shown, named in PATH_PARTS:
        path = re.sub(shown, named, path)
    body = words[words.index("--data") + 1] if "--data" in words else None
    method = words[words.index("-X") + 1] if "-X" in words else "GET" if body is None else "POST"
    assert method.lower() in ROUTES[path]
    if path in ACTIONS and body is not None:
        msgspec.json.decode(body, type=ACTIONS[path])
    elif body is not None:
        jobs = json.loads(body)
        for job in jobs.get("jobs", [jobs]):
            read_submission(
                json.dumps(job).encode(), 1_781_000_000_000, lambda queue: queue == "default", fault
            )


def test_exit_codes_are_told_as_they_are() -> None:
    (codes,) = re.findall(r"Exit codes: ([^.]+)\.", prose(SUBMIT))
    told = {int(code) for code in re.findall(r"\b(\d) [a-z]", codes)}
    assert told == {int(code) for code in ExitCode} - {ExitCode.NO, ExitCode.INTERRUPTED}
