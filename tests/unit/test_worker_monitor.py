"""The port of a worker for whoever watches it."""

from __future__ import annotations

import asyncio
import json
import socket
import urllib.error
import urllib.request

import pytest

from minutebook.clock import SystemClock
from minutebook.errors import SettingsError
from minutebook.metrics import WORKER, exported_by
from minutebook.worker import App, Worker, WorkerSettings
from minutebook.worker.memory import MemoryChannel
from tests.unit.test_worker_loop import Running, working
from tests.unit.worker_owner import OwnerDouble


def get(port: int, path: str) -> tuple[int, str]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def ask(running: Running, path: str) -> tuple[int, str]:
    assert running.worker.metrics_port is not None
    return await asyncio.to_thread(get, running.worker.metrics_port, path)


async def test_a_worker_tells_its_slots_and_its_health() -> None:
    app = App()
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.task("wait")
    async def wait(payload: None) -> None:
        started.set()
        await go_on.wait()

    async with working(app, metrics_port=0, concurrency=3) as running:
        running.owner.queue("a:1", "wait")
        await started.wait()
        assert [(await ask(running, path))[0] for path in ("/livez", "/startupz", "/readyz")] == [200] * 3
        status, text = await ask(running, "/metrics")
        assert status == 200
        assert 'minutebook_worker_slots{state="busy"} 1.0' in text
        assert 'minutebook_worker_slots{state="free"} 2.0' in text
        named = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
        assert named == {row.name for row in exported_by(WORKER)}
        assert (await ask(running, "/elsewhere"))[0] == 404
        running.worker.drain()
        while (answer := await ask(running, "/readyz"))[0] == 200:
            pass
        assert json.loads(answer[1])["reason"] == "the worker leaves"
        assert (await ask(running, "/livez"))[0] == 200
        go_on.set()


class Nowhere(MemoryChannel):
    """Of a broker that is never there."""

    async def open(self, worker_id: str) -> int:
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_worker_without_a_broker_is_not_ready() -> None:
    channel = Nowhere(SystemClock(), 1, lambda partition, report: None)
    worker = Worker(App(), WorkerSettings.model_construct(name="w", metrics_port=0), channel)
    task = asyncio.create_task(worker.run())
    while worker.metrics_port is None:
        await asyncio.sleep(0)
    status, text = await asyncio.to_thread(get, worker.metrics_port, "/readyz")
    assert (status, json.loads(text)["reason"]) == (503, "no report has reached the broker yet")
    assert (await asyncio.to_thread(get, worker.metrics_port, "/startupz"))[0] == 503
    worker.drain()
    worker.drain()
    await task


async def test_a_port_that_is_taken_is_refused_by_name() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = WorkerSettings.model_construct(name="w", metrics_port=port)
        with pytest.raises(SettingsError, match=f"metrics_port {port} cannot be had"):
            await Worker(App(), settings, OwnerDouble(1).channel).run()
