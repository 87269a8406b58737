"""Many readers of `/v1/stream` at one API process: what each costs while nothing happens, and how soon all are told.

The process serves an installation in memory behind the real server, so that what is measured is the stream alone.
`python -m bench.streams` is that process; the bench starts it.
"""

from __future__ import annotations

import asyncio
import math
import os
import resource
import socket
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

import httpx
import uvicorn

from api.server import server_config
from bench.results import Repetition
from bench.rig import BenchError, Options, Say
from tests.api.memory import installation

_IDLE_S: Final = 30.0
_CHANGES: Final = 100
_CHANGES_PER_S: Final = 10
_CONNECTING: Final = 50
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_REQUEST: Final = b"GET /v1/stream HTTP/1.1\r\nhost: api\r\naccept: text/event-stream\r\nauthorization: Bearer key-viewer\r\n\r\n"


class _Reader:
    """One connection; when it was told of which job."""

    def __init__(self) -> None:
        self.told_at: dict[bytes, float] = {}

    async def open(self, port: int) -> None:
        """Connect and wait for the first event. Raises BenchError if it is refused."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
        self._writer.write(_REQUEST)
        await self._writer.drain()
        head = await self._reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head[:16]:
            raise BenchError(f"a stream was refused: {head[:40]!r}")
        await self._reader.readuntil(b"event: position")

    async def follow(self) -> None:
        """Note what is told, until cancelled."""
        while True:
            line = await self._reader.readline()
            if line.startswith(b"data: "):
                now = time.monotonic()
                for part in line.split(b'"id":"')[1:]:
                    self.told_at.setdefault(part.partition(b'"')[0], now)

    def close(self) -> None:
        """Leave."""
        self._writer.close()


async def measure(n: int, options: Options, say: Say) -> list[Repetition]:
    """SSE: `n` readers, first idle, then told of ten changes a second."""
    _raise_file_limit()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.streams", stdin=PIPE, stdout=PIPE
    )
    try:
        assert process.stdout is not None
        port = int(await process.stdout.readline())
        return [await _measured(n, process, port, say)]
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def _measured(n: int, process: Process, port: int, say: Say) -> Repetition:
    before_kib = _rss_kib(process.pid)
    readers = [_Reader() for _ in range(n)]
    for start in range(0, n, _CONNECTING):
        await asyncio.gather(*(reader.open(port) for reader in readers[start : start + _CONNECTING]))
    kib = (_rss_kib(process.pid) - before_kib) / n
    say(f"{n} readers, {kib:.1f} KiB each")
    following = [asyncio.create_task(reader.follow()) for reader in readers]
    idle = await _cpu_share(process.pid, asyncio.sleep(_IDLE_S))
    say(f"idle: {idle:.2%} of a core")
    made_at: dict[bytes, float] = {}
    busy = await _cpu_share(process.pid, _change(port, made_at))
    async with asyncio.timeout(30):
        while any(len(reader.told_at) < _CHANGES for reader in readers):
            await asyncio.sleep(0.1)
    waits_ms = sorted(
        1_000 * (reader.told_at[name] - at) for reader in readers for name, at in made_at.items()
    )
    for task in following:
        task.cancel()
    for reader in readers:
        reader.close()
    return Repetition(
        peak_rss_mib={"api": round(_rss_kib(process.pid) / 1_024, 1)},
        more={
            "kib_per_client": round(kib, 1),
            "idle_cpu_share": round(idle, 4),
            "busy_cpu_share": round(busy, 4),
            "changes_per_s": _CHANGES_PER_S,
            "told_p50_ms": round(_quantile(waits_ms, 0.5)),
            "told_p99_ms": round(_quantile(waits_ms, 0.99)),
            "told_max_ms": round(waits_ms[-1]),
        },
    )


async def _change(port: int, made_at: dict[bytes, float]) -> None:
    """Create jobs, and note when each was answered."""
    headers = {"authorization": "Bearer key-submitter"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers) as client:
        for number in range(_CHANGES):
            name = f"job-{number}"
            body = {"id": name, "task": "t", "run_at": "2099-01-01T00:00:00Z"}
            (await client.post("/v1/jobs", json=body)).raise_for_status()
            made_at[name.encode()] = time.monotonic()
            await asyncio.sleep(1 / _CHANGES_PER_S)


async def _cpu_share(pid: int, meanwhile: Coroutine[Any, Any, None]) -> float:
    """Share of a core that a process takes while something goes on."""
    started_at, before = time.monotonic(), _cpu_ticks(pid)
    await meanwhile
    return (_cpu_ticks(pid) - before) / _TICKS_PER_S / (time.monotonic() - started_at)


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _rss_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def _quantile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, math.ceil(share * len(values)) - 1)]


def _raise_file_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve() -> None:
    """Serve until stdin ends; the port goes to stdout."""
    world = installation()
    listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
    server = uvicorn.Server(server_config(world.app, "127.0.0.1", 0))
    serving = asyncio.create_task(server.serve([listener]))
    print(listener.getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    world.services.live.close()
    server.should_exit = True
    await serving


if __name__ == "__main__":
    _raise_file_limit()
    asyncio.run(_serve())
