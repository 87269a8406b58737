"""The loopback port: a copy of the view that can be checked, and metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from api.figures import Figures
from api.follower import Follower
from api.inside import create_inside_app
from api.metrics import ViewCollector, registry_of
from api.notifier.metrics import NotifierCollector
from api.notifier.settings import NotifySettings
from api.server import make_notifier
from api.settings import ApiSettings, ProcessSettings
from minutebook.domain.view_rows import FAMILIES, digest
from minutebook.log.admin import TopicSettings
from minutebook.log.checkpoint import MANIFEST, read_manifest
from minutebook.log.settings import KafkaSettings
from minutebook.loop_lag import LoopLag
from minutebook.metrics import API, exported_by
from minutebook.store.rocks import RocksRows
from tests.api.conftest import Callers
from tests.api.memory import NOW, PARTITIONS, Installation, installation


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
    process = ProcessSettings(
        api=services.settings, kafka=KafkaSettings(), topics=TopicSettings(), notify=NotifySettings()
    )
    figures = Figures(services.view, world.clock)
    await figures.count()
    registry = registry_of(
        ViewCollector(follower, services.view, figures, services.broker_clock, LoopLag(world.clock)),
        NotifierCollector(make_notifier(process, services.targets, world.clock)),
    )
    transport = httpx.ASGITransport(app=create_inside_app(services, registry))
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


async def test_a_clock_that_is_off_is_not_ready_until_the_broker_says_otherwise_or_nothing(
    inside: httpx.AsyncClient, world: Installation
) -> None:
    now = world.clock.now()
    world.services.broker_clock.acknowledged(now, now + 1_500, now + 10)
    answer = await inside.get("/readyz")
    assert answer.status_code == 503
    assert "clock is -1490 ms off the broker's: set it right" in answer.json()["detail"]
    assert (await inside.get("/startupz")).status_code == 200
    world.services.broker_clock.acknowledged(now, now + 5, now + 10)
    assert (await inside.get("/readyz")).status_code == 200
    world.services.broker_clock.acknowledged(now, now + 1_500, now + 10)
    world.clock.advance(61_000)
    assert (await inside.get("/readyz")).status_code == 200


async def test_a_start_is_over_once_the_view_has_caught_up(
    inside: httpx.AsyncClient, world: Installation
) -> None:
    world.ready.is_caught_up, world.ready.reason = False, "the view is still reading the log, 7 records left"
    answer = await inside.get("/startupz")
    assert (answer.status_code, answer.json()["detail"]) == (503, world.ready.reason)
    world.ready.is_caught_up, world.ready.reason = True, "the broker is away"
    assert (await inside.get("/startupz")).status_code == 200
    assert (await inside.get("/readyz")).status_code == 503


async def test_what_comes_due_soon_and_how_jobs_stand_is_counted_of_all_tenants(
    callers: Callers, world: Installation
) -> None:
    for client in (callers["submitter"], callers["other"]):
        for minutes in (0, 3, 30, 90):
            at = datetime.fromtimestamp((NOW + minutes * 60_000) / 1_000, UTC).isoformat()
            body = {"id": f"in-{minutes}", "task": "t", "run_at": at}
            assert (await client.post("/v1/jobs", json=body)).status_code == 201
    assert (await callers["submitter"].post("/v1/jobs/in-90/run-now")).status_code == 200
    world.services.view.commit_all()
    figures = Figures(world.services.view, world.clock)
    await figures.count()
    assert figures.due == {"1m": 2, "5m": 4, "60m": 6}
    assert (figures.jobs, figures.attempts) == ({"active": 8}, {"scheduled": 1})


async def test_every_metric_of_the_api_is_exported(inside: httpx.AsyncClient) -> None:
    text = (await inside.get("/metrics")).text
    found = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert found == {row.name for row in exported_by(API)}


async def test_metrics_name_no_tenant(inside: httpx.AsyncClient, api: httpx.AsyncClient) -> None:
    await api.post("/v1/jobs", json={"id": "secret-job", "task": "t"})
    text = (await inside.get("/metrics")).text
    assert 'minutebook_partition_lag_records{partition="0",topic="job-events"} 3.0' in text
    assert 'minutebook_void_frames_total{reason="clock"} 0.0' in text
    assert "minutebook_build_info" in text
    assert "acme" not in text
    assert "secret-job" not in text
