"""A worker as the API sees it on a real broker: declared tasks, pulses, what it runs; quieted and stopped by its home."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from api.follower import Follower
from api.held_runs import KafkaFrames, held_by
from api.view import View
from api.workers_reader import WorkersReader
from api.workers_view import SeenWorker, WorkersView
from minutebook.clock import SystemClock
from minutebook.domain import events as facts
from minutebook.domain.commands import AskWorker
from minutebook.domain.view_rows import FAMILIES
from minutebook.mint import mint_id
from minutebook.store.memory import MemoryRows
from minutebook.worker import App
from tests.crash.ledger import Ledger
from tests.crash.stack import PARTITIONS, TENANT, Stack, job, now_ms
from tests.integration.test_worker_with_owner import Here

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


class Letter(msgspec.Struct):
    """A payload with a type."""

    to: str


@pytest.fixture(scope="module")
def stack(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    made = Stack(broker.bootstrap_servers, tmp_path_factory.mktemp("owners"))
    owner = made.owner("o1")
    made.await_ready(owner)
    yield made
    assert Ledger(made.look()).complaints == []
    assert owner.is_running, made.story()
    made.close()


class Seen:
    """What an API process has in its memory."""

    def __init__(self, stack: Stack) -> None:
        self._clock = SystemClock()
        self.view = View(MemoryRows(FAMILIES), PARTITIONS)
        self.workers = WorkersView()
        self.frames = KafkaFrames(stack.kafka)
        self.reader = WorkersReader(self.workers, stack.kafka, PARTITIONS, self._clock)
        self.follower = Follower(self.view, stack.kafka, self._clock)

    def worker(self, name: str) -> SeenWorker | None:
        found = [it for it in self.workers.workers(self._clock.now()) if it.name == name]
        return found[0] if found else None

    def status(self, name: str) -> str:
        found = self.worker(name)
        return "" if found is None else found.status(self._clock.now())


@asynccontextmanager
async def seeing(stack: Stack) -> AsyncIterator[Seen]:
    seen = Seen(stack)
    tasks = [asyncio.create_task(seen.reader.run()), asyncio.create_task(seen.follower.run())]
    try:
        yield seen
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await seen.frames.stop()


async def until(fact: Callable[[], bool], within_s: float = 60) -> None:
    """Look every now and then, for what other processes do."""
    async with asyncio.timeout(within_s):
        while not fact():
            await asyncio.sleep(0.05)


def ask(stack: Stack, worker: str, what: str) -> None:
    stack.send(AskWorker(name=worker, command_id=mint_id(), issued_at=now_ms(), actor="test", what=what))


async def test_worker_is_seen_quieted_resumed_and_stopped(stack: Stack) -> None:
    app, may_end = App(), asyncio.Event()

    @app.task("outside.wait")
    async def wait(payload: Letter) -> None:
        await may_end.wait()

    here = Here(stack, app, name="outside", concurrency=8)
    async with seeing(stack) as seen:
        await until(lambda: seen.status("outside") == "active")
        await until(lambda: seen.view.task("outside.wait") is not None)
        declared = seen.view.task("outside.wait")
        assert declared is not None
        assert (declared.version, declared.actor) == (1, "worker:outside")
        assert "Letter" in declared.payload_schema

        first = job(task="outside.wait", run_at=now_ms(), payload=b'{"to":"ada"}')
        stack.send(first)
        name = f"{first.job_id}:{first.run_at}"
        await until(lambda: any(session.held for session in _sessions(seen, "outside")))
        worker = seen.worker("outside")
        assert worker is not None
        mine, others = await held_by(worker, TENANT, seen.view, seen.frames)
        assert ([one.execution_id for one in mine], others) == ([name], 0)
        assert await held_by(worker, "somebody", seen.view, seen.frames) == ([], 1)

        ask(stack, worker.id, "quiet")
        await until(lambda: seen.status("outside") == "quiet")
        await until(lambda: all(session.offered == 0 for session in _sessions(seen, "outside")))
        second = job(task="outside.wait", run_at=now_ms(), payload=b'{"to":"ada"}')
        stack.send(second)
        later = (TENANT, f"{second.job_id}:{second.run_at}")
        await asyncio.to_thread(stack.until, "queued", lambda log: later in Ledger(log).known(), 60)
        assert not [token for (known, token) in Ledger(stack.log).grants if known == later]

        ask(stack, worker.id, "resume")
        await until(lambda: seen.status("outside") == "active")
        await until(lambda: sum(session.running for session in _sessions(seen, "outside")) == 2)

        ask(stack, worker.id, "stop")
        await until(lambda: seen.status("outside") == "leaving")
        assert not here.task.done()
        may_end.set()
        drained = await here.task
    assert (drained.drained, drained.handed_back, drained.is_forced) == (2, 0, False)
    asked = [event for event in stack.look().events(facts.WorkerAsked) if event.worker == here.worker.id]
    assert [(event.what, event.actor) for event in asked] == [
        ("quiet", "test"),
        ("resume", "test"),
        ("stop", "test"),
    ]


def _sessions(seen: Seen, name: str) -> list[Any]:
    found = seen.worker(name)
    return [] if found is None else list(found.sessions.values())
