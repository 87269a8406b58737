"""An installation in memory and clients of every role."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest

from tests.api.memory import KEYS, Installation, installation


class Callers(dict[str, httpx.AsyncClient]):
    """Clients by role, and `other` of another tenant."""


@pytest.fixture
def world() -> Installation:
    return installation()


@pytest.fixture
async def callers(world: Installation) -> AsyncIterator[Callers]:
    transport = httpx.ASGITransport(app=world.app)
    async with AsyncExitStack() as stack:
        found = Callers()
        for key in KEYS:
            client = httpx.AsyncClient(
                transport=transport, base_url="http://api", headers={"authorization": f"Bearer {key}"}
            )
            found[key.removeprefix("key-")] = await stack.enter_async_context(client)
        found["nobody"] = await stack.enter_async_context(
            httpx.AsyncClient(transport=transport, base_url="http://api")
        )
        yield found


@pytest.fixture
def api(callers: Callers) -> httpx.AsyncClient:
    """A submitter's client."""
    return callers["submitter"]
