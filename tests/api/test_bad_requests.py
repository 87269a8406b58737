"""Bad inputs of every kind that HTTP brings, at every door: refused with a problem, at once; nothing is written.

What single inputs must be answered is in the tests that are named after them; here is what all have in common.
"""

from __future__ import annotations

import json
import re
from time import process_time
from typing import Any, NamedTuple

import httpx
import pytest

from tests.api.conftest import Callers
from tests.api.memory import Installation
from tests.api.test_bad_credentials import TOKENS
from tests.api.test_create_bodies import FIELDS, JSON, MALFORMED, with_payload
from tests.api.test_document import OPERATIONS
from tests.api.test_http_targets import TARGETS
from tests.tidy.test_rows import LATER, ROWS

GOOD = {"task": "t", "run_at": "2030-01-01T00:00:00Z"}
JSON_BODY = b'{"task":"t"}'
RETRY = {"task": "t", "retry": {"max_attempts": "\uff11\uff12"}}


class Sent(NamedTuple):
    """A request that is to be refused."""

    method: str = "POST"
    path: str = "/v1/jobs"
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    key: str | None = "key-submitter"


def typed(kind: str, body: bytes = JSON_BODY) -> Sent:
    return Sent(body=body, headers=(("content-type", kind),))


def get(path: str) -> Sent:
    return Sent("GET", path, headers=())


def bearing(*credentials: str) -> Sent:
    """A create with these credentials and no other."""
    headers = (("content-type", "application/json"), *(("authorization", text) for text in credentials))
    return Sent(body=JSON_BODY, headers=headers, key=None)


def body(value: Any) -> Sent:
    return Sent(body=json.dumps(value).encode())


REQUESTS: dict[str, Sent] = {
    **{name: Sent(body=sent) for name, (sent, _) in MALFORMED.items()},
    **{name: body({"task": "t"} | fields) for name, (fields, _) in FIELDS.items()},
    **{
        f"{name} in {field}": body({"task": "t"} | {field: target})
        for name, target in TARGETS.items()
        for field in ("task", "target")
    },
    **{name: bearing(f"Bearer {token}") for name, token in TOKENS.items()},
    "R2 negative length": Sent(body=JSON_BODY, headers=(*JSON.items(), ("content-length", "-1"))),
    "R3 huge length": Sent(body=b"x", headers=(*JSON.items(), ("content-length", "10000000000"))),
    "R3 huge length of a batch": Sent(
        path="/v1/jobs/batch", body=b"x", headers=(*JSON.items(), ("content-length", "8388609"))
    ),
    "R5 length and chunked": Sent(
        body=JSON_BODY, headers=(*JSON.items(), ("content-length", "12"), ("transfer-encoding", "chunked"))
    ),
    "R6 compressed": Sent(
        body=b"\x1f\x8b" + b"\0" * 97_000, headers=(*JSON.items(), ("content-encoding", "gzip"))
    ),
    "R7 text": typed("text/plain"),
    "R7 accepts pictures": Sent(body=JSON_BODY, headers=(*JSON.items(), ("accept", "image/png"))),
    "R8 boundary of backslashes": typed("multipart/form-data; boundary=" + "\\" * 100_000),
    "R9 form": typed("application/x-www-form-urlencoded", b"a=1&" * 250_000),
    "R10 large header": Sent(body=JSON_BODY, headers=(*JSON.items(), ("x-a", "a" * 200_000))),
    "R11 long target": get("/v1/jobs?task=" + "a" * 60_000),
    "R13 method": Sent("PATCH"),
    "R14 NUL": get("/v1/jobs/%00"),
    "R15 traversal": get("/v1/jobs/..%2f..%2fadmin"),
    "R16 not UTF-8": get("/v1/jobs/%ff"),
    "R17 negative page": get("/v1/jobs?limit=-1"),
    "R18 huge page": get("/v1/jobs?limit=1000000000"),
    "R19 forged cursor": get("/v1/jobs?cursor=garbage"),
    "R21 repeated name": get("/v1/jobs?limit=10&limit=99"),
    "J22 digits of another script": body(RETRY),
    "J22 digits of a third": body({"task": "t", "retry": {"max_attempts": "\u0663"}}),
    "D28 huge key": Sent(body=JSON_BODY, headers=(*JSON.items(), ("idempotency-key", "a" * 1_000_000))),
    "A1 no credential": bearing(),
    "A2 empty bearer": bearing("Bearer"),
    "A3 two credentials": bearing("Bearer nothing", "Bearer key-submitter"),
    "A5 another tenant's": Sent("GET", "/v1/jobs/kept", headers=(), key="key-other"),
    "A15 who reads writes": Sent("POST", "/v1/jobs/kept/cancel", body=b"{}", key="key-viewer"),
    "A17 token of ten megabytes": bearing("Bearer " + "a" * 10_000_000),
    "A18 key in the query": Sent("GET", "/v1/jobs?api_key=key-submitter", headers=(), key=None),
}
ELSEWHERE = {
    "R4": "a body that does not end needs a socket",
    "R12": "the normal answer",
    "R20": "two tenants, two lists",
    "J9": "taken",
    "D22": "taken",
    "D27": "the first is taken",
    "D29": "taken",
}
"""Rows that are no single request to be refused: they have tests of their own."""


async def ask(world: Installation, sent: Sent) -> httpx.Response:
    """The answer to what is sent, header by header, which took less than a second of work."""
    headers = [(name.encode(), value.encode("utf-8")) for name, value in sent.headers]
    if sent.key is not None:
        headers.append((b"authorization", b"Bearer " + sent.key.encode()))
    transport = httpx.ASGITransport(app=world.app, raise_app_exceptions=False)
    request = httpx.Request(sent.method, "http://api" + sent.path, headers=headers, content=sent.body)
    started_s = process_time()
    async with httpx.AsyncClient(transport=transport) as client:
        answer = await client.send(request)
    assert process_time() - started_s < 1
    return answer


async def refuses(world: Installation, sent: Sent) -> httpx.Response:
    """What all that is refused has in common."""
    written = len(world.log.sent)
    answer = await ask(world, sent)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == f"/problems/{problem['code']}"
    assert problem["status"] == answer.status_code
    assert problem["detail"] or problem["errors"]
    assert len(answer.content) < 4_000
    assert len(world.log.sent) == written
    return answer


@pytest.mark.parametrize("name", REQUESTS)
async def test_bad_request_is_refused_and_the_next_one_is_answered(name: str, world: Installation) -> None:
    assert (await ask(world, body(GOOD | {"id": "kept"}))).status_code == 201
    await refuses(world, REQUESTS[name])
    assert (await ask(world, body(GOOD | {"id": "next"}))).status_code == 201


def test_every_row_of_http_is_asked_here_or_has_its_own_test() -> None:
    rows = {row["id"] for row in ROWS if row["where"] in ("rest", "json", "field", "url", "auth")}
    asked = {name.split()[0] for name in REQUESTS}
    assert rows - asked - set(ELSEWHERE) - set(LATER) == set()


def at(door: str, name: str) -> tuple[str, str]:
    """Method and path of an operation on what is called `name`."""
    method, _, path = door.partition(" ")
    return method, re.sub(r"{\w+}", name, path.replace("{execution_id}", f"{name}:1"))


BODIES: dict[str, bytes] = {
    name: sent for name, (sent, _) in MALFORMED.items() if not sent.startswith(b'{"task"') and sent
} | {
    "a name twice": b'{"reason":"a","reason":"b"}',
    "unknown": b'{"is_admin":true}',
    "deep": with_payload(b"[" * 300),
}
DOORS = [name for name, operation in OPERATIONS.items() if "requestBody" in operation]


@pytest.mark.parametrize("door", DOORS)
async def test_body_that_fits_nowhere_is_refused_at_every_door(door: str, world: Installation) -> None:
    method, path = at(door, "a")
    await ask(world, body(GOOD | {"id": "a"}))
    headers = (*JSON.items(), ("idempotency-key", "k"))
    for text in BODIES.values():
        await refuses(world, Sent(method, path, text, headers, "key-admin"))


@pytest.mark.parametrize("name", FIELDS)
async def test_refused_field_is_named_at_every_door(name: str, world: Installation) -> None:
    fields, field = FIELDS[name]
    item = {"task": "t"} | fields
    answer = await refuses(world, Sent("PUT", "/v1/jobs/a", json.dumps(item).encode()))
    assert f"/{field}" in [error["pointer"] for error in answer.json()["errors"]]
    batch = Sent(
        path="/v1/jobs/batch",
        body=json.dumps({"jobs": [item, GOOD]}).encode(),
        headers=(*JSON.items(), ("idempotency-key", "k")),
    )
    refused, taken = (await ask(world, batch)).json()["items"]
    assert [error["pointer"] for error in refused["problem"]["errors"]] == [f"/{field}"]
    assert taken["status"] == 201
    assert len(world.log.sent) == 1


LONGEST = [name for name in OPERATIONS if "{" in name and not name.startswith("GET")]


@pytest.mark.parametrize("door", LONGEST)
async def test_request_about_the_longest_name_is_decided(door: str, callers: Callers) -> None:
    method, path = at(door, "a" * 128)
    content = OPERATIONS[door].get("requestBody", {}).get("content", {}).get("application/json", {})
    headers = {"idempotency-key": "k", "prefer": "wait=1"}
    answer = await callers["admin"].request(method, path, json=content.get("example"), headers=headers)
    assert answer.status_code != 202, answer.text
