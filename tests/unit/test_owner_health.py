"""The health port of the owners' process, before any partition is here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry

from minutebook.clock import ManualClock
from minutebook.loop_lag import KEPT_S, LoopLag
from minutebook.metrics import GAUGE, OWNERS, exported_by
from streams.gauges import HostCollector
from streams.health import make_app
from streams.host import Host, _unready
from streams.process import Process


@pytest.fixture
def host() -> Host:
    nothing = dict.fromkeys(Process._fields)
    return Host(Process(**nothing | {"owner_id": "o-1/abc"}))  # type: ignore[arg-type]  # nothing else is used


@pytest.fixture
async def port(host: Host, tmp_path: Path) -> AsyncIterator[Any]:
    clock, registry = ManualClock(), CollectorRegistry()
    registry.register(HostCollector(host, clock, LoopLag(clock), tmp_path))
    async with TestClient(TestServer(make_app(host, registry, tmp_path, lambda: "x"))) as client:
        yield client


async def ask(port: Any, path: str) -> tuple[int, Any]:
    async with port.get(path) as answer:
        return answer.status, await answer.json()


async def test_a_process_without_partitions_says_why_it_is_not_ready(port: Any, host: Host) -> None:
    status, found = await ask(port, "/readyz")
    assert (status, found["reason"]) == (503, "the group has assigned no partitions yet")
    assert (await ask(port, "/startupz"))[0] == 503
    assert (await ask(port, "/livez"))[0] == 200


async def test_what_has_started_stays_started_though_it_is_not_ready(port: Any, host: Host) -> None:
    await host.assigned({})
    assert (await ask(port, "/readyz"))[0] == 200
    host.halted[4] = "its log is shorter than its store"
    status, found = await ask(port, "/readyz")
    assert (status, found["reason"]) == (503, "partition 4 is halted: its log is shorter than its store")
    assert (await ask(port, "/startupz"))[0] == 200


def test_partitions_that_are_folded_tell_how_much_is_left() -> None:
    owners = [{"state": "serving", "records_left": 0}, {"state": "recovering", "records_left": 70}]
    assert _unready(True, {}, owners) == "1 of 2 partitions are not served yet, 70 records left"


async def test_every_gauge_of_the_owners_is_exported(port: Any) -> None:
    async with port.get("/metrics") as answer:
        text = await answer.text()
    found = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert found == {row.name for row in exported_by(OWNERS) if row.kind == GAUGE}


def test_the_lag_of_a_loop_is_the_most_of_the_last_seconds() -> None:
    clock = ManualClock()
    lag = LoopLag(clock)
    assert lag.worst_s() == 0
    lag.beat(clock.monotonic() - 0.25)
    lag.beat(clock.monotonic() + 1)
    assert lag.worst_s() == pytest.approx(0.25)
    clock.advance(int(KEPT_S * 1_000) + 1)
    lag.beat(clock.monotonic())
    assert lag.worst_s() == 0
