"""The stream through the client: it comes back by itself and misses nothing."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
import uvicorn
from pydantic import SecretStr

from api.live import changes as live
from api.server import server_config
from minutebook.client import Change, Client, ClientSettings, DeniedError, JobRequest, live_calls
from tests.api.memory import Installation


@pytest.fixture
async def url(world: Installation) -> AsyncIterator[str]:
    """The installation behind a real port: streams do not end, which httpx in memory waits for."""
    config = server_config(world.app, "127.0.0.1", 0)
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    serving = asyncio.create_task(server.serve([listener]))
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    world.services.live.close()
    server.should_exit = True
    await serving


async def test_client_follows_changes_over_broken_connections(
    url: str, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "TURN_S", 0.01)
    monkeypatch.setattr(live_calls, "_AGAIN_S", 0.01)
    settings = ClientSettings(url=url, api_key=SecretStr("key-submitter"))
    async with Client(settings) as client, asyncio.timeout(20):
        following = client.changes(task="t")
        for name in ("a", "b", "c"):
            coming = asyncio.create_task(anext(following))
            while not len(world.services.live):
                await asyncio.sleep(0.01)
            await client.submit(JobRequest(id=name, task="t"))
            change = await coming
            assert isinstance(change, Change)
            assert (change.kind, change.id, change.job_id, change.status) == ("job", name, name, "active")
            for listener in world.services.live._listeners:
                listener.close()
        await following.aclose()


async def test_client_tells_why_it_may_not_follow(url: str) -> None:
    async with Client(ClientSettings(url=url, api_key=SecretStr("nothing"))) as client, asyncio.timeout(20):
        with pytest.raises(DeniedError):
            await anext(client.changes())
        upcoming = client.upcoming(by="hour")
        with pytest.raises(DeniedError):
            await upcoming
