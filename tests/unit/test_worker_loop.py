"""The whole SDK without a broker: grants in, reports out, on a memory channel."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from minutebook.worker import App, Context, Drained, Fail, Retry, Worker, WorkerSettings
from tests.unit.worker_owner import OwnerDouble


class Running:
    """A worker under test with its owner."""

    def __init__(self, app: App, owner: OwnerDouble, **settings: object) -> None:
        self.owner = owner
        self.worker = Worker(app, WorkerSettings(name="w", **settings), owner.channel)
        self.task = asyncio.create_task(self.worker.run())

    async def leave(self) -> Drained:
        self.worker.drain()
        return await self.task


@asynccontextmanager
async def working(app: App, partitions: int = 2, **settings: object) -> AsyncIterator[Running]:
    running = Running(app, OwnerDouble(partitions), **settings)
    await running.owner.ready()
    try:
        yield running
    finally:
        while not running.task.done():
            running.worker.drain()
            await asyncio.sleep(0)
        await running.task


@dataclass
class Mail:
    to: str


async def test_run_succeeds_and_is_reported_with_its_token() -> None:
    app, seen = App(), []

    @app.task("mail.send")
    async def send(payload: Mail, ctx: Context) -> str:
        seen.append((payload.to, ctx.execution_id, ctx.job_id, ctx.tenant, ctx.attempt, ctx.queue))
        return "done"

    async with working(app) as running:
        running.owner.queue("j:1", "mail.send", b'{"to":"ada"}')
        await running.owner.until(lambda: "j:1" in running.owner.succeeded)
    assert seen == [("ada", "j:1", "j", "acme", 1, "default")]
    assert running.owner.succeeded["j:1"] == running.owner.granted["j:1"]
