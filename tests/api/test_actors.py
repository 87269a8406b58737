"""Who stands behind a command: the key, the surface and the address, of a known alphabet and length."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from fastapi import Request

from api.actors import ActorParts, actor_of, parts_of
from tests.api.conftest import Callers
from tests.api.memory import Installation

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def request(host: str | None, **headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    client = None if host is None else (host, 1)
    return Request({"type": "http", "headers": raw, "client": client, "method": "GET", "path": "/"})


@pytest.mark.parametrize(
    ("agent", "via"),
    [
        ("minutebook-python/1.2", "sdk"),
        ("minutebook-cli/1.2", "cli"),
        ("minutebook-worker/1.2", "worker"),
        ("minutebook-cli", "cli"),
        ("curl/8.5.0", "api"),
        ("page/1", "api"),
        ("", "api"),
        ("minutebook-cli\x00/1", "api"),
        ("minutebook-cli from 1.1.1.1/1", "api"),
    ],
)
def test_the_surface_is_what_the_agent_says_of_itself(agent: str, via: str) -> None:
    assert actor_of(request("192.0.2.1", user_agent=agent), "k1") == f"key:k1 via {via} from 192.0.2.1"


def test_a_page_says_that_it_is_one() -> None:
    found = actor_of(request("192.0.2.1", user_agent="curl/1"), "k1", via="page")
    assert found == "key:k1 via page from 192.0.2.1"


@pytest.mark.parametrize(
    ("host", "forwarded", "address"),
    [
        ("192.0.2.1", None, "192.0.2.1"),
        ("192.0.2.1", "198.51.100.7", "192.0.2.1"),
        ("10.1.2.3", "198.51.100.7", "198.51.100.7"),
        ("10.1.2.3", "203.0.113.1, 198.51.100.7", "198.51.100.7"),
        ("10.1.2.3", "198.51.100.7, ", "10.1.2.3"),
        ("10.1.2.3", "nonsense", "10.1.2.3"),
        ("10.1.2.3", "198.51.100.7\x07", "10.1.2.3"),
        ("10.1.2.3", None, "10.1.2.3"),
        ("::ffff:10.1.2.3", "198.51.100.7", "198.51.100.7"),
        ("fd00::1", "2001:db8::1", "2001:db8::1"),
        ("2001:DB8:0::1", None, "2001:db8::1"),
        ("fe80::1%eth0\n", None, "fe80::1"),
        ("", None, "unknown"),
        (None, None, "unknown"),
        ("testclient", None, "unknown"),
    ],
)
def test_the_address_is_the_connections_or_the_last_hop_before_a_trusted_proxy(
    host: str | None, forwarded: str | None, address: str
) -> None:
    headers = {} if forwarded is None else {"x_forwarded_for": forwarded}
    found = actor_of(request(host, **headers), "k1", PROXIES)
    assert found == f"key:k1 via api from {address}"
    assert parts_of(found) == ActorParts("k1", "api", address)
    assert found.isprintable()


def test_an_actor_is_bounded() -> None:
    longest = actor_of(request("2001:db8:1111:2222:3333:4444:5555:6666"), "k" * 128, via="worker")
    assert len(longest) <= 256
    assert parts_of(longest).key == "k" * 128


@pytest.mark.parametrize(
    ("actor", "parts"),
    [
        ("key:0123456789ab", ActorParts("0123456789ab", None, None)),
        ("key:k via page", ActorParts("k", "page", None)),
        ("key:k via cli from 1.1.1.1 by operation op-1", ActorParts("k", "cli", "1.1.1.1", "op-1")),
        ("key:k by operation op-1", ActorParts("k", None, None, "op-1")),
        ("worker:w1", ActorParts(None, None, None)),
        ("", ActorParts(None, None, None)),
        ("key:k via cron from 1.1.1.1", ActorParts(None, None, None)),
        ("key:k via api from 1.1.1.1 and more", ActorParts(None, None, None)),
        ("key:k via api from 1.1.1.1\n", ActorParts(None, None, None)),
    ],
)
def test_an_actor_has_parts_only_if_it_is_one_of_ours(actor: str, parts: ActorParts) -> None:
    assert parts_of(actor) == parts


async def test_every_command_of_a_request_names_who_sent_it(callers: Callers, world: Installation) -> None:
    headers = {"user-agent": "minutebook-cli/9"}
    await callers["submitter"].post(
        "/v1/jobs", json={"id": "a", "task": "t", "delay": "PT1H"}, headers=headers
    )
    await callers["submitter"].delete("/v1/jobs/a", headers=headers | {"x-forwarded-for": "203.0.113.9"})
    key = world.services.keyring.find("key-submitter")
    assert key is not None
    assert [command.actor for command in world.log.sent] == [f"key:{key.key} via cli from 127.0.0.1"] * 2
