"""From a create over HTTP to a signed post at a server in this process; what is broken there, the API does not show."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs

from api.inside import create_inside_app
from api.notifier import reader
from api.notifier.deliveries import Deliveries
from api.notifier.metrics import NotifierCollector
from api.notifier.post import Poster
from api.notifier.reader import Notifier
from api.notifier.settings import NotifySettings
from api.notifier.signature import read_secret, signed_headers
from api.notifier.targets import Targets
from minutebook.collectors import starting
from minutebook.domain import events as facts
from minutebook.domain.alerts import record_of
from minutebook.domain.records import Alert
from minutebook.log.settings import KafkaSettings
from minutebook.wire.frames import decode_frame
from tests.api.memory import Installation
from tests.api.test_dead_letters import give_up
from tests.unit.test_notifier_posts import Names, Server, served
from tests.unit.test_notifier_settings import SECRET


@pytest.fixture
def targets(world: Installation) -> Targets:
    settings = NotifySettings(
        targets={"acme": {"secret": SECRET}},  # type: ignore[dict-item]
        allow_http=True,
        allowed_networks=("127.0.0.0/8",),
    )
    world.services.targets = Targets(settings)
    return world.services.targets


def alerts(world: Installation) -> list[Alert]:
    """What the owners' outputs put on the topic."""
    return [
        record_of(event, partition)
        for partition, records in enumerate(world.log.logs)
        for record in records
        for event in decode_frame(record.value).events
        if isinstance(event, facts.AlertRaised)
    ]


def deliveries(world: Installation, targets: Targets, tally: Counter[str]) -> Deliveries:
    async def at_once(seconds: float) -> None:
        await asyncio.sleep(0)

    poster = Poster(targets.rules, 5.0, Names(["127.0.0.1"]))
    return Deliveries(targets, poster, world.clock, tally, at_once)


async def deliver(world: Installation, made: Deliveries) -> None:
    """Everything that the log raised, until it is settled."""
    for offset, alert in enumerate(alerts(world)):
        made.take(offset, alert)
    async with asyncio.timeout(20):
        while made.waiting():
            await asyncio.sleep(0.01)


def requested(server: Server) -> list[tuple[bytes, Any]]:
    return [
        (head, json.loads(body)) for head, _, body in (one.partition(b"\r\n\r\n") for one in server.requests)
    ]


async def test_job_that_dies_is_told_where_it_said(
    api: httpx.AsyncClient, world: Installation, targets: Targets
) -> None:
    tally: Counter[str] = Counter()
    async with served() as server:
        await give_up(world, api, ["a"], notify=f"http://hooks.example:{server.port}/in")
        await give_up(world, api, ["b"])
        await deliver(world, deliveries(world, targets, tally))
    ((head, body),) = requested(server)
    (listed,) = [item for item in (await api.get("/v1/alerts")).json()["items"] if item["job_id"] == "a"]
    assert body["data"] == listed, "what is posted is what is listed"
    raw = server.requests[0].partition(b"\r\n\r\n")[2]
    signed = signed_headers(read_secret(SECRET), listed["id"], world.clock.now() // 1_000, raw)
    assert head.startswith(b"POST /in HTTP/1.1\r\n")
    assert all(f"{name}: {value}".encode() in head for name, value in signed.items())
    assert tally == {"delivered": 1, "nobody": 1}


async def test_broken_target_leaves_the_api_ready_and_is_counted(
    api: httpx.AsyncClient, world: Installation, targets: Targets
) -> None:
    tally: Counter[str] = Counter()
    made = Notifier(KafkaSettings(), lambda: deliveries(world, targets, tally), tally)
    registry = CollectorRegistry()
    registry.register(NotifierCollector(made))
    assert all(
        f'minutebook_alerts_total{{outcome="{one}"}} 0.0'.encode() in generate_latest(registry)
        for (one,) in starting("minutebook_alerts_total")
    )
    async with served(b"HTTP/1.1 500 No\r\n\r\n") as server:
        await give_up(world, api, ["a"], notify=f"http://hooks.example:{server.port}/")
        await deliver(world, deliveries(world, targets, tally))
    inside = httpx.ASGITransport(app=create_inside_app(world.services, registry))
    async with httpx.AsyncClient(transport=inside, base_url="http://inside") as client:
        assert (await client.get("/readyz")).status_code == 200
        shown = (await client.get("/metrics")).text
    assert 'minutebook_alerts_total{outcome="given_up"} 1.0' in shown
    assert f'minutebook_alerts_total{{outcome="retried"}} {len(server.requests) - 1}.0' in shown
    assert "minutebook_alerts_waiting 0.0" in shown


async def test_broker_that_is_away_is_asked_again_and_again(
    world: Installation, targets: Targets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_RETRY_S", 0.0)
    tally: Counter[str] = Counter()
    nowhere = KafkaSettings(bootstrap_servers="127.0.0.1:1")
    with capture_logs() as lines:
        running = asyncio.create_task(
            Notifier(nowhere, lambda: deliveries(world, targets, tally), tally).run()
        )
        async with asyncio.timeout(30):
            while sum(line["event"] == "alerts_not_read" for line in lines) < 2:
                await asyncio.sleep(0.01)
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
