"""Limits in the client: what is sent for each call, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import msgspec
import pytest
from pydantic import SecretStr

from minutebook.client import Client, ClientSettings, Command, Limit, LimitRequest, SyncClient
from minutebook.client.models import LimitPage

LIMIT = Limit(name="api", version=1, concurrency=3)
SETTINGS = ClientSettings(url="http://api", api_key=SecretStr("k"), retries_max=0)


def answer(status: int, body: Any = None) -> httpx.Response:
    return httpx.Response(status, content=b"" if body is None else msgspec.json.encode(body))


def client_of(handle: Callable[[httpx.Request], httpx.Response]) -> Client:
    return Client(SETTINGS, transport=httpx.MockTransport(handle))


@pytest.mark.parametrize(("name", "path"), [("a", "/v1/limits/a"), (None, "/v1/tenant-limit")])
async def test_calls_name_the_limit_and_say_what_is_given(name: str | None, path: str) -> None:
    seen: list[tuple[str, str, bytes]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append((request.method, request.url.path, request.content))
        return answer(204) if request.method == "DELETE" else answer(200, LIMIT)

    async with client_of(handle) as client:
        limits = client.limits
        assert await limits.set(name, LimitRequest(concurrency=3)) == LIMIT
        assert await limits.get(name) == LIMIT
        await limits.pause(name, timedelta(seconds=30), reason="429")
        await limits.pause(name, datetime(2030, 1, 1, tzinfo=UTC))
        await limits.pause(name, "PT1M")
        await limits.resume(name)
        assert await limits.delete(name) is None
        with pytest.raises(ValueError, match="zone"):
            await limits.pause(name, datetime(2030, 1, 1))
    assert seen == [
        ("PUT", path, b'{"concurrency":3}'),
        ("GET", path, b""),
        ("POST", f"{path}/pause", b'{"until":"PT30S","reason":"429"}'),
        ("POST", f"{path}/pause", b'{"until":"2030-01-01T00:00:00.000Z"}'),
        ("POST", f"{path}/pause", b'{"until":"PT1M"}'),
        ("POST", f"{path}/resume", b"{}"),
        ("DELETE", path, b""),
    ]


async def test_undecided_change_is_a_command() -> None:
    command = Command(command_id="c", outcome=None)
    async with client_of(lambda request: answer(202, command)) as client:
        assert await client.limits.delete("a") == command
        assert await client.limits.resume("a") == command


def test_sync_client_does_the_same() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        if request.method == "DELETE":
            return answer(204)
        return answer(200, LimitPage([LIMIT], None) if request.url.path == "/v1/limits" else LIMIT)

    with SyncClient(SETTINGS, transport=httpx.MockTransport(handle)) as client:
        limits = client.limits
        assert list(limits.all()) == [LIMIT]
        assert limits.set("api", LimitRequest()) == limits.get("api") == LIMIT
        assert limits.pause("api", "PT1S") == limits.resume("api") == LIMIT
        assert limits.delete("api") is None
