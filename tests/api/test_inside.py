"""The loopback port: a copy of the view that can be checked, and metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from api.follower import Follower
from api.inside import create_inside_app
from api.metrics import registry_of
from api.settings import ApiSettings
from minutebook.domain.view_rows import FAMILIES, digest
from minutebook.log.checkpoint import MANIFEST, read_manifest
from minutebook.log.settings import KafkaSettings
from minutebook.store.rocks import RocksRows
from tests.api.memory import PARTITIONS, Installation, installation


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Installation]:
    rows = RocksRows(tmp_path / "rows", FAMILIES)
    yield installation(rows)
    rows.close()


@pytest.fixture
async def inside(world: Installation, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    services = replace(world.services, settings=ApiSettings(checkpoint_dir=tmp_path))
    follower = Follower(services.view, KafkaSettings(), world.clock)
    follower.lag = {0: 3}
    transport = httpx.ASGITransport(app=create_inside_app(services, registry_of(follower, services.view)))
    async with httpx.AsyncClient(transport=transport, base_url="http://inside") as client:
        yield client


async def test_checkpoint_is_a_copy_of_one_moment(
    inside: httpx.AsyncClient, api: httpx.AsyncClient, world: Installation
) -> None:
    for number in range(10):
        await api.post("/v1/jobs", json={"id": f"j{number}", "task": "t", "run_at": "2030-01-01T00:00:00Z"})
    answer = await inside.post("/checkpoint")
    assert answer.status_code == 201
    made = answer.json()
    parts = world.services.view.parts
    assert [(part["partition"], part["position"], part["head"]) for part in made["partitions"]] == [
        (part.partition, part.cursor.position, part.cursor.head.hex()) for part in parts
    ]
    copies = read_manifest(Path(made["path"]) / MANIFEST)
    assert [copy.partition for copy in copies] == list(range(PARTITIONS))
    rows = RocksRows(Path(copies[0].path), FAMILIES)
    for copy in copies:
        assert digest(rows, copy.partition) == digest(world.services.view.rows, copy.partition)
    rows.close()
    again = (await inside.post("/checkpoint")).json()
    assert Path(again["path"]).parent == Path(made["path"]).parent
    assert again["path"] > made["path"]


async def test_no_copy_is_made_of_an_unready_view(inside: httpx.AsyncClient, world: Installation) -> None:
    world.ready.reason = "halted"
    assert (await inside.post("/checkpoint")).status_code == 503
    assert (await inside.get("/readyz")).status_code == 503
    assert (await inside.get("/livez")).status_code == 200


async def test_metrics_name_no_tenant(inside: httpx.AsyncClient, api: httpx.AsyncClient) -> None:
    await api.post("/v1/jobs", json={"id": "secret-job", "task": "t"})
    text = (await inside.get("/metrics")).text
    assert 'minutebook_partition_lag_records{partition="0",topic="job-events"} 3.0' in text
    assert "minutebook_void_frames_total 0.0" in text
    assert "minutebook_build_info" in text
    assert "acme" not in text
    assert "secret-job" not in text
