"""The port for operators on this machine: health, metrics, and a copy of the view that can be checked. Loopback only."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from api.app import bare_app
from api.catch_up import not_ready
from api.routes import health
from api.services import Services
from minutebook.log.checkpoint import Copy, write_manifest
from minutebook.log.written import beside, folders_whole
from minutebook.mint import mint_id

ROWS: Final = "rows"


class PartitionPosition(msgspec.Struct):
    """How far a partition is folded in a copy; `head` is the chain after `position`, in hex."""

    partition: int
    position: int
    head: str


class CheckpointMade(msgspec.Struct):
    """A copy of the view, consistent over all partitions."""

    path: str
    partitions: list[PartitionPosition]


def create_inside_app(services: Services, registry: CollectorRegistry) -> FastAPI:
    """The application of the loopback port. No credential: whoever is on this machine may ask."""
    app = bare_app(services)
    app.router.routes.extend(health.router.routes)

    @app.get("/metrics")
    async def get_metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    @app.post("/checkpoint")
    async def make_checkpoint() -> Response:
        reason = services.readiness.unready()
        if reason:
            raise not_ready(services.readiness.catch_up, reason)
        folder = services.settings.checkpoint_dir.resolve() / "view" / mint_id()
        return Response(msgspec.json.encode(checkpoint(services, folder)), 201, media_type="application/json")

    return app


def checkpoint(services: Services, folder: Path) -> CheckpointMade:
    """Copy the view into `folder`, which must not exist: positions and rows of one moment, as nothing runs between."""
    view = services.view
    view.commit_all()
    with folders_whole(beside(folder), [folder]) as (copy,):
        view.rows.checkpoint(str(copy / ROWS))
        made = [
            PartitionPosition(part.partition, part.cursor.position, part.cursor.head.hex())
            for part in view.parts
        ]
        copies = (
            Copy(
                partition=one.partition,
                position=one.position,
                head=one.head,
                path=ROWS,
                retention=view.retention,
            )
            for one in made
        )
        write_manifest(copy, copies)
    return CheckpointMade(str(folder), made)
