"""Addresses to call: there are no HTTP tasks, so they are refused wherever they are put, and nothing is called."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.api.memory import Installation

TARGETS: dict[str, Any] = {
    "U1 loopback": "http://127.0.0.1:9092/",
    "U2 short loopback": "https://127.1/",
    "U3 decimal address": "https://2130706433/",
    "U4 hex address": "https://0x7f000001/",
    "U5 octal address": "https://017700000001/",
    "U6 zero": "https://0/",
    "U7 IPv6 loopback": "https://[::1]/",
    "U8 mapped metadata address": "https://[::ffff:169.254.169.254]/",
    "U9 metadata address": "https://169.254.169.254/latest/",
    "U10 192.0.0.0/24": "https://192.0.0.192/",
    "U11 NAT64 loopback": "https://[64:ff9b::7f00:1]/",
    "U12 6to4 loopback": "https://[2002:7f00:1::]/",
    "U13 multicast": "https://224.0.0.1/",
    "U14 host after userinfo": "https://good.com@127.0.0.1/",
    "U15 circled digits": "https://\u2460\u2461\u2466.0.0.1/",
    "U16 newline in the scheme": "ht\ntps://a.com/",
    "U17 gopher": "gopher://a.com/",
    "U17 file": "file:///x",
    "U17 ftp": "ftp://a.com/",
    "U17 script": "javascript:alert(1)",
    "U18 name that changes": "https://changes.example/",
    "U19 redirect to metadata": "https://redirects.example/",
    "U20 port of ssh": "https://a.com:22/",
    "U20 port 0": "https://a.com:0/",
    "U20 port beyond all": "https://a.com:65536/",
    "U21 CRLF in a header": {"url": "https://a.com/", "headers": {"X-A": "a\r\nX-B: b"}},
    "U22 reserved headers": {"url": "https://a.com/", "headers": {"Host": "b", "Transfer-Encoding": "c"}},
    "U23 own API address": "http://api/v1/jobs",
}


@pytest.mark.parametrize("field", ["task", "id", "queue", "url", "target", "http"])
@pytest.mark.parametrize("name", TARGETS)
async def test_address_is_refused_in_every_field(
    name: str, field: str, api: httpx.AsyncClient, world: Installation
) -> None:
    answer = await api.post("/v1/jobs", json={"task": "t"} | {field: TARGETS[name]})
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/{field}"]
    assert world.log.sent == []
