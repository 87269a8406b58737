"""The outbox of examples: an order and its job are both there or neither is, whoever dies in between."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import httpx
import pytest
from pydantic import SecretStr

from examples.outbox.orders import SCHEMA, place_order
from examples.outbox.relay import relay
from minutebook.client import ClientSettings, RefusedError, SyncClient, UnavailableError
from tests.api.memory import Installation


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:")
    made.executescript(SCHEMA)
    yield made
    made.close()


@pytest.fixture
def client(world: Installation) -> Iterator[SyncClient]:
    settings = ClientSettings(url="http://api", api_key=SecretStr("key-submitter"), retries_max=0)
    with SyncClient(settings, transport=httpx.ASGITransport(app=world.app)) as made:
        yield made


def waiting(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT count(*) FROM outbox").fetchone()[0])


def test_order_and_job_come_together(database: sqlite3.Connection, client: SyncClient) -> None:
    place_order(database, 17, "ada@example.org")
    with pytest.raises(sqlite3.IntegrityError):
        place_order(database, 17, "ada@example.org")
    assert waiting(database) == 1
    assert relay(database, client) == 1
    assert relay(database, client) == 0
    assert [job.id for job in client.jobs()] == ["order-17-reminder"]


def test_row_that_is_sent_again_makes_no_second_job(
    database: sqlite3.Connection, client: SyncClient, world: Installation
) -> None:
    place_order(database, 17, "ada@example.org")
    before = list(database.iterdump())
    relay(database, client)
    with database:
        database.execute("DELETE FROM outbox")
        for line in before:  # the relay died before its delete
            if line.startswith('INSERT INTO "outbox"'):
                database.execute(line)
    assert relay(database, client) == 1
    assert len(list(client.jobs())) == 1
    assert waiting(database) == 0


def test_rows_wait_while_the_api_is_away(
    database: sqlite3.Connection, client: SyncClient, world: Installation
) -> None:
    world.log.is_broken = True
    for order in (1, 2):
        place_order(database, order, "ada@example.org")
    with pytest.raises(UnavailableError):
        relay(database, client)
    assert waiting(database) == 2
    world.log.is_broken = False
    assert relay(database, client) == 2


def test_row_that_is_refused_stays(database: sqlite3.Connection, client: SyncClient) -> None:
    with database:
        database.execute("INSERT INTO outbox (job) VALUES (?)", ('{"task": "t", "queue": "nowhere"}',))
    with pytest.raises(RefusedError):
        relay(database, client)
    assert waiting(database) == 1
