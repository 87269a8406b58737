"""The loopback port of the owners' process: health, metrics, and a copy of the state on request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from streams.host import Host


def make_app(
    host: Host, registry: CollectorRegistry, checkpoint_dir: Path, new_name: Callable[[], str]
) -> web.Application:
    """`/livez /startupz /readyz /metrics`, and `POST /checkpoint`."""

    async def livez(request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def startupz(request: web.Request) -> web.Response:
        found = host.status()
        return web.json_response(found, status=200 if found["has_started"] else 503)

    async def readyz(request: web.Request) -> web.Response:
        found = host.status()
        return web.json_response(found, status=200 if found["is_ready"] else 503)

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def checkpoint(request: web.Request) -> web.Response:
        return web.json_response(host.checkpoint(checkpoint_dir / "streams" / new_name()))

    app = web.Application()
    app.add_routes(
        [
            web.get("/livez", livez),
            web.get("/startupz", startupz),
            web.get("/readyz", readyz),
            web.get("/metrics", metrics),
            web.post("/checkpoint", checkpoint),
        ]
    )
    return app


async def serve(app: web.Application, host: str, port: int) -> web.AppRunner:
    """Listen; the runner, to be cleaned up at the end."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner
