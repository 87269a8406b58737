"""No tenant sees a byte of another one: every route of the app, asked by another tenant for what the first one has.

A route that is added later is asked too; one whose path names something that is not listed here fails.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, NamedTuple

import httpx
import msgspec
import pytest
from fastapi.routing import APIRoute

from api.app import create_app
from api.openapi import scope_of
from tests.api.conftest import Callers
from tests.api.memory import Installation, installation
from tests.api.runs import come, fail
from tests.api.test_document import OPERATIONS
from tests.api.test_history import MemoryRecords
from tests.api.test_workers import MemoryFrames, full, pulse

MARK = "zq7mark"
"""In everything that tenant `acme` has: ids, names, payloads, reasons."""
STREAMS = ("/v1/stream", "/stream")
UNKNOWN = "nothing-of-this-name"
STREAM_S = 0.3
"""How long an answer may go on before the caller leaves: streams do not end by themselves."""


class Had(NamedTuple):
    """What `acme` has."""

    ids: dict[str, str]
    """By the beginning of a path, up to and with its name."""
    when: list[str]
    """Reads of all of it."""


ROUTES = [
    (method, route.path)
    for route in create_app(installation().services).routes
    if isinstance(route, APIRoute) and scope_of(route) is not None
    for method in sorted(route.methods or ())
]
OF_ALL = {"/v1/queues", "/v1/partitions", "/v1/workers", "/v1/stream"}
"""Lists of what belongs to the installation."""
SHARED = {
    "/v1/tasks/{name}": "declared tasks are of all tenants",
    "/v1/workers/{worker_id}": "so are workers",
}
CREATES = {("PUT", "/v1/jobs/{job_id}"), ("PUT", "/v1/limits/{name}"), ("PUT", "/v1/calendars/{name}")}
"""Whoever puts what is not there makes it, under the same id, in its own tenant."""


async def fill(world: Installation, api: httpx.AsyncClient) -> dict[str, str]:
    """Give `acme` one of everything. By path of the thing: its id."""

    async def send(method: str, path: str, body: Any = None, status: int = 201) -> Any:
        answer = await api.request(method, path, json=body, headers={"idempotency-key": MARK})
        assert answer.status_code == status, answer.text
        return answer

    await send("POST", "/v1/queues", {"name": f"{MARK}-queue", "tenants": ["acme"]})
    await send("PUT", f"/v1/limits/{MARK}-limit", {"concurrency": 1})
    await send("PUT", "/v1/tenant-limit", {"concurrency": 7777})
    await send("PUT", f"/v1/calendars/{MARK}-calendar", {"dates": ["2027-01-01"], "reason": MARK})
    job = {
        "task": "t",
        "queue": f"{MARK}-queue",
        "payload": MARK,
        "limit": f"{MARK}-limit",
        "calendars": {"exclude": [f"{MARK}-calendar"]},
        "cron": "0 7 * * *",
        "notify": "",
    }
    await send("POST", "/v1/jobs", {"id": f"{MARK}-job"} | job)
    await send("POST", "/v1/jobs", {"id": f"{MARK}-dead", "task": "t", "payload": MARK})
    come(world)
    dead = f"{MARK}-dead:{world.clock.now()}"
    fail(world, dead, MARK)
    await send("POST", "/v1/jobs", {"id": f"{MARK}-runs", "task": "t", "payload": MARK})
    come(world)
    world.services.frames = MemoryFrames(world)
    world.services.records = MemoryRecords(world)
    home = world.services.view.partition_of_job("acme", f"{MARK}-runs")
    token = next(row.token for _, row in world.log.books[home].running.scan(b""))
    pulse(world.services.workers, said=full(held=[token], tasks=["t"]), partition=home)
    started = await send(
        "POST",
        "/v1/operations",
        {"kind": "redrive", "filter": {"task": f"{MARK}-task"}, "reason": MARK},
        202,
    )
    await send("POST", f"/v1/jobs/{MARK}-job/pause", {"reason": MARK}, 200)
    made = await send("POST", "/v1/keys", {"label": f"{MARK}-key", "role": "viewer"})
    (command, *_) = [sent.command_id for sent in world.log.sent if sent.command_id]
    return {
        "/v1/jobs/{job_id}": f"{MARK}-dead",
        "/v1/executions/{execution_id}": dead,
        "/v1/commands/{command_id}": command,
        "/v1/queues/{name}": f"{MARK}-queue",
        "/v1/limits/{name}": f"{MARK}-limit",
        "/v1/calendars/{name}": f"{MARK}-calendar",
        "/v1/operations/{operation_id}": started.json()["id"],
        "/v1/keys/{key_id}": made.json()["id"],
        "/v1/tasks/{name}": "t",
        "/v1/workers/{worker_id}": "w1",
    }


async def ask(world: Installation, key: str, method: str, path: str, example: Any = None) -> tuple[int, str]:
    """Status, and all that comes back: headers and body, as much of it as comes before the caller leaves."""
    body = b"" if example is None else msgspec.json.encode(example)
    is_page = not path.startswith("/v1")
    headers = [
        (b"cookie", await session(world, key)) if is_page else (b"authorization", f"Bearer {key}".encode()),
        (b"content-type", b"application/x-www-form-urlencoded" if is_page else b"application/json"),
        (b"sec-fetch-site", b"same-origin"),
        (b"idempotency-key", b"k"),
        (b"prefer", b"wait=1"),
    ]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"at=2026-01-01T00:00:00Z" if path.endswith("/why") and "/jobs/" in path else b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("api", 80),
    }
    requests: asyncio.Queue[Any] = asyncio.Queue()
    requests.put_nowait({"type": "http.request", "body": body, "more_body": False})
    status, parts = 0, []

    async def send(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            parts.extend(value for header in message["headers"] for value in header)
        else:
            parts.append(message.get("body", b""))

    answering = asyncio.ensure_future(world.app(scope, requests.get, send))
    await asyncio.wait([answering], timeout=STREAM_S if path in STREAMS else 5)
    if not answering.done():
        answering.cancel()
    await asyncio.gather(answering, return_exceptions=True)
    return status, re.sub(r'"trace_id":"\w+"', "", b" ".join(parts).decode())


def asker(tenant: str, path: str) -> str:
    """The key that asks for a path: an operator's, for admins also see commands that belong to no tenant; an admin's where
    it takes one.
    """
    takes_admin = path.startswith(("/v1/keys", "/v1/tenants"))
    return f"key-{tenant}{'admin' if takes_admin else 'operator'}"


def named(path: str, ids: dict[str, str]) -> str:
    """`path` about what `ids` has. Raises KeyError for a path about something else."""
    thing = thing_of(path)
    return re.sub(r"{\w+}", ids[thing], path) if thing else path


def thing_of(path: str) -> str:
    """The path of the thing that a route is about, in the API; empty for none."""
    start, brace, _ = path.partition("}")
    return "/v1" * (not start.startswith("/v1")) + start + brace if brace else ""


async def session(world: Installation, key: str) -> bytes:
    """The cookie of who has logged in to the pages."""
    transport = httpx.ASGITransport(app=world.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://api") as browser:
        answer = await browser.post("/login", data={"key": key}, headers={"sec-fetch-site": "same-origin"})
        assert answer.status_code == 303, answer.text
        return "; ".join(f"{name}={value}" for name, value in browser.cookies.items()).encode()


@pytest.fixture
async def ids(world: Installation, callers: Callers) -> dict[str, str]:
    return await fill(world, callers["admin"])


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.row("A5", "R20")
async def test_route_shows_nothing_of_another_tenant(
    method: str, path: str, world: Installation, ids: dict[str, str]
) -> None:
    content = OPERATIONS.get(f"{method} {path}", {}).get("requestBody", {}).get("content", {})
    example = content.get("application/json", {}).get("example")
    before = await everything(world, ids)
    status, answer = await ask(world, asker("other-", path), method, named(path, ids), example)
    assert status, "not answered"
    thing = thing_of(path)
    own = ids.get(thing, "")
    shown = answer.replace(own, "") if own else answer
    assert MARK not in shown
    assert "7777" not in shown
    if thing and thing not in SHARED and (method, path) not in CREATES:
        unknown = {start: UNKNOWN + (":1" if "execution" in start else "") for start in ids}
        missing = await ask(world, asker("other-", path), method, named(path, unknown), example)
        assert (status, shown) == missing
        assert status == 404 or (method == "POST" and status in (400, 422))
    assert await everything(world, ids) == before


@pytest.mark.parametrize("path", [path for method, path in ROUTES if method == "GET" and "{" not in path])
async def test_list_is_as_if_the_other_tenant_were_not_there(
    path: str, world: Installation, ids: dict[str, str]
) -> None:
    alone = await ask(installation(), "key-other-operator", "GET", path)
    if path.startswith("/v1") and path not in OF_ALL:
        assert await ask(world, "key-other-operator", "GET", path) == alone


async def everything(world: Installation, ids: dict[str, str]) -> list[tuple[int, str]]:
    """All that `acme` is shown of what it has."""
    paths = [
        named(path, ids)
        for method, path in ROUTES
        if method == "GET" and path.startswith("/v1") and path not in OF_ALL
    ]
    return [await ask(world, asker("", path), "GET", path) for path in paths]


async def test_marks_are_seen_by_their_own_tenant(world: Installation, ids: dict[str, str]) -> None:
    """Else nothing of the above could fail."""
    silent = {
        "/v1/me",
        "/v1/partitions",
        "/v1/upcoming",
        "/v1/tenants",
        "/v1/tasks",
        "/v1/tasks/{name}",
        "/v1/workers",
        "/v1/overview",
    }
    for method, path in ROUTES:
        if method == "GET" and path.startswith("/v1") and path not in silent | {"/v1/stream"}:
            status, answer = await ask(world, asker("", path), method, named(path, ids))
            assert status in (200, 404), (path, answer)
            if status == 200:
                assert MARK in answer or "7777" in answer, path
