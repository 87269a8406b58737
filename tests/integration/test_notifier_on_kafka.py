"""From an attempt that fails for good to a signed post, over a real broker; and what another process takes over."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from api.notifier.addresses import Address
from api.notifier.deliveries import Deliveries
from api.notifier.post import Poster
from api.notifier.reader import Notifier
from api.notifier.settings import NotifySettings
from api.notifier.targets import Targets
from minutebook.clock import SystemClock
from minutebook.domain.records import Alert
from minutebook.wire import codec, topics
from tests.crash.joblog import read_whole
from tests.crash.ledger import Ledger
from tests.crash.raw_worker import failed
from tests.crash.stack import TENANT, Stack
from tests.integration.case import Case
from tests.unit.test_notifier_posts import OK, Server, served

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()


@pytest.fixture
def stack(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    made = Stack(broker.bootstrap_servers, tmp_path_factory.mktemp("owners"))
    made.await_ready(made.owner("o1"))
    yield made
    assert Ledger(made.look()).complaints == []
    made.close()


async def loopback(host: str, port: int) -> list[Address]:
    return [ipaddress.ip_address("127.0.0.1")]


@asynccontextmanager
async def notifier(stack: Stack, server: Server) -> AsyncIterator[Notifier]:
    """A notifier of the tenant, whose target is the server."""
    settings = NotifySettings(
        targets={TENANT: {"url": f"http://hooks.example:{server.port}/", "secret": SECRET}},  # type: ignore[dict-item]
        allow_http=True,
        allowed_networks=("127.0.0.0/8",),
    )
    targets = Targets(settings)
    tally: Counter[str] = Counter()
    poster = Poster(targets.rules, 5.0, loopback)
    made = Notifier(stack.kafka, lambda: Deliveries(targets, poster, SystemClock(), tally), tally)
    running = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.05)


def give_up(stack: Stack) -> Case:
    """An execution that fails for good."""
    case = Case(stack)
    token = case.running()
    case.report(last_token=token, failed=failed(case.execution, token, is_permanent=True))
    stack.until("dead", lambda _: case.outcome() == "dead")
    return case


def told(request: bytes) -> tuple[dict[str, str], Any]:
    """Headers and body of a post, once its signature is proved, as a receiver does it."""
    head, _, body = request.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().lower().split("\r\n")[1:])
    said = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    wanted = base64.b64encode(hmac.digest(KEY, said, hashlib.sha256)).decode()
    assert f"webhook-signature: v1,{wanted}" in head.decode()
    return headers, json.loads(body)


async def test_execution_given_up_is_posted_signed_and_not_again_by_the_next_process(stack: Stack) -> None:
    async with served(OK) as server:
        async with notifier(stack, server) as first:
            case = await asyncio.to_thread(give_up, stack)
            await until(lambda: first.tally["delivered"] == 1)
            headers, body = told(server.requests[0])
            assert (body["type"], body["data"]["execution_id"]) == ("alert.execution_dead", case.execution)
            assert headers["webhook-id"] == body["data"]["id"]
            await until(lambda: first.committed == 1)
        async with notifier(stack, server) as second:
            other = await asyncio.to_thread(give_up, stack)
            await until(lambda: second.tally["delivered"] == 1)
        posts = [told(request)[1]["data"]["execution_id"] for request in server.requests]
        assert posts == [case.execution, other.execution]
    (records,) = read_whole(stack.kafka, topics.ALERTS, 1)
    alerts = [codec.decode(record.value) for record in records]
    assert [alert.execution for alert in alerts if isinstance(alert, Alert)] == posts
    names = {name for name, _ in records[0].headers}
    assert {"ce_id", "ce_type", "content-type", "mb_origin_topic", "mb_origin_offset", "mb_reason"} <= names
    assert records[0].key == TENANT.encode()


async def test_alert_that_was_not_delivered_is_the_next_process_to_deliver(stack: Stack) -> None:
    async with served(is_silent=True) as server, notifier(stack, server):
        await asyncio.to_thread(give_up, stack)
        await until(lambda: server.requests)
    async with served(OK) as server, notifier(stack, server) as second:
        await until(lambda: second.tally["delivered"] == 1)
        assert told(server.requests[0])[1]["type"] == "alert.execution_dead"
