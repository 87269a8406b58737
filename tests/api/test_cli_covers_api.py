"""Every operation of the API has its command: each command line is run, and the operation that it reaches is looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute
from starlette.routing import Match

from minutebook.cli.nouns import NOUNS, commands
from tests.api.cli_runs import Run, runner
from tests.api.memory import Installation
from tests.docs.pages import ROOT

OPERATIONS = {
    operation["operationId"]
    for path in json.loads((ROOT / "docs" / "reference" / "openapi.json").read_text())["paths"].values()
    for operation in path.values()
}
LINES = {
    "backfill_job": "job backfill a --from 2025-12-01T00:00:00Z --until 2025-12-02T00:00:00Z --yes",
    "cancel_execution": "execution cancel a:1 --yes",
    "cancel_job_with_reason": "job cancel a --yes",
    "cancel_operation": "operation cancel o --yes",
    "create_job": "job submit t",
    "create_key": "key create deploy --role viewer",
    "declare_queue": "queue create mail",
    "delete_calendar": "calendar delete c --yes",
    "delete_limit": "limit delete l --yes",
    "delete_tenant_limit": "limit delete --tenant-wide --yes",
    "drain_queue": "queue drain default",
    "edit_job": "job edit a --priority 1",
    "explain_execution": "execution why a:1",
    "explain_job": "job why a 2026-01-01T00:00:00Z",
    "get_calendar": "calendar show c",
    "get_command": "command show c",
    "get_execution": "execution show a:1",
    "get_job": "job show a",
    "get_key": "key show k",
    "get_limit": "limit show l",
    "get_me": "key show",
    "get_overview": "overview",
    "get_operation": "operation show o",
    "get_queue": "queue show default",
    "get_readyz": "doctor --no-kafka",
    "get_task": "task show t",
    "get_tenant_limit": "limit show --tenant-wide",
    "get_upcoming": "upcoming --by hour",
    "get_worker": "worker show w",
    "list_alerts": "alert list",
    "list_all_executions": "execution list",
    "list_audit_log": "audit list",
    "list_calendars": "calendar list",
    "list_dead_letters": "dead-letter list",
    "list_executions": "job history a",
    "list_job_events": "job events a",
    "list_job_versions": "job versions a",
    "list_jobs": "job list status:active",
    "list_keys": "key list",
    "list_limits": "limit list",
    "list_operations": "operation list",
    "list_partitions": "partition list",
    "list_queues": "queue list",
    "list_tasks": "task list",
    "list_tenants": "tenant list",
    "list_workers": "worker list",
    "pause_job": "job pause a",
    "pause_limit": "limit pause l --until 1m",
    "pause_queue": "queue pause default",
    "pause_tenant_limit": "limit pause --tenant-wide --until 1m",
    "purge_job": "job purge z --yes",
    "put_job": "apply FILE",
    "quiet_worker": "worker quiet w",
    "discard_dead_letters": "dead-letter discard --all --yes",
    "discard_execution": "execution discard a:1 --yes",
    "redrive_dead_letters": "dead-letter redrive --all --yes",
    "redrive_execution": "execution redrive a:1 --yes",
    "resume_job": "job resume a",
    "resume_limit": "limit resume l",
    "resume_queue": "queue resume default",
    "resume_tenant_limit": "limit resume --tenant-wide",
    "resume_worker": "worker resume w",
    "revoke_key": "key revoke k --yes",
    "rotate_key": "key rotate k",
    "run_job": "job run-now a",
    "set_calendar": "calendar set c 2026-01-01",
    "set_limit": "limit set l --concurrency 1",
    "set_tenant_limit": "limit set --tenant-wide --concurrency 1",
    "start_operation": "operation start pause --all --yes",
    "stop_worker": "worker stop w --yes",
    "stream_changes": "watch status:running",
}
"""Operation -> a command line that reaches it; `FILE` declares a job."""
EXCEPTIONS = {
    "cancel_job": "`job cancel` sends the one that takes a reason",
    "create_jobs": "`apply` puts many, each compared before with what is there",
    "get_livez": "for supervisors; `doctor` asks for more",
    "get_startupz": "for supervisors; `doctor` asks for more",
    "preview_schedule": "`schedule preview` works it out here, without an API",
}
"""Operation -> why it has no command."""


class Reached(httpx.AsyncBaseTransport):
    """The API, and the operations that requests have reached."""

    def __init__(self, world: Installation) -> None:
        self._api = httpx.ASGITransport(app=world.app)
        self._routes = [route for route in world.app.routes if isinstance(route, APIRoute)]
        self.operations: set[str] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        scope: dict[str, Any] = {"type": "http", "method": request.method, "path": request.url.path}
        for route in self._routes:
            if route.matches(scope)[0] is Match.FULL:
                self.operations.add(str(route.operation_id))
                break
        if request.url.path == "/v1/stream":
            raise KeyboardInterrupt  # a stream does not end, which httpx in memory waits for
        return await self._api.handle_async_request(request)


@pytest.fixture
def reached(world: Installation) -> Reached:
    return Reached(world)


@pytest.fixture
def run(reached: Reached, monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(reached, "key-admin", monkeypatch)


def test_every_operation_has_a_command_or_a_reason() -> None:
    assert {*LINES, *EXCEPTIONS} == OPERATIONS
    assert not set(LINES) & set(EXCEPTIONS)


def test_command_lines_reach_their_operations(run: Run, reached: Reached, tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    file.write_text('{"id": "b", "task": "t", "cron": "@daily"}')
    assert run("job", "submit", "t", "--id", "a", "--cron", "0 7 * * *") == 0
    missed = []
    for operation, line in LINES.items():
        reached.operations.clear()
        run(*line.replace("FILE", str(file)).split())
        if operation not in reached.operations:
            missed.append((operation, line, reached.operations.copy()))
    assert not missed


def test_every_noun_of_the_api_is_used() -> None:
    offline = {"config", "dev", "kafka", "schedule", "topics", "version"}
    assert {line.split()[0] for line in LINES.values()} | offline == set(NOUNS)


DESTROYS = ("cancel", "delete", "discard", "purge", "redrive", "revoke", "stop")


def test_what_destroys_asks_before() -> None:
    asking = {words for words, command in commands() if "yes" in {one.name for one in command.params}}
    destroying = {words for words, _ in commands() if words[-1] in DESTROYS}
    assert destroying - {("kafka", "stop")} <= asking, "the data of a broker that is stopped stays"


def test_many_at_once_can_be_tried_before() -> None:
    many = {
        ("apply",),
        ("dead-letter", "discard"),
        ("dead-letter", "redrive"),
        ("job", "backfill"),
        ("operation", "start"),
    }
    trying = {words for words, command in commands() if "dry_run" in {one.name for one in command.params}}
    assert many <= trying
